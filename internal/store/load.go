package store

import (
	"context"
	"iter"
	"path/filepath"

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

// reindexWords makes the indexes of words anew, by the rules of this program.
func (db *DB) reindexWords(ctx context.Context) error {
	db.log.Info("making the indexes of words anew, by the rules of this program")
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
		return db.loader().ReindexWords(t, ids)
	})
}
