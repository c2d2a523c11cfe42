package upkeep

import (
	"context"

	"github.com/tmshare/tmshare/internal/durable"
)

// ReplaceLost removes snapshots with missing or damaged files from the list, so that no link leads to them, and then
// takes a new one in the background. taken is closed after that attempt.
func (k *Keeper) ReplaceLost(ctx context.Context, name string) (taken <-chan struct{}, err error) {
	done := make(chan struct{})
	dropped, err := k.Store.DropLostSnapshots(ctx, name)
	for i := range dropped {
		k.Logger.Error(
			"the files of a snapshot are missing or damaged: it is not listed any more, and a snapshot is taken anew. Look "+
				"for other losses with \"check\"",
			"collection", name, "snapshot", dropped[i].ID, "updated", dropped[i].Updated)
	}
	if err != nil || len(dropped) == 0 {
		close(done)
		return done, err
	}
	k.Changes.Begin(name)()
	begun := k.background.begin(func() {
		defer close(done)
		if _, _, err := k.TakeSnapshot(k.background.ctx, name); err != nil && k.background.ctx.Err() == nil {
			k.Logger.Error("the snapshot could not be taken anew; it is tried again when the next one is due", "collection",
				name, "error", err)
		}
	})
	if !begun {
		close(done)
	}
	return done, nil
}

// replaceAllLost calls ReplaceLost for all collections, before anything is served. A full disk does not prevent
// reading: it is tried again when the collections are maintained.
func (k *Keeper) replaceAllLost(ctx context.Context) error {
	all, err := k.Store.Collections(ctx)
	for i := 0; i < len(all) && err == nil; i++ {
		if _, err = k.ReplaceLost(ctx, all[i].Name); durable.IsDiskFull(err) {
			k.Logger.Error(
				"snapshots whose files are missing or damaged stay listed, as the disk is full; it is tried again. Free some "+
					"space on the disk that has the data folder",
				"collection", all[i].Name, "error", err)
			err = nil
		}
	}
	return err
}
