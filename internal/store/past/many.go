package past

import (
	"bytes"

	"github.com/tmshare/tmshare/internal/kv"
)

// distantReader is a Reader over an engine for which each question takes its time.
type distantReader struct {
	*Reader
	many kv.ManyReader
}

// ReadMany implements [kv.ManyReader]: it asks for the present rows and for what they were at once.
func (r *distantReader) ReadMany(keys, prefixes [][]byte, most int, value func(key, value []byte), rows func(prefix []byte, rows []kv.Row, more bool)) error {
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
		for _, row := range olds.rows {
			if _, commit, ok := r.id.OfBefore(row.Key); ok && commit > r.commit {
				changed = true
				value(key, was(row.Value))
				break
			}
		}
		if !changed && answered && !olds.more && known {
			value(key, present)
		}
	}
	for _, prefix := range prefixes {
		present, known := found[string(prefix)]
		olds, answered := found[string(r.id.BeforePrefix(prefix))]
		if known && answered && !present.more && !olds.more {
			some, more := r.together(present.rows, olds.rows, most)
			rows(prefix, some, more)
		}
	}
	return nil
}

// together returns the first of some rows as they were: all that are there now, and all that is remembered of them.
func (r *distantReader) together(now, olds []kv.Row, most int) (some []kv.Row, more bool) {
	add := func(row kv.Row) {
		if len(some) == most {
			more = true
		} else {
			some = append(some, row)
		}
	}
	for len(now)+len(olds) > 0 {
		var key, value []byte
		changed := false
		if len(olds) > 0 {
			key, _, _ = r.id.OfBefore(olds[0].Key)
		}
		if len(now) > 0 && (key == nil || bytes.Compare(now[0].Key, key) < 0) {
			add(now[0])
			now = now[1:]
			continue
		}
		for len(olds) > 0 {
			same, commit, _ := r.id.OfBefore(olds[0].Key)
			if !bytes.Equal(same, key) {
				break
			}
			if commit > r.commit && !changed {
				changed, value = true, was(olds[0].Value)
			}
			olds = olds[1:]
		}
		if len(now) > 0 && bytes.Equal(now[0].Key, key) {
			if !changed {
				value = now[0].Value
			}
			now = now[1:]
		}
		if value != nil {
			add(kv.Row{Key: key, Value: value})
		}
	}
	return some, more
}
