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
)

// since follows ?since= to its last page. between is called before each page but
// the first.
func (n *node) since(name, since string, between func()) (entries []document, pages []*document) {
	n.t.Helper()
	at := "/topicmaps/" + name + "/fragments?since=" + url.QueryEscape(since)
	for at != "" {
		require.Less(n.t, len(pages), 1000)
		d := n.feed(at)
		entries, pages = append(entries, d.Entries...), append(pages, d)
		if at = d.link(n.t, "next"); at != "" && between != nil {
			between()
		}
	}
	return entries, pages
}

// latest returns the last entry of each topic since a time, the oldest first, as
// the archived feed has them.
func (n *node) latest(name string, since time.Time) (ids []string) {
	all, _ := n.history("/topicmaps/" + name + "/fragments")
	seen := map[string]bool{}
	for _, e := range all {
		if si := e.TopicSI[0]; !seen[si] && !at(n.t, e.updated()).Before(since) {
			ids = append([]string{e.id()}, ids...)
			seen[si] = true
		}
	}
	return ids
}

func TestSinceAnswersTheLastEntryOfEachTopicTheOldestFirst(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t, documentSize(3))
	n.publish("small", small())
	for i := range 4 {
		n.mustPut("small", small("Oslo", fmt.Sprint(i), "Bergen", fmt.Sprint(i/2)))
	}
	n.delete("small", "http://psi.example.org/tromsø")
	all, _ := n.history("/topicmaps/small/fragments")
	require.Greater(t, len(all), 14)
	deleted := 0
	for i := range all {
		entries, pages := n.since("small", all[i].updated(), nil)
		want := n.latest("small", at(t, all[i].updated()))
		assert.Equal(t, want, ids(entries), "an entry of that very time is among them")
		assert.Len(t, pages, (len(want)+2)/3, "pages of the size of a document")
		for _, e := range entries {
			n.checkData(e, "fragment")
			assert.Equal(t, e.TopicSI, e.Resource)
			if e.State[0] == "deleted" {
				deleted++
			}
		}
		after := at(t, all[i].updated()).Add(time.Nanosecond).Format(time.RFC3339Nano)
		entries, _ = n.since("small", after, nil)
		assert.NotContains(t, ids(entries), all[i].id(), "one of a nanosecond earlier is not")
	}
	assert.Positive(t, deleted)
	entries, pages := n.since("small", "2999-01-01", nil)
	assert.Empty(t, entries)
	assert.Len(t, pages, 1)
	everything, _ := n.since("small", "0001-01-01T00:00:00", nil) // what .NET has for "never"
	assert.Equal(t, n.latest("small", time.Time{}), ids(everything))
}

func TestPagesOfSinceAreLinked(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(3))
	n.publish("small", small())
	_, pages := n.since("small", "2001-02-03T04:05:06.7+01:00", nil)
	require.Len(t, pages, 4)
	feed := n.url("/topicmaps/small/fragments")
	recent := n.feed(feed)
	for i, d := range pages {
		self := d.link(t, "self")
		assert.Equal(t, d.raw, n.feed(self).raw, "self leads to the page itself")
		assert.Equal(t, feed+"?since=2001-02-03T03:05:06.700000Z", d.link(t, "first"))
		assert.Equal(t, feed, d.link(t, "current"))
		assert.Equal(t, recent.id(), d.id(), "entries of the same feed")
		assert.Equal(t, recent.Prefixes, d.Prefixes)
		assert.Equal(t, i < len(pages)-1, d.link(t, "next") != "")
		for _, rel := range []string{"prev-archive", "next-archive", "via"} {
			assert.Empty(t, d.links(rel), "it is paged, not archived")
		}
		assert.Empty(t, d.Archive)
		assert.Empty(t, d.Complete)
		if i > 0 {
			assert.Equal(t, pages[i-1].link(t, "next"), self)
			assert.NotContains(t, self, "since=", "the position carries it")
		}
		tag := n.mustGet(self).Header.Get("ETag")
		assert.Equal(t, http.StatusNotModified, n.get(self, "If-None-Match", tag).StatusCode)
	}
}

// Whoever pages while others publish ends with the last entry of every topic.
func TestSinceMissesNothingThatIsPublishedBetweenItsPages(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(2))
	n.publish("small", small())
	names := []string{"Oslo", "Bergen", "Norway", "City", "Note", "part", "whole", "Tromsø"}
	random := rand.New(rand.NewPCG(2012, 7))
	for round := range testenv.Rounds(3, 10) {
		begin := n.feed("/topicmaps/small/fragments").updated()
		publish := func(i int) {
			var renames []string
			for _, k := range random.Perm(len(names))[:1+random.IntN(4)] {
				renames = append(renames, names[k], fmt.Sprintf("%s %d %d", names[k], round, i))
			}
			n.mustPut("small", small(renames...))
		}
		for i := range 3 {
			publish(i)
		}
		i := 3
		entries, pages := n.since("small", begin, func() {
			if i < 9 { // or it would go on and on
				publish(i)
			}
			i++
		})
		require.Greater(t, len(pages), 2)
		last := map[string]string{}
		for j, e := range entries {
			last[e.TopicSI[0]] = e.id()
			if j > 0 {
				assert.Less(t, entries[j-1].updated(), e.updated(), "ascending from page to page")
			}
		}
		var got []string
		for _, id := range n.latest("small", at(t, begin)) {
			for _, l := range last {
				if l == id {
					got = append(got, id)
				}
			}
		}
		assert.Equal(t, n.latest("small", at(t, begin)), got)
		assert.Len(t, last, len(got))
	}
}

func TestSinceTakesTimesAsClientsWriteThem(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
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
		d := n.feed("/topicmaps/small/fragments?" + query)
		assert.Equal(t, n.url("/topicmaps/small/fragments?since="+want), d.link(t, "self"), query)
	}
}

func TestNonsenseInTheQueryIsABadRequest(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(3))
	n.publish("small", small())
	page := strings.TrimPrefix(n.feed("/topicmaps/small/fragments?since=2001-01-01").link(t, "next"), n.url("/topicmaps/small/fragments?page="))
	for _, query := range []string{
		"since=", "since=yesterday", "since=2012", "since=2012-13-01", "since=2012-02-30", "since=2012-07-10T25:00:00Z",
		"since=1341921600", "since=%zz", "since=0000-01-01T00:00:00%2B01:00", "since=9999-12-31T23:59:59.9999999Z",
		"page=", "page=2", "page=x" + page, "page=" + page[1:], "page=" + page + "AAAA", "page=" + strings.Repeat("A", len(page)), "page=" + page + "=",
		"since=2012-07-10&page=3", "%", "since=2012-07-10;x",
	} {
		a := n.get("/topicmaps/small/fragments?" + query)
		assert.Equal(t, http.StatusBadRequest, a.StatusCode, "%s: %s", query, a.body)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	}
	assert.Equal(t, http.StatusNotFound, n.get("/topicmaps/none/fragments?since=2012-07-10").StatusCode)
}

func TestSinceBeforeTheHorizonIsGone(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(3))
	n.publish("small", small())
	second := n.feed("/topicmaps/small/fragments?since=2001-01-01").link(t, "next")
	third := n.feed(second).link(t, "next") // behind the sixth entry
	n.mustPut("small", small("Oslo", "A", "Bergen", "B", "Norway", "C"))
	all, _ := n.history("/topicmaps/small/fragments") // 13 entries
	before := n.feed(third).Entries
	n.do(http.MethodPost, "/topicmaps/small/snapshots", nil)
	n.settings("small", func(s *store.Settings) { s.KeepEntries = 7 })
	assert.JSONEq(t, `{"collection": "small", "entries": 6}`, string(n.do(http.MethodPost, "/topicmaps/small/gc", nil).body))

	get := func(url string) int { return n.get(url).StatusCode }
	since := func(i int) string { return "/topicmaps/small/fragments?since=" + all[len(all)-i].updated() }
	assert.Equal(t, http.StatusGone, get("/topicmaps/small/fragments?since=2001-01-01"))
	assert.Equal(t, http.StatusGone, get(since(1)))
	assert.Equal(t, http.StatusGone, get(since(6)), "the last one that was given up")
	assert.Equal(t, http.StatusOK, get(since(7)), "the first one that was not")
	a := n.get(since(1))
	assert.Contains(t, string(a.body), n.url("/topicmaps/small/snapshots"))

	// A walk that has come past the horizon goes on; one that has not ends.
	assert.Equal(t, http.StatusGone, get(second))
	require.NotEmpty(t, before)
	assert.Equal(t, before, n.feed(third).Entries)
}

func TestPageOfAnEarlierHistoryIsGone(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(3))
	n.publish("small", small())
	next := n.feed("/topicmaps/small/fragments?since=2001-01-01").link(t, "next")
	require.NoError(t, n.Store.DeleteCollection(n.t.Context(), "small"))
	n.publish("small", small())
	assert.Equal(t, http.StatusGone, n.get(next).StatusCode)
}
