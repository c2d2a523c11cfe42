package past

import (
	"errors"
	"iter"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// CommitOf returns the number of the first commit that is not before a sequence: the one to which the entry with the sequence belongs. It is 0
// where there is none.
func CommitOf(now kv.Reader, id keys.Source, seq uint64) (uint64, error) {
	for row, err := range now.Range(id.Key(keys.TableChanged), id.Changed(seq, 0), false) {
		if err != nil {
			return 0, err
		}
		commit, _, ok := keys.OfChanged(row.Key)
		if !ok {
			return 0, corrupt(row.Key)
		}
		return commit, nil
	}
	return 0, nil
}

// CommitBefore returns the number of the last commit before another one, 0 where there is none.
func CommitBefore(now kv.Reader, id keys.Source, commit uint64) (uint64, error) {
	for row, err := range now.Range(id.Key(keys.TableChanged), id.Changed(commit, 0), true) {
		if err != nil {
			return 0, err
		}
		before, _, ok := keys.OfChanged(row.Key)
		if !ok {
			return 0, corrupt(row.Key)
		}
		if before < commit {
			return before, nil
		}
	}
	return 0, nil
}

// errEnough ends reading a part.
var errEnough = errors.New("enough")

// Changed iterates over the keys of the rows that commits have changed, from the first number to the last: in the order of commits, and of
// each in that of keys.
func Changed(now kv.Reader, id keys.Source, first, last uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for row, err := range now.Range(id.Key(keys.TableChanged), id.Changed(first, 0), false) {
			commit, _, ok := uint64(0), uint32(0), err == nil
			if ok {
				commit, _, ok = keys.OfChanged(row.Key)
			}
			switch {
			case err != nil:
				yield(nil, err)
				return
			case !ok:
				yield(nil, corrupt(row.Key))
				return
			case commit > last:
				return
			}
			err = keysOf(row, func(relative []byte) error {
				if !yield(id.Record(relative), nil) {
					return errEnough
				}
				return nil
			})
			if err != nil && !errors.Is(err, errEnough) {
				yield(nil, err)
			}
			if err != nil {
				return
			}
		}
	}
}

// ForgetSome removes some of what is remembered of commits up to a number. It reports whether there may be more.
func ForgetSome(t *txn.Tx, id keys.Source, upTo uint64) (more bool, err error) {
	parts := 0
	for row, err := range t.Scan(id.Key(keys.TableChanged), nil) {
		if err != nil {
			return false, err
		}
		commit, _, ok := keys.OfChanged(row.Key)
		switch {
		case !ok:
			return false, corrupt(row.Key)
		case commit > upTo:
			return false, nil
		case parts == partsAtOnce:
			return true, nil
		}
		parts++
		err = keysOf(row, func(relative []byte) error { return t.Delete(id.Before(id.Record(relative), commit)) })
		if err == nil {
			err = t.Delete(row.Key)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// partsAtOnce is how many parts go in one commit.
const partsAtOnce = 200
