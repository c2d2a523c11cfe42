package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// waitingRequests holds the waiting requests. While there are any, one goroutine waits for changes for all of them.
type waitingRequests struct {
	Store Store
	Most  int           // requests that wait at the same time; others are answered at once
	Limit time.Duration // that one waits at most
	Every time.Duration // interval of checks for changes by other processes

	mu      sync.Mutex
	waiting int
	stop    func()              // stops the goroutine; nil: none runs
	watched map[string]*watched // by collection; "": all
	closed  chan struct{}
}

// watched is a state for whose change requests wait.
type watched struct {
	requests int
	seen     any           // as of when the first of them came
	changed  chan struct{} // closed when it is another
}

// Waiting returns the number of waiting requests.
func (m *waitingRequests) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting
}

// Close answers all requests that wait, and has no others wait.
func (m *waitingRequests) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.closed:
	default:
		close(m.closed)
	}
}

// enter begins to watch a collection before its state is read, so that no change is missed. It returns nil if too many
// requests wait.
func (m *waitingRequests) enter(ctx context.Context, name string) (*watched, chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.closed:
		return nil, nil
	default:
	}
	if m.waiting >= m.Most {
		return nil, nil
	}
	w := m.watched[name]
	if w == nil {
		seen, err := m.state(ctx, name)
		if err != nil {
			return nil, nil // reading the state will report the error
		}
		if m.watched == nil {
			m.watched = map[string]*watched{}
		}
		w = &watched{seen: seen, changed: make(chan struct{})}
		m.watched[name] = w
	}
	w.requests++
	m.waiting++
	if m.stop == nil {
		var looking context.Context
		looking, m.stop = context.WithCancel(context.Background())
		go m.look(looking)
	}
	return w, m.closed
}

func (m *waitingRequests) leave(name string, w *watched) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting--; m.waiting == 0 {
		m.stop()
		m.stop = nil
	}
	if w.requests--; w.requests == 0 && m.watched[name] == w {
		delete(m.watched, name)
	}
}

// state returns a value that differs between states of a collection, or of all of them.
func (m *waitingRequests) state(ctx context.Context, name string) (any, error) {
	if name == "" {
		return m.Store.Listing(ctx)
	}
	return m.Store.Latest(ctx, name)
}

// look wakes requests after changes, until none waits.
func (m *waitingRequests) look(ctx context.Context) {
	var last store.Version
	for {
		// before the requests: the state that one of them has seen is not older, or it is looked at
		version, err := m.Store.Await(ctx, last, m.Every)
		if ctx.Err() != nil {
			return
		}
		if last = version; err != nil {
			last = store.Version{}
			time.Sleep(m.Every)
		}
		m.mu.Lock()
		names := maps.Clone(m.watched)
		m.mu.Unlock()
		for name, w := range names {
			if now, err := m.state(ctx, name); err == nil && now == w.seen {
				continue
			}
			m.wake(name, w)
		}
	}
}

// wake ends the waiting for a change of a collection: that of some requests, or of all for nil.
func (m *waitingRequests) wake(name string, some *watched) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.watched[name]; w != nil && (some == nil || w == some) {
		delete(m.watched, name)
		close(w.changed)
	}
}

// Handler returns h for requests that may wait: those that prefer to, and have an ETag, are answered when the response
// is no longer 304, or after the time in their preference.
func (m *waitingRequests) Handler(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		wait := min(preferred(r.Header), m.Limit)
		if wait == 0 || r.Header.Get("If-None-Match") == "" {
			return h(w, r)
		}
		name := web.Var(r, "map")
		expired := time.NewTimer(wait)
		defer expired.Stop()
		for waited := false; ; waited = true {
			r := r.WithContext(store.Once(r.Context()))
			seen, closed := m.enter(r.Context(), name)
			if seen == nil {
				return h(w, r)
			}
			a := &heldAnswer{ResponseWriter: w, header: w.Header().Clone()}
			if waited {
				a.applied(wait)
			}
			over, err := m.hold(a, r, h, name, seen, closed, wait, expired.C)
			if over || err != nil {
				return err
			}
		}
	}
}

// hold calls h, and waits if nothing has changed. It reports whether the request was answered.
func (m *waitingRequests) hold(a *heldAnswer, r *http.Request, h web.Handler, name string, seen *watched,
	closed chan struct{}, wait time.Duration, expired <-chan time.Time) (over bool, err error) {
	defer m.leave(name, seen)
	err = h(a, r)
	if err == nil && !a.unchanged && !a.begun { // for HEAD some handlers write nothing
		a.begin(http.StatusOK)
	}
	if !a.unchanged || err != nil {
		return true, err
	}
	began := time.Now()
	defer func() { web.RecorderOf(r).Waited += time.Since(began) }()
	select {
	case <-seen.changed:
		return false, nil
	case <-r.Context().Done():
	case <-closed:
	case <-expired:
	}
	a.applied(wait)
	a.begin(http.StatusNotModified)
	return true, nil
}

// heldAnswer forwards a response unless it is a 304.
type heldAnswer struct {
	http.ResponseWriter
	header    http.Header
	begun     bool
	unchanged bool
}

// Unwrap lets http.ResponseController reach the connection.
func (a *heldAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *heldAnswer) Header() http.Header { return a.header }

func (a *heldAnswer) WriteHeader(status int) {
	if a.unchanged = status == http.StatusNotModified; !a.unchanged {
		a.begin(status)
	}
}

func (a *heldAnswer) Write(b []byte) (int, error) {
	if !a.begun {
		a.begin(http.StatusOK)
	}
	return a.ResponseWriter.Write(b)
}

// applied states that the request has waited (RFC 7240 §3, The Preference-Applied Response Header Field).
func (a *heldAnswer) applied(wait time.Duration) {
	a.header.Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
}

func (a *heldAnswer) begin(status int) {
	h := a.ResponseWriter.Header()
	clear(h)
	maps.Copy(h, a.header)
	a.begun = true
	a.ResponseWriter.WriteHeader(status)
}

// preferred returns the time for which a request prefers to wait, in whole seconds; 0: none.
func preferred(h http.Header) time.Duration {
	for _, value := range h.Values("Prefer") {
		for p := range strings.SplitSeq(value, ",") {
			p, _, _ = strings.Cut(p, ";")
			name, given, _ := strings.Cut(p, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(given), `"`), 10, 31)
			if err == nil || errors.Is(err, strconv.ErrRange) {
				return time.Duration(n) * time.Second
			}
		}
	}
	return 0
}
