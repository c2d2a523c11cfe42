package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Scratch returns the path of a folder for temporary files: the next opening removes the remains of an interrupted
// process. The folder may be missing.
func (db *DB) Scratch() string { return filepath.Join(db.dir, datafolder.Scratch) }

// Loading is the progress of a load.
type Loading = records.Loading

func (db *DB) loader() records.Loader {
	return records.Loader{Engine: db.rows.Engine, Scratch: db.Scratch(), Ready: db.MayWrite, Memory: db.sortMemory,
		Indexes: db.rows.Indexes}
}

// makeIndexes makes the indexes of the records again if one is missing, or has other rules. It skips unreadable
// records, which "check" reports.
func (db *DB) makeIndexes(ctx context.Context) error {
	var ids []keys.Source
	has := true
	err := db.rows.View(ctx, func(t *txn.Tx) error {
		current, err := records.Current(t)
		if has = len(current) == len(t.Indexes); has || err != nil {
			return err
		}
		all, err := collections.WithArriving(t)
		followed, unread := sources.All(t)
		for i := range all {
			ids = append(ids, all[i].SourceKey())
		}
		for i := range followed {
			ids = append(ids, followed[i].Generations()...)
		}
		return cmp.Or(err, unread)
	})
	if err != nil || has {
		return err
	}
	if len(ids) > 0 {
		db.log.Info("making the indexes of the records anew")
	}
	for _, id := range ids {
		if err := db.makeIndexesOf(ctx, id); err != nil {
			return err
		}
	}
	return db.rows.Update(ctx, records.PutIndexes)
}

// makeIndexesOf makes the indexes of the records of a source again.
func (db *DB) makeIndexesOf(ctx context.Context, id keys.Source) error {
	err := db.rows.Update(ctx, func(t *txn.Tx) error {
		file := filepath.Join(db.Scratch(), fmt.Sprint("indexes", id.Number))
		e, err := records.Expect(t, id, file, db.sortMemory, func([]byte) {})
		if err != nil {
			return err
		}
		return errors.Join(e.RewriteIndexes(t), e.Close())
	})
	if err != nil {
		err = fmt.Errorf("making the indexes of the records anew: %w", err)
	}
	return err
}
