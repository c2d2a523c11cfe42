package server_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
)

// The addresses of files lead nowhere, however they are written.
func TestNoAddressLeadsToAFile(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.publish("small", small())
	db := n.Store.(*store.DB)
	secret := filepath.Join(db.Dir(), "snapshots", c.Epoch.String(), "secret.xtm1.gz")
	require.NoError(t, os.WriteFile(secret, gzipped(t, []byte("the secret")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(db.Dir(), "secret"), []byte("the secret"), 0o600))
	for _, up := range []string{"..", "%2e%2e", "%2E.", "..%2f..", "..%5c..", "....//", "%252e%252e", ".%00.", "..;", "%c0%ae%c0%ae"} {
		for _, path := range []string{
			"/" + up + "/secret", "/topicmaps/" + up + "/secret", "/topicmaps/" + up, "/topicmaps/small/snapshots/" + up + "/" + up + "/secret",
			"/topicmaps/small/snapshots/" + up + "/secret.xtm1", "/topicmaps/small/snapshots/secret", "/topicmaps/small/snapshots/secret.xtm1.gz",
			"/topicmaps/small/fragments/" + up + "/snapshots", "/topicmaps/small/topics/" + up, "/topicmaps/small/snapshots/" + up + "%2fsecret",
		} {
			a := n.get(path)
			assert.Contains(t, []int{http.StatusNotFound, http.StatusBadRequest, http.StatusMovedPermanently}, a.StatusCode, path)
			assert.NotContains(t, string(a.body), "the secret")
			if to := a.Header.Get("Location"); to != "" {
				assert.Regexp(t, `^/([^/]|$)`, to, "leads to this host")
			}
		}
	}
}

func TestLongAndStrangeAddressesAreNotFound(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	for name, path := range map[string]string{
		"long":           strings.Repeat("a", 10_000),
		"very long":      strings.Repeat("a", 100_000), // longer than any key of the store
		"zero bytes":     strings.Repeat("%00", 1000),
		"not UTF-8":      "%ff%fe",
		"line breaks":    "small%0d%0aX-Injected:%20yes",
		"another letter": "smal%6c%6c",
	} {
		for _, end := range []string{"", "/fragments", "/snapshots/current", "/topics?si=http://x/"} {
			a := n.get("/topicmaps/" + path + end)
			assert.Equal(t, http.StatusNotFound, a.StatusCode, name)
			assert.Empty(t, a.Header.Get("X-Injected"))
		}
		want := http.StatusUnprocessableEntity // no collection can have that name
		if name == "another letter" {
			want = http.StatusNotFound
		}
		assert.Equal(t, want, n.put(path, small()).StatusCode, name)
	}
	long := "/topicmaps/small/topics?si=http://x/" + strings.Repeat("a", 100_000)
	assert.Equal(t, http.StatusNotFound, n.get(long).StatusCode)
	assert.NotContains(t, n.logs.String(), "level=ERROR")
}

// What a request says cannot forge lines of the log.
func TestRequestsCannotForgeLinesOfTheLog(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	before := strings.Count(n.logs.String(), "\n")
	w.view = func() error { return errors.New("a\nb") }
	a := n.get("/topicmaps/x%0Atime=2001%20level=INFO%20msg=forged/fragments")
	require.Equal(t, http.StatusInternalServerError, a.StatusCode)
	assert.Equal(t, before+1, strings.Count(n.logs.String(), "\n"), "one line for one request: %s", n.logs)
	assert.NotContains(t, n.logs.String(), "\ntime=2001")
}

// Answers are never taken for pages: a browser shows text as text.
func TestAnswersAreNotSniffed(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	for _, path := range []string{"/topicmaps", "/topicmaps/small/snapshots/current", "/nothing", "/topicmaps/none", "/healthz", "/topicmaps/small/topics?si=http://x/<script>alert(1)</script>"} {
		a := n.get(path)
		assert.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"), path)
		assert.NotContains(t, a.Header.Get("Content-Type"), "html", path)
	}
	a := n.put("small", topicMap("<script>alert(1)</script>"), "Accept", "text/html")
	assert.Equal(t, "text/plain; charset=utf-8", a.Header.Get("Content-Type"))
}
