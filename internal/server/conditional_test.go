package server_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// Two states of one second have the same Last-Modified. So it is omitted until the second is over; otherwise a client
// would miss a change.
func TestLastModifiedWaitsUntilItsSecondIsOver(t *testing.T) {
	t.Parallel()
	now := served.NewClock()
	now.Advance(300 * time.Millisecond)
	second := now.Now().Truncate(time.Second)
	n := startAt(t, now, served.DocumentSize(4))
	n.Publish("small", served.Small())
	n.MustPut("small", served.Small("Oslo", "Christiania"))
	d := n.Feed("/topicmaps/small/fragments")
	data := served.DataURL(t, d.Entries[0])
	urls := []string{
		"/topicmaps", "/topicmaps/small", "/topicmaps/small.atom", "/topicmaps/small/snapshots", "/topicmaps/small/fragments",
		d.Link(t, "via"), d.Link(t, "prev-archive"), d.Entries[0].Link(t, "self"),
		data, served.DataURL(t, d.Entries[1]), served.DataURL(t, n.Feed("/topicmaps/small/snapshots").Entries[0]),
		n.URL("/topicmaps/small/snapshots/current"), n.Get("/topicmaps/small/topics?si=http://psi.example.org/oslo").Header.Get("Location"),
	}
	given := second.UTC().Format(http.TimeFormat)
	for range 2 {
		for _, url := range urls {
			a := n.MustGet(url, "If-Modified-Since", given)
			assert.Empty(t, a.Header.Get("Last-Modified"), url)
		}
		now.Advance(300 * time.Millisecond)
	}
	now.Advance(100 * time.Millisecond)
	require.Equal(t, second.Add(time.Second), now.Now())
	earlier := second.Add(-time.Second).UTC().Format(http.TimeFormat)
	for _, url := range urls {
		for _, coding := range []string{"identity", "gzip"} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				ask := func(headers ...string) served.Answer {
					return n.Do(method, url, nil, append(headers, "Accept-Encoding", coding)...)
				}
				a := ask()
				require.Equal(t, http.StatusOK, a.StatusCode, url)
				assert.Equal(t, given, a.Header.Get("Last-Modified"), "%s %s", method, url)
				tag := a.Header.Get("ETag")
				for name, c := range map[string]struct {
					status  int
					headers []string
				}{
					"since then":                   {304, []string{"If-Modified-Since", given}},
					"since later":                  {304, []string{"If-Modified-Since", second.Add(time.Hour).UTC().Format(http.TimeFormat)}},
					"since before":                 {200, []string{"If-Modified-Since", earlier}},
					"no date":                      {200, []string{"If-Modified-Since", "yesterday"}},
					"the tag decides":              {200, []string{"If-Modified-Since", given, "If-None-Match", `"x"`}},
					"the tag decides, known":       {304, []string{"If-Modified-Since", earlier, "If-None-Match", tag}},
					"unmodified":                   {200, []string{"If-Unmodified-Since", given}},
					"modified":                     {412, []string{"If-Unmodified-Since", earlier}},
					"match":                        {200, []string{"If-Match", tag}},
					"match of any":                 {200, []string{"If-Match", "*"}},
					"no match":                     {412, []string{"If-Match", `"x"`}},
					"weak tags never match":        {412, []string{"If-Match", "W/" + tag}},
					"the tag decides, unmodified":  {200, []string{"If-Match", tag, "If-Unmodified-Since", earlier}},
					"match, and known":             {304, []string{"If-Match", tag, "If-None-Match", tag}},
					"no match, though not changed": {412, []string{"If-Match", `"x"`, "If-None-Match", tag}},
				} {
					a := ask(c.headers...)
					assert.Equal(t, c.status, a.StatusCode, "%s: %s %s", name, method, url)
					switch c.status {
					case 304:
						assert.Equal(t, tag, a.Header.Get("ETag"))
						assert.NotEmpty(t, a.Header.Get("Cache-Control"))
						assert.Equal(t, "Accept, Accept-Encoding", a.Header.Get("Vary"))
						assert.Empty(t, a.Header.Get("Content-Encoding"))
						assert.Empty(t, a.Header.Get("Content-Type"))
					case 412:
						assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
						assert.Empty(t, a.Header.Get("Last-Modified"))
						assert.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
					}
				}
			}
		}
	}

	// What changes, changes.
	now.Advance(time.Minute)
	n.MustPut("small", served.Small("Oslo", "Kristiania"))
	n.Idle() // no background work changes it later
	now.Advance(time.Second)
	for _, url := range []string{"/topicmaps", "/topicmaps/small/fragments", urls[len(urls)-1]} {
		a := n.MustGet(url, "If-Modified-Since", given)
		assert.Equal(t, second.Add(time.Minute+time.Second).UTC().Format(http.TimeFormat), a.Header.Get("Last-Modified"), url)
	}
	assert.Equal(t, http.StatusNotModified, n.Get(data, "If-Modified-Since", given).StatusCode, "a fragment never changes")
}

// Settings also change feeds, without a publication; and during a change the second in which it becomes visible is not
// known.
func TestLastModifiedKnowsOfEveryChange(t *testing.T) {
	t.Parallel()
	now := served.NewClock()
	n := startAt(t, now)
	n.Publish("small", served.Small())
	n.Publish("other", served.Small())
	now.Advance(time.Minute)
	first := n.MustGet("/topicmaps/small/fragments").Header
	require.NotEmpty(t, first.Get("Last-Modified"))
	n.MustSet("small", `{"title":"New"}`)
	assert.Empty(t, n.MustGet("/topicmaps/small/fragments").Header.Get("Last-Modified"))
	now.Advance(time.Second)
	second := n.MustGet("/topicmaps/small/fragments", "If-Modified-Since", first.Get("Last-Modified"), "If-None-Match", first.Get("ETag")).Header
	assert.NotEqual(t, first.Get("Last-Modified"), second.Get("Last-Modified"))
	assert.NotEqual(t, first.Get("ETag"), second.Get("ETag"))
	assert.Equal(t, first.Get("Last-Modified"), n.MustGet("/topicmaps/other/fragments").Header.Get("Last-Modified"), "another collection")
}

func TestNoLastModifiedWhileAChangeIsUnderWay(t *testing.T) {
	t.Parallel()
	now := served.NewClock()
	n, w := watch(t, func(c *server.Config) { c.Now = now.Now })
	now.Advance(time.Minute)
	before := n.MustGet("/topicmaps/small").Header.Get("Last-Modified")
	require.NotEmpty(t, before)
	reached, goOn := make(chan bool), make(chan bool)
	w.publish = func() {
		close(reached)
		<-goOn
	}
	done := make(chan served.Answer)
	go func() { done <- n.Put("small", served.Small("Oslo", "Oslo 1")) }()
	<-reached
	for _, url := range []string{"/topicmaps/small", "/topicmaps"} {
		a := n.MustGet(url, "If-Modified-Since", before)
		assert.Empty(t, a.Header.Get("Last-Modified"), url)
	}
	close(goOn)
	require.Equal(t, http.StatusOK, (<-done).StatusCode)
	now.Advance(time.Second)
	assert.NotEqual(t, before, n.MustGet("/topicmaps/small").Header.Get("Last-Modified"))
}

// Whatever the clock does, the times of entries strictly increase in the order of
// commits, and are those of the clock where it is ahead.
func TestUpdatedIncreasesInTheOrderOfCommits(t *testing.T) {
	t.Parallel()
	now := served.NewClock()
	dir := t.TempDir()
	open := func() *node {
		return startOn(t, store.Options{Dir: dir, Now: now.Now}, served.DocumentSize(5), func(c *server.Config) {
			c.Now, c.BaseURL = now.Now, "http://localhost"
		})
	}
	n := open()
	n.DialAll()
	total := n.Publish("small", served.Small()).Topics
	last := ""
	rename := func(to string) string {
		p := n.MustPut("small", served.Small("Oslo", to, "Bergen", to))
		total += p.Updated
		return p.LastChange
	}
	for i, jump := range []time.Duration{time.Hour, -time.Hour, -100 * time.Hour, 0, 0, time.Microsecond, 300 * time.Hour, -time.Second} {
		now.Advance(jump)
		changed := rename(fmt.Sprint(i))
		assert.Greater(t, changed, last)
		if jump > 200*time.Hour {
			assert.Equal(t, now.Now().Add(time.Microsecond).UTC().Format("2006-01-02T15:04:05.000000Z"), changed, "the second of two entries")
		}
		last = changed
	}

	// Another process, with a clock that is behind.
	n.Stop()
	now.Advance(-1000 * time.Hour)
	n = open()
	n.DialAll()
	changed := rename("after the restart")
	assert.Greater(t, changed, last)
	last = changed

	// Two writers at once, while the clock jumps.
	var mu sync.Mutex
	var times []string
	var writers sync.WaitGroup
	for i := range 2 {
		writers.Go(func() {
			before := last
			for j := range 10 {
				p := served.Published(t, n.Put("small", served.Small("Oslo", fmt.Sprint(i, " ", j))))
				assert.Greater(t, p.LastChange, before, "of one writer, in the order in which it writes")
				before = p.LastChange
				now.Advance(time.Duration(i*2-1) * time.Minute)
				mu.Lock()
				total += p.Updated + p.Added
				times = append(times, p.LastChange)
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	entries, _ := n.History("/topicmaps/small/fragments")
	require.Len(t, entries, total)
	for i := 1; i < len(entries); i++ {
		assert.Greater(t, entries[i-1].Updated(), entries[i].Updated())
	}
	seen := map[string]bool{}
	for _, e := range entries {
		seen[e.Updated()] = true
	}
	for _, at := range times {
		assert.True(t, seen[at], "%s is the time of an entry", at)
	}
}
