package bench_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
	"github.com/tmshare/tmshare/merge"
)

// BenchmarkManyCollections measures tmshare-server with 10,000 collections in its store; the reference is the same with
// 100. It measures the time to start; the overview after a commit, and conditional requests of it; the time from a
// commit to the answer for a waiting follower of the overview (Prefer: wait); and the load of a processor without
// changes while the follower waits, for longer than a round of its upkeep.
func BenchmarkManyCollections(b *testing.B) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		fmt.Println("NOT CHECKED: no processor time of the server: there is no /proc to read it from")
		b.SkipNow()
	}
	few, many, idle, changes := 100, 10_000, 130*time.Second, 21
	if testing.Short() {
		few, many, idle, changes = 20, 200, time.Second, 3
	}
	program := build(b, "tmshare-server")
	place := func(count int) string {
		at := newPlace(b)
		createMany(b, at, count)
		return at
	}
	reference := place(few)
	large := place(many)
	var small, big manyFigures
	for b.Loop() {
		small.measure(b, program, reference, changes, idle/5)
		big.measure(b, program, large, changes, idle)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(big.start.Seconds(), "s/start")
	b.ReportMetric(big.fresh.Seconds()*1000, "ms/overview")
	b.ReportMetric(big.known.Seconds()*1000, "ms/304")
	b.ReportMetric(big.woken.Seconds()*1000, "ms/woken")
	b.ReportMetric(100*big.idle, "%-idle")
	if testenv.OnPostgreSQL() {
		b.ReportMetric(100*big.database, "%-idle-of-database")
	}
	each := float64(few) / float64(many)
	ratio(b, big.start.Seconds(), small.start.Seconds(), "start-of-100")
	ratio(b, big.fresh.Seconds()*each, small.fresh.Seconds(), "collection-of-100")
	ratio(b, big.known.Seconds(), small.known.Seconds(), "304-of-100")
	ratio(b, big.woken.Seconds()*each, small.woken.Seconds(), "woken-of-100")
}

// createMany creates collections in a new store, some at the same time.
func createMany(b *testing.B, place string, count int) {
	db, err := openStore(b.Context(), place, slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	var all sync.WaitGroup
	next := new(atomic.Int64)
	for range 8 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(count); i = next.Add(1) {
				name := fmt.Sprintf("map%05d", i)
				_, err := db.CreateCollection(b.Context(), store.Collection{Name: name, SP: "http://example.org/" + name + "/"}, &merge.Memory{}, nil)
				assert.NoError(b, err)
			}
		})
	}
	all.Wait()
	require.NoError(b, db.Close())
}

// databaseTime returns the processor time that the server of the database has used, if there is one.
func databaseTime(b *testing.B) time.Duration {
	if !testenv.OnPostgreSQL() {
		return 0
	}
	lines, err := os.ReadFile(filepath.Join(pgserver.Shared(b).Dir(), "data", "postmaster.pid"))
	require.NoError(b, err)
	first, _, _ := strings.Cut(string(lines), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(b, err)
	return processTime(b, pid)
}

// manyFigures are medians of the measurements, and loads of a processor.
type manyFigures struct {
	start, fresh, known, woken time.Duration
	idle, database             float64
}

func (f *manyFigures) measure(b *testing.B, program, place string, changes int, idle time.Duration) {
	var start, fresh, known, woken []time.Duration
	var n *node
	for range 5 {
		if n != nil {
			n.stop()
		}
		began := time.Now()
		n = runServer(b, program, place)
		n.do("GET", n.url+"/readyz", nil, http.StatusOK)
		start = append(start, time.Since(began))
	}
	defer n.stop()
	overview := n.url + "/topicmaps"
	ask := func(into *[]time.Duration, status int, headers ...string) (tag string) {
		began := time.Now()
		h, _ := n.do("GET", overview, nil, status, headers...)
		*into = append(*into, time.Since(began))
		return h.Get("ETag")
	}
	change := func(i int) { // to another title each time
		n.do("PUT", overview+"/map00001", bytes.NewBufferString(fmt.Sprintf(`{"title":"Version %d"}`, i)), http.StatusOK, "Content-Type", "application/json")
	}
	for i := range changes {
		change(2 * i)
		tag := ask(&fresh, http.StatusOK)
		ask(&known, http.StatusNotModified, "If-None-Match", tag)
		answered := n.waits(overview, tag)
		began := time.Now()
		change(2*i + 1)
		woken = append(woken, (<-answered).Sub(began))
	}
	quiet := max(idle/25, time.Second/5)
	for busy := quiet; busy > quiet/10; { // the first snapshot of each collection is taken
		before := processTime(b, n.cmd.Process.Pid)
		time.Sleep(quiet)
		busy = processTime(b, n.cmd.Process.Pid) - before
	}
	var last []time.Duration
	answered := n.waits(overview, ask(&last, http.StatusOK))
	before, database := processTime(b, n.cmd.Process.Pid), databaseTime(b)
	time.Sleep(idle)
	used := processTime(b, n.cmd.Process.Pid) - before
	database = databaseTime(b) - database
	change(-1)
	<-answered
	f.start, f.fresh, f.known, f.woken = median(start), median(fresh), median(known), median(woken)
	f.idle, f.database = used.Seconds()/idle.Seconds(), database.Seconds()/idle.Seconds()
}

// waits makes a follower with a tag wait for a change of a document. It returns a channel for the time of the answer.
func (n *node) waits(at, tag string) (answered <-chan time.Time) {
	c := make(chan time.Time, 1)
	go func() {
		for {
			switch status, _, _ := fetch(n.b, at, "If-None-Match", tag, "Prefer", "wait=600"); status {
			case http.StatusNotModified: // the server has it wait for a minute at most
				continue
			default:
				assert.Equal(n.b, http.StatusOK, status)
				c <- time.Now()
				return
			}
		}
	}()
	for waiting := []byte("\ntmshare_http_requests_waiting 1\n"); ; time.Sleep(time.Millisecond) {
		if _, metrics := n.do("GET", n.url+"/metrics", nil, http.StatusOK); bytes.Contains(metrics, waiting) {
			return c
		}
	}
}
