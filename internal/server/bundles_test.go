package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
)

// bundle returns a document of the fragments feed with the fragments in it.
func (n *node) bundle(url string) *feeds.Feed {
	a := n.mustGet(url, "Accept", feeds.MediaTypeBundle)
	require.Equal(n.t, feeds.MediaTypeBundle, a.Header.Get("Content-Type"))
	f, err := feeds.DecodeBundle(bytes.NewReader(a.body), url, feeds.Limits{}, nil)
	require.NoError(n.t, err)
	return f
}

// versions publishes a map of some topics in several versions.
func (n *node) versions(topics, versions int) {
	for v := range versions {
		var all []string
		for i := range topics {
			all = append(all, topic(fmt.Sprint("t", i), fmt.Sprintf("Topic %d v%d", i, v)))
		}
		if v == 0 {
			n.publish("m", topicMap(all...))
		} else {
			n.mustPut("m", topicMap(all...))
		}
	}
}

// A bundle is the document, with the fragments that its entries lead to. Who does not ask for it never gets it.
func TestBundlesHaveTheFragments(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(10))
	n.versions(10, 3)
	n.do("DELETE", n.url("/topicmaps/m/topics?si=http://psi.example.org/t3"), nil)
	_, documents := n.history("/topicmaps/m/fragments")
	require.Greater(t, len(documents), 2)
	there := 0
	for i, d := range documents {
		url := n.url("/topicmaps/m/fragments")
		if i > 0 {
			url = d.link(t, "self")
		}
		for _, accept := range []string{"", "*/*", "application/atom+xml", "application/atom+xml;type=feed", "application/xml"} {
			a := n.mustGet(url, "Accept", accept)
			require.Equal(t, atomType, a.Header.Get("Content-Type"), accept)
			require.NotContains(t, string(a.body), "<content")
			require.Contains(t, a.Header.Get("Vary"), "Accept")
		}
		plain := n.mustGet(url)
		without, err := feeds.Decode(bytes.NewReader(plain.body), url, feeds.Limits{})
		require.NoError(t, err)
		link, ok := without.Link(feeds.RelBundle)
		require.True(t, ok)
		require.Equal(t, n.mustGet(link.Href).body, n.mustGet(url, "Accept", feeds.MediaTypeBundle).body)
		with := n.bundle(url)
		for j := range with.Entries {
			e := &with.Entries[j]
			data, ok := e.Link(feeds.RelTopicMapData)
			require.True(t, ok)
			alone := n.mustGet(strings.TrimSuffix(data.Href, ".xtm1"), "Accept", feeds.MediaTypeXTM21)
			_, root, _ := strings.Cut(string(alone.body), "?>")
			if e.Fragment != nil {
				require.Equal(t, strings.TrimSpace(root), string(e.Fragment))
				there++
			}
			e.Fragment, e.Content = nil, ""
		}
		require.Equal(t, without, with, "else it is the same document")
	}
	require.Equal(t, 11+10+10+1, there, "those of the first version, too")
}

// The bytes of a bundle stay the same where those of the document do, and caches need not ask.
func TestBundlesOfFinishedDocumentsStay(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(10))
	n.versions(10, 3)
	_, documents := n.history("/topicmaps/m/fragments")
	url := documents[len(documents)-1].link(t, "self")
	before := n.mustGet(url+".bundle", "Accept-Encoding", "gzip")
	assert.Contains(t, before.Header.Get("Cache-Control"), "immutable")
	assert.Equal(t, "gzip", before.Header.Get("Content-Encoding"))
	n.mustPut("m", topicMap(topic("t0", "another")))
	after := n.mustGet(url+".bundle", "Accept-Encoding", "gzip")
	assert.Equal(t, before.plain(t), after.plain(t))
	assert.Equal(t, before.Header.Get("ETag"), after.Header.Get("ETag"))
	assert.Equal(t, http.StatusNotModified, n.get(url+".bundle", "Accept-Encoding", "gzip", "If-None-Match", before.Header.Get("ETag")).StatusCode)
	plain := n.mustGet(url, "Accept-Encoding", "gzip")
	assert.NotEqual(t, plain.Header.Get("ETag"), before.Header.Get("ETag"))
	assert.Equal(t, http.StatusOK, n.get(url+".bundle", "Accept-Encoding", "gzip", "If-None-Match", plain.Header.Get("ETag")).StatusCode)

	// What is pruned is gone in both forms.
	require.Equal(t, http.StatusOK, n.do("POST", n.url("/topicmaps/m/gc?keep=1"), nil).StatusCode)
	if n.get(url).StatusCode == http.StatusGone {
		assert.Equal(t, http.StatusGone, n.get(url+".bundle").StatusCode)
	}
}

// A document with large fragments stays small: those are left out.
func TestBundlesAreBounded(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(100))
	n.publish("m", topicMap())
	var all []string
	put := func(id string, size int) {
		all = append(all, topic(id, strings.Repeat("x", size)))
		n.mustPut("m", topicMap(all...))
	}
	put("small", 10)
	put("huge", feeds.MaxInline)
	for i := range 20 {
		put(fmt.Sprint("t", i), feeds.MaxInline-4000)
	}
	size, inside, without := 0, 0, 0
	for _, e := range n.bundle(n.url("/topicmaps/m/fragments")).Entries {
		size += len(e.Fragment)
		if e.Fragment != nil {
			inside++
		} else {
			without++
		}
	}
	assert.Less(t, size, 4<<20+1)
	assert.Greater(t, inside, 10)
	assert.Greater(t, without, 2)
}
