package derive

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
)

// memory is what the collector keeps a process below, if it can, while a collection is derived as a whole. Most of what
// that allocates is garbage soon: buffers in which the engine packs its tables.
const memory = 200 << 20

// limited counts the derivations that the limit is for.
var limited struct {
	sync.Mutex
	n int
}

// spareMemory limits the memory of the process until the function is called that it returns. A limit that somebody has
// set (GOMEMLIMIT) stays. What the process needs for other work already is not counted.
func spareMemory() (end func()) {
	limited.Lock()
	defer limited.Unlock()
	if limited.n == 0 {
		if debug.SetMemoryLimit(-1) != math.MaxInt64 {
			return func() {}
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		debug.SetMemoryLimit(max(memory, int64(m.HeapAlloc)*2))
	}
	limited.n++
	return func() {
		limited.Lock()
		defer limited.Unlock()
		if limited.n--; limited.n == 0 {
			debug.SetMemoryLimit(math.MaxInt64)
		}
	}
}
