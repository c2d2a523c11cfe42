package statedigest

import (
	"iter"

	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/seq"
)

// Set has the entries of a state, sorted by their items. A large one uses a file.
type Set struct{ sorter extsort.Sorter }

// NewSet returns an empty set. Its file has the given path; it has about so many bytes in memory.
func NewSet(path string, memory int) *Set {
	return &Set{extsort.Sorter{Path: path, Most: memory}}
}

// Add adds an entry.
func (s *Set) Add(e Entry) error {
	row := append(append(make([]byte, 0, len(e.Item)+len(e.Owner)), e.Item[:]...), e.Owner...)
	return s.sorter.Add(row[:len(e.Item):len(e.Item)], row[len(e.Item):])
}

// Close removes the file.
func (s *Set) Close() error { return s.sorter.Close() }

// Entries iterates over the entries in the order of their items.
func (s *Set) Entries() iter.Seq2[Entry, error] {
	return seq.Map(s.sorter.Sorted(), func(row extsort.Row) (Entry, error) {
		e := Entry{Owner: string(row.Value)}
		copy(e.Item[:], row.Key)
		return e, nil
	})
}

// Digest returns the digest of the state.
func (s *Set) Digest() (Digest, error) {
	var root Node
	err := Build(s.Entries(), func(path, row []byte) error {
		if len(path) == 0 {
			n, _ := unmarshal(row)
			root = *n
		}
		return nil
	})
	return root.Digest(), err
}

// Differing calls f with the owner of each entry that is in one of two sets alone.
func Differing(a, b *Set, f func(owner string)) error {
	for p, err := range seq.Pairs(a.Entries(), b.Entries(), func(a, b Entry) int { return a.compare(&b) }) {
		switch {
		case err != nil:
			return err
		case p.B == nil:
			f(p.A.Owner)
		case p.A == nil:
			f(p.B.Owner)
		}
	}
	return nil
}
