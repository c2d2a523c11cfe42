package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/merge"
)

func someWait(c *server.Config) { c.MaxWaiting = 3 }

// prefers begins a waiting request for an unchanged document. It returns a channel for the answer.
func (n *node) prefers(method, url string, headers ...string) <-chan served.Answer {
	n.T.Helper()
	now := n.MustGet(url)
	headers = append([]string{"If-None-Match", now.Header.Get("ETag"), "Prefer", "wait=20"}, headers...)
	answered := make(chan served.Answer, 1)
	go func() { answered <- n.Do(method, url, nil, headers...) }()
	return answered
}

// A waiting request for each document for followers is answered when it has changed, and not before.
func TestRequestsWaitForAChange(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/topicmaps", "/topicmaps/map/fragments", "/topicmaps/map/records", "/topicmaps/map/records/complete", "/topicmaps/map/resourcesync/changelist.xml", "/topicmaps/map/resourcesync/changelist-open.xml",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			n := start(t, someWait)
			n.Publish("map", served.Small())
			n.Publish("other", served.Small())
			got, head := n.prefers("GET", n.URL(path)), n.prefers("HEAD", n.URL(path))
			if path != "/topicmaps" {
				n.MustPut("other", served.Small("Oslo", "Christiania"))
			}
			select {
			case a := <-got:
				t.Fatalf("%d: answered before it changed", a.StatusCode)
			case <-time.After(100 * time.Millisecond):
			}
			n.MustPut("map", served.Small("Oslo", "Christiania"))
			for _, answered := range []<-chan served.Answer{got, head} {
				a := <-answered
				require.Equal(t, http.StatusOK, a.StatusCode)
				assert.Equal(t, "wait=20", a.Header.Get("Preference-Applied"))
				assert.Len(t, a.Header.Values("ETag"), 1)
				assert.True(t, slices.Equal(slices.Compact(slices.Clone(a.Header.Values("Link"))), a.Header.Values("Link")), "the headers are of one answer")
				assert.Equal(t, n.MustGet(n.URL(path)).Header.Get("ETag"), a.Header.Get("ETag"))
			}
		})
	}
}

// A request that waited long enough gets 304. It does not wait without a known ETag, without a free place, and when the
// server stops.
func TestRequestsDoNotWaitForEver(t *testing.T) {
	t.Parallel()
	n := start(t, someWait)
	n.Publish("map", served.Small())
	url := n.URL("/topicmaps/map/fragments")
	tag := n.MustGet(url).Header.Get("ETag")

	began := time.Now()
	a := n.Get(url, "If-None-Match", tag, "Prefer", `respond-async, Wait="1"`)
	assert.Equal(t, http.StatusNotModified, a.StatusCode)
	assert.Equal(t, "wait=1", a.Header.Get("Preference-Applied"))
	assert.GreaterOrEqual(t, time.Since(began), time.Second)
	for _, headers := range [][]string{{"Prefer", "wait=20"}, {"Prefer", "wait=20", "If-None-Match", `"other"`}, {"Prefer", "wait=soon", "If-None-Match", tag}, {"Prefer", "wait=-1", "If-None-Match", tag}} {
		assert.Contains(t, []int{http.StatusOK, http.StatusNotModified}, n.Get(url, headers...).StatusCode)
	}

	var waiting []<-chan served.Answer
	for range 3 {
		waiting = append(waiting, n.prefers("GET", url))
	}
	require.Eventually(t, func() bool {
		return strings.Contains(string(n.MustGet("/metrics").Bytes), "\ntmshare_http_requests_waiting 3\n")
	}, 10*time.Second, time.Millisecond)
	a = n.Get(url, "If-None-Match", tag, "Prefer", "wait=20")
	assert.Equal(t, http.StatusNotModified, a.StatusCode, "there is no room")
	assert.Empty(t, a.Header.Get("Preference-Applied"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a disconnected client does not wait
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	_, err = http.DefaultClient.Do(req)
	require.Error(t, err)

	n.Stopping()
	for _, answered := range waiting {
		assert.Equal(t, http.StatusNotModified, (<-answered).StatusCode)
	}
	assert.Equal(t, http.StatusNotModified, n.Get(url, "If-None-Match", tag, "Prefer", "wait=20").StatusCode)
}

// asking counts the requests for single collections to the store.
type asking struct {
	server.Store
	asked atomic.Int64
}

func (a *asking) Latest(ctx context.Context, name string) (*store.Latest, error) {
	a.asked.Add(1)
	return a.Store.Latest(ctx, name)
}

// Requests for the overview, waiting or not, make the server read all collections at once: also for the first time, and
// after each change.
func TestTheOverviewAsksForNoCollectionByItself(t *testing.T) {
	t.Parallel()
	const count = 100
	a := &asking{}
	n := start(t, func(c *server.Config) {
		a.Store = c.Store
		c.Store, c.MaxWaiting = a, 3
	})
	for i := range count {
		name := fmt.Sprintf("map%05d", i)
		_, err := n.Store.CreateCollection(t.Context(), store.Collection{Name: name, SP: n.SP(name)}, &merge.Memory{}, nil)
		require.NoError(t, err)
	}
	n.Idle()
	a.asked.Store(0)
	tag := n.MustGet("/topicmaps").Header.Get("ETag")
	for range 3 {
		answered := make(chan served.Answer, 1)
		go func() { answered <- n.Do("GET", n.URL("/topicmaps"), nil, "If-None-Match", tag, "Prefer", "wait=20") }()
		var got served.Answer
		testenv.Eventually(t, func() bool { // it may not wait yet
			_, err := n.Store.ChangeSettings(t.Context(), "map00001", func(s *store.Settings) error { s.Title += "x"; return nil })
			require.NoError(t, err)
			select {
			case got = <-answered:
				return true
			case <-time.After(10 * time.Millisecond):
				return false
			}
		})
		require.Equal(t, http.StatusOK, got.StatusCode)
		tag = got.Header.Get("ETag")
	}
	assert.Less(t, a.asked.Load(), int64(count))
}
