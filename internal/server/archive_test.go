package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The fragments feed under random histories: changes, documents of other sizes,
// other titles, snapshots and pruning, while readers follow it by its links.

// page is a document of the feed as it should be.
type page struct{ size, entries int }

// chronicle is a model of a fragments feed, with the served documents that must not change.
type chronicle struct {
	*node
	name string
	feed string // URL of the recent document

	pages    []page // all that ever were, the oldest first
	size     int    // of the next page
	pruned   int    // pages that are given up
	snapshot int    // entries up to the newest snapshot
	keep     int    // entries that are kept; 0: all

	known  []string          // ids of all entries
	urls   []string          // of the pages that were closed when last looked at
	closed map[string]string // URL → the document, without its next-archive
	final  map[string]string // URL → the document, where caches may keep it for ever
	open   string            // URL of the open document, when last looked at
}

func newChronicle(n *node, name string, size int, c *store.Collection) *chronicle {
	h := &chronicle{node: n, name: name, feed: n.URL("/topicmaps/" + name + "/fragments"), size: size, closed: map[string]string{}, final: map[string]string{}}
	h.pages = []page{{size, 0}}
	h.published(c.Topics)
	h.snapshot = c.Topics
	return h
}

func (h *chronicle) published(entries int) {
	for range entries {
		if last := &h.pages[len(h.pages)-1]; last.entries < last.size {
			last.entries++
		} else {
			h.pages = append(h.pages, page{h.size, 1})
		}
	}
}

func (h *chronicle) total() (total int) {
	for _, p := range h.pages {
		total += p.entries
	}
	return total
}

// horizon returns the number of entries in the pruned pages.
func (h *chronicle) horizon() (entries int) {
	for _, p := range h.pages[:h.pruned] {
		entries += p.entries
	}
	return entries
}

// prune prunes as the settings require: whole documents, none later than the newest snapshot, and never the open one.
func (h *chronicle) prune() {
	before, last := h.horizon(), 0
	if h.keep > 0 {
		last = min(h.total()-h.keep, h.snapshot)
	}
	for at := before; h.pruned < len(h.pages)-1; h.pruned++ {
		if at += h.pages[h.pruned].entries; at > last {
			break
		}
	}
}

// gc has the server prune.
func (h *chronicle) gc() {
	h.T.Helper()
	before := h.horizon()
	h.prune()
	var p server.Pruned
	a := h.Do(http.MethodPost, "/topicmaps/"+h.name+"/gc", nil)
	require.Equal(h.T, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	require.NoError(h.T, json.Unmarshal(a.Bytes, &p))
	require.Equal(h.T, h.horizon()-before, int(p.Entries), "entries that were given up")
}

// ids returns the ids of all entries that were ever published, the oldest first.
func (h *chronicle) ids() []string {
	require.NoError(h.T, h.Store.View(h.T.Context(), h.name, func(v *store.View) error {
		for e, err := range v.Entries(uint64(len(h.known)) + 1) {
			require.NoError(h.T, err)
			h.known = append(h.known, v.ID(&e).URN())
		}
		return nil
	}))
	return h.known
}

// check looks at every document and holds it to the rules of RFC 5005 §4 and
// Simplefeed.
func (h *chronicle) check() {
	t := h.T
	t.Helper()
	all := h.ids()
	require.Len(t, all, h.total())
	recent := h.node.Feed(h.feed)
	assert.Equal(t, shortly, h.MustGet(h.feed).Header.Get("Cache-Control"))
	assert.Equal(t, h.feed, recent.Link(t, "self"))
	assert.Empty(t, recent.Archive)
	assert.Empty(t, recent.Complete)
	assert.Empty(t, recent.Hrefs("next-archive"))

	open := h.node.Feed(recent.Link(t, "via"))
	assert.Equal(t, recent.Link(t, "via"), open.Link(t, "self"))
	assert.Equal(t, withoutPages(recent), withoutPages(open), "but for what is for readers of feeds")
	assert.NotContains(t, open.Raw, `type="text/html"`)
	assert.Equal(t, recent.Hrefs("prev-archive"), open.Hrefs("prev-archive"))
	assert.Equal(t, h.feed, open.Link(t, "current"))
	assert.Equal(t, recent.Updated(), open.Updated())
	assert.Empty(t, open.Archive)
	assert.Empty(t, open.Hrefs("next-archive"))
	assert.Empty(t, open.Hrefs("via"))
	via := open.Link(t, "self")
	assert.Equal(t, shortly, h.MustGet(via).Header.Get("Cache-Control"))
	assert.NotContains(t, h.closed, via, "was closed and is open again")
	was := h.open
	h.open = via

	end := len(all)
	next, urls := "", []string(nil)
	document, at := recent, h.feed
	for n := len(h.pages) - 1; ; n-- {
		// Entries: the expected ones, the newest first.
		begin := end - h.pages[n].entries
		want := slices.Clone(all[begin:end])
		slices.Reverse(want)
		require.Equal(t, want, served.IDsOf(document.Entries), "entries of document %d at %s", n+1, at)
		for i := 1; i < len(document.Entries); i++ {
			assert.Less(t, document.Entries[i].Updated(), document.Entries[i-1].Updated())
		}
		assert.Equal(t, recent.ID(), document.ID())
		end = begin
		if document != recent {
			h.checkClosed(document, at, next)
			urls = append(urls, at)
			next = at
		}
		previous := document.Link(t, "prev-archive")
		if n == 0 {
			assert.Empty(t, previous, "nothing precedes the first")
			break
		}
		require.NotEmpty(t, previous, "only the first document has no predecessor")
		if n == h.pruned {
			gone := h.Get(previous)
			assert.Equal(t, http.StatusGone, gone.StatusCode, "what is given up, though linked to")
			assert.Contains(t, string(gone.Bytes), h.URL("/topicmaps/"+h.name+"/snapshots"), "says what to do")
			break
		}
		at = previous
		document = h.node.Feed(at)
	}
	require.Equal(t, h.horizon(), end)
	slices.Reverse(urls)
	if was != "" && was != via && h.Get(was).StatusCode != http.StatusGone {
		assert.Contains(t, urls, was, "the document of the via link keeps its address when it is closed")
	}
	for i, url := range h.urls { // a closed document keeps its address until it is pruned
		if !slices.Contains(urls, url) {
			assert.Equal(t, http.StatusGone, h.Get(url).StatusCode, "document %d", i)
		}
	}
	h.urls = urls
}

// withoutPages returns the entries of a document without data for feed readers.
func withoutPages(d *served.Document) []served.Document {
	all := slices.Clone(d.Entries)
	for i := range all {
		all[i].Summary = nil
		all[i].Links = slices.DeleteFunc(slices.Clone(all[i].Links), func(l served.Link) bool { return l.Type == "text/html" })
	}
	return all
}

// checkClosed checks a closed document against the rules. next is the URL of the next closed document, or "".
func (h *chronicle) checkClosed(d *served.Document, at, next string) {
	t := h.T
	t.Helper()
	assert.Len(t, d.Archive, 1, "fh:archive")
	assert.Empty(t, d.Complete)
	assert.Empty(t, d.Hrefs("via"))
	assert.Equal(t, at, d.Link(t, "self"))
	assert.Equal(t, h.feed, d.Link(t, "current"))
	assert.Equal(t, next, d.Link(t, "next-archive"), "to the successor, unless it is unfinished")
	assert.Equal(t, d.Entries[0].Updated(), d.Updated())
	cache := h.MustGet(at).Header.Get("Cache-Control")
	if next == "" {
		assert.Equal(t, shortly, cache, "it will gain a next-archive")
	} else {
		assert.Equal(t, forEver, cache)
		if was, ok := h.final[at]; ok {
			assert.Equal(t, was, d.Raw, "what is cached for ever never changes")
		}
		h.final[at] = d.Raw
	}
	var lines []string
	for line := range strings.Lines(d.Raw) {
		if !strings.Contains(line, `rel="next-archive"`) {
			lines = append(lines, line)
		}
	}
	without := strings.Join(lines, "")
	if was, ok := h.closed[at]; ok {
		assert.Equal(t, was, without, "a closed document does not change")
	}
	h.closed[at] = without
}

// consumer follows the feed as Simplefeed specifies, by its links only: back from the recent document to the last
// handled entry, then forwards.
type consumer struct {
	handled []string // ids, the oldest first
	gaps    int      // number of polls whose entries were pruned
}

func (r *consumer) poll(h *chronicle) {
	h.T.Helper()
	var news []string
	for at := h.feed; at != ""; {
		a := h.Get(at)
		if a.StatusCode == http.StatusGone {
			r.gaps, r.handled = r.gaps+1, nil // it starts again, with the available entries
			break
		}
		require.Equal(h.T, http.StatusOK, a.StatusCode)
		d := served.ParseAtom(h.T, a)
		known := -1
		if len(r.handled) > 0 {
			known = slices.Index(served.IDsOf(d.Entries), r.handled[len(r.handled)-1])
		}
		if known >= 0 {
			news = append(news, served.IDsOf(d.Entries[:known])...)
			break
		}
		news = append(news, served.IDsOf(d.Entries)...)
		at = d.Link(h.T, "prev-archive")
	}
	slices.Reverse(news)
	r.handled = append(r.handled, news...)
}

func TestRandomHistoriesAreFollowedByTheirLinks(t *testing.T) {
	t.Parallel()
	names := []string{"Oslo", "Bergen", "Norway", "City", "Note", "part", "whole", "Tromsø"}
	for seed := range uint64(testenv.Rounds(2, 6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 5005))
			size := 1 + random.IntN(6)
			n := start(t, served.DocumentSize(size))
			h := newChronicle(n, "small", size, n.Publish("small", served.Small()))
			h.check()
			var attentive, lazy consumer
			now := map[string]string{}
			for step := range 40 {
				switch random.IntN(10) {
				default:
					for range 1 + random.IntN(len(names)) {
						now[names[random.IntN(len(names))]] = fmt.Sprintf("%d", step)
					}
					var renames []string
					for old, new := range now {
						renames = append(renames, old, new)
					}
					p := n.MustPut("small", served.Small(renames...))
					h.published(p.Added + p.Updated + p.Deleted)
				case 0:
					h.size = 1 + random.IntN(7)
					h.Settings("small", func(s *store.Settings) { s.DocumentSize = h.size })
				case 1:
					h.Settings("small", func(s *store.Settings) { s.Title = fmt.Sprintf("Title %d", step) })
				case 2:
					a := n.Do(http.MethodPost, "/topicmaps/small/snapshots", nil)
					require.Contains(t, []int{http.StatusOK, http.StatusCreated}, a.StatusCode)
					h.snapshot = h.total()
					if a.StatusCode == http.StatusCreated {
						h.prune()
					}
				case 3:
					h.keep = random.IntN(20)
					h.Settings("small", func(s *store.Settings) { s.KeepEntries = uint64(h.keep) })
					h.gc()
				case 4:
					lazy.poll(h)
				}
				attentive.poll(h)
				h.check()
			}
			lazy.poll(h)
			all := h.ids()
			assert.Equal(t, all, attentive.handled, "who reads often has the whole history")
			assert.Zero(t, attentive.gaps)
			assert.Equal(t, all[len(all)-len(lazy.handled):], lazy.handled, "who reads seldom has all from some point on")
			assert.Equal(t, lazy.gaps > 0, len(lazy.handled) < len(all), "and knows whether it has missed any")
			var fresh consumer
			fresh.poll(h)
			assert.Equal(t, all[h.horizon():], fresh.handled, "who comes new has what is kept")
			assert.Equal(t, h.pruned > 0, fresh.gaps == 1)
		})
	}
}

const (
	shortly = "public, max-age=5"
	forEver = "public, max-age=31536000, immutable"
)

// The boundaries lie where they lie at every number of entries.
func TestArchiveKeepsTheRulesAtEveryLength(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 3} {
		n := start(t, served.DocumentSize(size))
		name := func(i int) []byte { return served.TopicMap(served.Topic("x", fmt.Sprint(i))) }
		h := newChronicle(n, "one", size, n.Publish("one", name(0))) // and the default name type
		h.check()
		for i := range 9 {
			h.published(n.MustPut("one", name(i+1)).Updated)
			h.check()
			assert.Len(t, h.closed, (h.total()-1)/size, "closed documents among %d entries", h.total())
		}
	}
}

func TestOtherDocumentSizeDoesNotMoveBoundariesThatExist(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(4))
	n.Publish("small", served.Small())
	n.MustPut("small", served.Small("Oslo", "Christiania"))
	c := n.Config
	c.DocumentSize = 3
	other, err := server.New(c)
	require.NoError(t, err)
	defer other.Close()
	_, documents := n.History("/topicmaps/small/fragments")
	require.Len(t, documents, 3)
	for _, d := range documents {
		w := httptest.NewRecorder()
		other.ServeHTTP(w, httptest.NewRequest(http.MethodGet, d.Link(t, "self"), nil))
		assert.Equal(t, d.Raw, w.Body.String())
	}
}

func TestDocumentsThatAreNotThereAreNotFoundOrGone(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(4))
	n.Publish("small", served.Small())
	for _, feed := range []string{"fragments", "records"} {
		via := n.Feed("/topicmaps/small/"+feed).Link(t, "via")
		require.True(t, strings.HasSuffix(via, "-3"))
		to := func(end string) string { return strings.TrimSuffix(via, "-3") + end }
		const earlier = "/archive/00000000-0000-4000-8000-000000000000-1" // of an earlier history
		for url, status := range map[string]int{
			to("-1"):                             http.StatusOK,
			to("-0"):                             http.StatusNotFound,
			to("-01"):                            http.StatusNotFound, // it has one spelling
			to("-0000001"):                       http.StatusNotFound,
			to("-4"):                             http.StatusNotFound,
			to("-999999999999999999"):            http.StatusNotFound,
			to("-9999999999999999999"):           http.StatusNotFound,
			to("-"):                              http.StatusNotFound,
			to("-x"):                             http.StatusNotFound,
			to("--1"):                            http.StatusNotFound,
			"/topicmaps/small/" + feed + earlier: http.StatusGone,
			"/topicmaps/none/" + feed + earlier:  http.StatusNotFound,
		} {
			a := n.Get(url)
			assert.Equal(t, status, a.StatusCode, "%s: %s", url, a.Bytes)
			if status != http.StatusOK {
				assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
			}
			if status == http.StatusGone && feed == "records" {
				assert.Contains(t, string(a.Bytes), n.URL("/topicmaps/small/records"), "where the feed is")
			}
		}
	}
}
