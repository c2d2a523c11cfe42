package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/testenv"
)

// BenchmarkPost measures the time of publishing one changed topic by HTTP POST, including the commit to disk, on a
// collection of 1,000 topics and on a large one, in turn. The cost must depend on the change only, so the ratio of the
// medians must be near 1.
func BenchmarkPost(b *testing.B) {
	const posts, few = 200, 1000
	large := newEditor(b, counted(manyTopics()), manyTopics(), posts)
	small := newEditor(b, counted(few), few, posts)
	loaded := sizeInDatabase(b, large.place)
	for b.Loop() {
		for k := range posts {
			large.post(k)
			small.post(k)
		}
	}
	b.ReportMetric(0, "ns/op")
	if loaded > 0 {
		b.ReportMetric(loaded/float64(manyTopics()), "B-in-database/topic")
		b.ReportMetric((sizeInDatabase(b, large.place)-loaded)/float64(large.round), "B-in-database/change")
	}
	large.report(b)
	small.report(b)
	ratio(b, large.median().Seconds(), small.median().Seconds(), "time-of-"+counted(few)+"-topics")
}

// editor publishes changes of single topics of a map that a node of its own serves.
type editor struct {
	*node
	name      string
	place     string
	documents []string // each describes a topic; %d in its name is the round
	round     int
	took      []time.Duration
}

func newEditor(b *testing.B, name string, topics, documents int) *editor {
	e := &editor{name: name}
	c := synthesize(b, topics)
	e.place = importInto(b, c)
	require.NoError(b, os.Remove(c.file))
	reading := serve(b, e.place)
	for k := range documents {
		i := k * 7919 % topics
		name := fmt.Sprintf(">Topic %d<", i)
		document := reading.describe(fmt.Sprintf("%st/%d", synthetic.Base, i))
		require.Contains(b, document, name)
		e.documents = append(e.documents, string(bytes.ReplaceAll([]byte(document), []byte(name), fmt.Appendf(nil, ">Topic %d, round %%d<", i))))
	}
	reading.stop()
	e.node = serve(b, e.place) // a new process, which has none of these topics in memory
	return e
}

// sizeInDatabase returns the size in bytes of a store in a database, including indexes; 0 if it is in a folder.
func sizeInDatabase(b *testing.B, place string) float64 {
	if !extension.IsAddress(place) {
		return 0
	}
	db, err := openStore(b.Context(), place, slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	defer db.Close()
	sizes, err := db.Sizes()
	require.NoError(b, err)
	return float64(sizes.Records)
}

// describe returns the fragment of the topic with a subject identifier, as XTM 2.1.
func (n *node) describe(si string) string {
	_, document := n.do("GET", "/topics?si="+url.QueryEscape(si), nil, http.StatusOK, "Accept", "application/x-tm+xml;version=2.1")
	return string(document)
}

// send publishes the topics of a document, and records the time.
func (e *editor) send(document string) (p publish.Published) {
	start := time.Now()
	_, answer := e.do("POST", "/topics", bytes.NewReader([]byte(document)), http.StatusOK)
	e.took = append(e.took, time.Since(start))
	require.NoError(e.b, json.Unmarshal(answer, &p))
	return p
}

func (e *editor) post(k int) {
	e.round++
	p := e.send(fmt.Sprintf(e.documents[k], e.round))
	require.Equal(e.b, 1, p.Updated)
	require.Zero(e.b, p.Added+p.Deleted)
}

func (e *editor) median() time.Duration {
	slices.Sort(e.took)
	return e.took[len(e.took)/2]
}

func (e *editor) report(b *testing.B) {
	b.ReportMetric(float64(e.median().Microseconds())/1000, e.name+"-ms")
}

// manyTopics is the size of the large map of benchmarks that -million makes larger.
func manyTopics() int {
	if *million {
		return 1_000_000
	}
	return mapSize()
}

// counted writes a number of topics for people.
func counted(n int) string {
	switch {
	case n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// BenchmarkPutUnchanged publishes the synthetic map once, and then repeatedly sends the same file to a running server,
// which reads it, compares it with the published map and finds no change. Editors who publish whole maps do the same
// with few changes. The time, by the clock and of the processor, is compared with that of only reading the file.
//
// The memory is the server's peak, relative to that of a process that only reads the file.
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

// spent is a duration by the clock, and in processor time.
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
	var p publish.Published
	require.NoError(n.b, json.Unmarshal(answer, &p))
	require.Equal(n.b, topics, p.Topics)
	require.Zero(n.b, p.Added+p.Updated+p.Deleted, "nothing has changed")
	return took
}

// peakDuring returns the server's peak of anonymous memory while f runs, in bytes; 0 without /proc.
func (n *node) peakDuring(f func()) (peak float64) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		f()
		return 0
	}
	done := make(chan struct{})
	pid := n.cmd.Process.Pid // the process may be stopped, where f fails
	var sampling sync.WaitGroup
	sampling.Go(func() {
		samples := time.NewTicker(5 * time.Millisecond)
		defer samples.Stop()
		for {
			select {
			case <-done:
				return
			case <-samples.C:
				peak = max(peak, anonymous(pid))
			}
		}
	})
	f()
	close(done)
	sampling.Wait()
	return peak
}
