package past

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// ErrNotRemembered is the error for a row of a table whose former versions are not stored.
var ErrNotRemembered = errors.New("it is not remembered what these rows were")

// Reader is a [kv.Reader] of the records of a source after a commit. For all other keys the error is
// [ErrNotRemembered]. It has no version.
type Reader struct {
	now    kv.Reader
	id     keys.Source
	commit uint64
}

// AsOf returns a reader of the rows after a commit: those before the first commit with a higher number. It is valid as
// long as now.
func AsOf(now kv.Reader, id keys.Source, commit uint64) kv.Reader {
	r := &Reader{now, id, commit}
	if many, ok := now.(kv.ManyReader); ok {
		return kv.Single{ManyReader: &distantReader{r, many}, Alone: r}
	}
	return r
}

// Version implements [kv.Reader].
func (r *Reader) Version() (v kv.Version) { return v }

// Close implements [kv.Reader]. It does not close the reader of the present state.
func (r *Reader) Close() {}

func (r *Reader) check(key []byte) error {
	if !r.id.Remembered(key) {
		return fmt.Errorf("%w: %.40q", ErrNotRemembered, key)
	}
	return nil
}

// Get implements [kv.Reader].
func (r *Reader) Get(key []byte) ([]byte, error) {
	if err := r.check(key); err != nil {
		return nil, err
	}
	before, err := r.before(key)
	if before != nil || err != nil {
		return was(before), err
	}
	return r.now.Get(key)
}

// before returns the stored version of a row after the commit, nil if it has not changed since.
func (r *Reader) before(key []byte) ([]byte, error) {
	for row, err := range r.now.Range(r.id.BeforeRow(key), r.id.Before(key, r.commit+1), false) {
		return append([]byte{}, row.Value...), err
	}
	return nil, nil
}

// was returns the former value of a row, nil for none.
func was(before []byte) []byte {
	if len(before) == 0 {
		return nil
	}
	return before[1:]
}

// Range implements [kv.Reader].
func (r *Reader) Range(prefix, from []byte, reverse bool) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		if err := r.check(prefix); err != nil {
			yield(kv.Row{}, err)
			return
		}
		olds := &changes{Reader: r, prefix: prefix, reverse: reverse}
		switch behind := from != nil && bytes.Compare(from, prefix) > 0; {
		case from == nil:
		case bytes.HasPrefix(from, prefix):
			olds.from = from
		case behind != reverse: // nothing of the prefix remains
			return
		}
		merge(r.now.Range(prefix, from, reverse), olds.all, reverse)(yield)
	}
}

// merge iterates over the present rows, with the former versions in place of changed ones.
func merge(now, olds iter.Seq2[kv.Row, error], reverse bool) iter.Seq2[kv.Row, error] {
	order := func(a, b kv.Row) int { return bytes.Compare(a.Key, b.Key) }
	if reverse {
		order = func(a, b kv.Row) int { return bytes.Compare(b.Key, a.Key) }
	}
	return seq.Map(seq.Pairs(now, olds, order), func(p seq.Pair[kv.Row, kv.Row]) (row kv.Row, err error) {
		if p.B == nil {
			return *p.A, nil
		}
		if row = (kv.Row{Key: p.B.Key, Value: was(p.B.Value)}); row.Value == nil {
			err = seq.ErrSkip
		}
		return row, err
	})
}

// fewOld is the number of rows of one key up to which passing over them singly costs less than seeking.
const fewOld = 8

// changes iterates over the rows with a prefix that have changed since a commit, by key.
type changes struct {
	*Reader
	prefix, from []byte
	reverse      bool

	found kv.Row // the present row: its former version
	err   error

	rows func() (kv.Row, error, bool)
	end  func()

	row     kv.Row // the next row, if ahead
	ahead   bool
	nothing bool // is left
}

func (c *changes) stop() {
	if c.end != nil {
		c.end()
		c.end = nil
	}
}

// begin reads from a row on, nil for the first.
func (c *changes) begin(from []byte) {
	c.stop()
	c.rows, c.end = iter.Pull2(c.now.Range(c.id.BeforePrefix(c.prefix), from, c.reverse))
	c.ahead = false
}

// step reads the next row, and reports whether there is one.
func (c *changes) step() (key []byte, commit uint64, ok bool) {
	if !c.ahead {
		if c.row, c.err, ok = c.rows(); !ok || c.err != nil {
			c.nothing = true
			return nil, 0, false
		}
		c.ahead = true
	}
	if key, commit, ok = c.id.OfBefore(c.row.Key); !ok {
		c.err, c.nothing = corrupt(c.row.Key), true
	}
	return key, commit, ok
}

// all iterates over the rows that have changed, with their former values.
func (c *changes) all(yield func(kv.Row, error) bool) {
	defer c.stop()
	c.begin(c.first())
	for !c.nothing && c.err == nil {
		if key, commit, ok := c.step(); ok && c.has(key, commit) && c.err == nil && !yield(c.found, nil) {
			return
		}
	}
	if c.err != nil {
		yield(kv.Row{}, c.err)
	}
}

// first returns the key of the row to begin with.
func (c *changes) first() []byte {
	switch {
	case c.from == nil:
		return nil
	case c.reverse:
		return c.id.Before(c.from, ^uint64(0))
	}
	return c.id.BeforePrefix(c.from)
}

// has finds the former version of the row with a key, and passes over the others of that row. It reports whether the
// row has changed.
func (c *changes) has(key []byte, commit uint64) (found bool) {
	wanted := c.from == nil || c.reverse == (bytes.Compare(key, c.from) < 0) || bytes.Equal(key, c.from)
	for passed := 0; ; passed++ {
		if commit > c.commit && wanted && !found {
			found, c.found = true, kv.Row{Key: key, Value: bytes.Clone(c.row.Value)}
			if c.reverse { // the first of them counts
				c.found.Value, c.err = c.before(key)
			}
		}
		c.ahead = false
		if passed == fewOld {
			switch {
			case c.reverse:
				c.begin(c.id.BeforePrefix(key))
				return found
			case found || !wanted:
				c.begin(append(c.id.BeforePrefix(key), 1))
				return found
			}
			passed = 0
			c.begin(c.id.Before(key, c.commit+1))
		}
		next, at, ok := c.step()
		if !ok || !bytes.Equal(next, key) {
			return found
		}
		commit = at
	}
}

// Nothing is the [kv.Reader] of a state without rows.
type Nothing struct{}

// Get implements [kv.Reader].
func (Nothing) Get([]byte) ([]byte, error) { return nil, nil }

// Range implements [kv.Reader].
func (Nothing) Range(_, _ []byte, _ bool) iter.Seq2[kv.Row, error] {
	return func(func(kv.Row, error) bool) {}
}

// Version implements [kv.Reader].
func (Nothing) Version() (v kv.Version) { return v }

// Close implements [kv.Reader].
func (Nothing) Close() {}
