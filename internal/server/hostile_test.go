package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// The addresses of files lead nowhere, however they are written.
func TestNoAddressLeadsToAFile(t *testing.T) {
	stores.InFolders(t)
	t.Parallel()
	n := start(t)
	c := n.Publish("small", served.Small())
	db := n.Store.(*store.DB)
	secret := filepath.Join(db.Dir(), "snapshots", c.Epoch.String(), "secret.xtm1.gz")
	require.NoError(t, os.WriteFile(secret, served.Gzipped(t, []byte("the secret")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(db.Dir(), "secret"), []byte("the secret"), 0o600))
	for _, up := range []string{"..", "%2e%2e", "%2E.", "..%2f..", "..%5c..", "....//", "%252e%252e", ".%00.", "..;", "%c0%ae%c0%ae"} {
		for _, path := range []string{
			"/" + up + "/secret", "/topicmaps/" + up + "/secret", "/topicmaps/" + up, "/topicmaps/small/snapshots/" + up + "/" + up + "/secret",
			"/topicmaps/small/snapshots/" + up + "/secret.xtm1", "/topicmaps/small/snapshots/secret", "/topicmaps/small/snapshots/secret.xtm1.gz",
			"/topicmaps/small/fragments/" + up + "/snapshots", "/topicmaps/small/topics/" + up, "/topicmaps/small/snapshots/" + up + "%2fsecret",
		} {
			a := n.Get(path)
			assert.Contains(t, []int{http.StatusNotFound, http.StatusBadRequest, http.StatusMovedPermanently}, a.StatusCode, path)
			assert.NotContains(t, string(a.Bytes), "the secret")
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
	n.Publish("small", served.Small())
	for name, path := range map[string]string{
		"long":           strings.Repeat("a", 10_000),
		"very long":      strings.Repeat("a", 100_000), // longer than any key of the store
		"zero bytes":     strings.Repeat("%00", 1000),
		"not UTF-8":      "%ff%fe",
		"line breaks":    "small%0d%0aX-Injected:%20yes",
		"another letter": "smal%6c%6c",
	} {
		for _, end := range []string{"", "/fragments", "/snapshots/current", "/topics?si=http://x/"} {
			a := n.Get("/topicmaps/" + path + end)
			assert.Equal(t, http.StatusNotFound, a.StatusCode, name)
			assert.Empty(t, a.Header.Get("X-Injected"))
		}
		want := http.StatusUnprocessableEntity // no collection can have that name
		if name == "another letter" {
			want = http.StatusNotFound
		}
		assert.Equal(t, want, n.Put(path, served.Small()).StatusCode, name)
	}
	long := "/topicmaps/small/topics?si=http://x/" + strings.Repeat("a", 100_000)
	assert.Equal(t, http.StatusNotFound, n.Get(long).StatusCode)
	assert.NotContains(t, n.Logs.String(), "level=ERROR")
}

// Requests cannot forge lines of the log.
func TestRequestsCannotForgeLinesOfTheLog(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	before := strings.Count(n.Logs.String(), "\n")
	w.view = func() error { return errors.New("a\nb") }
	a := n.Get("/topicmaps/x%0Atime=2001%20level=INFO%20msg=forged/fragments")
	require.Equal(t, http.StatusInternalServerError, a.StatusCode)
	assert.Equal(t, before+1, strings.Count(n.Logs.String(), "\n"), "one line for one request: %s", n.Logs)
	assert.NotContains(t, n.Logs.String(), "\ntime=2001")
}

// Answers are never taken for pages: a browser shows text as text.
func TestAnswersAreNotSniffed(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	for _, path := range []string{"/topicmaps", "/topicmaps/small/snapshots/current", "/nothing", "/topicmaps/none", "/healthz", "/topicmaps/small/topics?si=http://x/<script>alert(1)</script>"} {
		a := n.Get(path)
		assert.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"), path)
		assert.NotContains(t, a.Header.Get("Content-Type"), "html", path)
	}
	a := n.Put("small", served.TopicMap("<script>alert(1)</script>"), "Accept", "text/html")
	assert.Equal(t, "text/plain; charset=utf-8", a.Header.Get("Content-Type"))
}

// The statements about one topic have a limit, for any limit of a body. A document over the limit is not published.
func TestATopicThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	testenv.SkipUnderRace(t)
	n := start(t, func(c *server.Config) { c.MaxBody = 100 << 20 })
	n.Publish("small", served.Small())
	before := n.MustGet("/topicmaps/small/fragments").Bytes
	var large strings.Builder
	for i := range 5 {
		fmt.Fprintf(&large, "<occurrence><resourceData>%d %s</resourceData></occurrence>", i, strings.Repeat("a lot ", 15<<20/6))
	}
	a := n.postTopics("small", served.TopicMap(served.Topic("large", "Large", large.String())), nil)
	assert.Equal(t, http.StatusRequestEntityTooLarge, a.StatusCode, "%.300s", a.Bytes)
	assert.Contains(t, string(a.Bytes), "say less of it, or divide it among several")
	assert.Equal(t, before, n.MustGet("/topicmaps/small/fragments").Bytes)
}

// A body with too large a Content-Length is refused before it is read: a client that sends it nevertheless finds the
// connection closed.
func TestABodyThatIsTooLargeIsNotRead(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.MaxBody, c.MaxUploads = maxBody, 1 })
	n.Publish("small", served.Small())
	for _, path := range []string{"PUT /topicmaps/small", "POST /topicmaps/small/topics"} {
		conn, answers := n.raw()
		_, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n", path, 1<<30)
		require.NoError(t, err)
		res, err := http.ReadResponse(answers, nil) // no byte of the body was sent
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
		assert.Contains(t, string(text), "request body: larger than 300000 bytes, unpacked, which is the limit; publish it in parts, or raise the limit of the server (--max-body)")
		assert.True(t, res.Close, "the connection is of no more use")
		sent, err := io.Copy(conn, &io.LimitedReader{R: zeros{}, N: 1 << 30})
		require.Error(t, err)
		assert.Less(t, sent, int64(64<<20), "what waits in the system")
	}
	_, err := n.Import(t.Context(), store.Collection{Name: "file", SP: n.SP("file")}, bytes.NewReader(bytes.Repeat([]byte(" "), maxBody+1)), "maps/file.xtm")
	assert.ErrorContains(t, err, "maps/file.xtm: larger than 300000 bytes, unpacked, which is the limit; publish it in parts, or raise the limit of the server (--max-body)")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// Hostile documents are refused with the right reason, and withLatest.
func TestHostileDocumentsAreRefused(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.Limits.Growth = 10_000 })
	n.Publish("small", served.Small())
	before := n.State("small")
	for name, document := range testhostile.Amplifying {
		a := n.Put("small", []byte(document(8000, 100)))
		assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, "%s: %s", name, a.Bytes)
		assert.Contains(t, string(a.Bytes), "shorter xml:base", name)
	}
	a := n.Put("small", []byte(testhostile.Association(1001)))
	assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
	assert.Contains(t, string(a.Bytes), "has 1001 roles (1000 at most): make several associations of it")
	assert.Equal(t, before, n.State("small"))
	assert.NotContains(t, n.Logs.String(), "level=ERROR")
}

// A publication over the time limit is cancelled, so that others can publish.
func TestAPublicationHasATimeLimit(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.PublishTimeout = 1 })
	n.Publish("small", served.Small())
	require.Equal(t, http.StatusCreated, n.PutSettings("empty", "{}").StatusCode)
	before := n.State("small")
	for _, a := range []served.Answer{
		n.Put("small", served.Small("Oslo", "Christiania")), n.postTopics("small", served.TopicMap(served.Topic("oslo", "Christiania")), nil), n.Put("empty", served.Small()),
		n.Do("PUT", "/topicmaps/small/dry-run", bytes.NewReader(served.Small("Oslo", "Christiania"))), n.Do("PUT", "/topicmaps/new/dry-run", bytes.NewReader(served.Small())),
		n.Do("DELETE", "/topicmaps/small/topics/dry-run?si="+url.QueryEscape(served.PSI+"oslo"), nil),
	} {
		assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode, "%s", a.Bytes)
		assert.Contains(t, string(a.Bytes), "publishing took longer than 1ns, so nothing was published; publish in parts, or raise the limit of the server (--publish-timeout)")
	}
	assert.Equal(t, before, n.State("small"))
	assert.NotContains(t, n.Logs.String(), "level=ERROR")
}
