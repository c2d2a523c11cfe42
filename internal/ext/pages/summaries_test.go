package pages_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// pageOf returns the page to which an entry leads readers of feeds, "" where there is none.
func pageOf(e *feeds.Entry) string {
	for _, l := range e.Find("alternate") {
		if l.Type == "text/html" {
			return l.Href
		}
	}
	return ""
}

// Readers of feeds are led from each entry to the page of its topic, by the first alternate link.
func TestEntriesLeadToTheirPages(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	n.MustPut("m", served.Small("Oslo", "Christiania"))
	require.Equal(t, http.StatusCreated, n.Do(http.MethodPost, "/topicmaps/m/snapshots", nil).StatusCode)
	for _, feed := range []string{"/topicmaps/m/fragments", "/topicmaps/m/snapshots"} {
		decoded := n.Decoded(feed)
		require.NotEmpty(t, decoded.Entries)
		for i := range decoded.Entries {
			e := &decoded.Entries[i]
			page := pageOf(e)
			require.NotEmpty(t, page, e.Title)
			assert.Equal(t, page, e.Find("alternate")[0].Href, "readers open the first")
			a := n.Get(page, firefox...)
			anchor := ""
			if a.StatusCode == http.StatusSeeOther {
				page, anchor, _ = strings.Cut(a.Header.Get("Location"), "#")
				a = n.Get(page, firefox...)
			}
			require.Equal(t, http.StatusOK, a.StatusCode, page)
			assert.Equal(t, "text/html", a.MediaType())
			assert.Contains(t, string(a.Bytes), `id="`+anchor)
			self := n.MustGet(e.Find("self")[0].Href)
			assert.Contains(t, string(self.Bytes), `type="text/html"`, "the entry alone")
		}
	}
	title := n.Page(pageOf(&n.Decoded("/topicmaps/m/fragments").Entries[0])).Title
	assert.Equal(t, "Christiania", title)
}

// The summaries of entries list the changed statements, in the language of the map, and after the note.
func TestSummariesSayWhatHasChanged(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	const head = `@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix : <http://x/> .
:a a skos:Concept ; skos:prefLabel "Apple"@en, "Apfel"@de ; skos:broader :f . :f a skos:Concept ; skos:prefLabel "Fruit"@en, "Obst"@de .
`
	put := func(more string, headers ...string) {
		a := n.Put("m", []byte(head+more), append(headers, "Content-Type", "text/turtle")...)
		require.Less(t, a.StatusCode, 300, "%s", a.Bytes)
	}
	require.Equal(t, http.StatusCreated, n.PutSettings("m", `{}`).StatusCode)
	put("")
	n.MustSet("m", `{"language":"de"}`)
	summaryOf := func(title string) *feeds.Entry {
		for _, e := range n.Decoded("/topicmaps/m/fragments").Entries {
			if e.Title == title {
				return &e
			}
		}
		require.Fail(t, "no entry", title)
		return nil
	}
	put(`:a skos:altLabel "Renette"@de .`, "TMShare-Note", "as decided")
	e := summaryOf("Apfel")
	assert.Equal(t, "as decided", e.Summary, "the note is unchanged")
	assert.Equal(t, `New: alternative label “Renette” (German).`, e.Changes)
	assert.True(t, strings.Contains(string(n.MustGet("/topicmaps/m/fragments").Bytes), `<summary own:note="as decided">as decided — New: alternative label “Renette”`))

	put(`:a skos:altLabel "Reinette"@de ; skos:related :b . :b a skos:Concept ; skos:prefLabel "Birne"@de .`)
	e = summaryOf("Apfel")
	assert.Empty(t, e.Summary)
	assert.Equal(t, `Changed: alternative label was “Renette”, is “Reinette” (German). New: related Birne.`, e.Changes)
	assert.Equal(t, "Added: preferred label “Birne” (German); instance of concept; related Apfel; and 1 more.", summaryOf("Birne").Changes)
	put(`:a skos:altLabel "Reinette"@de ; skos:related :b . :b a skos:Concept ; skos:prefLabel "Birne"@de ; skos:broader :f ; skos:note "x" .`)
	assert.Equal(t, "New: note “x”; broader Obst.", summaryOf("Birne").Changes)
	assert.Equal(t, "New: narrower Birne.", summaryOf("Obst").Changes)
	put("")
	assert.Equal(t, "Deleted.", summaryOf("Birne").Changes)
	assert.Equal(t, "No longer said: alternative label “Reinette” (German); related Birne.", summaryOf("Apfel").Changes, "by the name that it had")

	var many strings.Builder
	for i := range 150 {
		fmt.Fprintf(&many, `:n%d a skos:Concept ; skos:prefLabel "%d"@de .`, i, i)
	}
	put(many.String())
	assert.Equal(t, "One of 150 topics that changed together.", n.Decoded("/topicmaps/m/fragments").Entries[0].Changes)
}

// Any value of a map stands within the summary, is short, and turns nothing around it.
func TestSummariesOfHostileMaps(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	n.MustSet("m", `{"title":"M\u202e"}`)
	n.MustPut("m", served.Small("Oslo", "Os\u202elo"))
	feed := string(n.MustGet("/topicmaps/m/fragments").Bytes)
	assert.Contains(t, feed, "<title>M\u202e\u202c: Fragments</title>")
	assert.Contains(t, feed, "<title>Os\u202elo\u202c</title>")
	assert.Contains(t, feed, "is “Os\u202elo\u202c”")
	n.MustPut("m", served.Small("Oslo", strings.Repeat("long &lt;b> ", 10_000)))
	for _, e := range n.Decoded("/topicmaps/m/fragments").Entries {
		assert.Less(t, len(e.Changes), 1000)
	}
}

// A subscriber reads the same of a feed with summaries and links to pages as of one without: of the recent document, as
// of the archive document with the same entries, which has no links to pages and keeps its bytes.
func TestSubscribersReadTheSame(t *testing.T) {
	t.Parallel()
	n := served.Start(t, served.DocumentSize(4))
	n.Publish("m", served.Small())
	for i, note := range []string{"a note", "", "a — dash — and <b>", " — ", "x"} {
		a := n.Put("m", served.Small("Oslo", fmt.Sprint("Name ", i)), "TMShare-Note", note)
		require.Equal(t, http.StatusOK, a.StatusCode)
		recent := n.Decoded("/topicmaps/m/fragments")
		via, _ := recent.Link("via")
		archived := n.Decoded(via.Href)
		require.Equal(t, len(archived.Entries), len(recent.Entries))
		for j := range recent.Entries {
			a, r := &archived.Entries[j], &recent.Entries[j]
			assert.Equal(t, follow.ChangeOf(a, ""), follow.ChangeOf(r, ""))
			assert.Equal(t, a.Find(feeds.RelTopicMapData), r.Find(feeds.RelTopicMapData))
			assert.Empty(t, a.Changes)
			assert.Empty(t, pageOf(a))
			assert.NotEmpty(t, r.Changes)
		}
	}
}

// A server without pages leads to none, and has the same text as before.
func TestFeedsWithoutPages(t *testing.T) {
	t.Parallel()
	others := slices.DeleteFunc(ext.All(), func(e extension.Extension) bool { return e.Name == "pages" })
	n := served.Start(t, func(c *server.Config) { c.Parts = extension.Parts(others) })
	n.Publish("m", served.Small())
	for _, path := range []string{"/topicmaps/m/fragments", "/topicmaps/m/snapshots"} {
		body := string(n.MustGet(path).Bytes)
		assert.NotContains(t, body, pages.Ending)
		assert.NotRegexp(t, regexp.MustCompile(`own:note`), body)
	}
}
