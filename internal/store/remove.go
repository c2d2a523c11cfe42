package store

import (
	"context"
	"errors"
	"os"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// DeleteCollection removes a collection with its log and snapshots, if it passes
// all checks. From its commit on it is not there; what it took on disk is given
// up after that, and by the next Open where that is interrupted.
func (db *DB) DeleteCollection(ctx context.Context, name string, checks ...func(*Collection) error) error {
	return db.rows.View(ctx, func(*txn.Tx) error { return db.deleteCollection(ctx, name, checks) }) // Close waits for all of it
}

func (db *DB) deleteCollection(ctx context.Context, name string, checks []func(*Collection) error) error {
	var c *Collection
	err := db.rows.Update(ctx, func(t *txn.Tx) error {
		var err error
		if c, err = getCollection(t, name); err != nil {
			return err
		}
		if err := c.pass(checks); err != nil {
			return err
		}
		return t.Delete(keys.Name(keys.TableCollection, name))
	})
	if err != nil {
		return err
	}
	err = db.deleteRows(ctx, c)
	db.seen.Delete(name)
	db.latest.Delete(name)
	os.RemoveAll(db.snapshotFolder(c)) // what a snapshot puts there meanwhile, it takes away again
	return err
}

// deleteRows removes what is kept under the number of a collection that nothing
// names any more, also where ctx ends.
func (db *DB) deleteRows(ctx context.Context, c *Collection) error {
	err := db.deleteSource(ctx, c.source())
	for _, table := range []byte{keys.TableLog, keys.TableFragment, keys.TableKey, keys.TableSnapshot, keys.TableChangeList} {
		err = errors.Join(err, db.rows.Engine.DeletePrefix(context.WithoutCancel(ctx), keys.Collection(table, c.Number)))
	}
	return err
}
