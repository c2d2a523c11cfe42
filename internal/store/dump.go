package store

import (
	"context"
	"iter"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/moving"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Row is a row of the database.
type Row = kv.Row

// Dump is one state of the data of a folder that cannot be derived from the rest; later writes do not affect it.
// Derived data is made again on request.
type Dump struct {
	db *DB
	tx *txn.Tx
}

// Dump calls f with the present state, which is valid until f returns. It does not block reading and writing.
func (db *DB) Dump(ctx context.Context, f func(*Dump) error) error {
	return db.rows.View(ctx, func(t *txn.Tx) error { return f(&Dump{db, t}) })
}

// Rows iterates over all rows in the order of keys, but for those of [moving.Rows]. A row is valid until the next one.
func (d *Dump) Rows() iter.Seq2[Row, error] { return moving.Rows(d.tx) }

// Version returns the version of the state.
func (d *Dump) Version() Version { return d.tx.Version() }

// SnapshotFiles returns the names of the files of all snapshots that are listed.
func (d *Dump) SnapshotFiles() (names []string, err error) {
	all, err := collections.WithArriving(d.tx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		c := &all[i]
		snapshots, err := (&View{Collection: *c, db: d.db, tx: d.tx}).Snapshots()
		if err != nil {
			return nil, err
		}
		for j := range snapshots {
			names = append(names, d.db.snapshotFiles(c).Name(snapshots[j].ID))
		}
	}
	return names, nil
}

// OpenFile opens a file of the store. It is [fs.ErrNotExist] where it is lost.
func (d *Dump) OpenFile(name string) (files.File, error) {
	return files.In(d.db.files, d.tx.Reader()).Open(d.tx.Context(), name)
}

// Load writes the rows of a dump to a database that was opened for that ([Restore]).
func (db *DB) Load(ctx context.Context, rows iter.Seq2[Row, error]) error {
	return moving.Load(ctx, db.rows.Engine, rows)
}

// BeginEpochs begins a new epoch for each collection. After the backup was made, the history may have continued
// elsewhere, so its identifiers and addresses must not be used again: a new feed id makes subscribers replace their
// copies. It returns the new epochs by the former ones, because the files of snapshots must be renamed.
func (db *DB) BeginEpochs(ctx context.Context) (epochs map[uuid.UUID]uuid.UUID, err error) {
	err = db.rows.Update(ctx, func(t *txn.Tx) (err error) { epochs, err = collections.BeginEpochs(t); return err })
	return epochs, err
}

// Leave marks the store as moved elsewhere, so that it does not open any more. The error is [kv.ErrConflict] if there
// was a commit after the version since.
func (db *DB) Leave(ctx context.Context, since Version, m moving.Moved) error {
	return moving.Leave(ctx, db.rows.Engine, since, m)
}
