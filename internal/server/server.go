package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/tmshare/tmshare/internal/store"
)

// Server answers HTTP requests. It is safe for concurrent use.
type Server struct {
	Config
	handler http.Handler

	background context.Context // ends with Close
	stop       context.CancelFunc
	jobs       sync.WaitGroup
	closing    sync.Mutex // no job begins once Close has
	snapshots  sync.Mutex // one at a time
}

// New returns a server for c.
func New(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Server{Config: c}
	s.background, s.stop = context.WithCancel(context.Background())
	s.handler = s.routes()
	return s, nil
}

// Close stops what runs in the background and waits for it. The store stays
// open. What requests still under way would begin is left undone.
func (s *Server) Close() {
	s.closing.Lock()
	s.stop()
	s.closing.Unlock()
	s.jobs.Wait()
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.handler.ServeHTTP(w, r)
}

// TakeMissingSnapshots takes, in the background, the snapshots that are due and
// that a crash has kept from being taken.
func (s *Server) TakeMissingSnapshots() error {
	all, err := s.Store.Collections()
	for i := range all {
		s.afterChange(&all[i])
	}
	return err
}

// afterChange takes a snapshot in the background where enough has changed since
// the last one.
func (s *Server) afterChange(c *store.Collection) {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.background.Err() != nil {
		return
	}
	s.jobs.Go(func() {
		s.snapshots.Lock()
		defer s.snapshots.Unlock()
		due := false
		err := s.Store.View(c.Name, func(v *store.View) error {
			all, err := v.Snapshots()
			due = len(all) == 0 || v.Head-all[0].Seq >= uint64(s.SnapshotEvery)
			return err
		})
		if err == nil && due {
			_, err = s.Store.TakeSnapshot(s.background, c.Name, s.SnapshotsKept)
		}
		if err != nil && s.background.Err() == nil {
			s.Logger.Error("no snapshot taken", "collection", c.Name, slog.Any("error", err))
		}
	})
}
