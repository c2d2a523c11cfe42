package server_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// sameEntry checks that the self link of an entry leads to the entry, with an author of its own.
func (n *node) sameEntry(e served.Document) {
	n.T.Helper()
	self := e.Link(n.T, "self")
	assert.Equal(n.T, ".atom", self[len(self)-5:])
	alone := *n.Entry(self)
	assert.Equal(n.T, self, alone.Link(n.T, "self"))
	alone.Raw, alone.Authors, e.Authors = "", nil, nil
	both := withoutPages(&served.Document{Entries: []served.Document{e, alone}}) // archive documents have none
	assert.Equal(n.T, both[0], both[1], self)
}

func TestTopicMapsFeedHasAnEntryForEachMap(t *testing.T) {
	t.Parallel()
	n := start(t)
	libraries := n.Publish("libraries", maps.Libraries)
	egov, err := n.Import(context.Background(), store.Collection{Name: "egov", SP: "http://psi.example.org/egov#", Settings: store.Settings{Title: "eGovernment"}}, bytes.NewReader(maps.EGov), "egov.xtm")
	require.NoError(t, err)

	d := n.Feed("/topicmaps")
	assert.Equal(t, n.URL("/topicmaps"), d.Link(t, "self"))
	assert.Len(t, d.Complete, 1)
	assert.Empty(t, d.Prefixes, "each map has a prefix of its own")
	require.Len(t, d.Entries, 2)
	assert.Equal(t, "eGovernment", d.Entries[0].Titles[0], "by name of the collection")
	assert.Equal(t, "libraries", d.Entries[1].Titles[0])
	assert.Equal(t, feedTime(egov), d.Updated(), "of the latest change of any")
	for i, c := range []*store.Collection{egov, libraries} {
		e := d.Entries[i]
		href := n.URL("/topicmaps/" + c.Name)
		assert.Equal(t, feedTime(c), e.Updated())
		for _, rel := range []string{"topicmapfeed", served.SDShare + "collectionfeed", served.CWA + "/collectionfeed", "alternate"} {
			assert.Equal(t, map[string]string{served.AtomType: href}, e.Typed(t, rel), rel)
		}
		assert.Empty(t, e.TopicSI)
		assert.Empty(t, e.State)
		n.sameEntry(e)
	}
	assert.NotEqual(t, d.Entries[0].ID(), d.Entries[1].ID())
}

func feedTime(c *store.Collection) string { return c.Updated.Format("2006-01-02T15:04:05.000000Z") }

func TestTopicMapsFeedOfAServerWithoutMapsIsAValidFeed(t *testing.T) {
	t.Parallel()
	n := start(t)
	d := n.Feed("/topicmaps")
	assert.Empty(t, d.Entries)
	assert.Equal(t, n.URL("/topicmaps"), d.Link(t, "self"))
}

func TestTopicMapFeedHasExactlyTwoEntries(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.Publish("egov", maps.EGov)
	d := n.Feed("/topicmaps/egov")
	assert.Equal(t, n.URL("/topicmaps/egov"), d.Link(t, "self"))
	assert.Equal(t, n.URL("/topicmaps"), d.Link(t, "up"))
	assert.Equal(t, feedTime(c), d.Updated())
	assert.Len(t, d.Complete, 1)
	require.Len(t, d.Entries, 2)
	for i, want := range []struct{ rel, sdshare, path string }{
		{"fragmentfeed", "fragmentsfeed", "/topicmaps/egov/fragments"},
		{"snapshotfeed", "snapshotsfeed", "/topicmaps/egov/snapshots"},
	} {
		e := d.Entries[i]
		for _, rel := range []string{want.rel, served.SDShare + want.sdshare, served.CWA + "/" + want.sdshare, "alternate"} {
			assert.Equal(t, map[string]string{served.AtomType: n.URL(want.path)}, e.Typed(t, rel), rel)
		}
		assert.Len(t, e.Links, 5)
		n.sameEntry(e)
	}
	assert.NotEqual(t, d.Entries[0].ID(), d.Entries[1].ID())
}

// checkData checks the links of an entry to both forms of its data: by the
// relation of TMShare, by that of SDShare, and as alternates.
func (n *node) checkData(e served.Document, sdshareName string) {
	n.T.Helper()
	data := e.Typed(n.T, "topicmapdata")
	require.Len(n.T, data, 2)
	require.NotEmpty(n.T, data[served.XTM1Type])
	require.NotEmpty(n.T, data[served.XTM21Type])
	assert.NotEqual(n.T, data[served.XTM1Type], data[served.XTM21Type])
	assert.Equal(n.T, data, e.Typed(n.T, served.SDShare+sdshareName))
	assert.Equal(n.T, data, e.Typed(n.T, served.CWA+"/"+sdshareName))
	alternates := e.Typed(n.T, "alternate")
	links := 9                                       // and self
	if page := alternates["text/html"]; page != "" { // archive documents have none
		assert.Equal(n.T, n.About(strings.TrimSuffix(e.Link(n.T, "self"), ".atom")), page)
		delete(alternates, "text/html")
		links++
	}
	assert.Equal(n.T, data, alternates)
	assert.Len(n.T, e.Links, links)
}

func TestSnapshotsFeedListsTheSnapshotsNewestFirst(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.SnapshotsKept = 2 })
	n.Publish("small", served.Small())
	snapshot := func() {
		_, err := n.Store.TakeSnapshot(context.Background(), "small", 2)
		require.NoError(t, err)
	}
	times := []string{n.Feed("/topicmaps/small").Updated()}
	for _, name := range []string{"Oslo 2", "Oslo 3"} {
		times = append(times, n.MustPut("small", served.Small("Oslo", name)).LastChange)
		snapshot()
	}
	snapshot() // without changes: no new one
	p := n.MustPut("small", served.Small("Oslo", "Oslo 4"))

	d := n.Feed("/topicmaps/small/snapshots")
	assert.Equal(t, n.URL("/topicmaps/small/snapshots"), d.Link(t, "self"))
	assert.Equal(t, n.URL("/topicmaps/small"), d.Link(t, "up"))
	assert.Equal(t, []string{n.SP("small")}, d.Prefixes)
	assert.Len(t, d.Complete, 1)
	require.Len(t, d.Entries, 2, "as many as are kept")
	assert.Equal(t, []string{times[2], times[1]}, []string{d.Entries[0].Updated(), d.Entries[1].Updated()},
		"updated is the time of the last change in the snapshot")
	assert.Equal(t, times[2], d.Updated())
	for i, name := range []string{"Oslo 3", "Oslo 2"} {
		e := d.Entries[i]
		n.checkData(e, "snapshot")
		assert.Empty(t, e.TopicSI)
		assert.Empty(t, e.State)
		for _, href := range e.Typed(t, "topicmapdata") {
			assert.Equal(t, n.Expected("small", served.Small("Oslo", name)), served.Canonical(t, n.MustGet(href).Bytes, n.SP("small")))
		}
		n.sameEntry(e)
	}
	current := d.Typed(t, served.Own+"/current-snapshot")
	require.Len(t, current, 2)
	for _, href := range current {
		a := n.MustGet(href)
		assert.Equal(t, p.LastChange, a.Header.Get("TMShare-Updated"))
		assert.Equal(t, n.Expected("small", served.Small("Oslo", "Oslo 4")), served.Canonical(t, a.Bytes, n.SP("small")))
	}
}

func TestFragmentsFeedStatesTopicAndStateOfEachEntry(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t)
	c := n.Publish("egov", maps.EGov)
	n.MustPut("egov", served.Replace(t, maps.EGov, "<baseNameString>Sort key</baseNameString>", "<baseNameString>  Sorting\n key </baseNameString>"))
	const sort = "http://psi.topicmaps.org/iso13250/model/sort"

	entries, documents := n.History("/topicmaps/egov/fragments")
	require.Len(t, entries, c.Topics+1)
	for _, d := range documents {
		assert.Equal(t, []string{n.SP("egov")}, d.Prefixes)
		assert.Equal(t, documents[0].ID(), d.ID(), "all documents are of one feed")
		assert.Empty(t, d.Complete)
	}
	assert.Equal(t, n.URL("/topicmaps/egov/fragments"), documents[0].Link(t, "self"))
	assert.Equal(t, n.URL("/topicmaps/egov"), documents[0].Link(t, "up"))
	assert.Equal(t, n.URL("/topicmaps/egov/snapshots"), documents[0].Link(t, "snapshotfeed"))
	assert.Equal(t, entries[0].Updated(), documents[0].Updated())

	topics := map[string]int{}
	for _, e := range entries {
		n.checkData(e, "fragment")
		require.Len(t, e.TopicSI, 1)
		assert.Equal(t, e.TopicSI, e.Resource, "SDShare's spelling")
		assert.Equal(t, []string{"live"}, e.State)
		topics[e.TopicSI[0]]++
	}
	assert.Len(t, topics, c.Topics, "creating a collection publishes an entry for every topic")
	assert.Equal(t, 2, topics[sort])
	assert.Equal(t, sort, entries[0].TopicSI[0])
	assert.Equal(t, "Sorting key", entries[0].Titles[0], "the title is the topic's name")
	for _, i := range []int{0, 1, len(entries) - 1} {
		n.sameEntry(entries[i])
	}
}

// Readers can show each entry, with any title of the topic, and a name of any length does not make the feed too large.
func TestEveryEntryHasATitleThatReadersCanShow(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	for name, want := range map[string]string{
		"":            "oslo (psi.example.org)",
		" ":           "oslo (psi.example.org)",
		"\n\t":        "oslo (psi.example.org)",
		"\u00a0":      "oslo (psi.example.org)",
		"\u2003 \n":   "oslo (psi.example.org)",
		"a\u00a0b":    "a\u00a0b",
		"&#xD; x\r\n": "x",
	} {
		n.MustPut("small", served.Small("Oslo", name))
		d := n.Feed("/topicmaps/small/fragments")
		require.Equal(t, "http://psi.example.org/oslo", d.Entries[0].TopicSI[0])
		assert.Equal(t, want, d.Entries[0].Titles[0], "%q", name)
	}
	n.MustPut("small", served.Small("Oslo", string(bytes.Repeat([]byte("Øst "), 1<<20))))
	d := n.Feed("/topicmaps/small/fragments")
	assert.Less(t, len(d.Entries[0].Titles[0]), 2000)
	assert.Contains(t, d.Entries[0].Titles[0], "Øst Øst")
}

func TestTitleOfBlanksDoesNotMakeTheFeedsInvalid(t *testing.T) {
	t.Parallel()
	n := start(t)
	_, err := n.Import(context.Background(), store.Collection{Name: "small", SP: n.SP("small"), Settings: store.Settings{Title: "  "}}, bytes.NewReader(served.Small()), "small")
	require.NoError(t, err)
	assert.Equal(t, "small", n.Feed("/topicmaps/small").Titles[0])
	n.Feed("/topicmaps/small/fragments")
}

// Ids never change, because readers identify entries by them.
func TestIdentifiersOfFeedsAndEntriesNeverChange(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	paths := []string{"/topicmaps", "/topicmaps/small", "/topicmaps/small/fragments", "/topicmaps/small/snapshots"}
	seen := map[string][]string{}
	for _, p := range paths {
		d := n.Feed(p)
		seen[p] = append([]string{d.ID()}, served.IDsOf(d.Entries)...)
	}
	n.MustPut("small", served.Small("Oslo", "Christiania"))
	all := map[string]bool{}
	for _, p := range paths {
		d := n.Feed(p)
		now := append([]string{d.ID()}, served.IDsOf(d.Entries)...)
		assert.Equal(t, seen[p][0], now[0], p)
		for _, id := range seen[p] {
			assert.Contains(t, now, id, p)
		}
		assert.False(t, all[d.ID()], "two feeds with one id")
		all[d.ID()] = true
	}
}
