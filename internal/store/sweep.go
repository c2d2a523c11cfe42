package store

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// deleteSource removes the records of a generation.
func (db *DB) deleteSource(id sourceID) error {
	for _, table := range []byte(sourceTables) {
		if err := db.deletePrefix(id.key(table)); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what crashes have left: generations that nothing names, the logs
// of collections that were never finished, files of snapshots not listed, and
// those of loads.
func (db *DB) sweep() error {
	live := map[sourceID]bool{}
	numbers := map[uint32]bool{}
	files := map[string]bool{}
	subscriptions, err := db.Subscriptions()
	if err != nil {
		return err
	}
	for i := range subscriptions {
		for _, id := range subscriptions[i].generations() {
			live[id] = true
		}
	}
	collections, err := db.Collections()
	if err != nil {
		return err
	}
	for i := range collections {
		c := &collections[i]
		live[c.source()] = true
		numbers[c.Number] = true
		err := db.View(c.Name, func(v *View) error {
			snapshots, err := v.Snapshots()
			for j := range snapshots {
				for _, version := range Forms {
					files[db.snapshotFile(c, &snapshots[j], version)] = true
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, table := range []byte(sourceTables) {
		err := db.sweepTable(table, 8, func(id []byte) bool {
			return live[sourceID{binary.BigEndian.Uint32(id), binary.BigEndian.Uint32(id[4:])}]
		})
		if err != nil {
			return err
		}
	}
	for _, table := range []byte{tableLog, tableFragment, tableKey, tableSnapshot} {
		err := db.sweepTable(table, 4, func(id []byte) bool { return numbers[binary.BigEndian.Uint32(id)] })
		if err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(db.dir, loadingFolder)); err != nil {
		return err
	}
	return db.sweepFiles(files)
}

// sweepTable removes the rows of a table whose owners, the first bytes of the
// key, are not live. It looks at one row of each owner.
func (db *DB) sweepTable(table byte, ownerSize int, live func(owner []byte) bool) error {
	var dead [][]byte
	err := db.viewing(func(t *tx) error {
		o := badger.DefaultIteratorOptions
		o.Prefix, o.PrefetchValues = []byte{table}, false
		it := t.base.NewIterator(o)
		defer it.Close()
		for it.Rewind(); it.Valid(); {
			prefix := it.Item().KeyCopy(nil)[:1+ownerSize]
			if !live(prefix[1:]) {
				dead = append(dead, prefix)
			}
			after := append([]byte(nil), prefix...)
			for i := len(after) - 1; ; i-- { // the next possible owner
				if after[i]++; after[i] != 0 {
					break
				}
			}
			it.Seek(after)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, prefix := range dead {
		db.log.Debug("removing rows that an interrupted load or deletion has left", "table", string(table))
		if err := db.deletePrefix(prefix); err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) sweepFiles(listed map[string]bool) error {
	root := filepath.Join(db.dir, snapshotFolder)
	var folders []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || listed[path] {
			return err
		}
		if d.IsDir() {
			if path != root {
				folders = append(folders, path)
			}
			return nil
		}
		if strings.HasSuffix(path, ".gz") || strings.HasSuffix(path, ".tmp") {
			return os.Remove(path)
		}
		return nil
	})
	for _, folder := range slices.Backward(folders) {
		os.Remove(folder) // fails where something is in it
	}
	return err
}
