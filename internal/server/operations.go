package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// TakenSnapshot is the answer to a request for a snapshot.
type TakenSnapshot struct {
	Collection string `json:"collection"`
	Snapshot   string `json:"snapshot"` // its URL
	Updated    string `json:"updated"`  // the time of the last change in it
	Topics     int    `json:"topics"`
}

// postSnapshot takes a snapshot now, unless the newest is up to date.
func (s *Server) postSnapshot(w http.ResponseWriter, r *http.Request) error {
	var c store.Collection
	if err := s.View(r, func(v *store.View) error { c = v.Collection; return nil }); err != nil {
		return err
	}
	snap, taken, err := s.keeper.TakeSnapshot(r.Context(), c.Name)
	if err != nil {
		return err
	}
	href := s.URLs.Snapshot(&c, snap.ID)
	status := http.StatusOK
	if taken {
		status = http.StatusCreated
		if _, err := s.keeper.Prune(r.Context(), c.Name); err != nil {
			return err
		}
		w.Header().Set("Location", href)
		s.keeper.Changed(&c) // a new resource list may be due
	}
	return web.WriteJSON(w, status, TakenSnapshot{c.Name, href, feeds.FormatTime(snap.Updated), snap.Topics})
}

// Retention returns the retention of the history of a collection.
func (s *Server) Retention(c *store.Collection) store.Retention { return s.keeper.Retention(c) }

// Pruned is the answer to a request to give up history.
type Pruned struct {
	Collection string `json:"collection"`
	Entries    uint64 `json:"entries"`          // that were given up
	DryRun     bool   `json:"dryRun,omitempty"` // that would be
}

// postGC prunes the history now.
func (s *Server) postGC(w http.ResponseWriter, r *http.Request) error {
	p := Pruned{Collection: web.Var(r, "map"), DryRun: isDryRun(r)}
	var err error
	if p.DryRun {
		_, p.Entries, err = s.keeper.Prunable(r.Context(), p.Collection)
	} else {
		p.Entries, err = s.keeper.Prune(r.Context(), p.Collection)
	}
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, p)
}

// healthy reports that the process runs.
func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error {
	return web.WriteText(w, "ok\n")
}

// readyWithin is the time for which /readyz waits for the store: probes are repeated soon.
const readyWithin = 5 * time.Second

// ready reports whether this server can answer requests.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.stopping.Load() {
		return web.Problemf(http.StatusServiceUnavailable, "the server is stopping: it finishes what runs")
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	err := s.Store.Impaired()
	if err == nil {
		_, err = s.Store.Collections(ctx)
	}
	if err == nil {
		err = s.Store.Writable(ctx)
	}
	if err != nil {
		web.RecorderOf(r).Failure = err
		why := cmp.Or(problems.Impaired(err), "the store cannot be used; the log says why")
		if errors.Is(err, store.ErrOtherDatabase) {
			why = "the address of the database leads to another database than before, or to a server that another one has " +
				"replaced; the log says to which. Nothing is read or written until it leads to one"
		} else if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			why = "the database does not answer, or takes no changes; the log says why, and has its address"
		}
		return web.Problemf(http.StatusServiceUnavailable, "%s", why)
	}
	return web.WriteText(w, "ready\n")
}

// Stopping makes /readyz tell load balancers to send no more requests, and answers waiting requests. All others are
// still served.
func (s *Server) Stopping() {
	s.stopping.Store(true)
	s.waiting.Close()
}
