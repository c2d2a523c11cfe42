package kv

import "iter"

// ManyReader is a Reader of an engine for which each question takes its time, however little it asks for: one whose
// database may be on another machine. It answers many questions at once.
type ManyReader interface {
	Reader

	// ReadMany is [Reader.Get] of keys, and [Reader.Range] of the first rows of prefixes, at most so many of each. It
	// calls value with the value of a key, and rows with the first rows of a prefix; more says that there may be others
	// behind them. What these are given stays as it is, and must not be changed.
	//
	// Large values are left out: the caller reads each of them alone. Each key and each prefix is to be given once.
	ReadMany(keys, prefixes [][]byte, most int, value func(key, value []byte),
		rows func(prefix []byte, rows []Row, more bool)) error
}

// Single is a ManyReader of which Get and Range ask by ReadMany too: that knows more, or asks together with others.
// What it leaves out, and whatever does not begin with the first row, Alone is asked for.
type Single struct {
	ManyReader
	Alone Reader
}

// How many rows of a prefix are asked for with a key, and by Range.
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
