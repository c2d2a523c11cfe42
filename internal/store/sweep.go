package store

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"time"

	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/replicas"
	"github.com/tmshare/tmshare/internal/store/snapshotfiles"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// sweep removes what crashes have left.
func (db *DB) sweep(ctx context.Context) error {
	left, err := db.leftovers(ctx)
	if err != nil {
		return err
	}
	for _, prefix := range left.rows {
		db.log.Debug("removing rows that an interrupted load or deletion has left", "table", string(prefix[:1]))
		if err := db.rows.Engine.DeletePrefix(ctx, prefix); err != nil {
			return err
		}
	}
	if err := db.removeFiles(ctx, left.files); err != nil {
		return err
	}
	if err := db.files.Sweep(ctx, anyTime); err != nil { // nobody else has it open
		return err
	}
	return os.RemoveAll(db.Scratch())
}

// anyTime is later than whatever was written.
var anyTime = time.Unix(1<<40, 0)

// SweepFiles removes what crashes of others have left of files, while anybody may be writing.
func (db *DB) SweepFiles(ctx context.Context) error {
	before := db.now().Add(-files.Unfinished)
	unlisted, err := snapshotfiles.Unlisted(ctx, db.files, before, db.snapshotNames)
	if err == nil {
		err = db.removeFiles(ctx, unlisted)
	}
	return errors.Join(err, db.files.Sweep(ctx, before))
}

func (db *DB) removeFiles(ctx context.Context, names []string) (err error) {
	for _, name := range names {
		err = errors.Join(err, db.files.Remove(ctx, name))
	}
	return err
}

func (db *DB) snapshotNames(ctx context.Context) (names []string, err error) {
	err = db.Dump(ctx, func(d *Dump) (err error) { names, err = d.SnapshotFiles(); return err })
	return names, err
}

// leftovers are what crashes have left: rows of generations that nothing names, rows of
// collections that were never finished, and files of snapshots not listed. It holds only while
// nobody writes: what is being loaded looks the same.
type leftovers struct {
	rows  [][]byte // the prefixes of their keys
	files []string
}

func (db *DB) leftovers(ctx context.Context) (*leftovers, error) {
	live := map[keys.Source]bool{}
	numbers := map[uint32]bool{}
	subscriptions, err := db.Subscriptions(ctx)
	if err != nil {
		return nil, err
	}
	for i := range subscriptions {
		for _, id := range subscriptions[i].Generations() {
			live[id] = true
		}
	}
	collections, err := db.Collections(ctx)
	if err != nil {
		return nil, err
	}
	for i := range collections {
		c := &collections[i]
		live[c.SourceKey()] = true
		numbers[c.Number] = true
	}
	left := &leftovers{}
	err = db.rows.View(ctx, func(t *txn.Tx) error {
		for i := range subscriptions {
			if c, err := replicas.Staged(t, subscriptions[i].Name); err != nil {
				return err
			} else if c != nil {
				numbers[c.Number] = true
			}
		}
		for owner, err := range t.Owners(keys.SourceTables, 8) {
			if err != nil {
				return err
			}
			if !live[keys.SourceOf(owner)] {
				left.rows = append(left.rows, owner)
			}
		}
		for owner, err := range t.Owners(keys.CollectionTables, 4) {
			if err != nil {
				return err
			}
			if !numbers[binary.BigEndian.Uint32(owner[1:])] {
				left.rows = append(left.rows, owner)
			}
		}
		return nil
	})
	if err == nil {
		left.files, err = snapshotfiles.Unlisted(ctx, db.files, anyTime, db.snapshotNames)
	}
	return left, err
}
