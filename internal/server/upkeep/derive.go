package upkeep

import (
	"context"
	"time"

	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/store"
)

// followEvery is how often, at most, is looked whether something has changed that no request to this process has told
// of.
const followEvery = time.Second

// follow has collections looked after whenever the store has changed, until ctx ends.
func (k *Keeper) follow(ctx context.Context) {
	for last := (store.Version{}); ; {
		version, err := k.Store.Await(ctx, last, followEvery)
		if err == nil {
			err = k.lookAtChanged(ctx)
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

// lookAtChanged has collections looked after that may have changed without a request here: derived ones and replicas,
// by a request or a round of a subscription; any, by another process that shares the store.
func (k *Keeper) lookAtChanged(ctx context.Context) error {
	all, err := k.Store.Collections(ctx)
	for i := range all {
		if len(all[i].DerivedFrom) > 0 || all[i].Replica != nil || !k.Store.Alone() {
			k.lookAfter(all[i].Name, ofChange)
		}
	}
	return err
}

// derive brings a derived collection in step with its inputs. It reports whether the collection is still being filled:
// an input is missing.
func (k *Keeper) derive(ctx context.Context, name string) (filling bool, err error) {
	changed := k.Changes.Begin(name)
	defer changed()
	c, err := derive.CatchUp(ctx, k.Store, name)
	return err == nil && c.Hidden, err
}
