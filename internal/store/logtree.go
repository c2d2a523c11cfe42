package store

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// hashesAtOnce is the number of leaves that one commit adds. Tests change it.
var hashesAtOnce uint64 = 10_000

// prepareSigning completes the tree of a collection, commit by commit, if a change of settings is to set Sign, so that
// the commit that sets it need not.
func (db *DB) prepareSigning(ctx context.Context, name string, change func(*Settings) error) error {
	for {
		prepared := false
		_, err := db.updateOf(ctx, name, func(t *txn.Tx, c *Collection) error {
			next := c.Settings
			if err := change(&next); err != nil {
				return err
			}
			if prepared = next.Sign == "" || c.Head-c.Hashed < hashesAtOnce; prepared {
				return nil
			}
			if err := collections.CompleteTree(t, c, hashesAtOnce); err != nil {
				return err
			}
			return collections.Put(t, c)
		})
		if prepared || err != nil {
			return err
		}
	}
}

// leaves checks that the tree of a log that is signed has all entries.
func (c *checker) leaves(where string, v *View) {
	if v.Sign == "" || v.Hashed >= v.Head {
		return
	}
	name := v.Name
	c.repairable(where, nil, func() error {
		_, err := c.db.ChangeSettings(c.ctx, name, func(*Settings) error { return nil }) // which completes it
		if errors.Is(err, ErrNotFound) {                                                 // it was deleted meanwhile
			err = nil
		}
		return err
	}, "the tree of the log lacks the leaves of %d entries, from entry %d on: what is signed does not include them",
		v.Head-v.Hashed, v.Hashed+1)
}

// treeRemedy is the remedy for a tree that differs from its entries. It was signed, so no tree of the entries can
// continue it.
const treeRemedy = "restore the data folder from a backup that is older. If there is none, make the collection " +
	"again: export the map, delete the collection, import the map. " +
	"Tell its subscribers; they go on with \"tmshare-client trust NAME --accept\""

// Checkpoint returns the statement of the log's size and tree, to be signed. The collection must have Sign.
func (v *View) Checkpoint() (*checkpoint.Checkpoint, error) {
	root, err := tlog.TreeHash(int64(v.Hashed), collections.LogTree{Tx: v.tx, Log: v.Log()})
	if err != nil {
		return nil, err
	}
	digest, err := v.Collection.Digest(v.tx)
	return &checkpoint.Checkpoint{Origin: v.SP, Size: int64(v.Hashed), Root: root, Digest: digest}, err
}

// ProveLog returns the proof that the log of so many entries is the beginning of the log of another number of entries.
// If there are fewer entries, the error is ErrNotFound.
func (v *View) ProveLog(earlier, later int64) (tlog.TreeProof, error) {
	if earlier < 1 || later < earlier || later > int64(v.Hashed) {
		return nil, fmt.Errorf("%w: a log of %d entries and one of %d; there are %d", ErrNotFound, earlier, later, v.Hashed)
	}
	return tlog.ProveTree(later, earlier, collections.LogTree{Tx: v.tx, Log: v.Log()})
}
