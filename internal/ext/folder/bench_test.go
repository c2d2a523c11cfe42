package folder_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/atompmh"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/testenv"
)

// manyDocuments returns an archived feed of records, an entry for each, 1,000 in each
// document, by path; /feed is the first.
func manyDocuments(records int) map[string]string {
	pages := map[string]string{}
	for n := 0; n*1000 < records; n++ {
		var d document
		for i := range 1000 {
			id := records - n*1000 - i
			d.entries = append(d.entries, entry{
				id: fmt.Sprintf("urn:uuid:e7aca47e-76c5-4648-948b-%012d", id), at: id,
				links: []string{fmt.Sprintf("application/atom+xml http://example.org/records/%d.atom", id), fmt.Sprintf("application/rifcs+xml http://example.org/records/%d.rifcs", id)},
			})
		}
		path := "/feed"
		if n > 0 {
			path = fmt.Sprintf("/archive/%d", n)
			d.archive = true
		}
		if (n+1)*1000 < records {
			d.prev = fmt.Sprintf("/archive/%d", n+1)
		}
		pages[path] = d.String()
	}
	return pages
}

// inProcess answers requests by a handler, without sockets.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	res := w.Result()
	res.Request = r
	return res, nil
}

func serving(pages map[string]string) *fetch.Fetcher {
	return fetch.Fetcher{HTTP: &http.Client{Transport: inProcess{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, pages[r.URL.Path])
	})}}}.WithDefaults()
}

// BenchmarkDelta reads the entries of 100,000 records, without what represents them, beside
// encoding/xml that tokenizes the same documents. The ratio is that of the speeds, of
// processor time.
//
//	go test ./internal/ext/folder -run xxx -bench Delta
func BenchmarkDelta(b *testing.B) {
	useUsualMemory(b)
	const records = 100_000
	pages := manyDocuments(records)
	source := &atompmh.Source{Fetcher: serving(pages)}
	folder := Holding(&State{})
	var ours, bare float64
	for b.Loop() {
		begin := testenv.CPUTime()
		news, err := source.Delta(b.Context(), feedURL, follow.Look{}, folder)
		require.NoError(b, err)
		plan, err := news.Plan(b.Context(), folder, nil)
		require.NoError(b, err)
		todo := 0
		for chunk, err := range plan.Chunks() {
			require.NoError(b, err)
			todo += len(chunk)
		}
		require.NoError(b, errors.Join(plan.Close(), news.Close()))
		ours += (testenv.CPUTime() - begin).Seconds()
		require.Equal(b, records, todo)

		begin = testenv.CPUTime()
		entries := 0
		for _, page := range pages {
			d := xml.NewDecoder(strings.NewReader(page))
			for {
				token, err := d.Token()
				if err == io.EOF {
					break
				}
				require.NoError(b, err)
				if start, ok := token.(xml.StartElement); ok && start.Name.Local == "entry" {
					entries++
				}
			}
		}
		bare += (testenv.CPUTime() - begin).Seconds()
		require.Equal(b, records, entries)
	}
	b.ReportMetric(float64(b.N)*records/ours, "entries/s")
	b.ReportMetric(float64(b.N)*records/bare, "entries/s-bare")
	b.ReportMetric(bare/ours, "×speed-of-Token")
}
