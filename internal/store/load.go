package store

import (
	"context"
	"iter"
	"path/filepath"
	"strconv"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Scratch returns the path of a folder for files that are of no use once the database is
// closed: what an interrupted process has left there is removed when it is opened. The
// folder need not be there.
func (db *DB) Scratch() string { return filepath.Join(db.dir, datafolder.Scratch) }

// Loading says how far a load has come.
type Loading = records.Loading

// load writes records, each of which comes once, into a new generation that nothing shows.
func (db *DB) load(ctx context.Context, id keys.Source, all iter.Seq2[fragment.Record, error], progress func(Loading)) error {
	return db.loader().Load(ctx, id, all, progress)
}

func (db *DB) loader() records.Loader {
	return records.Loader{Engine: db.rows.Engine, Scratch: db.Scratch(), Ready: db.MayWrite, Memory: db.sortMemory}
}

// migrate makes the rows that earlier formats did not have, see [records.Loader.Migrate].
func (db *DB) migrate(ctx context.Context, from string) error {
	if from == strconv.Itoa(keys.FormatVersion) {
		db.log.Info("making the indexes anew, by the rules of this program")
	} else {
		db.log.Info("bringing the data to a new format", "from", from, "to", keys.FormatVersion)
	}
	return db.rows.View(ctx, func(t *txn.Tx) error {
		all, err := collections.All(t)
		if err != nil {
			return err
		}
		var ids []keys.Source
		for i := range all {
			ids = append(ids, all[i].SourceKey())
		}
		for s, err := range sources.All(t) {
			if err != nil {
				return err
			}
			ids = append(ids, s.Generations()...)
		}
		return db.loader().Migrate(t, from, ids)
	})
}
