package server_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// rename renames a collection by a request.
func (n *node) rename(name, to string, headers ...string) served.Answer {
	n.T.Helper()
	return n.Do(http.MethodPost, "/topicmaps/"+name+"/rename", strings.NewReader(`{"to": "`+to+`"}`),
		append([]string{"Content-Type", "application/json"}, headers...)...)
}

func (n *node) renamed(name, to string) {
	n.T.Helper()
	a := n.rename(name, to)
	require.Equal(n.T, http.StatusOK, a.StatusCode, "%s", a.Bytes)
}

var variable = regexp.MustCompile(`{[^}]*}`)

// Each address of a collection, with any method, redirects to the same one below its new name.
func TestAddressesOfARenamedCollectionLeadToTheNewOnes(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("old", served.Small())
	feed := n.Feed("/topicmaps/old/fragments")
	sp := n.SP("old")
	n.renamed("old", "new")

	now := n.Feed("/topicmaps/new/fragments")
	assert.Equal(t, feed.ID(), now.ID(), "the history is the same")
	assert.Equal(t, served.IDsOf(feed.Entries), served.IDsOf(now.Entries))
	assert.Equal(t, sp, n.SP("new"))
	values := map[string]string{"{map}": "old", "{id}": strings.TrimPrefix(feed.Entries[0].ID(), "urn:uuid:"),
		"{history}": strings.TrimPrefix(feed.Entries[0].ID(), "urn:uuid:"), "{key}": strings.Repeat("a", 26), "{n}": "1", "{path}": "0",
		"{minted}": "topic/x", "{tag}": strings.Repeat("0", 12), "{page}": ""}
	checked := 0
	for path, methods := range n.Addresses() {
		if !strings.HasPrefix(path, "/topicmaps/{map}") || path == "/topicmaps/{map}/former" {
			continue
		}
		filled := variable.ReplaceAllStringFunc(path, func(v string) string {
			if value, known := values[v]; known {
				return value
			}
			return "1"
		})
		for _, method := range methods {
			body, kind := "{}", "application/json"
			if strings.HasSuffix(path, "/rename") {
				body = `{"to": "other"}`
			}
			if strings.Contains(path, "/dry-run") || strings.HasSuffix(path, "/topics") {
				body, kind = string(served.Small()), "application/x-tm+xml"
			}
			a := n.Do(method, filled+"?a=b&c=%2F", strings.NewReader(body), "Content-Type", kind)
			if a.StatusCode == http.StatusBadRequest || a.StatusCode == http.StatusUnsupportedMediaType || a.StatusCode == http.StatusNotFound {
				assert.Contains(t, path, "{", "%s %s: %s", method, path, a.Bytes)
				t.Log(method, path, a.StatusCode, string(a.Bytes))
				continue
			}
			checked++
			require.Equal(t, http.StatusPermanentRedirect, a.StatusCode, "%s %s: %s", method, path, a.Bytes)
			assert.Equal(t, n.URL(strings.Replace(filled, "/old", "/new", 1)+"?a=b&c=%2F"), a.Header.Get("Location"))
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"), "a name may be given to another collection")
		}
	}
	assert.Greater(t, checked, 50)
	assert.Contains(t, string(n.Get("/topicmaps/old/fragments").Bytes), `collection \"old\" was renamed to \"new\" at `)
	assert.Equal(t, []string{n.URL("/topicmaps/old")}, n.Feed("/topicmaps").Entries[0].Hrefs(string(feeds.RelFormer)))

	n.renamed("new", "last")
	assert.Equal(t, n.URL("/topicmaps/last/fragments"), n.Get("/topicmaps/old/fragments").Header.Get("Location"))
	assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps/other").StatusCode)
}

// The assigned identifiers of topics lead to them, under any name of the collection.
func TestIdentifiersOfARenamedCollection(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("old", served.TopicMap(served.Identified("x", nil, "X")))
	var si string
	for _, e := range n.Feed("/topicmaps/old/fragments").Entries {
		if strings.Contains(e.TopicSI[0], "/topic/") {
			si = e.TopicSI[0]
		}
	}
	before := n.Get(si)
	require.Equal(t, http.StatusSeeOther, before.StatusCode)
	n.renamed("old", "new")
	moved := n.Get(si)
	require.Equal(t, http.StatusPermanentRedirect, moved.StatusCode)
	a := n.Get(moved.Header.Get("Location"))
	require.Equal(t, http.StatusSeeOther, a.StatusCode, "%s", a.Bytes)
	assert.Equal(t, strings.Replace(before.Header.Get("Location"), "/old/", "/new/", 1), a.Header.Get("Location"))
	assert.Equal(t, http.StatusOK, n.Get(a.Header.Get("Location")).StatusCode)
}

func TestNamesThatARenameCannotGive(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.ReadTokens = map[string][]string{"closed": {"a-token-for-reading"}} })
	for _, name := range []string{"a", "b", "closed"} {
		n.Publish(name, served.Small())
	}
	for want, a := range map[int]served.Answer{
		http.StatusConflict:            n.rename("a", "b"),
		http.StatusUnprocessableEntity: n.rename("a", "b.atom"),
		http.StatusNotFound:            n.rename("none", "c"),
		http.StatusPreconditionFailed:  n.rename("a", "c", "If-Match", `"other"`),
	} {
		assert.Equal(t, want, a.StatusCode, "%s", a.Bytes)
	}
	a := n.Do(http.MethodPost, "/topicmaps/closed/rename", strings.NewReader(`{"to": "open"}`))
	assert.Equal(t, http.StatusConflict, a.StatusCode)
	assert.Contains(t, string(a.Bytes), "it could be read by all: start the server with --read-token-file for open as well")
	assert.Equal(t, http.StatusUnprocessableEntity, n.Do(http.MethodPost, "/topicmaps/a/rename", strings.NewReader(`{"name": "c"}`)).StatusCode)

	n.renamed("a", "c")
	assert.Equal(t, http.StatusPermanentRedirect, n.PutSettings("a", "{}").StatusCode, "a map that is published there goes on")
	taken := n.rename("b", "a")
	assert.Equal(t, http.StatusConflict, taken.StatusCode)
	assert.Contains(t, string(taken.Bytes), "collections forget a")
	forget := func(name string) int { return n.Do(http.MethodDelete, "/topicmaps/"+name+"/former", nil).StatusCode }
	assert.Equal(t, http.StatusConflict, forget("b"))
	assert.Equal(t, http.StatusOK, forget("a"))
	assert.Equal(t, http.StatusNotFound, forget("a"))
	assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps/a").StatusCode)
	assert.Empty(t, n.Feed("/topicmaps").Entries[0].Hrefs(string(feeds.RelFormer)))
	assert.Equal(t, http.StatusCreated, n.PutSettings("a", "{}").StatusCode)
}

// Requests that wait for a change at the address of a collection are redirected to the new one at once.
func TestThoseWhoWaitAreLedToTheNewName(t *testing.T) {
	t.Parallel()
	n := start(t, someWait)
	n.Publish("old", served.Small())
	answered := n.prefers("GET", n.URL("/topicmaps/old/fragments"))
	n.renamed("old", "new")
	a := <-answered
	assert.Equal(t, http.StatusPermanentRedirect, a.StatusCode)
	assert.Equal(t, n.URL("/topicmaps/new/fragments"), a.Header.Get("Location"))
}

// Running publications are made under one name or the other, or are redirected to the new one.
func TestPublishingWhileACollectionIsRenamed(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("a", served.Small())
	var writing sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for _, name := range []string{"a", "b"} {
		writing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				a := n.Put(name, served.Small("Oslo", []string{"Oslo", "Christiania"}[i%2]))
				assert.Contains(t, []int{http.StatusOK, http.StatusPermanentRedirect, http.StatusNotFound}, a.StatusCode, "%s", a.Bytes)
			}
		})
	}
	for range 10 {
		n.renamed("a", "b")
		n.renamed("b", "a")
	}
	stop()
	writing.Wait()
	n.Idle()
	assert.Empty(t, n.errors())
	n.MustPut("a", served.Small())
	assert.Equal(t, n.Expected("a", served.Small()), n.Current("a"))
}

// All addresses of a deleted collection state the time and the reason, until one of the name is created.
func TestADeletedCollectionIsGone(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("m", served.Small())
	require.Equal(t, http.StatusOK, n.remove("m", "TMShare-Note", "it was wrong").StatusCode)
	for _, path := range []string{"/topicmaps/m", "/topicmaps/m.atom", "/topicmaps/m/fragments", "/topicmaps/m/settings", "/topicmaps/m/resourcesync/resourcelist.xml",
		"/topicmaps/m/snapshots/current", "/topicmaps/m/topics/" + strings.Repeat("a", 26)} {
		a := n.Get(path)
		assert.Equal(t, http.StatusGone, a.StatusCode, path)
		assert.Regexp(t, `collection \\"m\\" was deleted at \d{4}-.*Z: it was wrong`, string(a.Bytes))
	}
	page := n.Get("/topicmaps/m.html", "Accept", "text/html")
	assert.Equal(t, http.StatusGone, page.StatusCode)
	assert.Contains(t, string(page.Bytes), "it was wrong")
	assert.Equal(t, http.StatusGone, n.remove("m").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.Put("m", served.Small()).StatusCode, "it says how to create one")
	assert.Equal(t, http.StatusCreated, n.PutSettings("m", "{}").StatusCode)
	assert.Equal(t, http.StatusOK, n.Get("/topicmaps/m/fragments").StatusCode)
}
