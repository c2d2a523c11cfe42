package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Others may write between a finding and its repair. So each repair checks in its own transaction that the finding
// still holds.

// errHoldsNoMore is the error for a finding that does not hold any more, so that nothing is repaired.
var errHoldsNoMore = errors.New("the finding does not hold any more")

// mend mends a finding, if that still holds.
func (db *DB) mend(ctx context.Context, f *Finding) (mended bool, err error) {
	if f.mend != nil {
		if err := db.rows.Update(ctx, f.mend); err != nil {
			if errors.Is(err, errHoldsNoMore) {
				return false, nil
			}
			return false, fmt.Errorf("repairing %s (%s): %w", f.Where, f.What, err)
		}
	}
	if f.redo != nil {
		if err := f.redo(); err != nil {
			return false, fmt.Errorf("repairing %s (%s): %w", f.Where, f.What, err)
		}
	}
	return true, nil
}

// again returns the repair of a finding in a collection: f with the present collection. If that was deleted or created
// again, the finding does not hold any more.
func (v *View) again(f func(*View) error) func(*txn.Tx) error {
	name, log, db := v.Name, v.Log(), v.db
	return func(t *txn.Tx) error {
		now, err := collections.Get(t, name)
		if errors.Is(err, ErrNotFound) || err == nil && now.Log() != log {
			return errHoldsNoMore
		}
		if err != nil {
			return err
		}
		return f(&View{Collection: *now, db: db, tx: t})
	}
}

// unlist takes a snapshot off the list. Another that has taken its place there stays.
func (v *View) unlist(s *Snapshot) error {
	all, err := v.Snapshots()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(now Snapshot) bool { return now.ID == s.ID }) {
		return errHoldsNoMore
	}
	return v.tx.Delete(v.Log().Numbered(keys.TableSnapshot, s.Seq))
}

// leftovers finds the remains of crashes, which only take space.
func (c *checker) leftovers() error {
	left, err := c.db.leftovers(c.ctx, c.db.abandoned())
	if err == nil && len(left.rows)+len(left.files) > 0 {
		c.repairable("leftovers", nil, nil, "interrupted loads or deletions have left %d groups of rows and %d files",
			len(left.rows), len(left.files))
		c.findings[len(c.findings)-1].Remedy = "\"check --repair\" removes them, and so does every command that writes"
	}
	return err
}

// numbers checks that no number that is in use will be given out again.
func (c *checker) numbers(t *txn.Tx) error {
	var next uint32
	if _, err := t.GetJSON(keys.Meta("next"), &next); err != nil || next < c.most {
		most := c.most
		c.repairable("numbers", func(t *txn.Tx) error {
			var now uint32
			if _, err := t.GetJSON(keys.Meta("next"), &now); err == nil && now >= most {
				return errHoldsNoMore
			}
			return t.PutJSON(keys.Meta("next"), most)
		}, nil, "the last number that was given out is %d, though %d is in use", next, most)
	}
	return nil
}
