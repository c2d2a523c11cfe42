package e2e

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/nginx"
	"github.com/tmshare/tmshare/internal/testkit/node"
)

// read gets a document through the proxy of its server.
func read(t *testing.T, url string, headers ...string) (*fetch.Answer, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return &fetch.Answer{Status: res.StatusCode, Header: res.Header, ETag: res.Header.Get("ETag")}, string(body)
}

func map1(name string) string {
	return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="a"><subjectIdentifier href="http://psi.example.org/a"/><name><value>` + name + `</value></name></topic></topicMap>`
}

// Behind two caches, a reader sees an older state after a newer one. The answers show this: each has the time of its
// state, and only one from the server repeats the value of its request.
func TestAnswersOfCachesTell(t *testing.T) {
	t.Parallel()
	front := nginx.NewFront(t)
	o := node.New(t, func(c *server.Config) { c.BaseURL = front.URL })
	o.Create("egov", map1("1"))
	edges := nginx.Start(t, o.URL, nginx.Edge{HonoursNoCache: true}, nginx.Edge{HonoursNoCache: true}, nginx.Edge{}, nginx.Edge{IgnoresQuery: true})
	feed := front.URL + "/topicmaps/egov/fragments"
	checked := func(a *fetch.Answer) time.Time {
		t.Helper()
		at, known := a.Checked()
		require.True(t, known)
		return at
	}
	old := map[string]*fetch.Answer{}
	for _, edge := range edges {
		front.Use(edge)
		a, _ := read(t, feed)
		require.Equal(t, "MISS", a.Header.Get(nginx.Cache))
		again, _ := read(t, feed)
		require.Equal(t, "HIT", again.Header.Get(nginx.Cache), "what the server allows is kept")
		assert.Equal(t, checked(a), checked(again), "it is of when it was made")
		old[edge] = again
	}
	o.Put(map1("2"))
	direct, now := read(t, o.URL+"/topicmaps/egov/fragments")
	changed := checked(direct)

	// The first edge gets the change. The others still have the old state: a reader that alternates goes back.
	front.Use(edges[0])
	fresh, body := read(t, feed, "Cache-Control", "no-cache")
	require.Equal(t, "BYPASS", fresh.Header.Get(nginx.Cache))
	assert.Equal(t, now, body)
	assert.False(t, checked(fresh).Before(changed))
	for _, edge := range edges[1:] {
		front.Use(edge)
		stale, body := read(t, feed)
		require.Equal(t, "HIT", stale.Header.Get(nginx.Cache))
		assert.NotEqual(t, now, body)
		assert.True(t, checked(stale).Before(changed), "an older state is never of a later time")
		date, err := http.ParseTime(stale.Header.Get("Date"))
		require.NoError(t, err)
		assert.Empty(t, stale.Header.Get("Age"), "nginx writes another Date, without Age")
		assert.False(t, date.Before(checked(stale).Truncate(time.Second)))
	}
	front.Use(edges[2])
	stale, _ := read(t, feed, "Cache-Control", "no-cache")
	assert.Equal(t, "HIT", stale.Header.Get(nginx.Cache), "this one honours no request for what is new")

	// With a value in the query, an edge with the query in its key asks the server. One without it answers from the
	// cache, and does not repeat the value.
	for i, edge := range edges {
		front.Use(edge)
		value := fetch.NewAsked()
		a, body := read(t, fetch.Asking(feed, value))
		stale := i == 3
		assert.Equal(t, !stale, a.Asked(value), "edge %d", i)
		assert.Equal(t, !stale, body == now, "edge %d", i)
		assert.Equal(t, map[bool]string{false: "MISS", true: "HIT"}[stale], a.Header.Get(nginx.Cache))
		again, _ := read(t, fetch.Asking(feed, value))
		assert.Equal(t, a.Header.Get(nginx.Cache), again.Header.Get(nginx.Cache), "what was asked for is not kept")
		kept, _ := read(t, feed)
		assert.Empty(t, kept.Header.Get(feeds.AskedHeader), "nobody gets the answer to another's question")
		value = fetch.NewAsked()
		unchanged, _ := read(t, fetch.Asking(feed, value), "If-None-Match", a.ETag) // nginx asks without it
		assert.Equal(t, map[bool]int{false: http.StatusOK, true: http.StatusNotModified}[stale], unchanged.Status, "edge %d", i)
		assert.Equal(t, !stale, unchanged.Asked(value), "edge %d", i)
	}

	// An edge without the query in its key and without a cached answer does not cache that of a request with a value.
	front.Use(edges[3])
	snapshots := front.URL + "/topicmaps/egov/snapshots"
	value := fetch.NewAsked()
	a, _ := read(t, fetch.Asking(snapshots, value))
	assert.True(t, a.Asked(value))
	next, _ := read(t, fetch.Asking(snapshots, fetch.NewAsked()))
	assert.NotEqual(t, "HIT", next.Header.Get(nginx.Cache))
}

// Rounds that alternate between two caches, one of them stale, remove no data: the state never goes back, a signed
// source raises no alarm, and an older state is never reported as proven. The same applies to a stale cache that
// ignores the query.
func TestCachesThatAlternateTakeNothingBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sign  bool
		edges []nginx.Edge
	}{
		"two edges":         {false, []nginx.Edge{{HonoursNoCache: true}, {HonoursNoCache: true}}},
		"two edges, signed": {true, []nginx.Edge{{HonoursNoCache: true}, {}}},
		"a stuck one":       {false, []nginx.Edge{{HonoursNoCache: true}, {IgnoresQuery: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := nginx.NewFront(t)
			o := node.New(t, func(c *server.Config) { c.BaseURL = front.URL })
			o.Create("egov", map1("v 0"))
			if c.sign {
				o.Sign("egov")
			}
			edges := nginx.Start(t, o.URL, c.edges...)
			front.Use(edges[0])
			a := alternate(t, front, time.Nanosecond)
			for i := range 24 {
				if i%4 == 0 {
					o.Put(map1(fmt.Sprintf("v %d", i/4+1)))
				}
				front.Use(edges[i%len(edges)])
				a.round()
			}
			require.Positive(t, a.went)
			front.Use(o.URL)
			a.ends(6)
		})
	}
}
