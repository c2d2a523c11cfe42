package web

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The clock of these tests is simulated: time advances when all goroutines wait. Connections are pipes without buffers:
// one side writes what the other reads.

const timeout = 30 * time.Second

// site is a server with one handler, on connections in memory.
type site struct {
	*httptest.Server
	pipes *pipeListener
	logs  bytes.Buffer
}

// serve runs f with a server for a handler, in a bubble of time.
func serve(t *testing.T, http2 bool, h Handler, f func(t *testing.T, s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &site{pipes: newPipeListener()}
		r := NewRouter(&Front{
			Logger: slog.New(slog.NewTextHandler(&s.logs, nil)), Metrics: NewMetrics(), SlowClientTimeout: timeout,
			Explain: func(_ *http.Request, err error) (Described, bool) {
				if p := (*Problem)(nil); errors.As(err, &p) {
					return p, false
				}
				return Problemf(http.StatusInternalServerError, "failed"), true
			},
		}, "/")
		r.Handle("/", h, "GET", "PUT", "POST")
		s.Server = httptest.NewUnstartedServer(r)
		s.Listener.Close()
		s.Listener, s.EnableHTTP2 = s.pipes, http2
		if http2 {
			s.StartTLS()
		} else {
			s.Start()
		}
		defer s.Close()
		transport := s.Client().Transport.(*http.Transport)
		transport.DialContext, transport.DisableCompression = s.pipes.dial, true
		f(t, s)
	})
}

// raw sends the beginning of a request on a connection of its own.
func (s *site) raw(t *testing.T, request string) (net.Conn, *bufio.Reader) {
	c, err := s.pipes.dial(t.Context(), "", "")
	require.NoError(t, err)
	_, err = io.WriteString(c, request)
	require.NoError(t, err)
	return c, bufio.NewReader(c)
}

// drip sends a body byte by byte, until the server has had enough of it, or stop is called.
func drip(to io.WriteCloser) (stop func()) {
	var dripping sync.WaitGroup
	dripping.Go(func() {
		for {
			if _, err := to.Write([]byte(" ")); err != nil {
				return
			}
			time.Sleep(timeout / 20)
		}
	})
	return func() {
		to.Close()
		dripping.Wait()
	}
}

// readAll is a handler that answers with the body of the request.
func readAll(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	_, err = w.Write(body)
	return err
}

// assertEnds asserts that the server ends a connection.
func assertEnds(t *testing.T, answers io.Reader) {
	t.Helper()
	_, err := io.Copy(io.Discard, answers) // otherwise the test reports a deadlock
	assert.True(t, err == nil || errors.Is(err, io.ErrClosedPipe), "%v", err)
}

func TestBodyThatDripsIsGivenUp(t *testing.T) {
	for name, request := range map[string]string{
		"of a known length": "PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
		"chunked":           "PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, false, readAll, func(t *testing.T, s *site) {
				start := time.Now()
				c, answers := s.raw(t, request)
				defer drip(c)()
				res, err := http.ReadResponse(answers, nil)
				require.NoError(t, err)
				body, err := io.ReadAll(res.Body)
				require.NoError(t, err)
				assert.Equal(t, http.StatusRequestTimeout, res.StatusCode, "%s", body)
				assert.Contains(t, string(body), "65536 bytes are expected within 30s")
				assert.Equal(t, timeout, time.Since(start).Truncate(time.Second))
				assertEnds(t, answers)
			})
		})
	}
}

// net/http reads the rest of an unread body before the connection is reused: this must not wait for ever either.
func TestRefusedBodyThatDripsIsGivenUp(t *testing.T) {
	refuse := func(w http.ResponseWriter, r *http.Request) error { return Refused(w, r, "writing") }
	serve(t, false, refuse, func(t *testing.T, s *site) {
		c, answers := s.raw(t, "PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
		defer drip(c)()
		res, err := http.ReadResponse(answers, nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusUnauthorized, res.StatusCode)
		assertEnds(t, answers)
	})
}

// A steady body may take longer than the limit of a pause.
func TestBodyThatComesSteadilyIsTaken(t *testing.T) {
	serve(t, false, readAll, func(t *testing.T, s *site) {
		start := time.Now()
		document := bytes.Repeat([]byte("0123456789"), 50_000)
		c, answers := s.raw(t, fmt.Sprintf("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(document)))
		defer c.Close()
		for rest := document; len(rest) > 0; {
			m := min(len(rest), piece/2)
			_, err := c.Write(rest[:m])
			require.NoError(t, err)
			rest = rest[m:]
			time.Sleep(timeout / 3)
		}
		res, err := http.ReadResponse(answers, nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, res.StatusCode)
		got, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(document, got))
		assert.Greater(t, time.Since(start), 2*timeout)
	})
}

// The time in which the server works is not the client's.
func TestServerMayWorkLongerThanAClientMayPause(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		time.Sleep(20 * timeout)
		if err == nil {
			_, err = w.Write(body)
		}
		return err
	}
	serve(t, false, slow, func(t *testing.T, s *site) {
		for range 2 { // on the same connection
			res, err := s.Client().Post(s.URL, "text/plain", bytes.NewReader([]byte("a body")))
			require.NoError(t, err)
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			require.NoError(t, err)
			assert.Equal(t, "a body", string(body))
		}
	})
}

// zeros answers with n bytes, and sends the result to a channel of the bubble.
func zeros(n int, ended *chan error) Handler {
	return func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write(make([]byte, n))
		*ended <- err
		return err
	}
}

// What a client has not taken after a time, it will not take: the answer is cut off.
func TestClientThatDoesNotReadIsGivenUp(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			var ended chan error
			serve(t, http2, zeros(10<<20, &ended), func(t *testing.T, s *site) {
				ended = make(chan error, 1)
				start := time.Now()
				res, err := s.Client().Get(s.URL)
				require.NoError(t, err)
				defer res.Body.Close()
				assert.Equal(t, http2, res.ProtoMajor == 2)
				assert.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
				assert.Less(t, time.Since(start), 10*timeout)
				_, err = io.Copy(io.Discard, res.Body)
				assert.Error(t, err)
				synctest.Wait()
				assert.Contains(t, s.logs.String(), "truncated=true")
				assert.NotContains(t, s.logs.String(), "level=ERROR", "a client that gives up is no failure of the server")
			})
		})
	}
}

func TestClientThatReadsSlowlyGetsAll(t *testing.T) {
	const size = 4 << 20
	var ended chan error
	serve(t, false, zeros(size, &ended), func(t *testing.T, s *site) {
		ended = make(chan error, 1)
		start := time.Now()
		res, err := s.Client().Get(s.URL)
		require.NoError(t, err)
		defer res.Body.Close()
		var got int64
		for err == nil {
			var n int64
			n, err = io.CopyN(io.Discard, res.Body, piece)
			got += n
			time.Sleep(timeout * 9 / 10)
		}
		require.ErrorIs(t, err, io.EOF)
		assert.EqualValues(t, size, got)
		assert.NoError(t, <-ended)
		assert.Greater(t, time.Since(start), 20*timeout, "longer than the limit, or this shows nothing")
	})
}

// On HTTP/2 deadlines are those of a stream: other streams of the connection continue.
func TestBodyThatDripsOnHTTP2IsGivenUp(t *testing.T) {
	serve(t, true, readAll, func(t *testing.T, s *site) {
		body, in := io.Pipe()
		defer drip(in)()
		req, err := http.NewRequest(http.MethodPut, s.URL, body)
		require.NoError(t, err)
		res, err := s.Client().Do(req)
		require.NoError(t, err)
		require.Equal(t, 2, res.ProtoMajor)
		assert.Equal(t, http.StatusRequestTimeout, res.StatusCode)
		res.Body.Close()

		res, err = s.Client().Get(s.URL)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, res.StatusCode)
		assert.GreaterOrEqual(t, res.TLS.Version, uint16(tls.VersionTLS12))
		res.Body.Close()
	})
}
