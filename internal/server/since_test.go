package server_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// since follows ?since= to its last page. between is called before each page but
// the first.
func (n *node) since(name, since string, between func()) (entries []served.Document, pages []*served.Document) {
	n.T.Helper()
	at := "/topicmaps/" + name + "/fragments?since=" + url.QueryEscape(since)
	for at != "" {
		require.Less(n.T, len(pages), 1000)
		d := n.Feed(at)
		entries, pages = append(entries, d.Entries...), append(pages, d)
		if at = d.Link(n.T, "next"); at != "" && between != nil {
			between()
		}
	}
	return entries, pages
}

// latest returns the last entry of each topic since a time, the oldest first, as
// the archived feed has them.
func (n *node) latest(name string, since time.Time) (ids []string) {
	all, _ := n.History("/topicmaps/" + name + "/fragments")
	seen := map[string]bool{}
	for _, e := range all {
		if si := e.TopicSI[0]; !seen[si] && !served.At(n.T, e.Updated()).Before(since) {
			ids = append([]string{e.ID()}, ids...)
			seen[si] = true
		}
	}
	return ids
}

func TestSinceAnswersTheLastEntryOfEachTopicTheOldestFirst(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t, served.DocumentSize(3))
	n.Publish("small", served.Small())
	for i := range 4 {
		n.MustPut("small", served.Small("Oslo", fmt.Sprint(i), "Bergen", fmt.Sprint(i/2)))
	}
	n.Delete("small", "http://psi.example.org/tromsø")
	all, _ := n.History("/topicmaps/small/fragments")
	require.Greater(t, len(all), 14)
	deleted := 0
	for i := range all {
		entries, pages := n.since("small", all[i].Updated(), nil)
		want := n.latest("small", served.At(t, all[i].Updated()))
		assert.Equal(t, want, served.IDsOf(entries), "an entry of that very time is among them")
		assert.Len(t, pages, (len(want)+2)/3, "pages of the size of a document")
		for _, e := range entries {
			n.checkData(e, "fragment")
			assert.Equal(t, e.TopicSI, e.Resource)
			if e.State[0] == "deleted" {
				deleted++
			}
		}
		after := served.At(t, all[i].Updated()).Add(time.Nanosecond).Format(time.RFC3339Nano)
		entries, _ = n.since("small", after, nil)
		assert.NotContains(t, served.IDsOf(entries), all[i].ID(), "one of a nanosecond earlier is not")
	}
	assert.Positive(t, deleted)
	entries, pages := n.since("small", "2999-01-01", nil)
	assert.Empty(t, entries)
	assert.Len(t, pages, 1)
	everything, _ := n.since("small", "0001-01-01T00:00:00", nil) // the value of .NET for "never"
	assert.Equal(t, n.latest("small", time.Time{}), served.IDsOf(everything))
}

func TestPagesOfSinceAreLinked(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(3))
	n.Publish("small", served.Small())
	_, pages := n.since("small", "2001-02-03T04:05:06.7+01:00", nil)
	require.Len(t, pages, 4)
	feed := n.URL("/topicmaps/small/fragments")
	recent := n.Feed(feed)
	for i, d := range pages {
		self := d.Link(t, "self")
		assert.Equal(t, d.Raw, n.Feed(self).Raw, "self leads to the page itself")
		assert.Equal(t, feed+"?since=2001-02-03T03:05:06.700000Z", d.Link(t, "first"))
		assert.Equal(t, feed, d.Link(t, "current"))
		assert.Equal(t, recent.ID(), d.ID(), "entries of the same feed")
		assert.Equal(t, recent.Prefixes, d.Prefixes)
		assert.Equal(t, i < len(pages)-1, d.Link(t, "next") != "")
		for _, rel := range []string{"prev-archive", "next-archive", "via"} {
			assert.Empty(t, d.Hrefs(rel), "it is paged, not archived")
		}
		assert.Empty(t, d.Archive)
		assert.Empty(t, d.Complete)
		if i > 0 {
			assert.Equal(t, pages[i-1].Link(t, "next"), self)
			assert.NotContains(t, self, "since=", "the position carries it")
		}
		tag := n.MustGet(self).Header.Get("ETag")
		assert.Equal(t, http.StatusNotModified, n.Get(self, "If-None-Match", tag).StatusCode)
	}
}

// A reader that pages while others publish ends with the last entry of every topic.
func TestSinceMissesNothingThatIsPublishedBetweenItsPages(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(2))
	n.Publish("small", served.Small())
	names := []string{"Oslo", "Bergen", "Norway", "City", "Note", "part", "whole", "Tromsø"}
	random := rand.New(rand.NewPCG(2012, 7))
	for round := range testenv.Rounds(3, 10) {
		begin := n.Feed("/topicmaps/small/fragments").Updated()
		publish := func(i int) {
			var renames []string
			for _, k := range random.Perm(len(names))[:1+random.IntN(4)] {
				renames = append(renames, names[k], fmt.Sprintf("%s %d %d", names[k], round, i))
			}
			n.MustPut("small", served.Small(renames...))
		}
		for i := range 3 {
			publish(i)
		}
		i := 3
		entries, pages := n.since("small", begin, func() {
			if i < 9 { // otherwise it would never end
				publish(i)
			}
			i++
		})
		require.Greater(t, len(pages), 2)
		last := map[string]string{}
		for j, e := range entries {
			last[e.TopicSI[0]] = e.ID()
			if j > 0 {
				assert.Less(t, entries[j-1].Updated(), e.Updated(), "ascending from page to page")
			}
		}
		var got []string
		for _, id := range n.latest("small", served.At(t, begin)) {
			for _, l := range last {
				if l == id {
					got = append(got, id)
				}
			}
		}
		assert.Equal(t, n.latest("small", served.At(t, begin)), got)
		assert.Len(t, last, len(got))
	}
}

func TestSinceTakesTimesAsClientsWriteThem(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	for query, want := range map[string]string{
		"since=2012-07-10T12:00:00Z":                "2012-07-10T12:00:00.000000Z",
		"since=2012-07-10":                          "2012-07-10T00:00:00.000000Z",
		"since=2012-07-10T12:00":                    "2012-07-10T12:00:00.000000Z",
		"since=2012-07-10T12:00:00":                 "2012-07-10T12:00:00.000000Z",
		"since=2012-07-10t12:00:00z":                "2012-07-10T12:00:00.000000Z",
		"since=2012-07-10T12:00:00.1Z":              "2012-07-10T12:00:00.100000Z",
		"since=2012-07-10T12:00:00.1234560001Z":     "2012-07-10T12:00:00.123456Z", // ten digits; nine count
		"since=2012-07-10T12:00:00.123456001Z":      "2012-07-10T12:00:00.123457Z", // no entry lies between
		"since=2012-07-10T12:00:00%2B02:00":         "2012-07-10T10:00:00.000000Z",
		"since=2012-07-10T12:00:00+02:00":           "2012-07-10T10:00:00.000000Z", // + reads as a blank
		"since=2012-07-10T12:00:00-02:00":           "2012-07-10T14:00:00.000000Z",
		"since=2012-07-10+12:00:00":                 "2012-07-10T12:00:00.000000Z",
		"since=2012-07-10%2012:00:00%2002:00":       "2012-07-10T10:00:00.000000Z",
		"since=+2012-07-10T12:00:00Z+":              "2012-07-10T12:00:00.000000Z",
		"since=2012-07-10T12%3A00%3A00Z&other=x":    "2012-07-10T12:00:00.000000Z",
		"since=0001-01-01T00:00:00":                 "0001-01-01T00:00:00.000000Z",
		"since=9999-12-31T23:59:59.999999Z":         "9999-12-31T23:59:59.999999Z",
		"since=2012-07-10T12:00:00Z&since=whatever": "2012-07-10T12:00:00.000000Z",
	} {
		d := n.Feed("/topicmaps/small/fragments?" + query)
		assert.Equal(t, n.URL("/topicmaps/small/fragments?since="+want), d.Link(t, "self"), query)
	}
}

func TestNonsenseInTheQueryIsABadRequest(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(3))
	n.Publish("small", served.Small())
	page := strings.TrimPrefix(n.Feed("/topicmaps/small/fragments?since=2001-01-01").Link(t, "next"), n.URL("/topicmaps/small/fragments?page="))
	for _, query := range []string{
		"since=", "since=yesterday", "since=2012", "since=2012-13-01", "since=2012-02-30", "since=2012-07-10T25:00:00Z",
		"since=1341921600", "since=%zz", "since=0000-01-01T00:00:00%2B01:00", "since=9999-12-31T23:59:59.9999999Z",
		"page=", "page=2", "page=x" + page, "page=" + page[1:], "page=" + page + "AAAA", "page=" + strings.Repeat("A", len(page)), "page=" + page + "=",
		"since=2012-07-10&page=3", "%", "since=2012-07-10;x",
	} {
		a := n.Get("/topicmaps/small/fragments?" + query)
		assert.Equal(t, http.StatusBadRequest, a.StatusCode, "%s: %s", query, a.Bytes)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	}
	assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps/none/fragments?since=2012-07-10").StatusCode)
}

func TestSinceBeforeTheHorizonIsGone(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(3))
	n.Publish("small", served.Small())
	second := n.Feed("/topicmaps/small/fragments?since=2001-01-01").Link(t, "next")
	third := n.Feed(second).Link(t, "next") // behind the sixth entry
	n.MustPut("small", served.Small("Oslo", "A", "Bergen", "B", "Norway", "C"))
	all, _ := n.History("/topicmaps/small/fragments") // 13 entries
	before := n.Feed(third).Entries
	n.Do(http.MethodPost, "/topicmaps/small/snapshots", nil)
	n.Settings("small", func(s *store.Settings) { s.KeepEntries = 7 })
	assert.JSONEq(t, `{"collection": "small", "entries": 6}`, string(n.Do(http.MethodPost, "/topicmaps/small/gc", nil).Bytes))

	get := func(url string) int { return n.Get(url).StatusCode }
	since := func(i int) string { return "/topicmaps/small/fragments?since=" + all[len(all)-i].Updated() }
	assert.Equal(t, http.StatusGone, get("/topicmaps/small/fragments?since=2001-01-01"))
	assert.Equal(t, http.StatusGone, get(since(1)))
	assert.Equal(t, http.StatusGone, get(since(6)), "the last one that was given up")
	assert.Equal(t, http.StatusOK, get(since(7)), "the first one that was not")
	a := n.Get(since(1))
	assert.Contains(t, string(a.Bytes), n.URL("/topicmaps/small/snapshots"))

	// A walk that has passed the horizon continues; one that has not ends.
	assert.Equal(t, http.StatusGone, get(second))
	require.NotEmpty(t, before)
	assert.Equal(t, before, n.Feed(third).Entries)
}

func TestPageOfAnEarlierHistoryIsGone(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(3))
	n.Publish("small", served.Small())
	next := n.Feed("/topicmaps/small/fragments?since=2001-01-01").Link(t, "next")
	require.NoError(t, n.Store.DeleteCollection(n.T.Context(), "small", ""))
	n.Publish("small", served.Small())
	assert.Equal(t, http.StatusGone, n.Get(next).StatusCode)
}
