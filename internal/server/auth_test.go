package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
)

const (
	token = "correct-horse-battery"
	other = "another-long-token-of-this-server"
)

// writes are the requests that change something.
func (n *node) writes(headers ...string) []answer {
	n.t.Helper()
	return []answer{
		n.put("small", small("Oslo", "Christiania"), headers...),
		n.delete("small", "http://psi.example.org/tromsø", headers...),
	}
}

func TestWritingNeedsATokenOfTheServer(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.Tokens = []string{token, other} })
	n.publish("small", small())
	before := n.state("small") // reading needs none
	for name, authorization := range map[string][]string{
		"none":            nil,
		"empty":           {"Authorization", ""},
		"no token":        {"Authorization", "Bearer"},
		"empty token":     {"Authorization", "Bearer "},
		"wrong":           {"Authorization", "Bearer wrong-horse-battery"},
		"beginning":       {"Authorization", "Bearer " + token[:16]},
		"more":            {"Authorization", "Bearer " + token + "x"},
		"other case":      {"Authorization", "Bearer " + strings.ToUpper(token)},
		"both":            {"Authorization", "Bearer " + token + " " + other},
		"another scheme":  {"Authorization", "Basic " + token},
		"only the token":  {"Authorization", token},
		"another header":  {"X-Authorization", "Bearer " + token},
		"of the loopback": {"X-Forwarded-For", "127.0.0.1"},
		"second header":   {"Authorization", "Bearer x", "Authorization", "Bearer " + token},
	} {
		for _, a := range n.writes(authorization...) {
			assert.Equal(t, http.StatusUnauthorized, a.StatusCode, name)
			assert.Equal(t, `Bearer realm="tmshare"`, a.Header.Get("WWW-Authenticate"))
			assert.NotContains(t, string(a.body), token[:5])
		}
		a := n.put("small", small("Oslo", "Christiania"), append(authorization, "Accept", "application/json")...)
		assert.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
	}
	// Whether there is something at an address is nothing to ask without a token.
	assert.Equal(t, http.StatusUnauthorized, n.put("none", small()).StatusCode)
	assert.Equal(t, before, n.state("small"))

	for i, authorization := range []string{"Bearer " + token, "bearer  " + other} {
		assert.Equal(t, 1, published(t, n.put("small", small("Oslo", []string{"A", "B"}[i]), "Authorization", authorization, "Origin", "http://elsewhere.example")).Updated)
	}
	assert.Equal(t, 1, published(t, n.delete("small", "http://psi.example.org/tromsø", "Authorization", "Bearer "+token)).Deleted)
	assert.NotContains(t, n.logs.String(), token)
}

func TestWithoutTokensOnlyThisMachineWrites(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	before := n.state("small")
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
		{"Authorization", "Bearer " + token, "Origin", "http://elsewhere.example"},
	} {
		for _, a := range n.writes(header...) {
			assert.Equal(t, http.StatusForbidden, a.StatusCode, header)
			assert.Contains(t, string(a.body), "--token-file", "says what to do")
			assert.Empty(t, a.Header.Get("WWW-Authenticate"))
		}
	}
	assert.Equal(t, before, n.state("small"))
	for _, a := range n.writes() {
		assert.Equal(t, http.StatusOK, a.StatusCode)
	}
	for _, site := range []string{"none", "same-origin"} { // what the user has asked for, or a page of this server
		assert.Equal(t, http.StatusOK, n.put("small", small(), "Sec-Fetch-Site", site).StatusCode)
	}
}

// A real remote address needs another machine, so these requests are made up.
func TestWithoutTokensOtherMachinesDoNotWrite(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	before := n.state("small")
	path := "/topicmaps/small/topics/" + fragment.Key("http://psi.example.org/tromsø")
	try := func(remote string) *http.Response {
		r := httptest.NewRequest(http.MethodDelete, path, nil)
		r.RemoteAddr, r.Host = remote, "127.0.0.1:8080"
		w := httptest.NewRecorder()
		n.ServeHTTP(w, r)
		return w.Result()
	}
	for _, remote := range []string{"192.0.2.1:1234", "[2001:db8::1]:1234", "10.0.0.1:80", "", "@", "127.0.0.1", "localhost:1", "0.0.0.0:1", "[::]:1"} {
		assert.Equal(t, http.StatusForbidden, try(remote).StatusCode, remote)
	}
	assert.Equal(t, before, n.state("small"))
	for _, remote := range []string{"127.0.0.1:1234", "[::1]:1234", "127.5.5.5:1", "[::ffff:127.0.0.1]:1"} {
		assert.Equal(t, http.StatusOK, try(remote).StatusCode, remote)
	}
}

func TestWithoutTokensAServerForOthersTakesNoWrites(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.OnLoopback = false })
	n.publish("small", small())
	before := n.state("small")
	for _, a := range n.writes() {
		assert.Equal(t, http.StatusForbidden, a.StatusCode)
	}
	assert.Equal(t, before, n.state("small"))
}

// A proxy may add no header at all, but it is there because the server has a
// public address, or passes on the host that was asked for.
func TestWithoutTokensOnlyLoopbackAddressesAreWrittenTo(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	try := func(host string) int {
		r := httptest.NewRequest(http.MethodDelete, "/topicmaps/small/topics/"+fragment.Key("http://psi.example.org/tromsø"), nil)
		r.RemoteAddr, r.Host = "127.0.0.1:1234", host
		w := httptest.NewRecorder()
		n.ServeHTTP(w, r)
		return w.Code
	}
	for _, host := range []string{"maps.example.org", "192.0.2.1:8080", "", "localhost.example.org", "127.0.0.1.example.org"} {
		assert.Equal(t, http.StatusForbidden, try(host), host)
	}
	for _, host := range []string{"127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "LocalHost:8080"} {
		assert.Equal(t, http.StatusOK, try(host), host)
	}
	n.BaseURL = "https://maps.example.org"
	assert.Equal(t, http.StatusForbidden, try("127.0.0.1:8080"))
}

func TestRefusedUploadIsNotRead(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.Tokens = []string{token} })
	n.publish("small", small())
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
