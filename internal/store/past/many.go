package past

import (
	"bytes"
	"iter"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
)

// distantReader is a Reader over an engine for which each question takes its time.
type distantReader struct {
	*Reader
	many kv.ManyReader
}

// ReadMany implements [kv.ManyReader]: it reads the present rows and their former versions in one query.
func (r *distantReader) ReadMany(keys, prefixes [][]byte, most int, value func(key, value []byte),
	rows func(prefix []byte, rows []kv.Row, more bool)) error {
	var asked [][]byte
	for _, key := range keys {
		if err := r.check(key); err != nil {
			return err
		}
		asked = append(asked, r.id.BeforeRow(key))
	}
	for _, prefix := range prefixes {
		if err := r.check(prefix); err != nil {
			return err
		}
		asked = append(asked, prefix, r.id.BeforePrefix(prefix))
	}
	type few struct {
		rows []kv.Row
		more bool
	}
	now, found := map[string][]byte{}, map[string]few{}
	err := r.many.ReadMany(keys, asked, most, func(key, value []byte) { now[string(key)] = value },
		func(prefix []byte, rows []kv.Row, more bool) { found[string(prefix)] = few{rows, more} })
	if err != nil {
		return err
	}
	for _, key := range keys {
		olds, answered := found[string(r.id.BeforeRow(key))]
		present, known := now[string(key)]
		changed := false
		for old := range r.firsts(olds.rows) {
			changed = true
			value(key, was(old.Value))
		}
		if !changed && answered && !olds.more && known {
			value(key, present)
		}
	}
	for _, prefix := range prefixes {
		present, known := found[string(prefix)]
		olds, answered := found[string(r.id.BeforePrefix(prefix))]
		if known && answered && !present.more && !olds.more {
			var some []kv.Row
			more := false
			for row := range merge(seq.Of(present.rows...), r.firsts(olds.rows), false) {
				if more = len(some) == most; more {
					break
				}
				some = append(some, row)
			}
			rows(prefix, some, more)
		}
	}
	return nil
}

// firsts iterates over the rows that have changed since the commit, among some stored versions: the first one of each
// row counts.
func (r *Reader) firsts(olds []kv.Row) iter.Seq2[kv.Row, error] {
	var last []byte
	return seq.Map(seq.Of(olds...), func(old kv.Row) (kv.Row, error) {
		key, commit, ok := r.id.OfBefore(old.Key)
		if !ok || commit <= r.commit || bytes.Equal(key, last) {
			return old, seq.ErrSkip
		}
		last = key
		return kv.Row{Key: key, Value: old.Value}, nil
	})
}
