package upkeep

import (
	"cmp"
	"context"

	"github.com/tmshare/tmshare/internal/store"
)

// TakeSnapshot takes a snapshot of the collection, one at a time. If nothing has changed since the newest one, it
// returns that one, and taken is false.
func (k *Keeper) TakeSnapshot(ctx context.Context, name string) (snap *store.Snapshot, taken bool, err error) {
	done, err := k.background.taking.Lock(ctx, name, nil)
	if err != nil {
		return nil, false, err
	}
	defer done()
	var newest uint64
	kept := 0
	err = k.Store.View(ctx, name, func(v *store.View) error {
		all, err := v.Snapshots()
		if len(all) > 0 {
			newest = all[0].Seq
		} else {
			taken = true // a map without entries has snapshots as well
		}
		kept = cmp.Or(v.SnapshotsKept, k.SnapshotsKept)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	changed := k.Changes.Begin(name)
	defer changed()
	snap, err = k.Store.TakeSnapshot(ctx, name, kept)
	if err != nil {
		return nil, false, err
	}
	return snap, taken || snap.Seq > newest, nil
}

// Retention returns the retention of the history of a collection.
func (k *Keeper) Retention(c *store.Collection) store.Retention {
	return store.Retention{Entries: cmp.Or(c.KeepEntries, k.KeepEntries), For: cmp.Or(c.KeepFor, k.KeepFor)}
}

// Prunable returns the retention of the collection's history, and the number of entries that would be pruned now.
func (k *Keeper) Prunable(ctx context.Context, name string) (keep store.Retention, entries uint64, err error) {
	err = k.Store.View(ctx, name, func(v *store.View) (err error) {
		keep = k.Retention(&v.Collection)
		entries, err = v.Prunable(keep)
		return err
	})
	return keep, entries, err
}

// Prune removes the entries of the collection's history that need not be kept.
func (k *Keeper) Prune(ctx context.Context, name string) (entries uint64, err error) {
	keep, entries, err := k.Prunable(ctx, name)
	if err != nil || entries == 0 {
		return 0, err
	}
	if err := k.doTasks(ctx, name, false); err != nil { // extensions may need the entries to be removed
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
