package kv

import "iter"

// ManyReader is a Reader of an engine whose reads are network round trips, such as a database on another machine. It
// answers many queries in one.
type ManyReader interface {
	Reader

	// ReadMany is [Reader.Get] of keys, and [Reader.Range] of the first rows of prefixes, most of each. It calls value
	// with the value of a key, and rows with the first rows of a prefix; more reports that there may be others after
	// them. The arguments do not change, and must not be changed.
	//
	// It leaves out large values, which the caller reads singly. Each key and each prefix may occur once.
	ReadMany(keys, prefixes [][]byte, most int, value func(key, value []byte),
		rows func(prefix []byte, rows []Row, more bool)) error
}

// Single is a ManyReader whose Get and Range use ReadMany, too, because that caches, or combines queries. For values
// that it leaves out, and ranges that do not begin with the first row, they use Alone.
type Single struct {
	ManyReader
	Alone Reader
}

// The numbers of rows of a prefix that are read with a key, and by Range.
const (
	fewWithKey = 8
	fewInRange = 64
)

// Get implements [Reader].
func (s Single) Get(key []byte) (value []byte, err error) {
	known := false
	err = s.ReadMany([][]byte{key}, nil, fewWithKey, func(_, v []byte) { value, known = v, true }, nil)
	if known || err != nil {
		return value, err
	}
	return s.Alone.Get(key)
}

// Range implements [Reader].
func (s Single) Range(prefix, from []byte, reverse bool) iter.Seq2[Row, error] {
	if reverse || from != nil {
		return s.Alone.Range(prefix, from, reverse)
	}
	return func(yield func(Row, error) bool) {
		more := true
		var first []Row
		if err := s.ReadMany(nil, [][]byte{prefix}, fewInRange, nil, func(_ []byte, rows []Row, others bool) {
			first, more = rows, others
		}); err != nil {
			yield(Row{}, err)
			return
		}
		var behind []byte
		for _, row := range first {
			if !yield(row, nil) {
				return
			}
			behind = append(row.Key[:len(row.Key):len(row.Key)], 0)
		}
		if more {
			s.Alone.Range(prefix, behind, false)(yield)
		}
	}
}
