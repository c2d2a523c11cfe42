package store

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Row is a row of the database.
type Row = kv.Row

// Dump is one state of all that a data folder holds and that cannot be made again of the
// rest: later writes do not show in it. What is not in it is made again when it is asked for.
type Dump struct {
	db *DB
	tx *txn.Tx
}

// Dump calls f with the present state. It is valid until f returns. Reading and writing go on
// meanwhile.
func (db *DB) Dump(ctx context.Context, f func(*Dump) error) error {
	return db.rows.View(ctx, func(t *txn.Tx) error { return f(&Dump{db, t}) })
}

// Rows iterates over all rows in the order of keys. A row is valid until the next one.
func (d *Dump) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for r, err := range d.tx.ScanInPlace(nil, nil) {
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// SnapshotFiles returns the paths of the files of all snapshots that are listed, relative to
// the data folder and with slashes.
func (d *Dump) SnapshotFiles() (paths []string, err error) {
	all, err := collections.All(d.tx)
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
			for _, version := range Forms {
				relative, err := filepath.Rel(d.db.dir, d.db.snapshotFile(c, &snapshots[j], version))
				if err != nil {
					return nil, err
				}
				paths = append(paths, filepath.ToSlash(relative))
			}
		}
	}
	return paths, nil
}

// Load writes the rows of a dump to a database that was opened for that ([Restore]).
func (db *DB) Load(ctx context.Context, rows iter.Seq2[Row, error]) error {
	bulk, err := db.rows.Engine.Bulk(ctx)
	if err != nil {
		return err
	}
	defer bulk.Cancel()
	for r, err := range rows {
		if err == nil {
			err = bulk.Put(bytes.Clone(r.Key), bytes.Clone(r.Value))
		}
		if err != nil {
			return err
		}
	}
	return bulk.Commit()
}

// BeginEpochs begins a new epoch for each collection. The history until now may have gone on
// elsewhere after the backup was made, so its identifiers and addresses are not used again:
// a new feed id tells subscribers to replace what they have.
func (db *DB) BeginEpochs(ctx context.Context) error {
	epochs := map[uint32]uuid.UUID{} // by the numbers of collections: the same ones if this is tried again
	return db.rows.Update(ctx, func(t *txn.Tx) error {
		all, err := collections.All(t)
		if err != nil {
			return err
		}
		for i := range all {
			c := &all[i]
			if c.Replica != nil { // its history is the origin's
				continue
			}
			was := db.snapshotFolder(c)
			if _, ok := epochs[c.Number]; !ok {
				epochs[c.Number] = uuid.New()
			}
			c.Epoch = epochs[c.Number]
			if err := os.Rename(was, db.snapshotFolder(c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err := collections.Put(t, c); err != nil {
				return err
			}
		}
		return durable.SyncFolder(filepath.Join(db.dir, datafolder.Snapshots))
	})
}
