package web

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tmshare/tmshare/internal/testenv"
)

// serving starts a server, as the program does. The path is the number of bytes of an answer.
func serving(t *testing.T, start func(*httptest.Server)) *httptest.Server {
	var log testenv.Log
	front := &Front{Logger: slog.New(slog.NewTextHandler(&log, nil)), Metrics: NewMetrics(), SlowClientTimeout: time.Minute, Explain: func(_ *http.Request, err error) (Described, bool) {
		return Problemf(http.StatusInternalServerError, "%v", err), true
	}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		front.record(w, r, func(w http.ResponseWriter, r *http.Request) {
			n, err := strconv.Atoi(r.URL.Path[1:])
			require.NoError(t, err)
			front.answer("/", func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Content-Length", strconv.Itoa(n))
				_, err := w.Write(filling(n))
				if r.Method == http.MethodHead { // HTTP/2 reports that the body is not read
					return nil
				}
				return err
			}).ServeHTTP(w, r)
		})
	}))
	s.Listener = Listener{s.Listener}
	s.Config.ConnContext = ConnContext
	start(s)
	t.Cleanup(func() {
		s.Close()
		require.NotContains(t, log.String(), "level=ERROR")
	})
	return s
}

func filling(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 / 3)
	}
	return b
}

// Answers of all lengths arrive as they are, on connections that are used again.
func TestAnswersArriveWhole(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){
		"HTTP/1.1": (*httptest.Server).Start, "HTTP/1.1 with TLS": (*httptest.Server).StartTLS,
		"HTTP/2": func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serving(t, start)
			for range 2 {
				for _, n := range []int{0, 1, leastHeld - 1, leastHeld, 4000, 4096, 10_000, mostHeld, mostHeld + 1, 300_000} {
					for _, method := range []string{"GET", "HEAD"} {
						r, err := http.NewRequest(method, fmt.Sprintf("%s/%d", s.URL, n), nil)
						require.NoError(t, err)
						a, err := s.Client().Do(r)
						require.NoError(t, err)
						body, err := io.ReadAll(a.Body)
						require.NoError(t, err)
						require.NoError(t, a.Body.Close())
						if method == "GET" {
							require.True(t, bytes.Equal(filling(n), body), "%d bytes", n)
						}
						require.Equal(t, int64(n), a.ContentLength)
					}
				}
			}
		})
	}
}

// What net/http writes in two pieces leaves in one.
func TestASmallAnswerIsOneWrite(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			defer c.Close()
			_, _ = io.Copy(io.Discard, c)
		}
	}()
	accepted, err := Listener{listener}.Accept()
	require.NoError(t, err)
	defer accepted.Close()
	c := accepted.(*connection)
	buffered := bufio.NewWriterSize(c, 4<<10) // as that of net/http
	require.NoError(t, c.inOnePiece(func() error {
		_, err := buffered.Write(filling(300))
		require.NoError(t, err)
		_, err = buffered.Write(filling(10_000))
		require.NoError(t, err)
		require.NoError(t, buffered.Flush())
		require.Equal(t, append(filling(300), filling(10_000)...), *c.held)
		return nil
	}))
	require.Nil(t, c.held)
	require.NoError(t, accepted.Close())
	require.Error(t, c.inOnePiece(func() error { _, err := c.Write(filling(1)); return err }))
}

// A disconnected client is no fault of the server.
func TestAClientThatHasGoneIsNoFault(t *testing.T) {
	s := serving(t, (*httptest.Server).Start)
	for range 20 {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		for range 50 {
			_, err = fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", mostHeld)
			require.NoError(t, err)
		}
		require.NoError(t, c.(*net.TCPConn).SetLinger(0))
		require.NoError(t, c.Close())
	}
	a, err := s.Client().Get(s.URL + "/10")
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
}

func TestConnectionsOfOthersAreLeftAlone(t *testing.T) {
	c, _ := net.Pipe()
	defer c.Close()
	require.Equal(t, context.Background(), ConnContext(context.Background(), c))
	require.Equal(t, context.Background(), ConnContext(context.Background(), tls.Client(c, &tls.Config{})))
}
