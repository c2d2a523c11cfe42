package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
)

// find follows ?si= to a topic.
func (n *node) find(name, si string) answer {
	n.t.Helper()
	return n.get("/topicmaps/" + name + "/topics?si=" + url.QueryEscape(si))
}

func TestSubjectIdentifiersLeadToTheTopic(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("towns", topicMap(identified("oslo", []string{"http://psi.example.org/oslo", "http://psi.example.org/Christiania?a=b&amp;c+d"}, "Oslo")))
	for _, si := range []string{"http://psi.example.org/oslo", "HTTP://psi.example.org/%6Fslo", "http://psi.example.org/Christiania?a=b&c+d"} {
		a := n.find("towns", si)
		require.Equal(t, http.StatusSeeOther, a.StatusCode, "%s: %s", si, a.body)
		assert.Equal(t, n.url("/topicmaps/towns/topics/"+fragment.Key("http://psi.example.org/oslo")), a.Header.Get("Location"))
		assert.Contains(t, string(n.mustGet(a.Header.Get("Location")).body), "<baseNameString>Oslo<")
	}
	for _, query := range []string{"", "?", "?si=", "?si=oslo", "?si=%00", "?other=http://psi.example.org/oslo", "?si=http://a/%0A"} {
		a := n.get("/topicmaps/towns/topics" + query)
		assert.Equal(t, http.StatusBadRequest, a.StatusCode, query)
		assert.Contains(t, string(a.body), "?si=")
	}
	assert.Equal(t, http.StatusNotFound, n.find("towns", "http://psi.example.org/bergen").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.find("none", "http://psi.example.org/oslo").StatusCode)
}

// …/topics/{key} serves the bytes of the topic's last entry, and keeps its
// address for life, also after deletion and re-creation.
func TestTopicAddressServesTheLastEntryForLife(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	address := n.find("small", "http://psi.example.org/tromsø").Header.Get("Location")
	same := func() document {
		t.Helper()
		e := n.feed("/topicmaps/small/fragments").Entries[0]
		for form, href := range e.typed(t, "topicmapdata") {
			for _, coding := range []string{"identity", "gzip"} {
				a := n.mustGet(address, "Accept", form, "Accept-Encoding", coding)
				assert.Equal(t, string(n.mustGet(href, "Accept-Encoding", coding).body), string(a.body))
			}
		}
		return e
	}
	assert.Contains(t, string(n.mustGet(address).body), ">Tromsø<")
	n.mustPut("small", small("Tromsø", "Romsa"))
	same()
	assert.Contains(t, string(n.mustGet(address).body), ">Romsa<")

	published(t, n.do(http.MethodDelete, address, nil))
	e := same()
	assert.Equal(t, []string{"deleted"}, e.State)
	assert.NotContains(t, string(n.mustGet(address).body), ">Romsa<")
	assert.Equal(t, http.StatusNotFound, n.find("small", "http://psi.example.org/tromsø").StatusCode)

	n.mustPut("small", small())
	e = same()
	assert.Equal(t, []string{"live"}, e.State)
	assert.Equal(t, address, n.find("small", "http://psi.example.org/tromsø").Header.Get("Location"))
}

// The fragments of first entries are not stored before the topic changes; then
// they keep what the topic was like.
func TestFirstFragmentKeepsTheStateBeforeTheFirstChange(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	entries, _ := n.history("/topicmaps/small/fragments")
	i := entryOf(entries, "http://psi.example.org/oslo")
	first := dataURL(t, entries[i])
	for _, coding := range []string{"identity", "gzip"} {
		a := n.mustGet(first, "Accept-Encoding", coding)
		assert.Equal(t, "no-cache", a.Header.Get("Cache-Control"))
		assert.Equal(t, n.feed("/topicmaps").updated(), a.Header.Get("TMShare-Updated"))
		assert.Contains(t, string(a.plain(t)), ">Oslo<")
	}
	n.mustPut("small", small("Oslo", "Christiania"))
	a := n.mustGet(first)
	assert.Contains(t, string(a.body), ">Oslo<")
	assert.Equal(t, forEver, a.Header.Get("Cache-Control"))
	assert.NotEmpty(t, a.Header.Get("ETag"))
	published(t, n.do(http.MethodDelete, n.find("small", "http://psi.example.org/oslo").Header.Get("Location"), nil))
	assert.Equal(t, string(a.body), string(n.mustGet(first).body))
}

func entryOf(entries []document, si string) int {
	for i := range entries {
		if entries[i].TopicSI[0] == si {
			return i
		}
	}
	return -1
}

// hub is a class whose instances have identifiers so long that its fragment is
// not stored.
func hub(name string) []byte {
	var parts []string
	if name != "" {
		parts = append(parts, topic("hub", name))
	}
	long := strings.Repeat("/a-long-identifier", 150)
	for i := range 110 {
		typ := `<instanceOf><topicRef xlink:href="#hub"/></instanceOf>`
		id := fmt.Sprintf("instance-%d", i)
		if name == "" {
			typ = ""
		}
		parts = append(parts, fmt.Sprintf(`<topic id=%q>%s<subjectIdentity><subjectIndicatorRef xlink:href="http://psi.example.org%s/%d"/></subjectIdentity></topic>`, id, typ, long, i))
	}
	return topicMap(parts...)
}

// What outgrows storing is rendered when it is asked for, says as of when it is,
// and is gone when the topic is.
func TestFragmentsTooLargeToStoreAreRendered(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t, documentSize(10_000))
	n.publish("hub", hub("Hub"))
	n.mustPut("hub", hub("Wheel"))
	entries, _ := n.history("/topicmaps/hub/fragments")
	i := entryOf(entries, "http://psi.example.org/hub")
	require.Equal(t, 0, i)
	address := n.find("hub", "http://psi.example.org/hub").Header.Get("Location")
	for _, ext := range []string{".xtm1", ".xtm21"} {
		a := n.mustGet(dataURL(t, entries[i]) + ext)
		assert.Greater(t, len(a.body), 256<<10)
		assert.Contains(t, string(a.body), ">Wheel<")
		assert.Equal(t, "no-cache", a.Header.Get("Cache-Control"))
		assert.Equal(t, entries[0].updated(), a.Header.Get("TMShare-Updated"))
		assert.Equal(t, http.StatusOK, n.do(http.MethodHead, dataURL(t, entries[i])+ext, nil).StatusCode)
		assert.Less(t, len(n.mustGet(address+ext).body), 1<<10, "the record is without instances")
	}
	n.mustPut("hub", hub(""))
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, coding := range []string{"identity", "gzip"} {
			a := n.do(method, dataURL(t, entries[i]), nil, "Accept-Encoding", coding)
			assert.Equal(t, http.StatusGone, a.StatusCode, method)
			assert.Empty(t, a.Header.Get("TMShare-Updated"))
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
			assert.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
		}
	}
	assert.Contains(t, string(n.mustGet(address).body), "http://psi.example.org/hub", "the tombstone")
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	e := n.feed("/topicmaps/small/fragments").Entries[0]
	next := dataURL(t, e)
	next = next[:len(next)-2] + "0b" // the id that the eleventh entry will have
	require.Len(t, n.feed("/topicmaps/small/fragments").Entries, 10)
	const id = "/00000000-0000-4000-8000-000000000000"
	for _, path := range []string{
		"/", "/topicmap", "/topicmaps/", "/topicmaps/none", "/topicmaps/none.atom", "/topicmaps/none/fragments", "/topicmaps/none/snapshots",
		"/topicmaps/none/snapshots/current", "/topicmaps/none/snapshots" + id, "/topicmaps/none/fragments" + id, "/topicmaps/none/topics/" + strings.Repeat("a", 26),
		"/topicmaps/small/", "/topicmaps/small/fragments/", "/topicmaps/small/other", "/topicmaps/Small", "/topicmaps/smal", "/topicmaps/small0",
		"/topicmaps/small/fragments" + id, "/topicmaps/small/fragments" + id + ".atom", "/topicmaps/small/fragments" + id + ".xtm21",
		"/topicmaps/small/fragments/" + strings.Repeat("-", 36), "/topicmaps/small/fragments/x", next, next + ".xtm1", next + ".atom",
		"/topicmaps/small/snapshots" + id, "/topicmaps/small/snapshots" + id + ".atom", "/topicmaps/small/snapshots" + id + ".xtm1", "/topicmaps/small/snapshots/x",
		"/topicmaps/small/topics/" + strings.Repeat("a", 26), "/topicmaps/small/topics/x", "/topicmaps/small/snapshots/current.gz",
	} {
		a := n.get(path)
		assert.Equal(t, http.StatusNotFound, a.StatusCode, path)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		assert.NotEmpty(t, a.body)
	}
	n.mustPut("small", small("Oslo", "Christiania"))
	assert.Equal(t, http.StatusOK, n.get(next).StatusCode, "now it is there: nothing may have cached that it is not")
}
