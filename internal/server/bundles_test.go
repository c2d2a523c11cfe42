package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// bundle returns a document of the fragments feed with the fragments in it.
func (n *node) bundle(url string) *feeds.Feed {
	a := n.MustGet(url, "Accept", feeds.MediaTypeBundle)
	require.Equal(n.T, feeds.MediaTypeBundle, a.Header.Get("Content-Type"))
	f, err := feeds.DecodeBundle(bytes.NewReader(a.Bytes), url, feeds.Limits{}, nil)
	require.NoError(n.T, err)
	return f
}

// versions publishes a map of some topics in several versions.
func (n *node) versions(topics, versions int) {
	for v := range versions {
		var all []string
		for i := range topics {
			all = append(all, served.Topic(fmt.Sprint("t", i), fmt.Sprintf("Topic %d v%d", i, v)))
		}
		if v == 0 {
			n.Publish("m", served.TopicMap(all...))
		} else {
			n.MustPut("m", served.TopicMap(all...))
		}
	}
}

// A bundle is the document, with the fragments of its entries. Only requests for a bundle get one.
func TestBundlesHaveTheFragments(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(10))
	n.versions(10, 3)
	n.Do("DELETE", n.URL("/topicmaps/m/topics?si=http://psi.example.org/t3"), nil)
	_, documents := n.History("/topicmaps/m/fragments")
	require.Greater(t, len(documents), 2)
	there := 0
	for i, d := range documents {
		url := n.URL("/topicmaps/m/fragments")
		if i > 0 {
			url = d.Link(t, "self")
		}
		for _, accept := range []string{"", "*/*", "application/atom+xml", "application/atom+xml;type=feed", "application/xml"} {
			a := n.MustGet(url, "Accept", accept)
			require.Equal(t, served.AtomType, a.Header.Get("Content-Type"), accept)
			require.NotContains(t, string(a.Bytes), "<content")
			require.Contains(t, a.Header.Get("Vary"), "Accept")
		}
		plain := n.MustGet(url)
		without, err := feeds.Decode(bytes.NewReader(plain.Bytes), url, feeds.Limits{})
		require.NoError(t, err)
		link, ok := without.Link(feeds.RelBundle)
		require.True(t, ok)
		require.Equal(t, n.MustGet(link.Href).Bytes, n.MustGet(url, "Accept", feeds.MediaTypeBundle).Bytes)
		with := n.bundle(url)
		for j := range with.Entries {
			e := &with.Entries[j]
			data, ok := e.Link(feeds.RelTopicMapData)
			require.True(t, ok)
			alone := n.MustGet(strings.TrimSuffix(data.Href, ".xtm1"), "Accept", feeds.MediaTypeXTM21)
			_, root, _ := strings.Cut(string(alone.Bytes), "?>")
			if e.Fragment != nil {
				require.Equal(t, strings.TrimSpace(root), string(e.Fragment))
				there++
			}
			e.Fragment, e.Content = nil, ""
		}
		for i := range without.Entries { // data for feed readers
			e := &without.Entries[i]
			e.Changes = ""
			e.Links = slices.DeleteFunc(e.Links, func(l feeds.Link) bool { return l.Type == "text/html" })
		}
		require.Equal(t, without, with, "else it is the same document")
	}
	require.Equal(t, 11+10+10+1, there, "those of the first version, too")
}

// The bytes of a bundle are unchanged if those of the document are, and caches need not revalidate it.
func TestBundlesOfFinishedDocumentsStay(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(10))
	n.versions(10, 3)
	_, documents := n.History("/topicmaps/m/fragments")
	url := documents[len(documents)-1].Link(t, "self")
	before := n.MustGet(url+".bundle", "Accept-Encoding", "gzip")
	assert.Contains(t, before.Header.Get("Cache-Control"), "immutable")
	assert.Equal(t, "gzip", before.Header.Get("Content-Encoding"))
	n.MustPut("m", served.TopicMap(served.Topic("t0", "another")))
	after := n.MustGet(url+".bundle", "Accept-Encoding", "gzip")
	assert.Equal(t, before.Plain(t), after.Plain(t))
	assert.Equal(t, before.Header.Get("ETag"), after.Header.Get("ETag"))
	assert.Equal(t, http.StatusNotModified, n.Get(url+".bundle", "Accept-Encoding", "gzip", "If-None-Match", before.Header.Get("ETag")).StatusCode)
	plain := n.MustGet(url, "Accept-Encoding", "gzip")
	assert.NotEqual(t, plain.Header.Get("ETag"), before.Header.Get("ETag"))
	assert.Equal(t, http.StatusOK, n.Get(url+".bundle", "Accept-Encoding", "gzip", "If-None-Match", plain.Header.Get("ETag")).StatusCode)

	// Pruned documents are gone in both forms.
	require.Equal(t, http.StatusOK, n.Do("POST", n.URL("/topicmaps/m/gc?keep=1"), nil).StatusCode)
	if n.Get(url).StatusCode == http.StatusGone {
		assert.Equal(t, http.StatusGone, n.Get(url+".bundle").StatusCode)
	}
}

// A document with large fragments stays small: those are left out.
func TestBundlesAreBounded(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(100))
	n.Publish("m", served.TopicMap())
	var all []string
	put := func(id string, size int) {
		all = append(all, served.Topic(id, strings.Repeat("x", size)))
		n.MustPut("m", served.TopicMap(all...))
	}
	put("small", 10)
	put("huge", feeds.MaxInline)
	for i := range 20 {
		put(fmt.Sprint("t", i), feeds.MaxInline-4000)
	}
	size, inside, without := 0, 0, 0
	for _, e := range n.bundle(n.URL("/topicmaps/m/fragments")).Entries {
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
