package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// Wherever an answer depends on the token, a wrong one is held back and counted, as at the form to sign in. It is not
// where the answer is the same for all.
func TestWrongTokensAreHeldBackWhereverTheyMatter(t *testing.T) {
	const writer, reader = "the token of a writer", "the token of a reader"
	n := start(t, func(c *server.Config) {
		c.Tokens, c.ReadTokens = []string{writer}, map[string][]string{"closed": {reader}}
	})
	n.AnswerGuessesAfter(time.Millisecond)
	n.Publish("open", maps.EGov)
	n.Publish("closed", maps.EGov)
	tried := func() string {
		for line := range strings.Lines(string(n.MustGet("/metrics", "Authorization", "Bearer "+writer).Bytes)) {
			if count, found := strings.CutPrefix(line, "tmshare_wrong_tokens_total "); found {
				return strings.TrimSpace(count)
			}
		}
		return "none"
	}
	count := 0
	require.Equal(t, "0", tried())
	for _, request := range []string{
		"PUT /topicmaps/open", "POST /topicmaps/open/topics", "POST /topicmaps/open/topics/dry-run", "DELETE /topicmaps/open", "POST /topicmaps/open/revert", "POST /topicmaps/open/snapshots",
		"GET /topicmaps/closed", "GET /topicmaps/closed/fragments", "GET /topicmaps/closed/settings", "HEAD /topicmaps/closed/topics",
		"GET /topicmaps", "GET /topicmaps.html", "GET /topicmaps/open/settings", "GET /metrics", "GET /robots.txt",
	} {
		method, path, _ := strings.Cut(request, " ")
		for _, token := range []string{writer, reader} {
			if method == http.MethodGet {
				n.Do(method, path, nil, "Authorization", "Bearer "+token)
			}
		}
		n.Do(method, path, nil, "Authorization", "Bearer a wrong token")
		count++
		assert.Equal(t, fmt.Sprint(count), tried(), request)
	}
	for _, path := range []string{"/topicmaps/open", "/topicmaps/open/fragments"} {
		assert.Equal(t, http.StatusOK, n.Do(http.MethodGet, path, nil, "Authorization", "Bearer a wrong token").StatusCode)
		assert.Equal(t, fmt.Sprint(count), tried(), path)
	}
	n.Do(http.MethodPost, "/sign-in.html", strings.NewReader("token=a+wrong+token"), "Content-Type", "application/x-www-form-urlencoded")
	assert.Equal(t, fmt.Sprint(count+1), tried(), "the form")
}

// A request with two lengths, or a length in a form that its version of HTTP does not have, is the last of its
// connection: a proxy may have read another length, so the following bytes may be of another client (RFC 9112 §6.1).
func TestARequestOfTwoLengthsIsTheLastOfItsConnection(t *testing.T) {
	n := start(t)
	n.Publish("egov", maps.EGov)
	const next, last = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
	for name, request := range map[string]string{
		"length first":  "POST /topicmaps/egov/topics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"length last":   "POST /topicmaps/egov/topics HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n",
		"a GET":         "GET /topicmaps HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"nothing there": "POST /none HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.0":      "GET /topicmaps HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		c, err := net.Dial("tcp", n.Address)
		require.NoError(t, err)
		_, err = io.WriteString(c, request+last)
		require.NoError(t, err)
		answers := bufio.NewReader(c)
		res, err := http.ReadResponse(answers, nil)
		require.NoError(t, err, name)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(t, err, name)
		assert.True(t, res.Close, "%s: the answer says that it is the last", name)
		rest, _ := io.ReadAll(answers)
		assert.Empty(t, string(rest), name)
		c.Close()
	}
	c, err := net.Dial("tcp", n.Address)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, next+last)
	require.NoError(t, err)
	answers := bufio.NewReader(c)
	for range 2 {
		res, err := http.ReadResponse(answers, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, res.StatusCode, "a plain request is followed by others")
	}
}
