package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

const (
	shortly = "public, max-age=5"
	forEver = "public, max-age=31536000, immutable"
)

// archive watches an archived feed (RFC 5005 §4, Simplefeed) while it grows.
type archive struct {
	*node
	feed string // URL of the recent document
	size int

	permanent map[string]string   // URL → bytes of a document that must never change again
	closed    map[string][]string // URL → ids of a closed document
	via       string
}

func (n *node) archive(name string, size int) *archive {
	return &archive{n, n.url("/topicmaps/" + name + "/fragments"), size, map[string]string{}, map[string][]string{}, ""}
}

// check checks every rule on every document as the feed is now, and that nothing
// has moved since the last check. total is the number of entries ever published.
func (a *archive) check(total int) {
	t := a.t
	t.Helper()
	recent := a.node.feed(a.feed)
	headers := a.mustGet(a.feed).Header
	assert.Equal(t, shortly, headers.Get("Cache-Control"))
	assert.Empty(t, recent.Archive)
	assert.Empty(t, recent.links("next-archive"))
	assert.Equal(t, a.feed, recent.link(t, "self"))
	assert.NotEmpty(t, recent.Entries, "a subscription document contains the most recent entries")
	assert.LessOrEqual(t, len(recent.Entries), a.size)

	// The open document under its permanent URL.
	via := recent.link(t, "via")
	open := a.node.feed(via)
	assert.Equal(t, via, open.link(t, "self"))
	assert.Equal(t, a.feed, open.link(t, "current"))
	assert.Empty(t, open.Archive)
	assert.Empty(t, open.links("next-archive"))
	assert.Empty(t, open.links("via"))
	assert.Equal(t, recent.links("prev-archive"), open.links("prev-archive"))
	assert.Equal(t, recent.Entries, open.Entries)
	assert.Equal(t, recent.updated(), open.updated())
	assert.Equal(t, shortly, a.mustGet(via).Header.Get("Cache-Control"))
	if _, wasClosed := a.closed[via]; wasClosed {
		t.Errorf("%s was closed and is open again", via)
	}
	if a.via != "" && a.via != via {
		assert.Contains(t, a.links(recent), a.via, "the via link stays intact when the document is archived")
	}
	a.via = via

	// The closed ones, from the newest on.
	entries := slices.Clone(recent.Entries)
	next := ""
	documents := 1
	for at := recent.link(t, "prev-archive"); at != ""; documents++ {
		answer := a.mustGet(at)
		d := a.node.feed(at)
		assert.Len(t, d.Archive, 1, at)
		assert.Equal(t, at, d.link(t, "self"))
		assert.Equal(t, a.feed, d.link(t, "current"))
		assert.Equal(t, next, d.link(t, "next-archive"), "inverse of prev-archive, and never to the open document")
		assert.Empty(t, d.links("via"))
		assert.Len(t, d.Entries, a.size, at)
		assert.Equal(t, recent.id(), d.id())
		assert.Equal(t, recent.Prefixes, d.Prefixes)
		assert.Equal(t, recent.Titles, d.Titles)
		assert.Equal(t, d.Entries[0].updated(), d.updated())
		if was, ok := a.closed[at]; ok {
			assert.Equal(t, was, ids(d.Entries), "the entries of a closed document never change")
		}
		a.closed[at] = ids(d.Entries)
		if next == "" {
			assert.Equal(t, shortly, answer.Header.Get("Cache-Control"), "it will gain a next-archive")
		} else {
			assert.Equal(t, forEver, answer.Header.Get("Cache-Control"))
			if was, ok := a.permanent[at]; ok {
				assert.Equal(t, was, string(answer.body), "what is cached for ever never changes")
			}
			a.permanent[at] = string(answer.body)
		}
		entries = append(entries, d.Entries...)
		next, at = at, d.link(t, "prev-archive")
	}
	assert.Equal(t, documents-1, len(a.closed), "no closed document disappears from the chain")

	// The whole history.
	require.Len(t, entries, total)
	seen := map[string]bool{}
	for i, e := range entries {
		assert.False(t, seen[e.id()], "%s occurs twice", e.id())
		seen[e.id()] = true
		if i > 0 {
			assert.True(t, at(t, e.updated()).Before(at(t, entries[i-1].updated())), "strictly descending time")
		}
	}
	if len(entries) > 0 {
		assert.Equal(t, entries[0].updated(), recent.updated())
	}
}

// links returns the URLs of all documents before the recent one.
func (a *archive) links(recent *document) []string {
	var all []string
	for at := recent.link(a.t, "prev-archive"); at != ""; {
		all = append(all, at)
		at = a.node.feed(at).link(a.t, "prev-archive")
	}
	return all
}

func TestArchiveKeepsTheRulesWhileMoreIsPublished(t *testing.T) {
	t.Parallel()
	const size = 5
	n := start(t, documentSize(size))
	c := n.publish("small", small()) // 10 topics with the default name type
	a := n.archive("small", size)
	total := c.Topics
	a.check(total)
	for round, renamed := range [][]string{{"Oslo"}, {"Oslo", "Bergen", "Norway"}, {"Bergen"}, {"City", "Note", "part of", "part", "whole", "Norway", "Oslo"}, {"Oslo"}, {"Oslo"}} {
		var renames []string
		for _, name := range renamed {
			renames = append(renames, name, fmt.Sprintf("%s %d", name, round))
		}
		p := n.mustPut("small", small(renames...))
		total += p.Added + p.Updated + p.Deleted
		a.check(total)
		require.Less(t, round, 20)
	}
	assert.Greater(t, len(a.permanent), 4)
}

// The boundaries lie where they lie at every number of entries.
func TestArchiveKeepsTheRulesAtEveryLength(t *testing.T) {
	t.Parallel()
	const size = 3
	n := start(t, documentSize(size))
	a := n.archive("one", size)
	name := func(i int) []byte { return topicMap(topic("x", fmt.Sprint(i))) }
	n.publish("one", name(0))
	total := 2 // and the default name type
	a.check(total)
	for i := range 9 {
		n.mustPut("one", name(i+1))
		total++
		a.check(total)
		assert.Len(t, a.closed, (total-1)/size, "closed documents among %d entries", total)
	}
}

func TestDocumentsOfOneEntry(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(1))
	c := n.publish("small", small())
	a := n.archive("small", 1)
	a.check(c.Topics)
	n.mustPut("small", small("Oslo", "Christiania"))
	a.check(c.Topics + 1)
}

func TestOtherDocumentSizeDoesNotMoveBoundariesThatExist(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(4))
	n.publish("small", small())
	n.mustPut("small", small("Oslo", "Christiania"))
	c := n.Config
	c.DocumentSize = 3
	other, err := server.New(c)
	require.NoError(t, err)
	defer other.Close()
	_, documents := n.history("/topicmaps/small/fragments")
	require.Len(t, documents, 3)
	for _, d := range documents {
		w := httptest.NewRecorder()
		other.ServeHTTP(w, httptest.NewRequest(http.MethodGet, d.link(t, "self"), nil))
		assert.Equal(t, d.raw, w.Body.String())
	}
}

func TestEveryFeedDocumentAnswersConditionalRequests(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(50))
	n.publish("egov", maps.EGov)
	tags := map[string]bool{}
	_, documents := n.history("/topicmaps/egov/fragments")
	urls := []string{"/topicmaps", "/topicmaps/egov", "/topicmaps/egov/snapshots", "/topicmaps/egov.atom", "/topicmaps/egov/fragments.atom"}
	for _, d := range documents {
		urls = append(urls, d.link(t, "self"), d.Entries[0].link(t, "self"))
	}
	for _, url := range urls {
		a := n.mustGet(url)
		tag := a.Header.Get("ETag")
		assert.Regexp(t, `^"[^"]+"$`, tag, "a strong tag")
		assert.False(t, tags[tag], "two documents with one ETag")
		tags[tag] = true
		assert.Contains(t, a.Header.Get("Vary"), "Accept")
		for _, given := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			again := n.get(url, "If-None-Match", given)
			assert.Equal(t, http.StatusNotModified, again.StatusCode, given)
			assert.Empty(t, again.body)
			assert.Equal(t, tag, again.Header.Get("ETag"))
			assert.Equal(t, a.Header.Get("Cache-Control"), again.Header.Get("Cache-Control"))
		}
		assert.Equal(t, http.StatusOK, n.get(url, "If-None-Match", `"x"`).StatusCode)
	}
	tag := n.mustGet("/topicmaps/egov/fragments").Header.Get("ETag")
	n.mustPut("egov", replace(t, maps.EGov, "<baseNameString>Sort key</baseNameString>", "<baseNameString>Sorting</baseNameString>"))
	assert.Equal(t, http.StatusOK, n.get("/topicmaps/egov/fragments", "If-None-Match", tag).StatusCode, "it has changed")
}

func TestDocumentsThatAreNotThereAreNotFoundOrGone(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(4))
	n.publish("small", small())
	via := n.feed("/topicmaps/small/fragments").link(t, "via")
	require.True(t, strings.HasSuffix(via, "-3"))
	to := func(end string) string { return strings.TrimSuffix(via, "-3") + end }
	for url, status := range map[string]int{
		to("-1"):                   http.StatusOK,
		to("-0"):                   http.StatusNotFound,
		to("-01"):                  http.StatusNotFound, // it has one spelling
		to("-0000001"):             http.StatusNotFound,
		to("-4"):                   http.StatusNotFound,
		to("-999999999999999999"):  http.StatusNotFound,
		to("-9999999999999999999"): http.StatusNotFound,
		to("-"):                    http.StatusNotFound,
		to("-x"):                   http.StatusNotFound,
		to("--1"):                  http.StatusNotFound,
		"/topicmaps/small/fragments/archive/00000000-0000-4000-8000-000000000000-1": http.StatusGone, // an earlier history
		"/topicmaps/none/fragments/archive/00000000-0000-4000-8000-000000000000-1":  http.StatusNotFound,
	} {
		a := n.get(url)
		assert.Equal(t, status, a.StatusCode, "%s: %s", url, a.body)
		if status != http.StatusOK {
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		}
	}
}
