package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
)

func slowClientTimeout(d time.Duration) func(*server.Config) {
	return func(c *server.Config) { c.SlowClientTimeout = d }
}

// raw opens a connection on which a test says what it likes.
func (n *node) raw() (net.Conn, *bufio.Reader) {
	n.t.Helper()
	c, err := net.Dial("tcp", n.address)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { c.Close() })
	require.NoError(n.t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c, bufio.NewReader(c)
}

// large is a map whose snapshot does not fit into the buffers of a narrow
// connection.
func large(topics int) []byte {
	var b strings.Builder
	for i := range topics {
		b.WriteString(topic(fmt.Sprint("t", i), fmt.Sprintf("%0100d", i)))
	}
	return topicMap(b.String())
}

// narrow asks for a path on a connection with small buffers.
func (n *node) narrow(path string, headers ...string) (net.Conn, *bufio.Reader) {
	n.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(n.t, err)
	h := &http.Server{Handler: n.Server, ReadHeaderTimeout: time.Minute, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
		return ctx
	}}
	go func() { _ = h.Serve(listener) }()
	n.t.Cleanup(func() { h.Close() })
	c, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(n.t, err)
	n.t.Cleanup(func() { c.Close() })
	require.NoError(n.t, c.(*net.TCPConn).SetReadBuffer(64<<10))
	require.NoError(n.t, c.SetDeadline(time.Now().Add(20*time.Second)))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, strings.Join(headers, ""))
	return c, bufio.NewReader(c)
}

func TestClientThatDoesNotReadIsGivenUp(t *testing.T) {
	t.Parallel()
	n := start(t, slowClientTimeout(300*time.Millisecond))
	n.publish("large", large(5_000))
	snapshot := n.feed("/topicmaps/large/snapshots").Entries[0].typed(t, "topicmapdata")[xtm21Type]
	for _, url := range []string{snapshot, n.url("/topicmaps/large/snapshots/current.xtm21")} {
		path := strings.TrimPrefix(url, n.BaseURL)
		n.narrow(path)
		line := n.lines("path=" + path)
		require.Len(t, line, 1)
		assert.Contains(t, line[0], "truncated=true")
	}
	assert.NotContains(t, n.logs.String(), "level=ERROR", "clients that give up are no failure of the server")
}

func TestUploadsWaitForTheirTurnAndNotForLong(t *testing.T) {
	t.Parallel()
	n := start(t, slowClientTimeout(3*time.Second), func(c *server.Config) { c.MaxUploads = 1 })
	n.publish("small", small())
	document := small("Oslo", "Christiania")
	c, answers := n.raw()
	fmt.Fprintf(c, "PUT /topicmaps/small HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(document))
	line, err := answers.ReadString('\n') // comes when the body is being read
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", line)

	a := n.put("small", small())
	assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	assert.Equal(t, "10", a.Header.Get("Retry-After"))
	assert.Contains(t, string(a.body), "try again")
	n.mustGet("/topicmaps/small") // reading goes on

	waiting := make(chan answer)
	go func() { waiting <- n.put("small", small("Oslo", "Kristiania")) }()
	require.Eventually(t, func() bool { // it has come; the others are this one and the one whose body is read
		return sample(t, string(n.mustGet("/metrics").body), "tmshare_http_requests_running") == 3
	}, 10*time.Second, time.Millisecond)
	_, err = c.Write(document)
	require.NoError(t, err)
	_, _ = answers.ReadString('\n')
	res, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Equal(t, http.StatusOK, (<-waiting).StatusCode, "its turn has come")
}
