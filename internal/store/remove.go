package store

import (
	"errors"
	"os"
	"path/filepath"
)

// DeleteCollection removes a collection with its log and snapshots. From its
// commit on it is not there; what it took on disk is given up after that, and by
// the next Open where that is interrupted.
func (db *DB) DeleteCollection(name string) error {
	var c *Collection
	err := db.update(func(t *tx) error {
		var err error
		if c, err = getCollection(t, name); err != nil {
			return err
		}
		return t.delete(nameKey(tableCollection, name))
	})
	if err != nil {
		return err
	}
	err = db.deleteSource(c.source())
	for _, table := range []byte{tableLog, tableFragment, tableKey, tableSnapshot} {
		err = errors.Join(err, db.deletePrefix(collectionKey(table, c.Number)))
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(db.dir, snapshotFolder, c.Epoch.String())))
}
