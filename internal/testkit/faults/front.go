package faults

import (
	"net/http"
	"sync"
)

// Front is a proxy of a server of a test: it makes faults, and records requests.
type Front struct {
	mu       sync.Mutex
	fault    Fault
	requests []string
}

// BreakWith makes faults from now on; nil ends them.
func (f *Front) BreakWith(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// Answer answers a request by a fault, or as the server does.
func (f *Front) Answer(w http.ResponseWriter, r *http.Request, real http.Handler) {
	f.mu.Lock()
	f.requests = append(f.requests, r.URL.RequestURI())
	fault := f.fault
	f.mu.Unlock()
	if fault == nil || !fault(w, r, real) {
		real.ServeHTTP(w, r)
	}
}

// Seen returns the requests since its last call, in order.
func (f *Front) Seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.requests
	f.requests = nil
	return seen
}
