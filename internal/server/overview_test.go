package server_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/merge"
)

// withCollections starts a server of so many collections, a tenth of which are derived from another.
func withCollections(t testing.TB, count int) *node {
	n := start(t, func(c *server.Config) { c.Logger = slog.New(slog.DiscardHandler) })
	for i := range count {
		name := fmt.Sprintf("map%05d", i)
		c := store.Collection{Name: name, SP: n.SP(name)}
		if i%10 == 9 {
			c.DerivedFrom = []string{"map00000"}
		}
		_, err := n.Store.CreateCollection(t.Context(), c, &merge.Memory{}, nil)
		require.NoError(t, err)
	}
	return n
}

// An overview costs for each collection as much with many as with few. One that is known already costs the same with
// any number of them.
func TestTheOverviewCostsInProportion(t *testing.T) {
	small, large := withCollections(t, 50), withCollections(t, 400)
	for _, path := range []string{"/topicmaps", "/topicmaps.html"} {
		var took [2]uint64
		for i, n := range []*node{small, large} {
			n.Ask(path)
			took[i] = served.Allocates(func() {
				for range 5 { // each follows a commit
					_, err := n.Store.ChangeSettings(t.Context(), "map00001", func(s *store.Settings) error { s.Title += "x"; return nil })
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, n.Ask(path).Status)
				}
			})
		}
		assert.Less(t, took[1], 16*took[0], "%s of 8 times as many collections", path)
	}
	var took [2]uint64
	for i, n := range []*node{small, large} {
		tag := n.Ask("/topicmaps").Head.Get("ETag")
		took[i] = served.Allocates(func() {
			for range 50 {
				require.Equal(t, http.StatusNotModified, n.Ask("/topicmaps", "If-None-Match", tag).Status)
			}
		})
	}
	assert.Less(t, took[1], 2*took[0], "304 of 8 times as many collections")
}

// The overview depends on the reader and on the state, not on earlier requests.
func TestTheOverviewIsKnownForEachReaderAndState(t *testing.T) {
	n := start(t, func(c *server.Config) { c.ReadTokens = map[string][]string{"secret": {"reader-of-secret-1"}} })
	for _, name := range []string{"open", "secret"} {
		_, err := n.Store.CreateCollection(t.Context(), store.Collection{Name: name, SP: n.SP(name)}, &merge.Memory{}, nil)
		require.NoError(t, err)
	}
	token := []string{"Authorization", "Bearer reader-of-secret-1"}
	some, all := n.MustGet("/topicmaps"), n.MustGet("/topicmaps", token...)
	for range 2 {
		assert.NotContains(t, string(some.Bytes), "secret")
		assert.Contains(t, string(all.Bytes), "secret")
		assert.NotEqual(t, some.Header.Get("ETag"), all.Header.Get("ETag"))
		some, all = n.MustGet("/topicmaps"), n.MustGet("/topicmaps", token...)
	}
	change := func(name string) {
		_, err := n.Store.ChangeSettings(t.Context(), name, func(s *store.Settings) error { s.Title = "Changed " + name; return nil })
		require.NoError(t, err)
	}
	change("secret")
	assert.Equal(t, http.StatusNotModified, n.Get("/topicmaps", "If-None-Match", some.Header.Get("ETag")).StatusCode, "what it shows is the same")
	assert.Equal(t, http.StatusOK, n.Get("/topicmaps", append(token, "If-None-Match", all.Header.Get("ETag"))...).StatusCode)
	change("open")
	assert.Contains(t, string(n.MustGet("/topicmaps", "If-None-Match", some.Header.Get("ETag")).Bytes), "Changed open")
	require.NoError(t, n.Store.DeleteCollection(t.Context(), "open", ""))
	assert.NotContains(t, string(n.MustGet("/topicmaps").Bytes), "open")
}

// BenchmarkOverview measures the cost of the overview of many collections for each of them; the reference is that of
// 100 collections. The last row is the cost of a conditional request, relative to 100 collections.
func BenchmarkOverview(b *testing.B) {
	const manyTimes = 100
	few, many := 100, 10_000
	if testing.Short() {
		many = 1000
	}
	var fresh, again, packed, known [2]time.Duration
	servers := []*node{withCollections(b, few), withCollections(b, many)}
	for b.Loop() {
		for i, n := range servers {
			_, err := n.Store.ChangeSettings(b.Context(), "map00001", func(s *store.Settings) error { s.Title += "x"; return nil })
			require.NoError(b, err)
			var tag string
			fresh[i] += timed(func() { tag = n.Ask("/topicmaps").Head.Get("ETag") })
			again[i] += timed(func() { n.Ask("/topicmaps") })
			n.Ask("/topicmaps", "Accept-Encoding", "gzip")
			packed[i] += timed(func() { n.Ask("/topicmaps", "Accept-Encoding", "gzip") })
			known[i] += timed(func() {
				for range manyTimes {
					require.Equal(b, http.StatusNotModified, n.Ask("/topicmaps", "If-None-Match", tag).Status)
				}
			})
		}
	}
	b.ReportMetric(0, "ns/op")
	each := float64(few) / float64(many)
	b.ReportMetric(float64(fresh[1])/float64(fresh[0])*each, "×collection-of-100")
	b.ReportMetric(float64(known[1])/float64(known[0]), "×304-of-100")
	known[1] /= manyTimes
	for name, took := range map[string][2]time.Duration{"fresh": fresh, "again": again, "packed": packed, "304": known} {
		b.ReportMetric(took[1].Seconds()*1000/float64(b.N), fmt.Sprintf("%s-%d-ms", name, many))
	}
}

func timed(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}
