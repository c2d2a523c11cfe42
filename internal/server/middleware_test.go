package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// lines returns the lines of the log with a piece of text, and waits for the first: a line is written after the answer.
func (n *node) lines(piece string) []string {
	n.T.Helper()
	var found []string
	testenv.Eventually(n.T, func() bool {
		found = nil
		for line := range strings.Lines(n.Logs.String()) {
			if strings.Contains(line, piece) {
				found = append(found, line)
			}
		}
		return len(found) > 0
	}, piece)
	return found
}

func TestEveryAnswerHasARequestID(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	seen := map[string]bool{}
	for _, path := range []string{"/topicmaps", "/topicmaps", "/nothing", "/topicmaps/none", "/healthz"} {
		id := n.Get(path).Header.Get("X-Request-Id")
		assert.Regexp(t, `^[0-9a-f]{16}$`, id)
		assert.False(t, seen[id], "two requests with one id")
		seen[id] = true
	}
	long := strings.Repeat("a", 64)
	for given, taken := range map[string]bool{
		"abc-DEF_1.2": true, long: true, long + "a": false, "a b": false, "a\tb": false, `a"b`: false, "é": false, "a=b": false, "": false,
	} {
		a := n.Get("/topicmaps/none", "X-Request-Id", given, "Accept", "application/json")
		id := a.Header.Get("X-Request-Id")
		assert.Equal(t, taken, id == given, "%q", given)
		var p problems.Problem
		require.NoError(t, json.Unmarshal(a.Bytes, &p))
		assert.Equal(t, id, p.RequestID)
		assert.Contains(t, string(n.Get("/topicmaps/none", "X-Request-Id", "known", "Accept", "text/plain").Bytes), "request known")
		assert.Len(t, n.lines("request="+id), 1)
	}
}

func TestAccessLogHasOneLineForEachRequest(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.Tokens = []string{served.Token} })
	n.Publish("small", served.Small())
	a := n.MustGet("/topicmaps/small/fragments?access_token="+served.Token, "X-Request-Id", "one", "Authorization", "Bearer "+served.Token)
	line := n.lines("request=one")
	require.Len(t, line, 1)
	for _, piece := range []string{
		"level=INFO", "method=GET", "path=/topicmaps/small/fragments ", "status=200", fmt.Sprintf("bytes=%d ", len(a.Bytes)), "took=", "remote=127.0.0.1:",
	} {
		assert.Contains(t, line[0], piece)
	}
	n.Get("/topicmaps/small/fragments", "X-Request-Id", "two", "If-None-Match", "*")
	assert.Contains(t, n.lines("request=two")[0], "status=304 bytes=0 ")
	n.Do(http.MethodHead, "/topicmaps/small/nothing", nil, "X-Request-Id", "three")
	assert.Contains(t, n.lines("request=three")[0], "method=HEAD path=/topicmaps/small/nothing status=404")
	n.Put("small", served.Small(), "X-Request-Id", "four", "Authorization", "Bearer wrong-horse-battery")
	assert.Contains(t, n.lines("request=four")[0], "status=401")
	n.Get("/healthz", "X-Request-Id", "five")
	assert.Contains(t, n.lines("request=five")[0], "level=DEBUG")
	n.Get("/"+strings.Repeat("a", 100_000), "X-Request-Id", "six")
	assert.Less(t, len(n.lines("request=six")[0]), 1500)
	assert.NotContains(t, n.Logs.String(), served.Token)
	assert.NotContains(t, n.Logs.String(), "wrong-horse")
}

// A mistake in the program ends one request, not the server.
func TestPanicIsAnsweredWithItsRequestID(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	w.view = func() error { panic("the secret state of affairs") }
	a := n.Get("/topicmaps/small/fragments", "X-Request-Id", "bad", "Accept", "application/json")
	assert.Equal(t, http.StatusInternalServerError, a.StatusCode)
	assert.Equal(t, "bad", a.Header.Get("X-Request-Id"))
	assert.NotContains(t, string(a.Bytes), "secret")
	line := n.lines("request=bad")
	require.Len(t, line, 1)
	for _, piece := range []string{"level=ERROR", "status=500", "the secret state of affairs", "failure_test.go"} {
		assert.Contains(t, line[0], piece, "where it came from")
	}
	w.view = nil
	n.MustGet("/topicmaps/small/fragments")
}

func TestPanicInTheMiddleOfAnAnswerCutsItOff(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	w.Store = panicsLate{w.Store}
	a := n.Get("/topicmaps/small/snapshots/current", "X-Request-Id", "late")
	assert.Error(t, a.Err)
	line := n.lines("request=late")[0]
	assert.Contains(t, line, "truncated=true")
	assert.Contains(t, line, "the end is bad")
}

type panicsLate struct{ server.Store }

func (s panicsLate) View(ctx context.Context, name string, f func(*store.View) error) error {
	if err := s.Store.View(ctx, name, f); err != nil {
		return err
	}
	panic("the end is bad")
}

// Errors are for programs, as JSON, or for people, as text.
func TestErrorsAreInTheFormThatIsAskedFor(t *testing.T) {
	t.Parallel()
	n := start(t)
	for accept, text := range map[string]bool{
		"":                     false,
		"*/*":                  false,
		"application/atom+xml": false,
		"application/json":     false,
		"text/plain":           true,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true, // browsers
		"text/plain, application/problem+json":                            false,
		"text/plain;q=0.5, application/json;q=0.4":                        true,
		"application/json, text/plain, */*":                               false,
		"text/plain, */*":                                                 true,
		"text/plain;q=0":                                                  false,
		"text/xml":                                                        false,
	} {
		for _, c := range []struct {
			status       int
			method, path string
		}{{404, "GET", "/nothing"}, {404, "GET", "/topicmaps/none"}, {405, "DELETE", "/topicmaps"}, {400, "GET", "/topicmaps/none/topics?at=x"}} {
			a := n.Do(c.method, c.path, nil, "Accept", accept)
			assert.Equal(t, c.status, a.StatusCode, c.path)
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
			if text {
				assert.Equal(t, "text/plain; charset=utf-8", a.Header.Get("Content-Type"), "%q", accept)
				assert.True(t, strings.HasPrefix(string(a.Bytes), http.StatusText(c.status)+": "), "%s", a.Bytes)
				continue
			}
			var p problems.Problem
			assert.Equal(t, "application/problem+json", a.Header.Get("Content-Type"), "%q", accept)
			require.NoError(t, json.Unmarshal(a.Bytes, &p))
			assert.Equal(t, c.status, p.Status)
			assert.NotEmpty(t, p.Detail)
		}
	}
}

func TestUnreadableBodiesAreRefusedWithWhatIsTaken(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	for header, ok := range map[string]bool{
		"": true, "application/xml": true, "text/xml; charset=utf-8": true, "application/xtm+xml": true, "application/xtm1+xml": true,
		"application/x-tm+xml;version=2.1": true, "application/x-www-form-urlencoded": true, "application/octet-stream": true, "application/gzip": true,
		"text/plain": true, "image/png": false, "multipart/form-data; boundary=x": false, "text/html": false, "nonsense": false, "text/n3": false,
	} {
		a := n.Put("small", served.Small("Oslo", fmt.Sprint("Oslo ", len(header))), "Content-Type", header)
		if ok {
			assert.Equal(t, http.StatusOK, a.StatusCode, "%q: %s", header, a.Bytes)
			continue
		}
		assert.Equal(t, http.StatusUnsupportedMediaType, a.StatusCode, "%q", header)
		assert.Contains(t, a.Header.Get("Accept"), served.XTM21Type)
		assert.Contains(t, string(a.Bytes), served.XTM21Type)
	}
	a := n.Put("small", served.Small(), "Content-Encoding", "br")
	assert.Equal(t, http.StatusUnsupportedMediaType, a.StatusCode)
	assert.Equal(t, "gzip", a.Header.Get("Accept-Encoding"))
}

// A request that takes long is a warning of the log. What it waits for a change, as it wishes, does not count.
func TestSlowRequestsAreWarnings(t *testing.T) {
	t.Parallel()
	slow := start(t, func(c *server.Config) { c.SlowRequest = time.Nanosecond })
	slow.Publish("small", served.Small())
	assert.Contains(t, slow.lines("request=" + slow.Get("/topicmaps").Header.Get("X-Request-Id"))[0], `level=WARN msg="slow request" method=GET path=/topicmaps status=200`)
	assert.Contains(t, slow.lines("request=" + slow.Get("/healthz").Header.Get("X-Request-Id"))[0], `level=WARN msg="slow request"`, "also what is not logged otherwise")

	for _, limit := range []time.Duration{0, time.Hour} {
		n := start(t, func(c *server.Config) { c.SlowRequest = limit })
		assert.Contains(t, n.lines("request=" + n.Get("/topicmaps").Header.Get("X-Request-Id"))[0], "level=INFO msg=request ")
	}
}
