package server

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/store"
)

// background is what the server does by itself: it takes the snapshots that are
// due, gives up the history that need not be kept, and publishes records again that are
// offered in other formats. One worker looks at one
// collection after the other.
type background struct {
	ctx  context.Context // ends with close
	stop context.CancelFunc
	jobs sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]bool // collections to look at; true: prune them in any case
	busy    bool            // a worker is at them
	taking  map[string]chan struct{}
}

func (b *background) init() {
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.waiting, b.taking = map[string]bool{}, map[string]chan struct{}{}
}

// close stops what runs and waits for it. Nothing begins after that.
func (b *background) close() {
	b.mu.Lock()
	b.stop()
	b.mu.Unlock()
	b.jobs.Wait()
}

// begin runs a job unless the server is closed.
func (b *background) begin(job func()) (begun bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if begun = b.ctx.Err() == nil; begun {
		b.jobs.Go(job)
	}
	return begun
}

// next takes one of the waiting collections. Where there is none, the worker
// must end: the next collection that waits begins another.
func (b *background) next() (name string, prune, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() == nil {
		for name, prune = range b.waiting {
			delete(b.waiting, name)
			return name, prune, true
		}
	}
	b.busy = false
	return "", false, false
}

// alone waits until no snapshot of the collection is being taken, and keeps
// others from beginning one until done is called.
func (b *background) alone(ctx context.Context, collection string) (done func(), err error) {
	b.mu.Lock()
	turn := b.taking[collection]
	if turn == nil {
		turn = make(chan struct{}, 1)
		b.taking[collection] = turn
	}
	b.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Start looks after the collections in the background: now, since a crash may
// have kept a snapshot from being taken, and from then on until Close.
func (s *Server) Start() error {
	if err := s.lookAfterAll(true); err != nil {
		return err
	}
	s.background.begin(func() {
		check, prune := time.NewTicker(s.CheckEvery), time.NewTicker(s.PruneEvery)
		defer check.Stop()
		defer prune.Stop()
		for {
			var err error
			select {
			case <-s.background.ctx.Done():
				return
			case <-check.C:
				err = s.lookAfterAll(false)
			case <-prune.C:
				err = s.lookAfterAll(true)
			}
			if err != nil {
				s.Logger.Error("collections not looked after", "error", err)
			}
		}
	})
	return nil
}

func (s *Server) lookAfterAll(prune bool) error {
	all, err := s.Store.Collections()
	if err == nil && prune {
		err = s.sweepSources()
	}
	for i := range all {
		s.lookAfter(all[i].Name, prune)
	}
	return err
}

// afterChange takes a snapshot in the background where enough has changed since
// the last one.
func (s *Server) afterChange(c *store.Collection) { s.lookAfter(c.Name, false) }

// lookAfter has the worker look at a collection.
func (s *Server) lookAfter(collection string, prune bool) {
	b := &s.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return
	}
	b.waiting[collection] = b.waiting[collection] || prune
	if !b.busy {
		b.busy = true
		b.jobs.Go(s.work)
	}
}

func (s *Server) work() {
	for {
		name, prune, ok := s.background.next()
		if !ok {
			return
		}
		if err := s.keepUp(name, prune); err != nil && s.background.ctx.Err() == nil && !errors.Is(err, store.ErrNotFound) {
			s.Logger.Error("a collection could not be looked after; it is tried again", "collection", name, "error", err)
		}
	}
}

// keepUp publishes those records of the collection again that are offered in other
// formats than they ought to be, takes a snapshot if one is due, sees to what ResourceSync
// offers, and prunes after that.
func (s *Server) keepUp(name string, prune bool) error {
	if err := s.restate(name); err != nil {
		return err
	}
	due := false
	err := s.Store.View(name, func(v *store.View) error {
		var err error
		due, err = s.snapshotDue(v)
		return err
	})
	if err != nil {
		return err
	}
	if due {
		if _, _, err := s.takeSnapshot(s.background.ctx, name); err != nil {
			return err
		}
	}
	if err := s.keepSourceUp(s.background.ctx, name, prune); err != nil {
		return err
	}
	if due || prune {
		_, err = s.prune(s.background.ctx, name)
	}
	return err
}

func (s *Server) restate(name string) error {
	l, err := s.Store.Latest(name)
	if err != nil || !l.Restating {
		return err
	}
	changed := s.changes.begin(name)
	defer changed()
	records, err := s.Store.Restate(s.background.ctx, name)
	if records > 0 {
		s.Logger.Info("published again, as they are offered in other formats", "collection", name, "records", records)
	}
	return err
}

// snapshotDue reports whether so much has changed since the newest snapshot, or
// for so long there has been a change that it lacks, that it is time for another.
func (s *Server) snapshotDue(v *store.View) (bool, error) {
	all, err := v.Snapshots()
	if err != nil || len(all) == 0 {
		return err == nil, err
	}
	changes := v.Head - all[0].Seq
	if changes == 0 {
		return false, nil
	}
	if changes >= uint64(cmp.Or(v.SnapshotEvery, s.SnapshotEvery)) {
		return true, nil
	}
	first, err := v.Entry(all[0].Seq + 1)
	if err != nil {
		return false, err
	}
	return s.Now().Sub(first.Updated) >= cmp.Or(v.SnapshotAfter, s.SnapshotAfter), nil
}
