package bench_test

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
)

// BenchmarkPutUnchanged publishes the synthetic map once, and then sends a running
// server the same file again and again: the server reads it, compares it with what
// is published and finds nothing to publish. Editors who publish whole maps do just
// that, with few changes. The time, by the clock and of the processor, stands beside
// that of reading the file alone.
//
// The memory is the most that the server has ever in use, beside that of a process
// that only reads the file.
func BenchmarkPutUnchanged(b *testing.B) {
	c := synthesize(b, mapSize())
	alone := spent{never, never}
	for range rounds() {
		alone = alone.least(c.readTimed(b))
	}
	n := serve(b, importInto(b, c))
	document, err := os.ReadFile(c.file)
	require.NoError(b, err)
	put := spent{never, never}
	peak := float64(0)
	for b.Loop() {
		for range rounds() {
			peak = max(peak, n.peakDuring(func() { put = put.least(n.putUnchanged(document, c.topics)) }))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(alone.clock.Seconds(), "clock-s-to-read")
	b.ReportMetric(put.clock.Seconds(), "clock-s-to-put")
	rate(b, float64(c.topics), "topics", put.cpu)
	ratio(b, put.cpu.Seconds(), alone.cpu.Seconds(), "time-of-Load")
	ratio(b, put.clock.Seconds(), alone.clock.Seconds(), "clock-of-Load")
	if peak > 0 {
		b.ReportMetric(peak/1e6, "peak-MB")
		loading, _ := c.loadInChild(b)
		ratio(b, peak, loading, "peak-of-Load")
	}
}

// spent is what something takes, by the clock on the wall and of processor time.
type spent struct{ clock, cpu time.Duration }

func (s spent) least(t spent) spent { return spent{min(s.clock, t.clock), min(s.cpu, t.cpu)} }

// readTimed reads the file into a map.
func (c *corpus) readTimed(b *testing.B) spent {
	runtime.GC()
	start, used := time.Now(), testenv.CPUTime()
	c.read(b)
	return spent{time.Since(start), testenv.CPUTime() - used}
}

// putUnchanged sends the document, which is published already.
func (n *node) putUnchanged(document []byte, topics int) spent {
	start, used := time.Now(), processTime(n.b, n.cmd.Process.Pid)
	_, answer := n.do("PUT", "", bytes.NewReader(document), 200, "Content-Type", "application/x-tm+xml")
	took := spent{time.Since(start), processTime(n.b, n.cmd.Process.Pid) - used}
	var p server.Published
	require.NoError(n.b, json.Unmarshal(answer, &p))
	require.Equal(n.b, topics, p.Topics)
	require.Zero(n.b, p.Added+p.Updated+p.Deleted, "nothing has changed")
	return took
}

// peakDuring returns the most anonymous memory that the server has in use while f
// runs, in bytes; 0 where there is no /proc to read it from.
func (n *node) peakDuring(f func()) (peak float64) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		f()
		return 0
	}
	done := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		samples := time.NewTicker(5 * time.Millisecond)
		defer samples.Stop()
		for {
			select {
			case <-done:
				return
			case <-samples.C:
				peak = max(peak, anonymous(n.cmd.Process.Pid))
			}
		}
	})
	f()
	close(done)
	sampling.Wait()
	return peak
}
