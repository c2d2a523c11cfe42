package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	"github.com/tmshare/tmshare/internal/testenv"
)

// BenchmarkPageKinds measures the duration of requests for pages of each kind, to the last byte, gzipped, at 200
// requests a second, of a vocabulary of 5,000 concepts of which one changes each second. All kinds repeat the same
// addresses, as far as there are several. The reference is a file of the same size, of http.FileServer, under the same
// load. The figures are those of the slowest kind; the log has all.
func BenchmarkPageKinds(b *testing.B) {
	n, length := 5000, pagesFor/2
	if testing.Short() {
		n, length = 300, pagesFor/20
	}
	h := serveConcepts(b, n)
	folder := b.TempDir()
	files := httptest.NewServer(http.FileServer(http.Dir(folder)))
	b.Cleanup(files.Close)
	kinds := pageKinds(b, h, n)
	for b.Loop() {
		worst, worstFile := time.Duration(0), time.Duration(0)
		for _, kind := range kinds {
			size := len(got(b, h.Client(), kind.urls[0], ""))
			require.LessOrEqual(b, size, 64<<10, kind.name)
			require.NoError(b, os.WriteFile(filepath.Join(folder, "page.html"), make([]byte, size), 0o600))
			took := kind.under(b, h, length)
			file := pageKind{urls: []string{files.URL + "/page.html"}}.under(b, h, length/5)
			b.Logf("%s: %v median, %v p99, %d bytes; a file: %v, %v", kind.name, took[len(took)/2], took[len(took)*99/100], size, file[len(file)/2], file[len(file)*99/100])
			if p99 := took[len(took)*99/100]; p99 > worst {
				worst, worstFile = p99, file[len(file)*99/100]
			}
		}
		b.ReportMetric(float64(worst.Microseconds())/1000, "ms/p99")
		ratio(b, worst.Seconds(), worstFile.Seconds(), "p99-of-a-file")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkFirstPages measures pages of a vocabulary of 100,000 concepts (1,000 with -short) in a state of which no page
// was made before. The reference is the page of one of its concepts. The figures are those of the slowest page; the log
// has all.
func BenchmarkFirstPages(b *testing.B) {
	n := 100_000
	if testing.Short() {
		n = 1000
	}
	h := serveConcepts(b, n)
	round := 0
	for b.Loop() {
		worst, small := time.Duration(0), time.Duration(0)
		for _, kind := range pageKinds(b, h, n) {
			var took []time.Duration
			for range 5 {
				round++
				sendConcepts(b, h, http.MethodPost, "/topics", []byte(conceptPrefixes+concept(n-1-round%100, round)))
				begun := time.Now()
				got(b, h.Client(), kind.urls[0], "gzip")
				took = append(took, time.Since(begun))
			}
			b.Logf("%s: %v", kind.name, median(took))
			if worst = max(worst, median(took)); kind.name == "concept" {
				small = median(took)
			}
		}
		b.ReportMetric(float64(worst.Microseconds())/1000, "ms/page")
		ratio(b, worst.Seconds(), small.Seconds(), "time-of-a-concept")
	}
	b.ReportMetric(0, "ns/op")
}

// serveConcepts serves a vocabulary of so many concepts in this process.
func serveConcepts(b *testing.B, n int) *httptest.Server {
	silent := slog.New(slog.DiscardHandler)
	db, err := openStore(b.Context(), newPlace(b), silent)
	require.NoError(b, err)
	b.Cleanup(func() { db.Close() })
	h := httptest.NewServer(nil)
	b.Cleanup(h.Close)
	s, err := server.New(server.Config{Parts: ext.Parts(), Formats: ext.Formats(), Store: db, BaseURL: h.URL, OnLoopback: true, Logger: silent,
		Policy: upkeep.Policy{SnapshotEvery: 1 << 30}})
	require.NoError(b, err)
	b.Cleanup(s.Close)
	h.Config.Handler = s
	sendConcepts(b, h, http.MethodPut, "", nil)
	sendConcepts(b, h, http.MethodPut, "", concepts(n, 0))
	sendConcepts(b, h, http.MethodPost, "/topics", []byte(conceptPrefixes+concept(n-1, 1)))
	return h
}

func sendConcepts(b *testing.B, h *httptest.Server, method, path string, turtle []byte) {
	b.Helper()
	req, err := http.NewRequest(method, h.URL+"/topicmaps/"+collection+path, bytes.NewReader(turtle))
	require.NoError(b, err)
	if req.Header.Set("Content-Type", "text/turtle"); turtle == nil {
		req.Header.Set("Content-Type", "application/json")
		req.Body = io.NopCloser(strings.NewReader("{}"))
		req.ContentLength = 2
	}
	res, err := h.Client().Do(req)
	require.NoError(b, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(b, err)
	require.Less(b, res.StatusCode, 300, "%s", answer)
}

// pageKind is a kind of pages, with addresses of some.
type pageKind struct {
	name string
	urls []string
}

// pageKinds are those of a vocabulary of so many concepts.
func pageKinds(b *testing.B, h *httptest.Server, n int) (all []pageKind) {
	base := h.URL + "/topicmaps/" + collection
	add := func(name string, paths ...string) {
		kind := pageKind{name: name}
		for _, path := range paths {
			kind.urls = append(kind.urls, base+path)
		}
		all = append(all, kind)
	}
	several := func(format string) (paths []string) {
		for i := range 50 {
			paths = append(paths, fmt.Sprintf(format, fragment.Key(fragment.Ref(fmt.Sprint("http://example.org/voc/", i*7919%n)))))
		}
		return paths
	}
	tree := "/hierarchies/" + fragment.Key("http://www.w3.org/2004/02/skos/core#broader") + pages.Ending
	add("map", pages.Ending)
	add("types", "/types"+pages.Ending)
	add("hierarchy", tree)
	add("below", tree+"?below="+fragment.Key("http://example.org/voc/1"))
	add("concept", several("/topics/%s"+pages.Ending)...)
	add("concept-compared", several("/topics/%s/compare"+pages.Ending)...)
	add("index", "/index"+pages.Ending, "/index"+pages.Ending+"?letter=C&page=2", "/index"+pages.Ending+"?in=de")
	add("search", "/search"+pages.Ending+"?q=concept+7", "/search"+pages.Ending+"?q=sentence", "/search"+pages.Ending+"?q=N12")
	add("changes", "/fragments"+pages.Ending, "/fragments"+pages.Ending+"?before=200")
	add("compare", "/compare"+pages.Ending)
	add("snapshots", "/snapshots"+pages.Ending)
	add("api", "/api"+pages.Ending)
	return all
}

// under requests pages 200 times a second, each at its time even if earlier ones are not answered. It returns the
// sorted durations of the answers.
func (k pageKind) under(b *testing.B, h *httptest.Server, length time.Duration) (took []time.Duration) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	ticker := time.NewTicker(pageEvery)
	defer ticker.Stop()
	for i, begin := 0, time.Now(); time.Since(begin) < length; i++ {
		at := <-ticker.C
		if i%int(time.Second/pageEvery) == 0 {
			asking.Go(func() {
				sendConcepts(b, h, http.MethodPost, "/topics", []byte(conceptPrefixes+concept(100+i%100, int(at.UnixNano()))))
			})
		}
		asking.Go(func() {
			got(b, h.Client(), k.urls[i%len(k.urls)], "gzip")
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(at))
		})
	}
	asking.Wait()
	slices.Sort(took)
	require.NotEmpty(b, took)
	return took
}

// BenchmarkUncachedPages measures the processor time of a page of each kind, of a vocabulary of 5,000 concepts (300
// with -short), in a state of which no page is cached. It includes no connections and no client.
func BenchmarkUncachedPages(b *testing.B) {
	n := 5000
	if testing.Short() {
		n = 300
	}
	h := serveConcepts(b, n)
	round := 0
	for _, kind := range pageKinds(b, h, n) {
		b.Run(kind.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				round++
				sendConcepts(b, h, http.MethodPost, "/topics", []byte(conceptPrefixes+concept(100+round%100, round)))
				r := httptest.NewRequest(http.MethodGet, kind.urls[round%len(kind.urls)], nil)
				r.Header.Set("Accept-Encoding", "gzip")
				answer := httptest.NewRecorder()
				begun := testenv.CPUTime()
				h.Config.Handler.ServeHTTP(answer, r)
				took = append(took, testenv.CPUTime()-begun)
				require.Equal(b, http.StatusOK, answer.Code)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(took).Seconds()*1000, "cpu-ms/page")
		})
	}
}
