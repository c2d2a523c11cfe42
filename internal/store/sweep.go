package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/replicas"
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
	if err := db.files.Sweep(ctx, db.now().Add(time.Second)); err != nil { // nobody else has it open
		return err
	}
	return os.RemoveAll(db.Scratch())
}

// SweepFiles removes what crashes of others have left of files, while anybody may be writing.
func (db *DB) SweepFiles(ctx context.Context) error {
	before := db.now().Add(-files.Unfinished)
	unlisted, err := db.unlistedFiles(ctx)
	if err != nil {
		return err
	}
	unlisted = slices.DeleteFunc(unlisted, func(f files.Info) bool { return f.Made.After(before) })
	if err := db.removeFiles(ctx, unlisted); err != nil {
		return err
	}
	return db.files.Sweep(ctx, before)
}

func (db *DB) removeFiles(ctx context.Context, all []files.Info) error {
	for _, f := range all {
		if err := db.files.Remove(ctx, f.Name); err != nil {
			return err
		}
	}
	return nil
}

// unlistedFiles returns the files of snapshots that are not listed.
func (db *DB) unlistedFiles(ctx context.Context) (unlisted []files.Info, err error) {
	there, err := files.All(ctx, db.files, files.Snapshots+"/")
	if err != nil || len(there) == 0 {
		return nil, err
	}
	listed := map[string]bool{}
	err = db.Dump(ctx, func(d *Dump) error { // after it is seen what there is
		names, err := d.SnapshotFiles()
		for _, name := range names {
			listed[name] = true
		}
		return err
	})
	for _, f := range there {
		if !listed[f.Name] && strings.HasSuffix(f.Name, datafolder.SnapshotEnding) {
			unlisted = append(unlisted, f)
		}
	}
	return unlisted, err
}

// leftovers are what crashes have left: rows of generations that nothing names, rows of
// collections that were never finished, and files of snapshots not listed. It holds only while
// nobody writes: what is being loaded looks the same.
type leftovers struct {
	rows  [][]byte // the prefixes of their keys
	files []files.Info
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
		err := left.addRows(t, keys.SourceTables, 8, func(id []byte) bool {
			return live[keys.Source{Number: binary.BigEndian.Uint32(id), Generation: binary.BigEndian.Uint32(id[4:])}]
		})
		if err != nil {
			return err
		}
		tables := string([]byte{keys.TableLog, keys.TableFragment, keys.TableKey, keys.TableLogHash, keys.TableChangeList, keys.TableSnapshot, keys.TableDerived})
		return left.addRows(t, tables, 4, func(id []byte) bool { return numbers[binary.BigEndian.Uint32(id)] })
	})
	if err == nil {
		left.files, err = db.unlistedFiles(ctx)
	}
	return left, err
}

// addRows adds the rows of tables whose owners, the first bytes of the key, are not live. It
// looks at one row of each owner.
func (l *leftovers) addRows(t *txn.Tx, tables string, ownerSize int, live func(owner []byte) bool) error {
	for _, table := range []byte(tables) {
		all := []byte{table}
		for from := all; from != nil; {
			next := []byte(nil)
			for r, err := range t.ScanInPlace(all, from) {
				if err != nil {
					return err
				}
				owner := bytes.Clone(r.Key[:1+ownerSize])
				if !live(owner[1:]) {
					l.rows = append(l.rows, owner)
				}
				next = kv.After(owner)
				break
			}
			from = next
		}
	}
	return nil
}
