package web

import (
	"net/http"
	"time"
)

// InTurn does the work when there is a place for it, and has the client try again
// later where there is none for too long.
func InTurn(r *http.Request, places chan struct{}, wait time.Duration, what string, work func() error) error {
	tooLong := time.NewTimer(wait)
	defer tooLong.Stop()
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return work()
	case <-tooLong.C:
		p := Problemf(http.StatusServiceUnavailable, "the server is busy with %d %s, as many as it takes at a time; try again", cap(places), what)
		p.RetryAfter = 10 * time.Second
		return p
	case <-r.Context().Done():
		return r.Context().Err()
	}
}
