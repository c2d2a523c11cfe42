package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// CommitOf returns the sequence of the last entry of the commit to which an entry belongs. Of a replica it is the next entry
// behind which there was a state of its records.
func (v *View) CommitOf(seq uint64) (uint64, error) {
	if seq == 0 || seq >= v.Head {
		return min(seq, v.Head), nil
	}
	commit, err := past.CommitOf(v.tx.Reader(), v.SourceKey(), seq)
	if commit == 0 || commit > v.Head {
		commit = v.Head
	}
	return commit, err
}

// Past returns the records as they were after the commit to which an entry belongs; 0 stands for the state before the first one. The error is [ErrGone]
// where nobody remembers that.
func (v *View) Past(seq uint64) (records.State, error) {
	commit, err := v.CommitOf(seq)
	if err != nil {
		return records.State{}, err
	}
	now := v.tx.Reader()
	var reader kv.Reader
	switch {
	case commit == v.Head:
		return v.State(), nil
	case commit < v.Remembered && v.Replica != nil:
		return records.State{}, fmt.Errorf("%w: the state of %s after entry %d; this replica has none before entry %d: ask the origin, %s", ErrGone, v.Name, seq, v.Remembered, v.Replica.Origin)
	case seq < v.Horizon:
		return records.State{}, fmt.Errorf("%w: the state of %s after entry %d; its history before %s is pruned", ErrGone, v.Name, seq, v.HorizonTime.Format(time.RFC3339Nano))
	case commit < v.Remembered:
		reader = past.Nothing{}
	default:
		reader = past.AsOf(now, v.SourceKey(), commit)
	}
	return records.Of(txn.Over(v.Context(), reader), v.SourceKey()), nil
}

// ChangedSince iterates over the keys of the rows of records that commits have changed which end behind the sequence after, up to the one that ends with
// the sequence upTo.
func (v *View) ChangedSince(after, upTo uint64) iter.Seq2[[]byte, error] {
	return past.Changed(v.tx.Reader(), v.SourceKey(), after+1, upTo)
}

// forgetPast removes what is remembered of the commits behind the horizon.
func (db *DB) forgetPast(ctx context.Context, name string) error {
	for more := true; more; {
		_, err := db.update(ctx, name, nil, func(t *txn.Tx, c *Collection) (err error) {
			more, err = past.ForgetSome(t, c.SourceKey(), c.Horizon)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
