package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv"
)

// A handler may pause between two pieces of a body for longer than a client may. The clock is
// not a real one, and connections are pipes, which know it.
func TestHandlerMayPauseWhileItReads(t *testing.T) {
	const timeout = 30 * time.Second
	pausing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x, r := newRecorder(w, r, timeout)
		var got bytes.Buffer
		for {
			_, err := io.CopyN(&got, r.Body, 1_200_000)
			if err == io.EOF {
				break
			}
			if err != nil {
				x.WriteHeader(http.StatusRequestTimeout)
				return
			}
			time.Sleep(3 * timeout)
		}
		_, _ = x.Write(got.Bytes())
	})
	document := bytes.Repeat([]byte("0123456789"), 300_000) // more than HTTP/2 sends ahead
	for name, http2 := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := httptest.NewUnstartedServer(pausing)
				h.Listener.Close()
				pipes := newPipeListener()
				h.Listener, h.EnableHTTP2 = pipes, http2
				h.StartTLS()
				defer h.Close()
				h.Client().Transport.(*http.Transport).DialContext = pipes.dial
				res, err := h.Client().Post(h.URL, "text/plain", bytes.NewReader(document))
				require.NoError(t, err)
				defer res.Body.Close()
				assert.Equal(t, http2, res.ProtoMajor == 2)
				assert.Equal(t, http.StatusOK, res.StatusCode)
				body, err := io.ReadAll(res.Body)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(document, body))
			})
		})
	}
}

// pipeListener takes connections in memory.
type pipeListener struct {
	conns  chan net.Conn
	closed context.Context
	close  context.CancelFunc
}

func newPipeListener() *pipeListener {
	l := &pipeListener{conns: make(chan net.Conn)}
	l.closed, l.close = context.WithCancel(context.Background())
	return l
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.close(); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func TestRecentBytesStayWithinTheirLimitAndKeepWhatIsUsed(t *testing.T) {
	t.Parallel()
	const each = 1000
	c := newRecentBytes(10 * (each + 2 + perDocument))
	for i := range 30 {
		c.put(fmt.Sprintf("%02d", i), bytes.Repeat([]byte{byte(i)}, each))
		assert.NotNil(t, c.get("00"), "what is asked for all the time stays")
		assert.LessOrEqual(t, c.used, c.limit)
	}
	kept := 0
	for i := range 30 {
		if b := c.get(fmt.Sprintf("%02d", i)); b != nil {
			kept++
			assert.Equal(t, bytes.Repeat([]byte{byte(i)}, each), b)
			assert.True(t, i == 0 || i > 20, "%d is one of the last", i)
		}
	}
	assert.Equal(t, 10, kept)
	assert.Equal(t, kept, c.order.Len())
	c.put("huge", make([]byte, c.limit/2))
	assert.Nil(t, c.get("huge"), "one must not push out the others")
	c.put("29", nil)
	assert.Len(t, c.get("29"), each, "one name stands for one content")
}
