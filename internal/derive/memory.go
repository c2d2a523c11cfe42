package derive

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
)

// memory is the target of the garbage collector while a collection is derived as a whole, because most allocations are
// short-lived: buffers in which the engine packs its tables.
const memory = 200 << 20

// limited counts the derivations that the limit is for.
var limited struct {
	sync.Mutex
	n int
}

// spareMemory limits the memory of the process until its result is called. It keeps a limit of the user (GOMEMLIMIT).
// The limit does not include the present memory of other work.
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
