package server_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// What a poll that finds nothing new, and a document that was made lately, cost
// beside making the document: what the handler does, without the socket.
func BenchmarkPolls(b *testing.B) {
	n := start(b, func(c *server.Config) { c.Logger = slog.New(slog.DiscardHandler) })
	n.publish("egov", maps.EGov)
	recent := "/topicmaps/egov/fragments"
	tag := n.mustGet(recent).Header.Get("ETag")
	ask := func(b *testing.B, want int, path func(i int) string, headers ...string) {
		for i := 0; b.Loop(); i++ {
			r := httptest.NewRequest(http.MethodGet, path(i), nil)
			for h := 0; h < len(headers); h += 2 {
				r.Header.Set(headers[h], headers[h+1])
			}
			w := &discard{header: http.Header{}}
			n.ServeHTTP(w, r)
			require.Equal(b, want, w.status)
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

// discard is a ResponseWriter that costs nothing.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
