package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/store"
)

// TakeSnapshot takes a snapshot of the collection, one at a time. Where nothing
// has changed since the newest, it is that one, and taken is false.
func (k *Keeper) TakeSnapshot(ctx context.Context, name string) (snap *store.Snapshot, taken bool, err error) {
	done, err := k.background.taking.Lock(ctx, name, nil)
	if err != nil {
		return nil, false, err
	}
	defer done()
	var epoch uuid.UUID
	var newest uint64
	kept := 0
	err = k.Store.View(ctx, name, func(v *store.View) error {
		all, err := v.Snapshots()
		if len(all) > 0 {
			newest = all[0].Seq
		} else {
			taken = true // a map without entries has snapshots as well
		}
		epoch, kept = v.Epoch, cmp.Or(v.SnapshotsKept, k.SnapshotsKept)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	changed := k.Changes.Begin(name)
	defer changed()
	snap, err = k.Store.TakeSnapshot(ctx, name, kept)
	if err != nil {
		return nil, false, k.unlessRemoved(context.WithoutCancel(ctx), name, epoch, err)
	}
	return snap, taken || snap.Seq > newest, nil
}

// unlessRemoved returns err, or that the collection is not there any more: one
// that is removed takes along the files that are being written.
func (k *Keeper) unlessRemoved(ctx context.Context, name string, epoch uuid.UUID, err error) error {
	removed := k.Store.View(ctx, name, func(v *store.View) error {
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

// Retention returns what is to be kept of the history of a collection.
func (k *Keeper) Retention(c *store.Collection) store.Retention {
	return store.Retention{Entries: cmp.Or(c.KeepEntries, k.KeepEntries), For: cmp.Or(c.KeepFor, k.KeepFor)}
}

// Prunable returns what is to be kept of the collection's history, and how many
// entries that leaves to give up now.
func (k *Keeper) Prunable(ctx context.Context, name string) (keep store.Retention, entries uint64, err error) {
	err = k.Store.View(ctx, name, func(v *store.View) (err error) {
		keep = k.Retention(&v.Collection)
		entries, err = v.Prunable(keep)
		return err
	})
	return keep, entries, err
}

// Prune gives up what need not be kept of the collection's history.
func (k *Keeper) Prune(ctx context.Context, name string) (entries uint64, err error) {
	keep, entries, err := k.Prunable(ctx, name)
	if err != nil || entries == 0 {
		return 0, err
	}
	if err := k.doTasks(ctx, name, false); err != nil { // extensions may need what goes
		return 0, err
	}
	changed := k.Changes.Begin(name)
	defer changed()
	entries, err = k.Store.Prune(ctx, name, keep)
	if entries > 0 {
		k.Logger.Info("pruned", "collection", name, "entries", entries)
	}
	return entries, err
}
