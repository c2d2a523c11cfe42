package client

import (
	"context"
	"fmt"

	"github.com/tmshare/tmshare/internal/store"
)

// lock waits for exclusive access to the named subscription, and returns its present state; unlock ends the access. It
// returns an error if ctx has ended, or there is no such subscription.
func (c *Client) lock(ctx context.Context, name string) (s *store.Subscription, unlock func(), err error) {
	unlock, err = c.Locks.Lock(ctx, name, func() { c.Report(name + ": waiting for the round that is under way") })
	if err != nil {
		return nil, nil, err
	}
	if s, err = c.Subscription(ctx, name); err != nil {
		unlock()
	}
	return s, unlock, err
}

// roundStore is the store as a round sees it. A round decides on a subscription as it was when that
// was read. If another process has changed the source since, as stores may share an engine, the
// changes of the round fail with [store.ErrOvertaken].
type roundStore struct {
	Store
	generation uint32
	revision   uint64
}

// newRoundStore returns the store for a round that has just read the subscription.
func newRoundStore(db Store, s *store.Subscription) *roundStore {
	if round, ok := db.(*roundStore); ok {
		db = round.Store
	}
	r := &roundStore{Store: db}
	if p := s.Applied(); p != nil {
		r.generation, r.revision = p.Generation, p.Revision
	}
	return r
}

// ApplyEntries implements [Store].
func (r *roundStore) ApplyEntries(ctx context.Context, name string, f func(*store.Applying) error) error {
	err := r.Store.ApplyEntries(ctx, name, func(a *store.Applying) error {
		if a.Generation != r.generation || a.Revision != r.revision {
			return fmt.Errorf("%s: %w", name, store.ErrOvertaken)
		}
		a.Revision++
		return f(a)
	})
	if err == nil {
		r.revision++
	}
	return err
}

// Quarantine implements [Store]: of the generation that the round changes.
func (r *roundStore) Quarantine(ctx context.Context, name string) ([]store.Quarantined, error) {
	return r.QuarantineOf(ctx, name, r.generation)
}
