package server_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The examples of the specifications, published by this server: with their data, it serves equal documents. These are
// compared by content, not as text.

// example reads an example document.
func example(t testing.TB, path string) *feeds.Feed {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "feeds", "testdata", filepath.FromSlash(path)))
	require.NoError(t, err)
	f, err := feeds.Decode(bytes.NewReader(b), "http://example.org/", feeds.Limits{})
	require.NoError(t, err)
	return f
}

// tmshareNode serves the map of TMShare's examples at their addresses, with one
// topic that changed at the time that they give.
func tmshareNode(t *testing.T, updated string, settings store.Settings) *node {
	t.Helper()
	now := &served.Clock{}
	now.Set(served.At(t, updated).Add(-time.Microsecond)) // of the creation, which is before the first entry
	n := startAt(t, now, func(c *server.Config) { c.BaseURL = "http://tmshare.networkedplanet.com" })
	n.DialAll()
	const doc = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="t">
		<subjectIdentifier href="http://psi.egovpt.org/standard/ISO+19115%3A+Geographic+Information+-+Metadata"/>
		<name><type><subjectIdentifierRef href="http://psi.egovpt.org/standard/ISO+19115%3A+Geographic+Information+-+Metadata"/></type>
			<value>ISO 19115:2003 Geographic Information - Metadata</value></name></topic></topicMap>`
	_, err := n.Import(context.Background(), store.Collection{Name: "egov", SP: "http://psi.networkedplanet.com/", Settings: settings},
		strings.NewReader(doc), "egov.xtm")
	require.NoError(t, err)
	return n
}

var uuidForm = regexp.MustCompile(`[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`)

// address normalises addresses: each server has ids of its own, our data has an address for each form, and the example
// of the snapshots feed misspells one.
func address(href string) string {
	href = uuidForm.ReplaceAllString(href, "ID")
	return strings.ReplaceAll(strings.TrimSuffix(href, ".xtm1"), "shapshots", "snapshots")
}

// assertLinks checks that a document has all links of an example, to the same
// addresses and of the same types.
func assertLinks(t testing.TB, example, ours []feeds.Link, address func(string) string) {
	t.Helper()
	for _, want := range example {
		if want.Rel == "alternate" && want.Type == "" {
			continue // to a page for people, which we have not
		}
		if want.Type == "text/xtm1+xml" { // the example of the fragments feed only
			want.Type = feeds.MediaTypeXTM1
		}
		found := false
		for _, have := range ours {
			found = found || have.Rel == want.Rel && address(have.Href) == address(want.Href) && (want.Type == "" || want.Type == have.Type)
		}
		assert.True(t, found, "link rel %s type %s to %s in %v", want.Rel, want.Type, want.Href, ours)
	}
}

func TestFeedsOfTheSeed(t *testing.T) {
	t.Parallel()
	const title = "eGovernment Resources Topic Map"
	topicMap := func(href string) string {
		href = strings.TrimSuffix(strings.Replace(href, "http://http://", "http://", 1), "/")
		href = strings.Replace(href, "psi.egovpt.org/feeds/testtm", "tmshare.networkedplanet.com/topicmaps/egov", 1)
		return strings.Replace(href, "psi.egovpt.org/testtm", "tmshare.networkedplanet.com/topicmaps/egov", 1)
	}
	for name, c := range map[string]struct {
		path     string
		settings func(want *feeds.Feed) store.Settings
		address  func(string) string
		check    func(want, have *feeds.Feed)
	}{
		"topicmaps": {"", func(want *feeds.Feed) store.Settings {
			return store.Settings{Title: want.Entries[0].Title, Summary: want.Entries[0].Summary}
		}, address, func(want, have *feeds.Feed) {
			assert.Equal(t, want.Title, have.Title)
			assert.Equal(t, want.Updated, have.Updated)
			assert.Equal(t, want.Entries[0].Summary, have.Entries[0].Summary)
		}},
		"topicmap": {"/egov", func(want *feeds.Feed) store.Settings { return store.Settings{Title: want.Title} }, topicMap, func(want, have *feeds.Feed) {
			assert.Equal(t, want.Title, have.Title)
			assert.Equal(t, "Feeds around the eGov TM", want.Subtitle)
			assert.Equal(t, want.Subtitle, have.Subtitle)
			assert.Len(t, have.Entries, 2)
		}},
		"snapshots": {"/egov/snapshots", func(*feeds.Feed) store.Settings { return store.Settings{Title: title} }, address, func(want, have *feeds.Feed) {
			assert.Contains(t, have.Entries[0].Title, "Snapshot")
			assert.Contains(t, have.Entries[0].Title, want.Entries[0].Updated.Format(time.DateOnly))
			want.Entries[0].Title = have.Entries[0].Title
		}},
		"fragments": {"/egov/fragments", func(*feeds.Feed) store.Settings { return store.Settings{Title: title} }, address, func(want, have *feeds.Feed) {
			assert.Contains(t, want.Title, title)
			assert.Contains(t, have.Title, title)
			assert.Equal(t, want.Entries[0].TopicSI, have.Entries[0].TopicSI)
		}},
	} {
		want := example(t, "tmshare/"+name+".xml")
		n := tmshareNode(t, feeds.FormatTime(want.Entries[0].Updated), c.settings(want))
		have := n.Decoded("http://tmshare.networkedplanet.com/topicmaps" + c.path)
		require.Len(t, have.Entries, len(want.Entries), name)
		c.check(want, have)
		if name != "topicmap" { // whose example has another author
			assert.Equal(t, want.Author, have.Author, name)
		}
		assert.Equal(t, want.ServerSrcLocatorPrefix, have.ServerSrcLocatorPrefix, name)
		assertLinks(t, want.Links, have.Links, c.address)
		for i, e := range want.Entries {
			assert.Equal(t, e.Title, have.Entries[i].Title, name)
			assert.Equal(t, e.Updated, have.Entries[i].Updated, name)
			require.NotEmpty(t, e.Links)
			assertLinks(t, e.Links, have.Entries[i].Links, c.address)
		}
	}
}

// chain is the links by which a document hangs together with others, and its marks.
type chain struct {
	links             map[string]string // rel → address
	archive, complete bool
}

func chainOf(f *feeds.Feed) chain {
	c := chain{map[string]string{}, f.Archive, f.Complete}
	for _, l := range f.Links {
		switch l.Rel {
		case "self", "current", "via", "prev-archive", "next-archive", "next", "previous", "first", "last":
			c.links[l.Rel] = l.Href
		}
	}
	return c
}

// Four documents of three entries each, the last of them open.
func chained(t *testing.T) (n *node, feed string, documents []string) {
	n = start(t, served.DocumentSize(3))
	n.Publish("small", served.Small()) // 10 entries
	n.MustPut("small", served.Small("Oslo", "Christiania"))
	feed = n.URL("/topicmaps/small/fragments")
	via := n.Feed(feed).Link(t, "via")
	require.True(t, strings.HasSuffix(via, "-4"))
	for _, number := range []string{"", "1", "2", "3", "4"} {
		documents = append(documents, strings.TrimSuffix(via, "4")+number)
	}
	return n, feed, documents
}

// The chain of Simplefeed's text ("Paginating feeds"): documents 1 to 4 and the
// recent one.
func TestChainOfSimplefeed(t *testing.T) {
	t.Parallel()
	n, feed, d := chained(t)
	chain := func(url string) map[string]string { return chainOf(n.Decoded(url)).links }
	assert.Equal(t, map[string]string{"self": feed, "prev-archive": d[3], "via": d[4]}, chain(feed))
	recent := chainOf(example(t, "simplefeed/recent.xml")).links
	for rel, href := range recent {
		ours := strings.NewReplacer("http://example.com/recent", feed, "http://example.com/documents/4", d[4], "http://example.com/documents/3", d[3]).Replace(href)
		assert.Equal(t, ours, chain(feed)[rel], rel)
	}
	assert.Len(t, recent, 3)
	// current is RFC 5005's.
	assert.Equal(t, map[string]string{"self": d[4], "prev-archive": d[3], "current": feed}, chain(d[4]))
	// Simplefeed has a next-archive to document 4 here, which is not finished: RFC
	// 5005 §4 calls that an error, and has the last word.
	assert.Equal(t, map[string]string{"self": d[3], "prev-archive": d[2], "current": feed}, chain(d[3]))
	assert.Equal(t, map[string]string{"self": d[2], "prev-archive": d[1], "next-archive": d[3], "current": feed}, chain(d[2]))
	assert.Equal(t, map[string]string{"self": d[1], "next-archive": d[2], "current": feed}, chain(d[1]))
	for _, url := range append([]string{feed}, d[1:4]...) {
		f := n.Decoded(url)
		assert.Equal(t, url != feed, f.Archive)
		assert.Equal(t, n.Decoded(feed).ID, f.ID)
	}
}

// The three kinds of feeds of RFC 5005, by its examples.
func TestChainsOfRFC5005(t *testing.T) {
	t.Parallel()
	n, feed, d := chained(t)
	replaced := func(c chain, addresses ...string) chain {
		for rel, href := range c.links {
			c.links[rel] = strings.NewReplacer(addresses...).Replace(href)
		}
		return c
	}
	archived := []string{"http://example.org/index.atom", feed, "http://example.org/2003/11/index.atom", d[3], "http://example.org/2003/10/index.atom", d[2]}

	have := chainOf(n.Decoded(feed))
	delete(have.links, "via") // Simplefeed's
	assert.Equal(t, replaced(chainOf(example(t, "rfc5005/subscription.xml")), archived...), have, "§4, a subscription document")
	assert.Equal(t, replaced(chainOf(example(t, "rfc5005/archive.xml")), archived...), chainOf(n.Decoded(d[3])), "§4, an archive document, the newest complete one")

	complete := chainOf(example(t, "rfc5005/complete.xml"))
	require.True(t, complete.complete)
	for _, url := range []string{"/topicmaps", "/topicmaps/small", "/topicmaps/small/snapshots"} {
		complete.links["self"] = n.URL(url)
		assert.Equal(t, complete, chainOf(n.Decoded(n.URL(url))), "§2, a complete feed")
	}

	first := feed + "?since=2001-01-01T00:00:00.000000Z"
	page := n.Decoded(first)
	next, _ := page.Link("next")
	have = chainOf(page)
	delete(have.links, "first") // beside next, for those who enter behind it
	delete(have.links, "current")
	assert.Equal(t, replaced(chainOf(example(t, "rfc5005/paged.xml")), "http://example.org/index.atom?page=2", next.Href, "http://example.org/index.atom", first), have, "§3, a paged feed")
}
