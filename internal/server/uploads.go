package server

import (
	"net/http"
	"time"
)

// fewUploads keeps the number of documents that are read into memory at the same
// time small. Others wait for their turn, unread, but not for long.
func (s *Server) fewUploads(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		tooLong := time.NewTimer(s.Patience / 3)
		defer tooLong.Stop()
		select {
		case s.uploads <- struct{}{}:
			defer func() { <-s.uploads }()
			return h(w, r)
		case <-tooLong.C:
			w.Header().Set("Retry-After", "10")
			return problem(http.StatusServiceUnavailable, "the server is busy with %d uploads, as many as it takes at a time; try again", cap(s.uploads))
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}
