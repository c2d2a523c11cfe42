package records

import (
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Reading is a State that is only read. Only such a State knows whether it is plain, because otherwise unwritten
// changes would have to be examined, too.
type Reading struct{ State }

// Read returns the records of a generation of a source, to be read.
func Read(t *txn.Tx, id keys.Source) Reading { return Reading{In(t, id)} }

// IsPlain implements [merge.Plain]. No stored record has a role twice, because readers of documents merge these.
func (s Reading) IsPlain() (bool, error) {
	prefix := s.id.Key(keys.TableIdentifier)
	for r, err := range s.tx.Scan(prefix, nil) {
		if err != nil {
			return false, err
		}
		if used, err := s.refersTo(fragment.Ref(r.Key[len(prefix):])); used || err != nil {
			return false, err
		}
	}
	return true, nil
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
