package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

func patience(d time.Duration) func(*server.Config) {
	return func(c *server.Config) { c.Patience = d }
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

// drip sends a body byte by byte, until the server has had enough of it.
func drip(c net.Conn, pause time.Duration) {
	for {
		if _, err := c.Write([]byte(" ")); err != nil {
			return
		}
		time.Sleep(pause)
	}
}

func TestBodyThatDripsIsGivenUp(t *testing.T) {
	t.Parallel()
	n := start(t, patience(200*time.Millisecond))
	n.publish("small", small())
	for name, request := range map[string]string{
		"of a known length": "PUT /topicmaps/small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
		"chunked":           "PUT /topicmaps/small HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n",
	} {
		c, answers := n.raw()
		fmt.Fprint(c, request)
		go drip(c, 10*time.Millisecond)
		res, err := http.ReadResponse(answers, nil)
		require.NoError(t, err, name)
		body, _ := io.ReadAll(res.Body)
		assert.Equal(t, http.StatusRequestTimeout, res.StatusCode, "%s: %s", name, body)
		_, err = io.Copy(io.Discard, answers)
		var timeout net.Error
		if assert.ErrorAs(t, orEOF(err), &timeout, "the connection ends") {
			assert.False(t, timeout.Timeout(), "the connection ends before the test does")
		}
	}
	assert.Equal(t, n.expected("small", small()), n.current("small"))
}

// orEOF makes the end of a connection an error like a reset.
func orEOF(err error) error {
	if err == nil {
		return &net.OpError{Err: io.EOF}
	}
	return err
}

// What comes steadily may take longer than one may be silent.
func TestBodyThatComesSteadilyIsTaken(t *testing.T) {
	t.Parallel()
	n := start(t, patience(300*time.Millisecond))
	n.publish("small", small())
	document := append(small("Oslo", "Christiania"), bytes.Repeat([]byte(" "), 500_000)...)
	c, answers := n.raw()
	started := time.Now()
	fmt.Fprintf(c, "PUT /topicmaps/small HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(document))
	for rest := document; len(rest) > 0; {
		m := min(len(rest), 25_000)
		_, err := c.Write(rest[:m])
		require.NoError(t, err)
		rest = rest[m:]
		time.Sleep(30 * time.Millisecond)
	}
	res, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Greater(t, time.Since(started), 500*time.Millisecond, "longer than the patience, or this shows nothing")
}

// The time in which the server works is not the client's.
func TestServerMayWorkLongerThanThePatience(t *testing.T) {
	t.Parallel()
	n, w := watch(t, patience(100*time.Millisecond))
	w.Store = slowToPublish{w.Store}
	n.mustPut("small", small("Oslo", "Christiania"))
	n.mustPut("small", small("Oslo", "Kristiania")) // on the same connection
}

type slowToPublish struct{ server.Store }

func (s slowToPublish) Publish(ctx context.Context, name string, decide func(store.Collection, merge.State) (*fragment.Change, error)) (*store.Collection, error) {
	time.Sleep(400 * time.Millisecond)
	return s.Store.Publish(ctx, name, decide) // it ends with the request
}

// A body that nobody reads is read by net/http, before the connection is used
// again: that must not wait for ever either.
func TestRefusedBodyThatDripsIsGivenUp(t *testing.T) {
	t.Parallel()
	n := start(t, patience(200*time.Millisecond), func(c *server.Config) { c.Tokens = []string{token} })
	n.publish("small", small())
	c, answers := n.raw()
	fmt.Fprint(c, "PUT /topicmaps/small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
	go drip(c, 10*time.Millisecond)
	res, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusUnauthorized, res.StatusCode)
	_, err = io.Copy(io.Discard, answers)
	var timeout net.Error
	if assert.ErrorAs(t, orEOF(err), &timeout) {
		assert.False(t, timeout.Timeout(), "the connection ends before the test does")
	}
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
	n := start(t, patience(300*time.Millisecond))
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

func TestClientThatReadsSlowlyGetsAll(t *testing.T) {
	t.Parallel()
	const patient = 500 * time.Millisecond
	n := start(t, patience(patient))
	n.publish("large", large(5_000))
	whole := n.mustGet("/topicmaps/large/snapshots/current.xtm21").body
	_, answers := n.narrow("/topicmaps/large/snapshots/current.xtm21", "X-Request-Id: slow\r\n")
	res, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	var got bytes.Buffer
	for err == nil {
		_, err = io.CopyN(&got, res.Body, 20_000)
		time.Sleep(30 * time.Millisecond)
	}
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, len(whole), got.Len())
	line := n.lines("request=slow")[0]
	assert.NotContains(t, line, "truncated")
	took, err := time.ParseDuration(regexp.MustCompile(`took=(\S+)`).FindStringSubmatch(line)[1])
	require.NoError(t, err)
	assert.Greater(t, took, 2*patient, "longer than the patience, or this shows nothing")
}

// The same holds on HTTP/2, whose deadlines are those of a stream.
func TestHTTP2HasTheSamePatience(t *testing.T) {
	t.Parallel()
	n := start(t, patience(300*time.Millisecond))
	n.publish("large", large(5_000))
	h := httptest.NewUnstartedServer(n.Server)
	h.EnableHTTP2 = true
	h.StartTLS()
	defer h.Close()
	client := h.Client()
	transport := client.Transport.(*http.Transport)
	transport.DisableCompression = true
	transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	get := func(path string) *http.Response {
		res, err := client.Get(h.URL + path)
		require.NoError(t, err)
		require.Equal(t, 2, res.ProtoMajor)
		return res
	}
	res := get("/topicmaps/large/snapshots/current.xtm21")
	line := n.lines("path=/topicmaps/large/snapshots/current.xtm21")[0] // without reading
	assert.Contains(t, line, "truncated=true")
	_, err := io.Copy(io.Discard, res.Body)
	assert.Error(t, err)

	var stopped atomic.Bool
	pipe, in := io.Pipe()
	go func() {
		for !stopped.Load() {
			if _, err := in.Write([]byte(" ")); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	defer stopped.Store(true)
	req, err := http.NewRequest(http.MethodPut, h.URL+"/topicmaps/large", pipe)
	require.NoError(t, err)
	req.Host = "localhost"
	res, err = client.Do(req)
	require.NoError(t, err)
	assert.Equal(t, http.StatusRequestTimeout, res.StatusCode)
	res.Body.Close()

	res = get("/topicmaps/large")
	assert.Equal(t, http.StatusOK, res.StatusCode, "others are not concerned")
	res.Body.Close()
	assert.NotNil(t, res.TLS)
	assert.GreaterOrEqual(t, res.TLS.Version, uint16(tls.VersionTLS12))
}

func TestUploadsWaitForTheirTurnAndNotForLong(t *testing.T) {
	t.Parallel()
	n := start(t, patience(3*time.Second), func(c *server.Config) { c.MaxUploads = 1 })
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
	time.Sleep(100 * time.Millisecond)
	_, err = c.Write(document)
	require.NoError(t, err)
	_, _ = answers.ReadString('\n')
	res, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Equal(t, http.StatusOK, (<-waiting).StatusCode, "its turn has come")
}
