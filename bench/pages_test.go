package bench_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
)

// The frequencies of requests and commits in BenchmarkPages, and their duration, which is short with -short.
const (
	pageEvery   = time.Second / 200
	commitEvery = time.Second / 50
	pagesFor    = 10 * time.Second
)

// BenchmarkPages measures the duration of requests for the page of a topic of mondial, to the last byte, gzipped, at
// 200 requests a second, each for the next topic, with 50 commits each second. Server, client and writer share the
// process. The reference is XTM 2.1 of the same topics, under the same load.
func BenchmarkPages(b *testing.B) {
	h, db := serveHere(b, importInto(b, mondial(b)))
	all := topicsOf(b, db)
	length := pagesFor
	if testing.Short() {
		length /= 20
	}
	var took, reference []time.Duration
	for b.Loop() {
		took = underLoad(b, length, h, db, all, pages.Ending)
		reference = underLoad(b, length, h, db, all, ".xtm21")
	}
	median, p99 := took[len(took)/2], took[len(took)*99/100]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median.Microseconds())/1000, "ms/median")
	b.ReportMetric(float64(p99.Microseconds())/1000, "ms/p99")
	ratio(b, median.Seconds(), reference[len(reference)/2].Seconds(), "median-of-XTM")
	ratio(b, p99.Seconds(), reference[len(reference)*99/100].Seconds(), "p99-of-XTM")
}

// BenchmarkLargeTopic measures the page of a topic with 100,000 instances (1,000 with -short), and how large it is,
// unpacked. The reference is the page of one of the instances.
func BenchmarkLargeTopic(b *testing.B) {
	n := 100_000
	if testing.Short() {
		n = 1000
	}
	hub := inFile(b, func(w io.Writer) error {
		fmt.Fprint(w, `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="hub"><subjectIdentifier href="http://example.org/hub"/><name><value>Hub</value></name></topic>`)
		for i := range n {
			fmt.Fprintf(w, `<topic id="i%d"><subjectIdentifier href="http://example.org/i/%d"/><instanceOf><topicRef href="#hub"/></instanceOf><name><value>Instance %d</value></name></topic>`, i, i, i)
		}
		_, err := fmt.Fprint(w, `</topicMap>`)
		return err
	})
	hub.topics = n + 1 + implied
	h, db := serveHere(b, importInto(b, hub))
	address := func(si string) string { return topicURL(h, fragment.Ref(si)) + pages.Ending }
	large, small := time.Duration(0), time.Duration(0)
	size := 0
	for b.Loop() {
		for i := range 20 { // each in another state, so that no page is cached
			rename(b, db, "http://example.org/i/7", i)
			begun := time.Now()
			size = len(got(b, h.Client(), address("http://example.org/hub"), ""))
			large += time.Since(begun)
			begun = time.Now()
			got(b, h.Client(), address(fmt.Sprint("http://example.org/i/", i)), "")
			small += time.Since(begun)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(large.Microseconds())/1000/20/float64(b.N), "ms/page")
	b.ReportMetric(float64(size)/1000, "kB/page")
	ratio(b, large.Seconds(), small.Seconds(), "time-of-a-small-topic")
}

// serveHere serves a store in this process.
func serveHere(b *testing.B, place string) (*httptest.Server, *store.DB) {
	silent := slog.New(slog.DiscardHandler)
	db, err := openStore(b.Context(), place, silent)
	require.NoError(b, err)
	b.Cleanup(func() { db.Close() })
	h := httptest.NewServer(nil)
	b.Cleanup(h.Close)
	s, err := server.New(server.Config{Parts: ext.Parts(), Store: db, BaseURL: h.URL, OnLoopback: true, Logger: silent, Policy: upkeep.Policy{SnapshotEvery: 1 << 30}})
	require.NoError(b, err)
	b.Cleanup(s.Close)
	h.Config.Handler = s
	return h, db
}

// topicURL is the address of a topic.
func topicURL(h *httptest.Server, ref fragment.Ref) string {
	return h.URL + "/topicmaps/" + collection + "/topics/" + fragment.Key(ref)
}

func topicsOf(b *testing.B, db *store.DB) (all []fragment.Ref) {
	require.NoError(b, db.View(b.Context(), collection, func(v *store.View) error {
		for t, err := range v.Source().Topics() {
			if err != nil {
				return err
			}
			if len(t.Names) > 0 {
				all = append(all, t.TopicSI())
			}
		}
		return nil
	}))
	return all
}

// got returns the document of an address.
func got(b *testing.B, c *http.Client, url, coding string) []byte {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(b, err)
	if r.Header.Set("Accept-Encoding", coding); coding == "" {
		r.Header.Set("Accept-Encoding", "identity")
	}
	answer, err := c.Do(r)
	require.NoError(b, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(b, err)
	require.Equal(b, http.StatusOK, answer.StatusCode, "%s: %s", url, body)
	return body
}

// underLoad requests topics, one after the other, each at its time even if earlier ones are not answered, while others
// are changed. It returns the sorted durations of the answers.
func underLoad(b *testing.B, length time.Duration, h *httptest.Server, db *store.DB, all []fragment.Ref, ending string) []time.Duration {
	var mu sync.Mutex
	var took []time.Duration
	var asking, committing sync.WaitGroup
	done := make(chan struct{})
	committing.Go(func() {
		ticker := time.NewTicker(commitEvery)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-ticker.C:
				if si := all[i*104_729%len(all)]; !strings.Contains(string(si), "psi.topicmaps.org") {
					rename(b, db, string(si), i)
				}
			}
		}
	})
	ticker := time.NewTicker(pageEvery)
	defer ticker.Stop()
	for i, begin := 0, time.Now(); time.Since(begin) < length; i++ {
		at := <-ticker.C
		asking.Go(func() {
			got(b, h.Client(), topicURL(h, all[i*7919%len(all)])+ending, "gzip")
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(at))
		})
	}
	asking.Wait()
	close(done)
	committing.Wait()
	slices.Sort(took)
	require.NotEmpty(b, took)
	return took
}
