package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testhostile"
)

// What is said of one topic has a limit, whatever the limit of a body is. Nothing is published.
func TestATopicThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	testenv.SkipUnderRace(t)
	n := start(t, func(c *server.Config) { c.MaxBody = 100 << 20 })
	n.publish("small", small())
	before := n.mustGet("/topicmaps/small/fragments").body
	var large strings.Builder
	for i := range 5 {
		fmt.Fprintf(&large, "<occurrence><resourceData>%d %s</resourceData></occurrence>", i, strings.Repeat("a lot ", 15<<20/6))
	}
	a := n.postTopics("small", topicMap(topic("large", "Large", large.String())), nil)
	assert.Equal(t, http.StatusRequestEntityTooLarge, a.StatusCode, "%.300s", a.body)
	assert.Contains(t, string(a.body), "say less of it, or divide it among several")
	assert.Equal(t, before, n.mustGet("/topicmaps/small/fragments").body)
}

// A body that says that it is too large is refused before it is read: a client that
// sends it all the same finds the connection closed.
func TestABodyThatIsTooLargeIsNotRead(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.MaxBody, c.MaxUploads = maxBody, 1 })
	n.publish("small", small())
	for _, path := range []string{"PUT /topicmaps/small", "POST /topicmaps/small/topics"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(n.BaseURL, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n", path, 1<<30)
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil) // nothing of the body was sent
		require.NoError(t, err)
		said, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
		assert.Contains(t, string(said), "request body: larger than 300000 bytes, unpacked, which is the limit; publish it in parts, or raise the limit of the server (--max-body)")
		assert.True(t, res.Close, "the connection is of no more use")
		sent, err := io.Copy(conn, &io.LimitedReader{R: zeros{}, N: 1 << 30})
		require.Error(t, err)
		assert.Less(t, sent, int64(64<<20), "what waits in the system")
	}
	_, err := n.Import(t.Context(), store.Collection{Name: "file", SP: n.sp("file")}, bytes.NewReader(bytes.Repeat([]byte(" "), maxBody+1)), "maps/file.xtm")
	assert.ErrorContains(t, err, "maps/file.xtm: larger than 300000 bytes, unpacked, which is the limit; publish it in parts, or raise the limit of the server (--max-body)")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// What an attacker sends is refused for what it is, and withLatest.
func TestHostileDocumentsAreRefused(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.Limits.Growth = 10_000 })
	n.publish("small", small())
	before := n.state("small")
	for name, document := range testhostile.Amplifying {
		a := n.put("small", []byte(document(8000, 100)))
		assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, "%s: %s", name, a.body)
		assert.Contains(t, string(a.body), "shorter xml:base", name)
	}
	a := n.put("small", []byte(testhostile.Association(1001)))
	assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
	assert.Contains(t, string(a.body), "has 1001 roles (1000 at most): make several associations of it")
	assert.Equal(t, before, n.state("small"))
	assert.NotContains(t, n.logs.String(), "level=ERROR")
}

// A publication that takes too long is given up, so that others get their turn.
func TestAPublicationHasATimeLimit(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.PublishTimeout = 1 })
	n.publish("small", small())
	require.Equal(t, http.StatusCreated, n.putSettings("empty", "{}").StatusCode)
	before := n.state("small")
	for _, a := range []answer{
		n.put("small", small("Oslo", "Christiania")), n.postTopics("small", topicMap(topic("oslo", "Christiania")), nil), n.put("empty", small()),
		n.do("PUT", "/topicmaps/small/dry-run", bytes.NewReader(small("Oslo", "Christiania"))), n.do("PUT", "/topicmaps/new/dry-run", bytes.NewReader(small())),
		n.do("DELETE", "/topicmaps/small/topics/dry-run?si="+url.QueryEscape(psi+"oslo"), nil),
	} {
		assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode, "%s", a.body)
		assert.Contains(t, string(a.body), "publishing took longer than 1ns, so nothing was published; publish in parts, or raise the limit of the server (--publish-timeout)")
	}
	assert.Equal(t, before, n.state("small"))
	assert.NotContains(t, n.logs.String(), "level=ERROR")
}
