package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/store"
)

// takeSnapshot takes a snapshot of the collection, one at a time. Where nothing
// has changed since the newest, it is that one, and taken is false.
func (s *Server) takeSnapshot(ctx context.Context, name string) (snap *store.Snapshot, taken bool, err error) {
	done, err := s.background.alone(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer done()
	var epoch uuid.UUID
	var newest uint64
	kept := 0
	err = s.Store.View(name, func(v *store.View) error {
		all, err := v.Snapshots()
		if len(all) > 0 {
			newest = all[0].Seq
		} else {
			taken = true // a map without entries has snapshots as well
		}
		epoch, kept = v.Epoch, cmp.Or(v.SnapshotsKept, s.SnapshotsKept)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	changed := s.changes.begin(name)
	defer changed()
	snap, err = s.Store.TakeSnapshot(ctx, name, kept)
	if err != nil {
		return nil, false, s.unlessRemoved(name, epoch, err)
	}
	return snap, taken || snap.Seq > newest, nil
}

// unlessRemoved returns err, or that the collection is not there any more: one
// that is removed takes along the files that are being written.
func (s *Server) unlessRemoved(name string, epoch uuid.UUID, err error) error {
	removed := s.Store.View(name, func(v *store.View) error {
		if v.Epoch != epoch {
			return fmt.Errorf("%w: collection %q, which was created anew meanwhile", store.ErrNotFound, name)
		}
		return nil
	})
	if errors.Is(removed, store.ErrNotFound) {
		return removed
	}
	return err
}

// prune gives up what need not be kept of the collection's history.
func (s *Server) prune(ctx context.Context, name string) (entries uint64, err error) {
	var keep store.Retention
	err = s.Store.View(name, func(v *store.View) error {
		keep = store.Retention{Entries: cmp.Or(v.KeepEntries, s.KeepEntries), For: cmp.Or(v.KeepFor, s.KeepFor)}
		return nil
	})
	if err != nil || keep == (store.Retention{}) {
		return 0, err
	}
	// What is in no closed change list yet must not go: it is closed first.
	if err := s.keepSourceUp(ctx, name, false); err != nil {
		return 0, err
	}
	changed := s.changes.begin(name)
	defer changed()
	entries, err = s.Store.Prune(ctx, name, keep)
	if entries > 0 {
		s.Logger.Info("pruned", "collection", name, "entries", entries)
	}
	return entries, err
}

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
	if err := s.view(r, func(v *store.View) error { c = v.Collection; return nil }); err != nil {
		return err
	}
	snap, taken, err := s.takeSnapshot(r.Context(), c.Name)
	if err != nil {
		return err
	}
	href := s.snapshotURL(&c, snap.ID)
	status := http.StatusOK
	if taken {
		status = http.StatusCreated
		if _, err := s.prune(r.Context(), c.Name); err != nil {
			return err
		}
		w.Header().Set("Location", href)
		s.lookAfter(c.Name, false) // a new resource list may be due
	}
	return writeJSON(w, status, TakenSnapshot{c.Name, href, feeds.FormatTime(snap.Updated), snap.Topics})
}

// Pruned is the answer to a request to give up history.
type Pruned struct {
	Collection string `json:"collection"`
	Entries    uint64 `json:"entries"` // that were given up
}

// postGC gives up now what need not be kept of the history.
func (s *Server) postGC(w http.ResponseWriter, r *http.Request) error {
	name := mux.Vars(r)["map"]
	entries, err := s.prune(r.Context(), name)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, Pruned{name, entries})
}
