package store

import (
	"fmt"
	"iter"
	"time"
)

// Since iterates over the last entry of each topic among those that are not
// before a time and behind the sequence after, ascending. It is ErrGone where
// entries since then have been pruned.
func (v *View) Since(since time.Time, after uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if v.Horizon > 0 && !since.After(v.HorizonTime) {
			yield(Entry{}, fmt.Errorf("%w: the entries of collection %q up to %s", ErrGone, v.Name, v.HorizonTime.Format(time.RFC3339Nano)))
			return
		}
		first, err := v.firstSince(since)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for e, err := range v.Entries(max(first, after+1)) {
			if err == nil {
				var last bool
				if last, err = v.isLast(&e); err == nil && !last {
					continue
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
