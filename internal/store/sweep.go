package store

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/loads"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// sweep removes the remains of crashes, if no other process has the store open.
func (db *DB) sweep(ctx context.Context) error {
	return errors.Join(db.sweepBefore(ctx, anyTime, anyTime), os.RemoveAll(db.Scratch()))
}

// anyTime is later than all written times.
var anyTime = time.Unix(1<<40, 0)

// Sweep removes the remains of other processes' crashes in rows and files, while others may be writing.
func (db *DB) Sweep(ctx context.Context) error {
	return db.sweepBefore(ctx, db.now().Add(-loads.Silence), db.now().Add(-files.Unfinished))
}

// abandoned returns the time before which no live process has begun a file.
func (db *DB) abandoned() time.Time {
	if db.shared {
		return db.now().Add(-files.Unfinished)
	}
	return anyTime
}

// sweepBefore removes the remains of loads without renewal since a time, and of files begun before another time.
func (db *DB) sweepBefore(ctx context.Context, loaded, begun time.Time) error {
	if err := loads.GiveUp(ctx, db.rows, loaded); err != nil {
		return err
	}
	left, err := db.leftovers(ctx, begun)
	if err != nil {
		return err
	}
	for _, prefix := range left.rows {
		db.log.Debug("removing rows that an interrupted load or deletion has left", "number", keys.SourceOf(prefix).Number,
			"generation", keys.SourceOf(prefix).Generation)
		if err := db.rows.Engine.DeletePrefix(ctx, prefix); err != nil {
			return err
		}
	}
	for _, name := range left.files {
		err = errors.Join(err, db.files.Remove(ctx, name))
	}
	return errors.Join(err, db.files.Sweep(ctx, begun))
}

func (db *DB) snapshotNames(ctx context.Context) (names []string, err error) {
	err = db.Dump(ctx, func(d *Dump) (err error) { names, err = d.SnapshotFiles(); return err })
	return names, err
}

// left holds the remains of crashes.
type left struct {
	rows  [][]byte // the prefixes of their keys
	files []string // of snapshots
}

// leftovers returns the remains of crashes: rows that nothing names, and unlisted files begun before a time.
func (db *DB) leftovers(ctx context.Context, begun time.Time) (l left, err error) {
	err = db.rows.View(ctx, func(t *txn.Tx) (err error) {
		var underWay map[uint32]bool
		if db.shared || !db.readOnly { // otherwise the process of the load is dead
			underWay, err = loads.UnderWay(t)
		}
		if err == nil {
			l.rows, err = leftovers(t, underWay)
		}
		return err
	})
	if err == nil {
		l.files, err = unlisted(ctx, db.files, begun, db.snapshotNames)
	}
	return l, err
}
