// Package agree compares stored rows with the rows derived from others.
package agree

import (
	"bytes"
	"cmp"
	"iter"

	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Rows collects rows that follow from others, in the order of their keys. What is much is in a file.
type Rows struct {
	extsort.Sorter
	join func(key, a, b []byte) []byte
}

// maxMemory bounds the rows that are sorted in memory, in bytes.
const maxMemory = 32 << 20

// New returns an empty set of rows. If several rows are put under one key, join merges two values; nil takes the
// greater one. memory is the memory for sorting, in bytes; 0: the default.
func New(file string, memory int, join func(key, a, b []byte) []byte) *Rows {
	if join == nil {
		join = func(_, a, b []byte) []byte { return Greater(a, b) }
	}
	return &Rows{extsort.Sorter{Path: file, Most: cmp.Or(memory, maxMemory)}, join}
}

// Greater returns the greater one of two values.
func Greater(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return a
	}
	return b
}

// All iterates over the rows, each key once.
func (r *Rows) All() iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		var held kv.Row
		for sorted, err := range r.Sorted() {
			row := kv.Row{Key: sorted.Key, Value: sorted.Value}
			switch {
			case err != nil:
				yield(kv.Row{}, err)
				return
			case held.Key == nil:
			case bytes.Equal(held.Key, row.Key):
				row.Value = r.join(row.Key, held.Value, row.Value)
			case !yield(held, nil):
				return
			}
			held = row
		}
		if held.Key != nil {
			yield(held, nil)
		}
	}
}

// Difference is a row that is not as it follows from others.
type Difference struct {
	Key, Want, Have []byte // Want is nil if there should be no row, Have if there is none
	Lost            bool   // the row's content is unknown, and cannot be derived again
}

// Compare is [Compare] with the rows.
func (r *Rows) Compare(stored iter.Seq2[kv.Row, error], f func(d Difference) error) error {
	return Compare(r.All(), stored, f)
}

// Compare calls f with each stored row that differs from the derived one. Both sequences are sorted by key; a row need
// be valid until the next one only.
func Compare(follows, stored iter.Seq2[kv.Row, error], f func(d Difference) error) error {
	for p, err := range seq.Pairs(follows, stored, func(w, h kv.Row) int { return bytes.Compare(w.Key, h.Key) }) {
		switch {
		case err != nil:
		case p.B == nil:
			err = f(Difference{Key: p.A.Key, Want: there(p.A.Value)})
		case p.A == nil:
			err = f(Difference{Key: p.B.Key, Have: there(p.B.Value)})
		case !bytes.Equal(p.A.Value, p.B.Value):
			err = f(Difference{Key: p.A.Key, Want: there(p.A.Value), Have: there(p.B.Value)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// there returns the value of a row that is there, which is not nil.
func there(value []byte) []byte { return append([]byte{}, value...) }

// Kept returns a difference that stays valid.
func (d Difference) Kept() Difference {
	d.Key = bytes.Clone(d.Key)
	return d
}

// Mend makes the row as it must be, in an update.
func (d *Difference) Mend(t *txn.Tx) error {
	if d.Want == nil {
		return t.Delete(d.Key)
	}
	return t.Put(d.Key, d.Want)
}
