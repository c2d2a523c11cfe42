package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/internal/publish"
)

// BenchmarkFirstPut publishes the first version of a map by HTTP, with its first snapshot, in a server in a process of
// its own. Its time is compared with that of only reading the document into a map and then writing the same rows to
// Badger, in the order of their keys: by the clock, where the server benefits from a second processor, and in processor
// time. The bytes written to its disk are compared with the document, unless the folder is in memory, such as in a
// tmpfs.
func BenchmarkFirstPut(b *testing.B) {
	c := synthesize(b, mapSize())
	document, err := os.ReadFile(c.file)
	require.NoError(b, err)
	took, reading, writing := spent{never, never}, spent{never, never}, spent{never, never}
	peak, wrote := float64(0), math.Inf(1)
	for b.Loop() {
		for range rounds() {
			folder := filepath.Join(b.TempDir(), "data")
			n := serve(b, folder)
			peak = max(peak, n.peakDuring(func() { took = took.least(n.firstPut(document, c.topics)) }))
			wrote = min(wrote, written(n.cmd.Process.Pid))
			n.stop()
			reading = reading.least(c.readTimed(b))
			writing = writing.least(spent(writeRows(b, folder)))
			require.NoError(b, os.RemoveAll(folder))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took.clock.Seconds(), "clock-s-to-put")
	b.ReportMetric(reading.clock.Seconds(), "clock-s-to-read")
	b.ReportMetric(writing.clock.Seconds(), "clock-s-to-write")
	rate(b, float64(c.topics), "topics", took.cpu)
	ratio(b, took.clock.Seconds(), reading.clock.Seconds(), "clock-of-read")
	ratio(b, took.clock.Seconds(), (reading.clock + writing.clock).Seconds(), "clock-of-read+write")
	ratio(b, took.cpu.Seconds(), (reading.cpu + writing.cpu).Seconds(), "cpu-of-read+write")
	if peak > 0 {
		b.ReportMetric(peak/1e6, "peak-MB")
	}
	if wrote > 0 {
		ratio(b, wrote, c.size, "size-of-file-written")
	}
}

// written returns the number of bytes that a process has written to disks, or 0 if it is not known.
func written(pid int) float64 {
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(io, []byte("\nwrite_bytes: "))
	number, _, _ := bytes.Cut(rest, []byte("\n"))
	n, _ := strconv.ParseFloat(string(number), 64)
	return n
}

// firstPut creates a collection and sends its first version.
func (n *node) firstPut(document []byte, topics int) spent {
	n.do("PUT", "", bytes.NewReader([]byte(`{"sp":"`+synthetic.Base+`"}`)), http.StatusCreated, "Content-Type", "application/json")
	start, used := time.Now(), processTime(n.b, n.cmd.Process.Pid)
	_, answer := n.do("PUT", "", bytes.NewReader(document), http.StatusOK, "Content-Type", "application/x-tm+xml")
	took := spent{time.Since(start), processTime(n.b, n.cmd.Process.Pid) - used}
	var p publish.Published
	require.NoError(n.b, json.Unmarshal(answer, &p))
	require.Equal(n.b, topics, p.Added)
	require.NotEmpty(n.b, n.document(n.url+"/topicmaps/"+collection+"/snapshots").Entries, "the first snapshot")
	return took
}
