package watch

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/follow"
)

// seen gathers it.
type seen struct {
	fetched atomic.Int64

	mu      sync.Mutex
	s       status.Seen
	started time.Time
	cancel  func() // ends the running or last round
}

func (s *seen) begin(cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s.Running, s.started, s.cancel, s.s.Next = true, time.Now(), cancel, time.Time{}
}

// interrupt ends the running round.
func (s *seen) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
	}
}

func (s *seen) end(r *client.Round, err error, stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s.Running, s.s.Progress = false, nil
	if r != nil {
		s.s.Entries += int64(r.Entries)
		s.s.Applied += int64(r.Applied)
		s.s.Repaired += int64(r.Repaired)
	}
	if stopped { // neither well nor ill
		return
	}
	s.s.Rounds++
	s.s.Took = time.Since(s.started).Seconds()
	if errors.As(err, new(*follow.DoubtError)) { // the reading succeeded, but the copy is not in step
		return
	}
	if err != nil {
		s.s.Failures++
		s.s.InARow++
		return
	}
	s.s.InARow = 0
}

func (s *seen) next(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s.Next = at
}

func (s *seen) progress(p client.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.s.Running {
		s.s.Progress = &p
	}
}

func (s *seen) all() status.Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.s
	now.Fetched = s.fetched.Load()
	return now
}

// observed returns a client that does the same as c and lets the watcher see it.
func (w *Watcher) observed(c *client.Client) *client.Client {
	own := *c
	h := *c.HTTP
	h.Transport = counting{h.Transport}
	own.HTTP = &h
	own.Progress = func(p client.Progress) {
		w.mu.Lock()
		f := w.followers[p.Source]
		w.mu.Unlock()
		if f != nil {
			f.progress(p)
		}
		c.Progress(p)
	}
	return &own
}

// fetchedKey is the key of the *atomic.Int64 in a context that counts the bytes that its requests fetch.
type fetchedKey struct{}

type counting struct{ http.RoundTripper }

func (t counting) RoundTrip(r *http.Request) (*http.Response, error) {
	transport := t.RoundTripper
	if transport == nil {
		transport = http.DefaultTransport
	}
	res, err := transport.RoundTrip(r)
	if n, ok := r.Context().Value(fetchedKey{}).(*atomic.Int64); ok && err == nil {
		res.Body = countedBody{res.Body, n}
	}
	return res, err
}

type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}
