package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
)

const (
	readToken   = "reader-of-the-secret-map"
	otherReader = "reader-of-the-other-map-only"
)

// guarded starts a server with an open map and two that only some may read.
func guarded(t testing.TB, configure ...func(*server.Config)) *node {
	n := start(t, append(configure, func(c *server.Config) {
		c.Tokens = []string{token}
		c.ReadTokens = map[string][]string{"secret": {"first-reader-of-the-secret", readToken}, "other": {otherReader}}
	})...)
	n.publish("open", small())
	n.publish("secret", small("Oslo", "Hidden place"))
	n.publish("other", small())
	return n
}

// addresses returns an address of each kind that a collection has, for one who
// may read it.
func (n *node) addresses(name string, headers ...string) []string {
	n.t.Helper()
	base := "/topicmaps/" + name
	d := n.feed(base+"/fragments", headers...)
	urls := []string{
		base, base + ".atom", base + "/settings", base + "/snapshots", base + "/snapshots.atom", base + "/snapshots/current", base + "/snapshots/current.xtm21",
		base + "/fragments", base + "/fragments.atom", base + "/fragments?since=2000-01-01T00:00:00Z", base + "/topics?si=http://psi.example.org/oslo",
		d.link(n.t, "via"), d.Entries[0].link(n.t, "self"), n.get(base+"/topics?si=http://psi.example.org/oslo", headers...).Header.Get("Location"),
	}
	for _, e := range []document{d.Entries[0], n.feed(base+"/snapshots", headers...).Entries[0]} {
		urls = append(urls, dataURL(n.t, e), e.link(n.t, "self"))
		for _, url := range e.typed(n.t, "topicmapdata") {
			urls = append(urls, url)
		}
	}
	return urls
}

func TestGuardedMapIsForThoseWithATokenOfItsOwn(t *testing.T) {
	t.Parallel()
	n := guarded(t)
	urls := n.addresses("secret", "Authorization", "Bearer "+readToken)
	for _, url := range append(urls, "/topicmaps/secret/snapshots/none", "/topicmaps/secret/fragments/archive/00000000-0000-4000-8000-000000000000-1") {
		for name, headers := range map[string][]string{
			"none":           nil,
			"wrong":          {"Authorization", "Bearer wrong-horse-battery"},
			"of another map": {"Authorization", "Bearer " + otherReader},
			"beginning":      {"Authorization", "Bearer " + readToken[:16]},
			"another scheme": {"Authorization", "Basic " + readToken},
			"in the URL":     {},
			"known":          {"If-None-Match", "*"},
		} {
			at := url
			if name == "in the URL" {
				at += map[bool]string{true: "&", false: "?"}[strings.Contains(url, "?")] + "access_token=" + readToken
			}
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				a := n.do(method, at, nil, headers...)
				if a.StatusCode == http.StatusNotFound && strings.Contains(url, "none") {
					continue // no such route: it says nothing of the map
				}
				assert.Equal(t, http.StatusUnauthorized, a.StatusCode, "%s %s: %s", method, at, name)
				assert.Equal(t, `Bearer realm="tmshare"`, a.Header.Get("WWW-Authenticate"))
				assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
				assert.Empty(t, a.Header.Get("ETag"))
				assert.NotContains(t, string(a.body), "Hidden")
			}
		}
	}
	for _, good := range []string{readToken, "first-reader-of-the-secret", token} {
		for _, url := range urls {
			for _, coding := range []string{"identity", "gzip"} {
				a := n.get(url, "Authorization", "Bearer "+good, "Accept-Encoding", coding)
				require.Contains(t, []int{http.StatusOK, http.StatusSeeOther}, a.StatusCode, url)
				cache := a.Header.Get("Cache-Control")
				assert.True(t, strings.Contains(cache, "private") || cache == "no-store", "%s: %s", url, cache)
				assert.NotContains(t, cache, "public", url)
				assert.Contains(t, strings.Join(a.Header.Values("Vary"), ","), "Authorization", url)
				if tag := a.Header.Get("ETag"); tag != "" && !strings.HasSuffix(url, "/settings") {
					a = n.get(url, "Authorization", "Bearer "+good, "Accept-Encoding", coding, "If-None-Match", tag)
					assert.Equal(t, http.StatusNotModified, a.StatusCode)
					assert.Equal(t, cache, a.Header.Get("Cache-Control"))
					assert.Contains(t, strings.Join(a.Header.Values("Vary"), ","), "Authorization", url)
				}
			}
		}
	}
	assert.NotContains(t, n.logs.String(), readToken[:10])
}

func TestOpenMapBesideGuardedOnesIsForAll(t *testing.T) {
	t.Parallel()
	n := guarded(t)
	for _, url := range n.addresses("open") {
		a := n.get(url, "Authorization", "Bearer wrong-horse-battery")
		assert.Contains(t, []int{http.StatusOK, http.StatusSeeOther}, a.StatusCode, url)
		assert.NotContains(t, a.Header.Get("Cache-Control"), "private", url)
		assert.NotContains(t, strings.Join(a.Header.Values("Vary"), ","), "Authorization", url)
	}
}

func TestOverviewShowsWhatOneMayRead(t *testing.T) {
	t.Parallel()
	n := guarded(t)
	tags := map[string]bool{}
	for authorization, want := range map[string][]string{
		"":                           {"open"},
		"Bearer wrong-horse-battery": {"open"},
		"Bearer " + readToken:        {"open", "secret"},
		"Bearer " + otherReader:      {"open", "other"},
		"Bearer " + token:            {"open", "other", "secret"},
	} {
		a := n.mustGet("/topicmaps", "Authorization", authorization)
		var titles []string
		for _, e := range parseAtom(t, a).Entries {
			titles = append(titles, e.Titles[0])
		}
		assert.Equal(t, want, titles, "%q", authorization)
		assert.Equal(t, "private, max-age=5", a.Header.Get("Cache-Control"))
		assert.Contains(t, strings.Join(a.Header.Values("Vary"), ","), "Authorization")
		tags[a.Header.Get("ETag")] = true
	}
	assert.Len(t, tags, 4)
}

func TestReadTokenIsNoWriteToken(t *testing.T) {
	t.Parallel()
	n := guarded(t)
	for _, a := range []answer{
		n.put("secret", small(), "Authorization", "Bearer "+readToken),
		n.put("open", small(), "Authorization", "Bearer "+readToken),
		n.post("/topicmaps/secret/snapshots", "Authorization", "Bearer "+readToken),
	} {
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode)
	}
	assert.Equal(t, http.StatusOK, n.put("secret", small(), "Authorization", "Bearer "+token).StatusCode)
}

func TestReadTokensMustBeGood(t *testing.T) {
	t.Parallel()
	c := start(t).Config
	for name, readers := range map[string]map[string][]string{
		"short":        {"small": {"short"}},
		"none at all":  {"small": nil},
		"no such name": {"a/b": {readToken}},
	} {
		c.ReadTokens = readers
		_, err := server.New(c)
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), readToken)
	}
}
