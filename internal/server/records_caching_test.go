package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// Documents of records in caches: as those of the fragments feed.

// towns is a collection of four documents of two records each, the last of them open.
func towns(t *testing.T, configure ...func(*server.Config)) (n *node, documents []string) {
	n = start(t, append(configure, served.DocumentSize(2))...)
	n.Publish("m", served.TopicMap(served.Topic("oslo", "Oslo"), served.Topic("bergen", "Bergen"))) // and the type of names
	for i := range 4 {
		served.Published(t, n.postTopics("m", served.TopicMap(served.Topic("oslo", fmt.Sprint("Oslo ", i))), nil))
	}
	via := n.Feed(recordsURL).Link(t, "via")
	require.True(t, strings.HasSuffix(via, "-4"))
	for number := range 4 {
		documents = append(documents, strings.TrimSuffix(via, "4")+fmt.Sprint(number+1))
	}
	return n, documents
}

func TestRecordDocumentsAreOnlyRead(t *testing.T) {
	t.Parallel()
	n, d := towns(t)
	for _, url := range append(d, recordsURL, completeURL) {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
			a := n.Do(method, url, nil)
			assert.Equal(t, http.StatusMethodNotAllowed, a.StatusCode, "%s %s", method, url)
			assert.Equal(t, "GET, HEAD", a.Header.Get("Allow"))
		}
	}
}

// A document does not change between the closing of its successor and pruning: caches revalidate it, and need not fetch
// it again.
func TestRecordDocumentsStayWhenTheyAreFinished(t *testing.T) {
	t.Parallel()
	n, d := towns(t)
	cache := func(url string) string { return n.MustGet(url).Header.Get("Cache-Control") }
	assert.Equal(t, []string{shortly, shortly, shortly, shortly, shortly}, []string{cache(d[0]), cache(d[1]), cache(d[2]), cache(d[3]), cache(recordsURL)})
	before := map[string]served.Answer{}
	for _, url := range append(d, recordsURL) {
		before[url] = n.MustGet(url)
	}
	assert.Empty(t, n.Feed(d[2]).Hrefs("next-archive"))

	a := n.Post("/topicmaps/m/snapshots") // no change of the map
	require.Equal(t, http.StatusCreated, a.StatusCode)
	for url, was := range before {
		assert.Equal(t, http.StatusNotModified, n.Get(url, "If-None-Match", was.Header.Get("ETag")).StatusCode, url)
	}
	for i := range 2 { // the open document had one entry
		served.Published(t, n.postTopics("m", served.TopicMap(served.Topic("oslo", fmt.Sprint("again ", i))), nil))
	}
	assert.Equal(t, d[3], n.Feed(d[2]).Link(t, "next-archive"), "it has gained that")
	assert.Equal(t, []string{shortly, shortly, shortly, shortly}, []string{cache(d[0]), cache(d[1]), cache(d[2]), cache(d[3])})
	for i, url := range d {
		now := n.Get(url, "If-None-Match", before[url].Header.Get("ETag"))
		if i < 2 {
			assert.Equal(t, http.StatusNotModified, now.StatusCode)
			assert.Equal(t, string(before[url].Bytes), string(n.MustGet(url).Bytes))
		} else {
			assert.Equal(t, http.StatusOK, now.StatusCode, "%s was not finished", url)
		}
	}
	assert.Equal(t, http.StatusOK, n.Get(recordsURL, "If-None-Match", before[recordsURL].Header.Get("ETag")).StatusCode)
	n.Settings("m", func(s *store.Settings) { s.Title = "Another title" })
	assert.Contains(t, n.Feed(recordsURL).Titles[0], "Another title")
	for _, url := range d {
		assert.NotContains(t, n.Feed(url).Raw, "Another title")
	}
}

// The ETag of the complete form changes only with the map or its title.
func TestCompleteRecordsChangeWithTheMap(t *testing.T) {
	t.Parallel()
	n, _ := towns(t)
	a := n.MustGet(completeURL)
	assert.Equal(t, "no-cache", a.Header.Get("Cache-Control"))
	changed := func() bool {
		t.Helper()
		now := n.Get(completeURL, "If-None-Match", a.Header.Get("ETag"))
		again := n.MustGet(completeURL)
		assert.Equal(t, now.StatusCode == http.StatusNotModified, string(again.Bytes) == string(a.Bytes))
		assert.Equal(t, n.Feed(recordsURL).Updated(), again.Header.Get("TMShare-Updated"))
		a = again
		return now.StatusCode == http.StatusOK
	}
	assert.False(t, changed())
	for what, do := range map[string]func(){
		"a snapshot":              func() { n.Post("/topicmaps/m/snapshots") },
		"the same again":          func() { n.postTopics("m", served.TopicMap(served.Topic("oslo", "Oslo 3")), nil) },
		"documents of a size":     func() { n.Settings("m", func(s *store.Settings) { s.DocumentSize = 3 }) },
		"a topic that was not":    func() { n.Delete("m", served.PSI+"none") },
		"the formats that it has": func() { n.PutSettings("m", `{"recordFormats": ["xtm1", "xtm2.1"]}`) },
	} {
		do()
		assert.False(t, changed(), what)
	}
	n.Post("/topicmaps/m/snapshots")
	n.Settings("m", func(s *store.Settings) { s.KeepEntries = 1 })
	assert.Contains(t, string(n.Post("/topicmaps/m/gc").Bytes), `"entries":6`)
	assert.False(t, changed(), "what is pruned")

	w := walkRecords(n, "m")
	for _, do := range []func(){
		func() {
			served.Published(t, n.postTopics("m", served.TopicMap(served.Topic("oslo", "Christiania")), nil))
		},
		func() { served.Published(t, n.Delete("m", served.PSI+"bergen")) },
		func() { served.Published(t, n.postTopics("m", served.TopicMap(served.Topic("bergen", "Bergen")), nil)) },
		func() { w.offer("xtm2.1"); w.settled() },
		func() { n.Settings("m", func(s *store.Settings) { s.Title = "Another title" }) },
		func() { n.MustPut("m", served.TopicMap()) },
		func() { n.remove("m"); n.Publish("m", served.TopicMap()) },
	} {
		do()
		assert.True(t, changed())
	}
}

// An empty pool: the complete form is complete, the archived form has no mark, though
// either may claim it.
func TestRecordsOfAnEmptyPool(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(1))
	require.Equal(t, http.StatusCreated, n.PutSettings("m", `{}`).StatusCode)
	w := walkRecords(n, "m")
	w.check()
	assert.Empty(t, n.Feed(recordsURL).Entries)
	assert.Empty(t, n.Feed(recordsURL).Hrefs("prev-archive"))
	assert.Len(t, n.Feed(completeURL).Complete, 1)
	n.MustPut("m", mapOfCollections(collection("a", "A")))
	w.check()
	n.MustPut("m", served.TopicMap())
	w.check()
	n.MustPut("m", mapOfCollections(collection("a", "A")))
	w.check()
	n.MustPut("m", served.TopicMap())
	w.check()
	assert.Len(t, w.known, 4)
	assert.Empty(t, n.Feed(completeURL).Entries)
	n.Post("/topicmaps/m/snapshots")
	n.Settings("m", func(s *store.Settings) { s.KeepEntries = 1 })
	assert.Contains(t, string(n.Post("/topicmaps/m/gc").Bytes), `"entries":3`)
	w.check()
	d := n.Feed(recordsURL)
	require.Len(t, d.Entries, 1, "the deletion entry")
	previous := n.Feed(d.Link(t, "prev-archive"))
	assert.Empty(t, previous.Entries, "all that it had is superseded")
	assert.Empty(t, previous.Hrefs("prev-archive"))
}

// The entry under its own address is the last of the record: active, or of its deletion.
func TestEntryOfARecord(t *testing.T) {
	t.Parallel()
	n, _ := towns(t)
	entry := func() served.Document { return n.Feed(recordsURL).Entries[0] }
	n.sameEntry(entry())
	served.Published(t, n.Delete("m", served.PSI+"oslo"))
	require.Equal(t, ofDeletion, kindOf(t, new(entry())))
	n.sameEntry(entry())
	for _, url := range []string{"/topicmaps/m/topics/" + strings.Repeat("a", 26) + ".atom", "/topicmaps/none/records", "/topicmaps/none/records/complete"} {
		assert.Equal(t, http.StatusNotFound, n.Get(url).StatusCode, url)
	}
}

func TestRecordDocumentsOfADeletedMapAreGone(t *testing.T) {
	t.Parallel()
	n, d := towns(t)
	require.Equal(t, http.StatusOK, n.remove("m").StatusCode)
	n.Publish("m", served.TopicMap(served.Topic("oslo", "Oslo")))
	assert.Equal(t, http.StatusGone, n.Get(d[0]).StatusCode)
}

// Records of a map that only some may read are for them, and for no cache between.
func TestRecordsOfAGuardedMapArePrivate(t *testing.T) {
	t.Parallel()
	n := served.Guarded(t, served.DocumentSize(4))
	reader := []string{"Authorization", "Bearer " + served.ReadToken}
	d := n.Feed("/topicmaps/secret/records", reader...)
	previous := d.Link(t, "prev-archive")
	urls := []string{"/topicmaps/secret/records", "/topicmaps/secret/records/complete", d.Link(t, "via"), previous,
		n.Feed(previous, reader...).Link(t, "prev-archive"), d.Entries[0].Link(t, "self")}
	for _, href := range d.Entries[0].Typed(t, "alternate") {
		urls = append(urls, href)
	}
	for _, url := range urls {
		a := n.Get(url)
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode, url)
		assert.NotContains(t, string(a.Bytes), "Hidden")
		a = n.MustGet(url, reader...)
		assert.Contains(t, a.Header.Get("Cache-Control"), "private", url)
		assert.NotContains(t, a.Header.Get("Cache-Control"), "public")
		open := strings.Replace(url, "/secret/", "/open/", 1)
		if !strings.Contains(url, "/archive/") {
			assert.NotContains(t, n.MustGet(open).Header.Get("Cache-Control"), "private")
		}
	}
	assert.Len(t, urls, 8)
}
