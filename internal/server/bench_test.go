package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// What a change costs the server with all that the feed of records makes of it: POST of
// one changed topic, commit to disk included, and GET of the recent document, with 1,000
// and with 100,000 records, in turn. The ratio of the medians must be near 1, as neither
// depends on the number of records.
func BenchmarkRecordsPerChange(b *testing.B) {
	few, many := 1000, 100_000
	if testing.Short() {
		many = 5000
	}
	small, large := newRecordsEditor(b, few), newRecordsEditor(b, many)
	for b.Loop() {
		small.change()
		large.change()
	}
	b.ReportMetric(0, "ns/op")
	for _, e := range []*recordsEditor{small, large} {
		b.ReportMetric(median(e.posts).Seconds()*1000, fmt.Sprintf("post-%d-ms", e.topics))
		b.ReportMetric(median(e.gets).Seconds()*1000, fmt.Sprintf("get-%d-ms", e.topics))
	}
	b.ReportMetric(median(large.posts).Seconds()/median(small.posts).Seconds(), "×post-of-1000")
	b.ReportMetric(median(large.gets).Seconds()/median(small.gets).Seconds(), "×get-of-1000")
}

// recordsEditor changes topics of a map of its own, one after the other.
type recordsEditor struct {
	*node
	topics, made int
	posts, gets  []time.Duration
}

func newRecordsEditor(b *testing.B, topics int) *recordsEditor {
	e := &recordsEditor{node: start(b, func(c *server.Config) { c.Logger, c.SnapshotEvery = slog.New(slog.DiscardHandler), 1<<30 }), topics: topics}
	var parts []string
	for i := range topics {
		parts = append(parts, served.Topic(fmt.Sprint("t", i), fmt.Sprint("Name ", i)))
	}
	e.Publish("m", served.TopicMap(parts...))
	for range 100 { // a full document of changes
		e.change()
	}
	e.posts, e.gets = nil, nil
	return e
}

func (e *recordsEditor) change() {
	e.made++
	doc := served.TopicMap(served.Topic(fmt.Sprint("t", e.made*7919%e.topics), fmt.Sprint("Changed ", e.made)))
	e.posts = append(e.posts, e.serve(http.MethodPost, "/topicmaps/m/topics", doc))
	e.gets = append(e.gets, e.serve(http.MethodGet, recordsURL, nil))
}

// serve calls the handler, without a socket, and returns the duration.
func (e *recordsEditor) serve(method, path string, body []byte) time.Duration {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:1234", e.Address
	w := &served.Discard{Head: http.Header{}}
	begin := time.Now()
	e.ServeHTTP(w, r)
	took := time.Since(begin)
	require.Equal(e.T, http.StatusOK, w.Status)
	return took
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// The costs of a poll without changes, and of a cached document, relative to making the document: in the handler,
// without a socket.
func BenchmarkPolls(b *testing.B) {
	n := start(b, func(c *server.Config) { c.Logger = slog.New(slog.DiscardHandler) })
	n.Publish("egov", maps.EGov)
	recent := "/topicmaps/egov/fragments"
	tag := n.MustGet(recent).Header.Get("ETag")
	ask := func(b *testing.B, want int, path func(i int) string, headers ...string) {
		for i := 0; b.Loop(); i++ {
			r := httptest.NewRequest(http.MethodGet, path(i), nil)
			for h := 0; h < len(headers); h += 2 {
				r.Header.Set(headers[h], headers[h+1])
			}
			w := &served.Discard{Head: http.Header{}}
			n.ServeHTTP(w, r)
			require.Equal(b, want, w.Status)
		}
	}
	same := func(int) string { return recent }
	b.Run("NotModified", func(b *testing.B) { ask(b, http.StatusNotModified, same, "If-None-Match", tag) })
	b.Run("Recent", func(b *testing.B) { ask(b, http.StatusOK, same) })
	b.Run("Recent/gzip", func(b *testing.B) { ask(b, http.StatusOK, same, "Accept-Encoding", "gzip") })
	b.Run("Made", func(b *testing.B) {
		ask(b, http.StatusOK, func(int) string { return recent + "?since=2000-01-01T00:00:00Z" })
	})
}
