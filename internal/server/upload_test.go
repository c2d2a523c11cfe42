package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/merge"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// send writes raw bytes to the server and then no more; it returns the answer,
// or nil where the server has hung up.
func (n *node) send(raw []byte) *http.Response {
	n.T.Helper()
	conn, answers := n.raw()
	_, err := conn.Write(raw)
	require.NoError(n.T, err)
	require.NoError(n.T, conn.(*net.TCPConn).CloseWrite())
	res, err := http.ReadResponse(answers, &http.Request{Method: http.MethodPut})
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(n.T, err)
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res
}

func upload(length int, body []byte) []byte {
	return append(fmt.Appendf(nil, "PUT /topicmaps/egov HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n", length), body...)
}

// A truncated body is never published, even if the received part is a map.
func TestTruncatedUploadPublishesNothing(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(50))
	n.Publish("egov", maps.Libraries)
	before := n.State("egov")
	changed := served.Replace(t, maps.Libraries, "<baseNameString>Sort key</baseNameString>", "<baseNameString>Sorting</baseNameString>")
	zipped := served.Gzipped(t, changed)
	chunk := append(fmt.Appendf(nil, "PUT /topicmaps/egov HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", len(changed)), changed...)
	for name, raw := range map[string][]byte{
		"nothing":                       upload(len(changed), nil),
		"one byte":                      upload(len(changed), changed[:1]),
		"half":                          upload(len(changed), changed[:len(changed)/2]),
		"all but the last byte":         upload(len(changed), changed[:len(changed)-1]),
		"all but the end tag":           upload(len(changed), bytes.TrimSuffix(changed, []byte("</topicMap>\n"))),
		"a map, where more was to come": upload(len(changed)+1, changed),
		"half of a gzip file":           upload(len(zipped), zipped[:len(zipped)/2]),
		"gzip, more to come":            upload(len(zipped)+1, zipped),
		"chunks without an end":         append(bytes.Clone(chunk), "\r\n"...),
		"half of a chunk":               chunk[:len(chunk)/2],
		"chunks that are none":          append(bytes.Clone(chunk), "\r\nxyz\r\n"...),
	} {
		t.Run(name, func(t *testing.T) {
			if res := n.send(raw); res != nil {
				body, _ := io.ReadAll(res.Body)
				assert.Equal(t, http.StatusBadRequest, res.StatusCode, "%s", body)
				assert.Contains(t, string(body), "body")
			}
			assert.Equal(t, before, n.State("egov"))
		})
	}
	assert.NotContains(t, n.Logs.String(), "level=ERROR", "it is no failure of the server")
}

// A client that closes in the middle is dropped without harm.
func TestClientThatGoesAwayPublishesNothing(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("egov", maps.Libraries)
	before := n.State("egov")
	for i := range 10 {
		conn, _ := n.raw()
		_, err := conn.Write(upload(len(maps.EGov), maps.EGov[:i*len(maps.EGov)/10]))
		require.NoError(t, err)
		if i%2 == 0 {
			require.NoError(t, conn.(*net.TCPConn).SetLinger(0)) // with a reset
		}
		conn.Close()
	}
	assert.Equal(t, before, n.State("egov"))
	assert.NotContains(t, n.Logs.String(), "level=ERROR")
}

// A client that sends all and then closes its side gets the answer, or none: an answer that looks like success means
// that the version is published.
func TestNoAnswerLooksLikeSuccessUnlessPublished(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(50))
	n.Publish("egov", maps.Libraries)
	for i := range 5 {
		doc := bytes.ReplaceAll(maps.Libraries, []byte("</baseNameString>"), fmt.Appendf(nil, " %d</baseNameString>", i))
		raw := upload(len(doc), doc)
		before := n.Feed("/topicmaps/egov").Updated()
		res := n.send(raw)
		if res == nil {
			continue
		}
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		if res.StatusCode == http.StatusOK {
			after := n.Feed("/topicmaps/egov").Updated()
			assert.NotEqual(t, before, after, "published; the answer is %q", body)
			assert.Contains(t, string(body), after)
		}
	}
}

// A client that waits for permission (Expect: 100-continue) sends no body that is refused.
func TestRefusalComesBeforeTheBody(t *testing.T) {
	t.Parallel()
	n := start(t)
	conn, answers := n.raw()
	_, err := fmt.Fprintf(conn, "PUT /topicmaps/none HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", 1<<30)
	require.NoError(t, err)
	res, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
	res.Body.Close()
}

// The change of a client that disconnects during the commit is made as a whole or not at all.
func TestClientThatGoesWhileItsChangeIsCommitted(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	changed := served.Small("Oslo", "Christiania", "Bergen", "Bjørgvin")
	either := []string{n.Expected("small", served.Small()), n.Expected("small", changed)}
	c, _ := n.raw()
	w.Store = decided{w.Store, func(ctx context.Context) {
		c.Close()
		<-ctx.Done() // the server has noticed
	}}
	_, err := c.Write(bytes.Replace(upload(len(changed), changed), []byte("/egov "), []byte("/small "), 1))
	require.NoError(t, err)
	n.lines("method=PUT path=/topicmaps/small")
	assert.Contains(t, either, n.Current("small"))
	w.Store = w.Store.(decided).Store
	n.MustPut("small", served.Small("Oslo", "Kristiania"))
	assert.Equal(t, n.Expected("small", served.Small("Oslo", "Kristiania")), n.Current("small"), "the server serves on")
}

// decided is a store that calls then after a change is decided and before its commit.
type decided struct {
	server.Store
	then func(context.Context)
}

func (s decided) Publish(ctx context.Context, name string, decide func(store.Collection, merge.State) (*fragment.Change, error)) (*store.Collection, error) {
	return s.Store.Publish(ctx, name, func(c store.Collection, published merge.State) (*fragment.Change, error) {
		change, err := decide(c, published)
		s.then(ctx)
		return change, err
	})
}

func slowClientTimeout(d time.Duration) func(*server.Config) {
	return func(c *server.Config) { c.SlowClientTimeout = d }
}

// raw opens a connection for any bytes of a test.
func (n *node) raw() (net.Conn, *bufio.Reader) {
	n.T.Helper()
	c, err := net.Dial("tcp", n.Address)
	require.NoError(n.T, err)
	n.T.Cleanup(func() { c.Close() })
	require.NoError(n.T, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c, bufio.NewReader(c)
}

// large is a map whose snapshot does not fit into the buffers of a narrow connection.
func large(topics int) []byte {
	var b strings.Builder
	for i := range topics {
		b.WriteString(served.Topic(fmt.Sprint("t", i), fmt.Sprintf("%0100d", i)))
	}
	return served.TopicMap(b.String())
}

// narrow requests a path on a connection with small buffers.
func (n *node) narrow(path string, headers ...string) (net.Conn, *bufio.Reader) {
	n.T.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(n.T, err)
	h := &http.Server{Handler: n.Server, ReadHeaderTimeout: time.Minute, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
		return ctx
	}}
	go func() { _ = h.Serve(listener) }()
	n.T.Cleanup(func() { h.Close() })
	c, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(n.T, err)
	n.T.Cleanup(func() { c.Close() })
	require.NoError(n.T, c.(*net.TCPConn).SetReadBuffer(64<<10))
	require.NoError(n.T, c.SetDeadline(time.Now().Add(20*time.Second)))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, strings.Join(headers, ""))
	return c, bufio.NewReader(c)
}

func TestClientThatDoesNotReadIsGivenUp(t *testing.T) {
	t.Parallel()
	n := start(t, slowClientTimeout(50*time.Millisecond))
	n.Publish("large", large(5_000))
	snapshot := n.Feed("/topicmaps/large/snapshots").Entries[0].Typed(t, "topicmapdata")[served.XTM21Type]
	for _, url := range []string{snapshot, n.URL("/topicmaps/large/snapshots/current.xtm21")} {
		path := strings.TrimPrefix(url, n.BaseURL)
		n.narrow(path)
		line := n.lines("path=" + path)
		require.Len(t, line, 1)
		assert.Contains(t, line[0], "truncated=true")
	}
	assert.NotContains(t, n.Logs.String(), "level=ERROR", "clients that give up are no failure of the server")
}

func TestUploadsWaitForTheirTurnAndNotForLong(t *testing.T) {
	t.Parallel()
	n := start(t, slowClientTimeout(3*time.Second), func(c *server.Config) { c.MaxUploads = 1 })
	n.Publish("small", served.Small())
	more := func(document []byte) []byte { return append(document, bytes.Repeat([]byte("\n"), 64<<10)...) }
	document := more(served.Small("Oslo", "Christiania"))
	c, answers := n.raw()
	fmt.Fprintf(c, "PUT /topicmaps/small HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(document))
	line, err := answers.ReadString('\n') // received when the body is being read
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", line)

	a := n.Put("small", more(served.Small()))
	assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	assert.Equal(t, "10", a.Header.Get("Retry-After"))
	assert.Contains(t, string(a.Bytes), "try again")
	n.MustGet("/topicmaps/small") // reading goes on
	assert.Equal(t, http.StatusOK, n.Put("small", served.Small()).StatusCode, "a small one waits for no large one")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(document)
	require.NoError(t, errors.Join(err, z.Close()))
	assert.Equal(t, http.StatusServiceUnavailable, n.Put("small", packed.Bytes()).StatusCode, "what is packed is not small")

	waiting := make(chan served.Answer)
	go func() { waiting <- n.Put("small", more(served.Small("Oslo", "Kristiania"))) }()
	require.Eventually(t, func() bool { // it has arrived; the others are this one and the one whose body is read
		return sample(t, string(n.MustGet("/metrics").Bytes), "tmshare_http_requests_running") == 3
	}, 10*time.Second, time.Millisecond)
	_, err = c.Write(document)
	require.NoError(t, err)
	_, _ = answers.ReadString('\n')
	res, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Equal(t, http.StatusOK, (<-waiting).StatusCode, "its turn has come")
}
