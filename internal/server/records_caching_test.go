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
)

// Documents of records in caches: as those of the fragments feed.

// towns is a collection of four documents of two records each, the last of them open.
func towns(t *testing.T, configure ...func(*server.Config)) (n *node, documents []string) {
	n = start(t, append(configure, documentSize(2))...)
	n.publish("m", topicMap(topic("oslo", "Oslo"), topic("bergen", "Bergen"))) // and the type of names
	for i := range 4 {
		published(t, n.postTopics("m", topicMap(topic("oslo", fmt.Sprint("Oslo ", i))), nil))
	}
	via := n.feed(recordsURL).link(t, "via")
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
			a := n.do(method, url, nil)
			assert.Equal(t, http.StatusMethodNotAllowed, a.StatusCode, "%s %s", method, url)
			assert.Equal(t, "GET, HEAD", a.Header.Get("Allow"))
		}
	}
}

// A document stays as it is from when its successor is closed until history is pruned: caches ask,
// and need not fetch it again.
func TestRecordDocumentsStayWhenTheyAreFinished(t *testing.T) {
	t.Parallel()
	n, d := towns(t)
	cache := func(url string) string { return n.mustGet(url).Header.Get("Cache-Control") }
	assert.Equal(t, []string{shortly, shortly, shortly, shortly, shortly}, []string{cache(d[0]), cache(d[1]), cache(d[2]), cache(d[3]), cache(recordsURL)})
	before := map[string]answer{}
	for _, url := range append(d, recordsURL) {
		before[url] = n.mustGet(url)
	}
	assert.Empty(t, n.feed(d[2]).links("next-archive"))

	a := n.post("/topicmaps/m/snapshots") // no change of the map
	require.Equal(t, http.StatusCreated, a.StatusCode)
	for url, was := range before {
		assert.Equal(t, http.StatusNotModified, n.get(url, "If-None-Match", was.Header.Get("ETag")).StatusCode, url)
	}
	for i := range 2 { // the open document had one entry
		published(t, n.postTopics("m", topicMap(topic("oslo", fmt.Sprint("again ", i))), nil))
	}
	assert.Equal(t, d[3], n.feed(d[2]).link(t, "next-archive"), "it has gained that")
	assert.Equal(t, []string{shortly, shortly, shortly, shortly}, []string{cache(d[0]), cache(d[1]), cache(d[2]), cache(d[3])})
	for i, url := range d {
		now := n.get(url, "If-None-Match", before[url].Header.Get("ETag"))
		if i < 2 {
			assert.Equal(t, http.StatusNotModified, now.StatusCode)
			assert.Equal(t, string(before[url].body), string(n.mustGet(url).body))
		} else {
			assert.Equal(t, http.StatusOK, now.StatusCode, "%s was not finished", url)
		}
	}
	assert.Equal(t, http.StatusOK, n.get(recordsURL, "If-None-Match", before[recordsURL].Header.Get("ETag")).StatusCode)
	n.settings("m", func(s *store.Settings) { s.Title = "Another title" })
	assert.Contains(t, n.feed(recordsURL).Titles[0], "Another title")
	for _, url := range d {
		assert.NotContains(t, n.feed(url).raw, "Another title")
	}
}

// The ETag of the complete form changes when the map does, or its title, and with nothing
// else.
func TestCompleteRecordsChangeWithTheMap(t *testing.T) {
	t.Parallel()
	n, _ := towns(t)
	a := n.mustGet(completeURL)
	assert.Equal(t, "no-cache", a.Header.Get("Cache-Control"))
	changed := func() bool {
		t.Helper()
		now := n.get(completeURL, "If-None-Match", a.Header.Get("ETag"))
		again := n.mustGet(completeURL)
		assert.Equal(t, now.StatusCode == http.StatusNotModified, string(again.body) == string(a.body))
		assert.Equal(t, n.feed(recordsURL).updated(), again.Header.Get("TMShare-Updated"))
		a = again
		return now.StatusCode == http.StatusOK
	}
	assert.False(t, changed())
	for what, do := range map[string]func(){
		"a snapshot":              func() { n.post("/topicmaps/m/snapshots") },
		"the same again":          func() { n.postTopics("m", topicMap(topic("oslo", "Oslo 3")), nil) },
		"documents of a size":     func() { n.settings("m", func(s *store.Settings) { s.DocumentSize = 3 }) },
		"a topic that was not":    func() { n.delete("m", psi+"none") },
		"the formats that it has": func() { n.putSettings("m", `{"recordFormats": ["xtm1", "xtm2.1"]}`) },
	} {
		do()
		assert.False(t, changed(), what)
	}
	n.post("/topicmaps/m/snapshots")
	n.settings("m", func(s *store.Settings) { s.KeepEntries = 1 })
	assert.Contains(t, string(n.post("/topicmaps/m/gc").body), `"entries":6`)
	assert.False(t, changed(), "what is pruned")

	w := walkRecords(n, "m")
	for _, do := range []func(){
		func() { published(t, n.postTopics("m", topicMap(topic("oslo", "Christiania")), nil)) },
		func() { published(t, n.delete("m", psi+"bergen")) },
		func() { published(t, n.postTopics("m", topicMap(topic("bergen", "Bergen")), nil)) },
		func() { w.offer("xtm2.1"); w.settled() },
		func() { n.settings("m", func(s *store.Settings) { s.Title = "Another title" }) },
		func() { n.mustPut("m", topicMap()) },
		func() { n.remove("m"); n.publish("m", topicMap()) },
	} {
		do()
		assert.True(t, changed())
	}
}

// An empty pool: the complete form is complete, the archived form has no mark, though
// either may claim it.
func TestRecordsOfAnEmptyPool(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(1))
	require.Equal(t, http.StatusCreated, n.putSettings("m", `{}`).StatusCode)
	w := walkRecords(n, "m")
	w.check()
	assert.Empty(t, n.feed(recordsURL).Entries)
	assert.Empty(t, n.feed(recordsURL).links("prev-archive"))
	assert.Len(t, n.feed(completeURL).Complete, 1)
	n.mustPut("m", mapOfCollections(collection("a", "A")))
	w.check()
	n.mustPut("m", topicMap())
	w.check()
	n.mustPut("m", mapOfCollections(collection("a", "A")))
	w.check()
	n.mustPut("m", topicMap())
	w.check()
	assert.Len(t, w.known, 4)
	assert.Empty(t, n.feed(completeURL).Entries)
	n.post("/topicmaps/m/snapshots")
	n.settings("m", func(s *store.Settings) { s.KeepEntries = 1 })
	assert.Contains(t, string(n.post("/topicmaps/m/gc").body), `"entries":3`)
	w.check()
	d := n.feed(recordsURL)
	require.Len(t, d.Entries, 1, "the deletion entry")
	previous := n.feed(d.link(t, "prev-archive"))
	assert.Empty(t, previous.Entries, "all that it had is superseded")
	assert.Empty(t, previous.links("prev-archive"))
}

// The entry under its own address is the last of the record: active, or of its deletion.
func TestEntryOfARecord(t *testing.T) {
	t.Parallel()
	n, _ := towns(t)
	entry := func() document { return n.feed(recordsURL).Entries[0] }
	n.sameEntry(entry())
	published(t, n.delete("m", psi+"oslo"))
	require.Equal(t, ofDeletion, kindOf(t, new(entry())))
	n.sameEntry(entry())
	for _, url := range []string{"/topicmaps/m/topics/" + strings.Repeat("a", 26) + ".atom", "/topicmaps/none/records", "/topicmaps/none/records/complete"} {
		assert.Equal(t, http.StatusNotFound, n.get(url).StatusCode, url)
	}
}

func TestRecordDocumentsOfADeletedMapAreGone(t *testing.T) {
	t.Parallel()
	n, d := towns(t)
	require.Equal(t, http.StatusOK, n.remove("m").StatusCode)
	n.publish("m", topicMap(topic("oslo", "Oslo")))
	assert.Equal(t, http.StatusGone, n.get(d[0]).StatusCode)
}

// Records of a map that only some may read are for them, and for no cache between.
func TestRecordsOfAGuardedMapArePrivate(t *testing.T) {
	t.Parallel()
	n := guarded(t, documentSize(4))
	reader := []string{"Authorization", "Bearer " + readToken}
	d := n.feed("/topicmaps/secret/records", reader...)
	previous := d.link(t, "prev-archive")
	urls := []string{"/topicmaps/secret/records", "/topicmaps/secret/records/complete", d.link(t, "via"), previous,
		n.feed(previous, reader...).link(t, "prev-archive"), d.Entries[0].link(t, "self")}
	for _, href := range d.Entries[0].typed(t, "alternate") {
		urls = append(urls, href)
	}
	for _, url := range urls {
		a := n.get(url)
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode, url)
		assert.NotContains(t, string(a.body), "Hidden")
		a = n.mustGet(url, reader...)
		assert.Contains(t, a.Header.Get("Cache-Control"), "private", url)
		assert.NotContains(t, a.Header.Get("Cache-Control"), "public")
		open := strings.Replace(url, "/secret/", "/open/", 1)
		if !strings.Contains(url, "/archive/") {
			assert.NotContains(t, n.mustGet(open).Header.Get("Cache-Control"), "private")
		}
	}
	assert.Len(t, urls, 8)
}
