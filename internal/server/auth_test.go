package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// writes are the requests that change something.
func (n *node) writes(headers ...string) []served.Answer {
	n.T.Helper()
	return []served.Answer{
		n.Put("small", served.Small("Oslo", "Christiania"), headers...),
		n.Delete("small", "http://psi.example.org/tromsø", headers...),
	}
}

func TestWritingNeedsATokenOfTheServer(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.Tokens = []string{served.Token, served.OtherToken} })
	n.AnswerGuessesAfter(time.Millisecond)
	n.Publish("small", served.Small())
	before := n.State("small") // reading needs none
	for name, authorization := range map[string][]string{
		"none":            nil,
		"empty":           {"Authorization", ""},
		"no token":        {"Authorization", "Bearer"},
		"empty token":     {"Authorization", "Bearer "},
		"wrong":           {"Authorization", "Bearer wrong-horse-battery"},
		"beginning":       {"Authorization", "Bearer " + served.Token[:16]},
		"more":            {"Authorization", "Bearer " + served.Token + "x"},
		"other case":      {"Authorization", "Bearer " + strings.ToUpper(served.Token)},
		"both":            {"Authorization", "Bearer " + served.Token + " " + served.OtherToken},
		"another scheme":  {"Authorization", "Basic " + served.Token},
		"only the token":  {"Authorization", served.Token},
		"another header":  {"X-Authorization", "Bearer " + served.Token},
		"of the loopback": {"X-Forwarded-For", "127.0.0.1"},
		"second header":   {"Authorization", "Bearer x", "Authorization", "Bearer " + served.Token},
	} {
		for _, a := range n.writes(authorization...) {
			assert.Equal(t, http.StatusUnauthorized, a.StatusCode, name)
			assert.Equal(t, `Bearer realm="tmshare"`, a.Header.Get("WWW-Authenticate"))
			assert.NotContains(t, string(a.Bytes), served.Token[:5])
		}
		a := n.Put("small", served.Small("Oslo", "Christiania"), append(authorization, "Accept", "application/json")...)
		assert.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
	}
	// Without a token, requests do not reveal whether an address exists.
	assert.Equal(t, http.StatusUnauthorized, n.Put("none", served.Small()).StatusCode)
	assert.Equal(t, before, n.State("small"))

	for i, authorization := range []string{"Bearer " + served.Token, "bearer  " + served.OtherToken} {
		assert.Equal(t, 1, served.Published(t, n.Put("small", served.Small("Oslo", []string{"A", "B"}[i]), "Authorization", authorization, "Origin", "http://elsewhere.example")).Updated)
	}
	assert.Equal(t, 1, served.Published(t, n.Delete("small", "http://psi.example.org/tromsø", "Authorization", "Bearer "+served.Token)).Deleted)
	assert.NotContains(t, n.Logs.String(), served.Token)
}

func TestWithoutTokensOnlyThisMachineWrites(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	before := n.State("small")
	for _, header := range [][]string{
		{"Origin", "http://elsewhere.example"}, // from a browser
		{"Origin", "null"},
		{"Origin", ""},
		{"Origin", n.BaseURL}, // also from a page of ours, which has no business here
		{"Forwarded", "for=192.0.2.1"},
		{"X-Forwarded-For", "192.0.2.1"},
		{"x-forwarded-for", "127.0.0.1"},
		{"X-Forwarded-Host", "maps.example.org"},
		{"X-Forwarded-Proto", "https"},
		{"Via", "1.1 proxy.example.org"},
		{"X-Real-IP", "192.0.2.1"},
		{"X-Client-IP", "192.0.2.1"},
		{"X-Cluster-Client-IP", "192.0.2.1"},
		{"True-Client-IP", "192.0.2.1"},
		{"CF-Connecting-IP", "192.0.2.1"},
		{"Fastly-Client-IP", "192.0.2.1"},
		{"Sec-Fetch-Site", "cross-site"}, // a browser, without Origin
		{"Sec-Fetch-Site", "same-site"},
		{"Sec-Fetch-Site", ""},
		{"Sec-Fetch-Site", "none", "Sec-Fetch-Site", "cross-site"},
		{"Authorization", "Bearer " + served.Token, "Origin", "http://elsewhere.example"},
	} {
		for _, a := range n.writes(header...) {
			assert.Equal(t, http.StatusForbidden, a.StatusCode, header)
			assert.Contains(t, string(a.Bytes), "--token-file", "says what to do")
			assert.Empty(t, a.Header.Get("WWW-Authenticate"))
		}
	}
	assert.Equal(t, before, n.State("small"))
	for _, a := range n.writes() {
		assert.Equal(t, http.StatusOK, a.StatusCode)
	}
	for _, site := range []string{"none", "same-origin"} { // what the user has asked for, or a page of this server
		assert.Equal(t, http.StatusOK, n.Put("small", served.Small(), "Sec-Fetch-Site", site).StatusCode)
	}
}

// A real remote address needs another machine, so these requests are made up. A proxy may add no header, but then the
// server has a public address, or the proxy forwards the requested host.
func TestWithoutTokensOnlyThisMachineWritesToLoopbackAddresses(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	before := n.State("small")
	try := func(remote, host string) int {
		r := httptest.NewRequest(http.MethodDelete, "/topicmaps/small/topics/"+fragment.Key("http://psi.example.org/tromsø"), nil)
		r.RemoteAddr, r.Host = remote, host
		w := httptest.NewRecorder()
		n.ServeHTTP(w, r)
		return w.Code
	}
	for _, remote := range []string{"192.0.2.1:1234", "[2001:db8::1]:1234", "10.0.0.1:80", "", "@", "127.0.0.1", "localhost:1", "0.0.0.0:1", "[::]:1"} {
		assert.Equal(t, http.StatusForbidden, try(remote, "127.0.0.1:8080"), remote)
	}
	for _, host := range []string{"maps.example.org", "192.0.2.1:8080", "", "localhost.example.org", "127.0.0.1.example.org"} {
		assert.Equal(t, http.StatusForbidden, try("127.0.0.1:1234", host), host)
	}
	assert.Equal(t, before, n.State("small"))
	for _, remote := range []string{"127.0.0.1:1234", "[::1]:1234", "127.5.5.5:1", "[::ffff:127.0.0.1]:1"} {
		assert.Equal(t, http.StatusOK, try(remote, "127.0.0.1:8080"), remote)
	}
	for _, host := range []string{"127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "LocalHost:8080"} {
		assert.Equal(t, http.StatusOK, try("127.0.0.1:1234", host), host)
	}
	n.BaseURL = "https://maps.example.org"
	assert.Equal(t, http.StatusForbidden, try("127.0.0.1:1234", "127.0.0.1:8080"))
}

func TestWithoutTokensAServerForOthersTakesNoWrites(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.OnLoopback = false })
	n.Publish("small", served.Small())
	before := n.State("small")
	for _, a := range n.writes() {
		assert.Equal(t, http.StatusForbidden, a.StatusCode)
	}
	assert.Equal(t, before, n.State("small"))
}

func TestRefusedUploadIsNotRead(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.Tokens = []string{served.Token} })
	n.Publish("small", served.Small())
	read := false
	r := httptest.NewRequest(http.MethodPut, "/topicmaps/small", readerFunc(func([]byte) (int, error) {
		read = true
		return 0, io.EOF
	}))
	w := httptest.NewRecorder()
	n.ServeHTTP(w, r)
	require.Equal(t, http.StatusUnauthorized, w.Code)
	assert.False(t, read)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// addresses returns an address of each kind of a collection, for a reader with access.
func addresses(n *served.Node, name string, headers ...string) []string {
	n.T.Helper()
	base := "/topicmaps/" + name
	d := n.Feed(base+"/fragments", headers...)
	urls := []string{
		base, base + ".atom", base + "/settings", base + "/snapshots", base + "/snapshots.atom", base + "/snapshots/current", base + "/snapshots/current.xtm21",
		base + "/fragments", base + "/fragments.atom", base + "/fragments?since=2000-01-01T00:00:00Z", base + "/topics?si=http://psi.example.org/oslo",
		base + "/search?q=hidden", base + "/search.html?q=hidden", base + "/opensearch.xml",
		d.Link(n.T, "via"), d.Entries[0].Link(n.T, "self"), n.Get(base+"/topics?si=http://psi.example.org/oslo", headers...).Header.Get("Location"),
	}
	for _, e := range []served.Document{d.Entries[0], n.Feed(base+"/snapshots", headers...).Entries[0]} {
		urls = append(urls, served.DataURL(n.T, e), e.Link(n.T, "self"))
		for _, url := range e.Typed(n.T, "topicmapdata") {
			urls = append(urls, url)
		}
	}
	return urls
}

func TestGuardedMapIsForThoseWithATokenOfItsOwn(t *testing.T) {
	t.Parallel()
	n := served.Guarded(t)
	n.AnswerGuessesAfter(time.Millisecond)
	urls := addresses(n, "secret", "Authorization", "Bearer "+served.ReadToken)
	for _, url := range append(urls, "/topicmaps/secret/snapshots/none", "/topicmaps/secret/fragments/archive/00000000-0000-4000-8000-000000000000-1") {
		for name, headers := range map[string][]string{
			"none":           nil,
			"wrong":          {"Authorization", "Bearer wrong-horse-battery"},
			"of another map": {"Authorization", "Bearer " + served.OtherReader},
			"beginning":      {"Authorization", "Bearer " + served.ReadToken[:16]},
			"another scheme": {"Authorization", "Basic " + served.ReadToken},
			"in the URL":     {},
			"known":          {"If-None-Match", "*"},
		} {
			at := url
			if name == "in the URL" {
				at += map[bool]string{true: "&", false: "?"}[strings.Contains(url, "?")] + "access_token=" + served.ReadToken
			}
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				a := n.Do(method, at, nil, headers...)
				if a.StatusCode == http.StatusNotFound && strings.Contains(url, "none") {
					continue // such a route does not exist: it has no data of the map
				}
				assert.Equal(t, http.StatusUnauthorized, a.StatusCode, "%s %s: %s", method, at, name)
				assert.Equal(t, `Bearer realm="tmshare"`, a.Header.Get("WWW-Authenticate"))
				assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
				assert.Empty(t, a.Header.Get("ETag"))
				assert.NotContains(t, string(a.Bytes), "Hidden")
			}
		}
	}
	for _, good := range []string{served.ReadToken, "first-reader-of-the-secret", served.Token} {
		for _, url := range urls {
			for _, coding := range []string{"identity", "gzip"} {
				a := n.Get(url, "Authorization", "Bearer "+good, "Accept-Encoding", coding)
				require.Contains(t, []int{http.StatusOK, http.StatusSeeOther}, a.StatusCode, url)
				cache := a.Header.Get("Cache-Control")
				assert.True(t, strings.Contains(cache, "private") || cache == "no-store", "%s: %s", url, cache)
				assert.NotContains(t, cache, "public", url)
				assert.Contains(t, strings.Join(a.Header.Values("Vary"), ","), "Authorization", url)
				if tag := a.Header.Get("ETag"); tag != "" && !strings.HasSuffix(url, "/settings") {
					a = n.Get(url, "Authorization", "Bearer "+good, "Accept-Encoding", coding, "If-None-Match", tag)
					assert.Equal(t, http.StatusNotModified, a.StatusCode)
					assert.Equal(t, cache, a.Header.Get("Cache-Control"))
					assert.Contains(t, strings.Join(a.Header.Values("Vary"), ","), "Authorization", url)
				}
			}
		}
	}
	assert.NotContains(t, n.Logs.String(), served.ReadToken[:10])
}

func TestOpenMapBesideGuardedOnesIsForAll(t *testing.T) {
	t.Parallel()
	n := served.Guarded(t)
	for _, url := range addresses(n, "open") {
		a := n.Get(url, "Authorization", "Bearer wrong-horse-battery")
		assert.Contains(t, []int{http.StatusOK, http.StatusSeeOther}, a.StatusCode, url)
		assert.NotContains(t, a.Header.Get("Cache-Control"), "private", url)
		assert.NotContains(t, strings.Join(a.Header.Values("Vary"), ","), "Authorization", url)
	}
}

func TestOverviewShowsWhatOneMayRead(t *testing.T) {
	t.Parallel()
	n := served.Guarded(t)
	tags := map[string]bool{}
	for authorization, want := range map[string][]string{
		"":                             {"open"},
		"Bearer wrong-horse-battery":   {"open"},
		"Bearer " + served.ReadToken:   {"open", "secret"},
		"Bearer " + served.OtherReader: {"open", "other"},
		"Bearer " + served.Token:       {"open", "other", "secret"},
	} {
		a := n.MustGet("/topicmaps", "Authorization", authorization)
		var titles []string
		for _, e := range served.ParseAtom(t, a).Entries {
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
	n := served.Guarded(t)
	for _, a := range []served.Answer{
		n.Put("secret", served.Small(), "Authorization", "Bearer "+served.ReadToken),
		n.Put("open", served.Small(), "Authorization", "Bearer "+served.ReadToken),
		n.Do(http.MethodPost, "/topicmaps/secret/snapshots", nil, "Authorization", "Bearer "+served.ReadToken),
	} {
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode)
	}
	assert.Equal(t, http.StatusOK, n.Put("secret", served.Small(), "Authorization", "Bearer "+served.Token).StatusCode)
}

func TestReadTokensMustBeGood(t *testing.T) {
	t.Parallel()
	c := start(t).Config
	for name, readers := range map[string]map[string][]string{
		"short":        {"small": {"short"}},
		"none at all":  {"small": nil},
		"no such name": {"a/b": {served.ReadToken}},
	} {
		c.ReadTokens = readers
		_, err := server.New(c)
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), served.ReadToken)
	}
}

// What is derived from a collection that only some may read is not for all.
func TestWhatIsDerivedFromAClosedCollectionIsClosed(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("r", 40)
	other := strings.Repeat("o", 40)
	n := start(t, func(c *server.Config) { c.ReadTokens = map[string][]string{"map": {secret}, "closed": {other}} })
	n.Publish("map", served.Small())
	derived := []byte(`{"derivedFrom": ["map"]}`)
	a := n.Put("open", derived, "Content-Type", "application/json")
	assert.Equal(t, http.StatusConflict, a.StatusCode)
	assert.Contains(t, string(a.Bytes), "serve with --read-token-file open=FILE first")
	assert.Equal(t, http.StatusCreated, n.Put("closed", derived, "Content-Type", "application/json").StatusCode)
	assert.Equal(t, http.StatusUnauthorized, n.Get("/topicmaps/closed/fragments").StatusCode)
	n.Idle()
	overview := string(n.Get("/topicmaps", "Authorization", "Bearer "+other).Bytes)
	assert.Contains(t, overview, "/topicmaps/closed")
	assert.NotContains(t, overview, "/topicmaps/map\"", "only who has a token for the input sees that")
	assert.NotContains(t, overview, "condition>", "the input is there, whoever asks")
}
