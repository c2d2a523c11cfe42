package bench_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkArchive measures the processor time of a server whose archived feed of fragments is read to its beginning:
// of a newly loaded map, without changes since, and after a change of each topic. Their first entries have no row of
// their own. The reference are as many entries of the changes, which have one.
func BenchmarkArchive(b *testing.B) {
	c := synthesize(b, mapSize())
	document, err := os.ReadFile(c.file)
	require.NoError(b, err)
	batches, _, _ := c.batches(b)
	loaded, first, changed := never, never, never
	for b.Loop() {
		folder := filepath.Join(b.TempDir(), "data")
		n := serve(b, folder)
		n.firstPut(document, c.topics)
		n.stop()
		for range rounds() {
			entries, took := readArchive(b, folder, 0)
			loaded = min(loaded, took[0])
			require.GreaterOrEqual(b, entries, c.topics)
		}
		n = serve(b, folder)
		for _, batch := range batches {
			n.do("POST", "/topics", bytes.NewReader(batch), http.StatusOK)
		}
		n.stop()
		for range rounds() {
			entries, took := readArchive(b, folder, mapSize())
			require.GreaterOrEqual(b, entries, c.topics+mapSize())
			changed, first = min(changed, took[0]), min(first, took[1])
		}
	}
	b.ReportMetric(0, "ns/op")
	rate(b, float64(c.topics), "entries", loaded)
	perEntry := func(d time.Duration, entries int) float64 { return d.Seconds() / float64(entries) }
	ratio(b, perEntry(loaded, c.topics), perEntry(changed, mapSize()), "cpu-of-changes/loaded")
	ratio(b, perEntry(first, c.topics), perEntry(changed, mapSize()), "cpu-of-changes/changed")
}

// readArchive reads all documents of the fragments feed in a folder, the newest first. It returns the number of their
// entries, and the processor time of the server for about so many entries, and for the rest.
func readArchive(b *testing.B, folder string, newest int) (entries int, took []time.Duration) {
	n := serve(b, folder)
	defer n.stop()
	at, found := n.url+"/topicmaps/"+collection+"/fragments", true
	began := processTime(b, n.cmd.Process.Pid)
	for found {
		d := n.document(at)
		before := entries
		entries += len(d.Entries)
		at, found = d.find("prev-archive", "")
		if before < newest && entries >= newest || !found {
			now := processTime(b, n.cmd.Process.Pid)
			took, began = append(took, now-began), now
		}
	}
	return entries, took
}
