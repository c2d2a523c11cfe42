// Package anyhost is a server for tests that is all hosts of the world to its client.
package anyhost

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tmshare/tmshare/internal/fetch"
)

// Server is a real server on a loopback socket. Its client reaches it under every URL.
type Server struct {
	Client  *http.Client
	Address string // its own
	handler atomic.Pointer[http.Handler]
}

// Serve starts a server that ends with the test.
func Serve(t testing.TB, h http.Handler) *Server {
	s := &Server{}
	s.Handle(h)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*s.handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.Address = server.Listener.Addr().String()
	s.Client = ClientOf(s.Address)
	t.Cleanup(s.Client.CloseIdleConnections)
	return s
}

// Handle has another handler answer from now on.
func (s *Server) Handle(h http.Handler) { s.handler.Store(&h) }

// ClientOf returns a client that reaches the server at an address under every URL.
func ClientOf(address string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network,
		_ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}, MaxIdleConnsPerHost: 16}}
}

// Fetcher returns a fetcher with the client that does not wait between its two tries.
func (s *Server) Fetcher() *fetch.Fetcher { return FetcherOf(s.Client) }

// FetcherOf returns such a fetcher with a client.
func FetcherOf(c *http.Client) *fetch.Fetcher {
	return fetch.Fetcher{
		HTTP: c, Tries: 2, Backoff: time.Nanosecond, Stall: 5 * time.Second,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}.WithDefaults()
}
