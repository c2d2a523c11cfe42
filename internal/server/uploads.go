package server

import (
	"net/http"
	"time"
)

// fewUploads keeps the number of documents that are read into memory at the same
// time small. Others wait for their turn, unread, but not for long.
func (s *Server) fewUploads(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return few(w, r, s.uploads, s.Patience/3, "uploads", func() error { return h(w, r) })
	}
}

// maxRenders is how many answers that are made of the records while they are sent
// are made at the same time: a topic of which much is said takes memory.
const maxRenders = 32

// few does the work when there is a place for it, and has the client try again
// later where there is none for too long.
func few(w http.ResponseWriter, r *http.Request, places chan struct{}, wait time.Duration, what string, work func() error) error {
	tooLong := time.NewTimer(wait)
	defer tooLong.Stop()
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return work()
	case <-tooLong.C:
		w.Header().Set("Retry-After", "10")
		return problem(http.StatusServiceUnavailable, "the server is busy with %d %s, as many as it takes at a time; try again", cap(places), what)
	case <-r.Context().Done():
		return r.Context().Err()
	}
}
