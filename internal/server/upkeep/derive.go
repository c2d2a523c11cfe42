package upkeep

import (
	"context"
	"time"

	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/store"
)

// followEvery is the least interval between checks for changes that were not made by requests to this process.
const followEvery = time.Second

// follow has collections looked after whenever the store has changed, until ctx ends.
func (k *Keeper) follow(ctx context.Context) {
	var seen *store.Listing
	for last := (store.Version{}); ; {
		version, err := k.Store.Await(ctx, last, followEvery)
		if err == nil {
			seen, err = k.lookAtChanged(ctx, seen)
		}
		if last = version; err != nil && ctx.Err() == nil {
			last = store.Version{}
			k.Logger.Error(notLookedAfter, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(followEvery):
		}
	}
}

// lookAtChanged has collections looked after that may have changed without a request here, since those of a listing:
// derived ones and replicas, by a request or a round of a subscription; any, by another process that shares the store.
// It returns the listing of now. The first time, all are being looked after.
func (k *Keeper) lookAtChanged(ctx context.Context, before *store.Listing) (*store.Listing, error) {
	now, err := k.Store.Listing(ctx)
	if err != nil {
		return before, err
	}
	for i := range now.Collections {
		if c := &now.Collections[i]; len(c.DerivedFrom) > 0 || c.Replica != nil {
			k.lookAfter(c.Name, ofChange)
		}
	}
	if !k.Store.Alone() {
		names, _ := now.Since(before)
		for _, name := range names {
			k.lookAfter(name, ofChange)
		}
	}
	return now, nil
}

// derive brings a derived collection in step with its inputs. It reports whether the collection is still being filled:
// an input is missing.
func (k *Keeper) derive(ctx context.Context, name string) (filling bool, err error) {
	changed := k.Changes.Begin(name)
	defer changed()
	c, err := derive.CatchUp(ctx, k.Store, name)
	return err == nil && c.Hidden, err
}
