package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/datafolder"
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
	for _, file := range left.files {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	for _, folder := range slices.Backward(left.folders) {
		os.Remove(folder) // fails where something is in it
	}
	return os.RemoveAll(db.Scratch())
}

// leftovers are what crashes have left: rows of generations that nothing names, rows of
// collections that were never finished, and files of snapshots not listed. It holds only while
// nobody writes: what is being loaded looks the same.
type leftovers struct {
	rows           [][]byte // the prefixes of their keys
	files, folders []string // of snapshots; folders of which some may be in use
}

func (db *DB) leftovers(ctx context.Context) (*leftovers, error) {
	live := map[keys.Source]bool{}
	numbers := map[uint32]bool{}
	files := map[string]bool{}
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
		err := db.View(ctx, c.Name, func(v *View) error {
			snapshots, err := v.Snapshots()
			for j := range snapshots {
				for _, version := range Forms {
					files[db.snapshotFile(c, &snapshots[j], version)] = true
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
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
	if err != nil {
		return nil, err
	}
	return left, left.addFiles(filepath.Join(db.dir, datafolder.Snapshots), files)
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

func (l *leftovers) addFiles(root string, listed map[string]bool) error {
	return filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil || listed[path]:
			return err
		case d.IsDir() && path != root:
			l.folders = append(l.folders, path)
		case strings.HasSuffix(path, datafolder.SnapshotEnding) || strings.HasSuffix(path, ".tmp"):
			l.files = append(l.files, path)
		}
		return nil
	})
}
