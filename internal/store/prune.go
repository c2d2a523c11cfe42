package store

import (
	"context"
	"sort"
	"time"

	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Retention: the log may lose its oldest documents, whole ones only, and none with an entry later than the newest
// snapshot, so that a late reader can start again from that. The last entry of each key is kept longer: it has the
// present record of the topic, or its deletion. Harvesters of records have no other source of deletions. Its fragment
// is kept while the topic exists.

// Retention is the part of a log to keep: the last entries, and of these the ones that are not too old. Zero values set
// no limit.
type Retention struct {
	Entries uint64
	For     time.Duration
}

// Prune removes the entries that need not be kept, and returns their number.
func (db *DB) Prune(ctx context.Context, name string, keep Retention) (entries uint64, err error) {
	for {
		n, more, err := db.pruneSome(ctx, name, keep)
		entries += n
		if err == nil && !more {
			err = db.forgetPast(ctx, name)
		}
		if err != nil || !more {
			return entries, err
		}
		if err := ctx.Err(); err != nil {
			return entries, err
		}
	}
}

// pruneSome removes some of the entries to prune. more reports whether others remain.
func (db *DB) pruneSome(ctx context.Context, name string, keep Retention) (entries uint64, more bool, err error) {
	_, err = db.updateOf(ctx, name, func(t *txn.Tx, c *Collection) error {
		entries, more = 0, false
		v := &View{Collection: *c, db: db, tx: t}
		horizon, err := v.pruneTo(keep, db.now())
		if err != nil || horizon <= c.Horizon {
			return err
		}
		if more = horizon > c.Horizon+uint64(db.batch); more {
			horizon = c.Horizon + uint64(db.batch)
		}
		entries = horizon - c.Horizon
		if err := collections.Prune(t, c, horizon); err != nil {
			return err
		}
		return collections.Put(t, c)
	})
	return entries, more, err
}

// Prunable returns the number of entries that Prune would remove now.
func (v *View) Prunable(keep Retention) (entries uint64, err error) {
	horizon, err := v.pruneTo(keep, v.db.now())
	if err != nil || horizon <= v.Horizon {
		return 0, err
	}
	return horizon - v.Horizon, nil
}

// pruneTo returns the sequence of the last entry that is not to be kept.
// The open document stays in any case: it must have the most recent entries
// (RFC 5005 §4, Archived Feeds).
func (v *View) pruneTo(keep Retention, now time.Time) (uint64, error) {
	snapshots, err := v.Snapshots()
	if err != nil || len(snapshots) == 0 || v.Head == 0 {
		return 0, err
	}
	last := uint64(0)
	if keep.Entries > 0 && v.Head > keep.Entries {
		last = v.Head - keep.Entries
	}
	if keep.For > 0 {
		first, err := v.firstSince(now.Add(-keep.For))
		if err != nil {
			return 0, err
		}
		last = max(last, first-1)
	}
	// The last entry in the snapshot is kept, because readers that start from it use that entry to identify the
	// history.
	last = min(last, max(snapshots[0].Seq, 1)-1, v.Head-1)
	if last <= v.Horizon {
		return v.Horizon, nil
	}
	first, _ := v.Document(v.DocumentOf(last + 1))
	return first - 1, nil
}

// firstSince returns the sequence of the first entry that is kept with a time
// that is not before since, or one more than the last.
func (v *View) firstSince(since time.Time) (uint64, error) {
	var failed error
	kept := int(v.Head - v.Horizon)
	i := sort.Search(kept, func(i int) bool {
		e, err := v.entry(v.Horizon + 1 + uint64(i))
		if err != nil {
			failed = err
			return true
		}
		return !e.Updated.Before(since)
	})
	return v.Horizon + 1 + uint64(i), failed
}
