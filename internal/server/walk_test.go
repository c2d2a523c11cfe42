package server_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// walked has the documents found by a walk over all links, by URL.
type walked struct {
	feeds, entries map[string]*served.Document
	data           map[string]served.Answer
	followed       map[string]string // URL → type that its links state
}

// maxWalk limits a walk, so that endless documents make it fail.
const maxWalk = 5000

// walk follows every link of every document, starting at a path of the server.
// Each must resolve to something of the type that the link states.
func (n *node) walk(path string) *walked {
	n.T.Helper()
	w := &walked{map[string]*served.Document{}, map[string]*served.Document{}, map[string]served.Answer{}, map[string]string{}}
	queue := []served.Link{{Href: n.URL(path), Type: served.AtomType}}
	for len(queue) > 0 {
		l := queue[0]
		queue = queue[1:]
		if stated, ok := w.followed[l.Href]; ok {
			require.Equal(n.T, stated, l.Type, "links of two types lead to %s", l.Href)
			continue
		}
		require.Less(n.T, len(w.followed), maxWalk, "links lead to more and more documents")
		require.True(n.T, strings.HasPrefix(l.Href, n.BaseURL+"/"), "%s leads elsewhere", l.Href)
		w.followed[l.Href] = l.Type
		a := n.Get(l.Href)
		if l.Type == "text/html" { // for people: a page, or a part of one
			require.Contains(n.T, []int{http.StatusOK, http.StatusSeeOther}, a.StatusCode, l.Href)
			continue
		}
		require.Equal(n.T, http.StatusOK, a.StatusCode, "%s: %s", l.Href, a.Bytes)
		require.True(n.T, served.SameType(l.Type, a.Header.Get("Content-Type")),
			"%s: the link says %s, the answer %s", l.Href, l.Type, a.Header.Get("Content-Type"))
		if l.Type != served.AtomType {
			w.data[l.Href] = a
			continue
		}
		d := served.ParseAtom(n.T, a)
		if d.XMLName.Local == "feed" {
			w.feeds[l.Href] = d
		} else {
			w.entries[l.Href] = d
		}
		queue = append(queue, d.Links...)
		for i := range d.Entries {
			queue = append(queue, d.Entries[i].Links...)
		}
	}
	return w
}

// Links lead to all documents, and each document has the type of its link.
func TestEveryLinkResolvesToTheTypeItStates(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t, served.DocumentSize(10))
	n.Publish("egov", maps.EGov)
	n.Publish("small", served.Small())
	n.MustPut("small", served.Small("Oslo", "Christiania"))
	w := n.walk("/topicmaps")

	topics, bundles, keys := 0, 0, map[string]bool{}
	for _, name := range []string{"egov", "small"} {
		all, documents := n.History("/topicmaps/" + name + "/fragments")
		topics += len(all)
		bundles += len(documents) + 1                                   // of each under its permanent URL, and of the feed
		for _, path := range []string{"", "/fragments", "/snapshots"} { // those of records have no entry in another feed
			assert.Contains(t, w.feeds, n.URL("/topicmaps/"+name+path))
			assert.Contains(t, w.entries, n.URL("/topicmaps/"+name+path+".atom"))
		}
		for _, d := range documents[1:] {
			assert.Contains(t, w.feeds, d.Link(t, "self"))
		}
		for i := range all {
			assert.Contains(t, w.entries, all[i].Link(t, "self"))
			keys[name+"\x00"+all[i].TopicSI[0]] = true
		}
		for _, ext := range []string{".xtm1", ".xtm21"} {
			assert.Contains(t, w.data, n.URL("/topicmaps/"+name+"/snapshots/current"+ext))
		}
	}
	assert.Equal(t, 2*topics+2*2*2+2*len(keys)+2+2+bundles, len(w.data), "both forms of each fragment, each snapshot, each current snapshot and each record, the digests, the event streams, and the bundles")
}

// The fixed forms of every fragment and snapshot have the same content, and each fragment has the topic that its entry
// names. (The example maps have only content that XTM 1.0 can express.)
func TestBothFormsOfEveryFragmentSayTheSame(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t, served.DocumentSize(1000))
	n.Publish("libraries", maps.Libraries)
	n.MustPut("libraries", served.Replace(t, maps.Libraries, "<baseNameString>Sort key</baseNameString>", "<baseNameString>Sorting</baseNameString>"))
	sp := n.SP("libraries")
	all, _ := n.History("/topicmaps/libraries/fragments")
	snapshots := n.Feed("/topicmaps/libraries/snapshots")
	require.NotEmpty(t, snapshots.Entries)
	for _, e := range append(all, snapshots.Entries...) {
		data := e.Typed(t, "topicmapdata")
		old, lossless := n.MustGet(data[served.XTM1Type]), n.MustGet(data[served.XTM21Type])
		assert.Equal(t, served.Canonical(t, old.Bytes, sp), served.Canonical(t, lossless.Bytes, sp), "%s", e.TopicSI)
		assert.Contains(t, string(old.Bytes), `xmlns="http://www.topicmaps.org/xtm/1.0/"`)
		assert.Contains(t, string(lossless.Bytes), `version="2.1"`)
		if len(e.TopicSI) == 0 {
			continue // a snapshot
		}
		f, err := fragment.Read(t.Context(), bytes.NewReader(lossless.Bytes), xtm.Options{Base: tmdm.Locator(sp)}, fragment.Ref(e.TopicSI[0]))
		require.NoError(t, err)
		assert.Equal(t, fragment.Ref(e.TopicSI[0]), f.Topic.TopicSI(), "the TopicSI is the first subject identifier")
		assert.False(t, f.Deleted)
		assert.Contains(t, e.Titles[0], f.Topic.Title())
	}
}
