package records

import (
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Reading is a State that is only read. It knows its aliases, for which one that changes would have to look at what is not written yet.
type Reading struct{ State }

// Read returns the records of a generation of a source, to be read.
func Read(t *txn.Tx, id keys.Source) Reading { return Reading{Of(t, id)} }

// Aliases implements [merge.Aliased].
func (s Reading) Aliases() iter.Seq2[fragment.Ref, error] {
	return func(yield func(fragment.Ref, error) bool) {
		prefix := s.id.Key(keys.TableIdentifier)
		for r, err := range s.tx.Scan(prefix, nil) {
			si := fragment.Ref(r.Key[len(prefix):])
			used := err != nil
			if !used {
				used, err = s.refersTo(si)
			}
			if (used || err != nil) && (!yield(si, err) || err != nil) {
				return
			}
		}
	}
}

// refersTo reports whether a record refers to a topic by this subject identifier.
func (s Reading) refersTo(si fragment.Ref) (bool, error) {
	n, err := s.Mentions(si)
	if n > 0 || err != nil {
		return n > 0, err
	}
	first := s.id.PlayingPrefix(si, fragment.AsInstance)
	for _, err := range s.tx.Scan(first[:len(first)-1], nil) {
		return err == nil, err
	}
	return false, nil
}
