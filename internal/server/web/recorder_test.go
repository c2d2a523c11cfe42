package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
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
	made := 0
	get := func(name string, b []byte) []byte {
		b, err := c.get(name, func() ([]byte, error) { made++; return b, nil })
		require.NoError(t, err)
		return b
	}
	for i := range 30 {
		get(fmt.Sprintf("%02d", i), bytes.Repeat([]byte{byte(i)}, each))
		assert.Equal(t, make([]byte, each), get("00", nil), "what is asked for all the time stays")
		assert.LessOrEqual(t, c.used, c.limit)
	}
	assert.Equal(t, 30, made)
	for i := 29; i > 20; i-- {
		assert.Equal(t, bytes.Repeat([]byte{byte(i)}, each), get(fmt.Sprintf("%02d", i), nil), "%d is one of the last", i)
	}
	assert.Equal(t, 30, made)
	assert.Equal(t, 10, c.order.Len())
	get("huge", make([]byte, c.limit/2))
	get("huge", nil)
	assert.Equal(t, 32, made, "one must not push out the others")
	assert.Equal(t, 10, c.order.Len())
}

// Concurrent requests share one result. If making it fails, for example because a client has disconnected, each of the
// others makes it.
func TestRecentBytesAreMadeOnceForAllWhoWait(t *testing.T) {
	t.Parallel()
	const askers = 20
	for _, failure := range []error{nil, errors.New("the client has gone")} {
		c := newRecentBytes(1 << 20)
		var asked, made, failed atomic.Int32
		var all sync.WaitGroup
		for range askers {
			all.Go(func() {
				asked.Add(1)
				b, err := c.get("x", func() ([]byte, error) {
					first := made.Add(1) == 1
					for first && asked.Load() < askers {
						time.Sleep(time.Millisecond)
					}
					time.Sleep(20 * time.Millisecond) // all of them make requests
					if first && failure != nil {
						return []byte("half"), failure
					}
					return []byte("made"), nil
				})
				if failed.Add(1); err == nil {
					failed.Add(-1)
					assert.Equal(t, "made", string(b))
				}
			})
		}
		all.Wait()
		assert.Empty(t, c.making)
		if failure == nil {
			assert.Equal(t, []int32{1, 0}, []int32{made.Load(), failed.Load()})
		} else {
			assert.Equal(t, []int32{askers, 1}, []int32{made.Load(), failed.Load()})
		}
	}
}
