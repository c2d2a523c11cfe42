package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

// CommitOf returns the number of the commit of an entry: the sequence of its last entry. In a replica it is the next
// entry after which a state of its records existed.
func (v *View) CommitOf(seq uint64) (uint64, error) {
	if seq == 0 || seq >= v.Head {
		return min(seq, v.Head), nil
	}
	if b := v.Beginning; b != nil && seq <= b.Entries {
		return b.Entries, nil
	}
	if i, exact := slices.BinarySearch(v.commits, seq); exact || i > 0 && i < len(v.commits) {
		return v.commits[i], nil
	}
	commit, err := past.CommitOf(v.tx.Reader(), v.SourceKey(), seq)
	if commit == 0 || commit > v.Head {
		commit = v.Head
	}
	return commit, err
}

// CommitBefore returns the number of the commit before another one; 0 if none is known.
func (v *View) CommitBefore(commit uint64) (before uint64, err error) {
	if i, found := slices.BinarySearch(v.commits, commit); found && i > 0 {
		return v.commits[i-1], nil
	}
	before, err = past.CommitBefore(v.tx.Reader(), v.SourceKey(), commit)
	if b := v.Beginning; b != nil && b.Entries < commit {
		before = max(before, b.Entries)
	}
	return before, err
}

// SetCommits sets the commits of some entries of the log, in its order. It reads the store only if the entries do not
// show them.
func (v *View) SetCommits(entries []Entry) error {
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		var err error
		switch {
		case v.Replica != nil: // the origin has stated it
		case e.Digest != "":
			e.Commit = e.Seq
		case e.Seq <= v.Horizon: // it is not known any more
		case i+1 < len(entries) && entries[i+1].Seq == e.Seq+1:
			e.Commit = entries[i+1].Commit
		default:
			e.Commit, err = v.CommitOf(e.Seq)
		}
		if err != nil {
			return err
		}
	}
	if v.commits = nil; v.Replica == nil {
		v.commits = statedBy(entries)
	}
	return nil
}

// statedBy returns the commits of consecutive entries.
func statedBy(entries []Entry) (all []uint64) {
	for i := range entries {
		switch e := &entries[i]; {
		case e.Commit == 0 || i > 0 && e.Seq != entries[i-1].Seq+1:
			all = nil
		case len(all) == 0 || all[len(all)-1] != e.Commit:
			all = append(all, e.Commit)
		}
	}
	return all
}

// Past returns the records after the commit of an entry; 0 stands for the state before the first one. The error is
// [ErrGone] if they are not stored.
func (v *View) Past(seq uint64) (records.State, error) {
	commit, err := v.CommitOf(seq)
	if err != nil {
		return records.State{}, err
	}
	return v.after(seq, commit)
}

// PastBefore is Past for the state before the commit to which an entry belongs.
func (v *View) PastBefore(seq uint64) (records.State, error) {
	commit, err := v.CommitOf(seq)
	if err != nil {
		return records.State{}, err
	}
	return v.after(seq-1, commit-1)
}

// after returns the records as they were after all commits up to a number.
func (v *View) after(seq, commit uint64) (records.State, error) {
	var reader kv.Reader
	switch {
	case commit >= v.Head:
		return v.State(), nil
	case commit < v.Remembered && v.Replica != nil:
		return records.State{},
			fmt.Errorf("%w: the state of %s after entry %d; this replica has not kept it: ask the origin, %s", ErrGone, v.Name,
				seq, v.Replica.Origin)
	case commit < v.Horizon:
		return records.State{}, fmt.Errorf("%w: the state of %s after entry %d; the history of %[2]s before %[4]s is pruned",
			ErrGone, v.Name, seq, v.HorizonTime.Format(time.RFC3339Nano))
	case commit < v.Remembered:
		reader = past.Nothing{}
	default:
		reader = past.AsOf(v.tx.Reader(), v.SourceKey(), commit)
	}
	return records.In(v.tx.Over(reader), v.SourceKey()), nil
}

// Changed iterates over the keys of the records' rows that commits after one, up to another, have changed. A first
// version has changed all of its rows.
func (v *View) Changed(after, upTo uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if v.Replica == nil && after < v.Remembered && v.Remembered <= upTo {
			first, err := v.after(v.Remembered, v.Remembered)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, table := range []byte{keys.TableTopic, keys.TableAssociation} {
				for row, err := range first.Tx().Scan(v.SourceKey().Key(table), nil) {
					if !yield(row.Key, err) || err != nil {
						return
					}
				}
			}
		}
		past.Changed(v.tx.Reader(), v.SourceKey(), after+1, upTo)(yield)
	}
}

// ViewOf returns the view of the state that the decision about a publication is given, see [DB.Publish].
func (db *DB) ViewOf(c Collection, state merge.State) *View {
	return &View{Collection: c, db: db, tx: state.(interface{ Tx() *txn.Tx }).Tx()}
}

// forgetPast removes the former rows of the commits before the horizon.
func (db *DB) forgetPast(ctx context.Context, name string) error {
	from, next := uint64(0), uint64(0)
	for more := true; more; from = next {
		_, err := db.updateOf(ctx, name, func(t *txn.Tx, c *Collection) (err error) {
			if more = false; c.Horizon > 0 { // the commit that ends there is known, so that the state after it is
				next, more, err = past.ForgetSome(t, c.SourceKey(), from, c.Horizon-1)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
