package words

import (
	"bytes"
	"iter"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// stored iterates over all entries of a source, sorted. Damaged rows come last with their keys; those of blocks have no
// entries. It returns only the first of many damaged rows.
func stored(t *txn.Tx, id keys.Source) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		c := &checking{tx: t, id: id}
		for m, err := range merged(c.blocks(), c.singles()) {
			if m.single != nil && m.inBlock == (len(m.single) == 0) {
				c.isBad(kindKey(id, kindSingle, m.entry), m.single)
			}
			if err == nil && !m.there() {
				continue
			}
			if !yield(kv.Row{Key: append(id.Index(name), m.entry...), Value: added}, err) || err != nil {
				return
			}
		}
		for _, r := range c.bad {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// mostBad is the number of damaged rows that are reported.
const mostBad = 100

type checking struct {
	tx  *txn.Tx
	id  keys.Source
	bad []kv.Row
}

func (c *checking) isBad(key, value []byte) {
	if len(c.bad) < mostBad {
		c.bad = append(c.bad, kv.Row{Key: bytes.Clone(key), Value: bytes.Clone(value)})
	}
}

// blocks iterates over the entries of consecutive intact blocks.
func (c *checking) blocks() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		table := c.id.Index(name)
		var last []byte
		for r, err := range c.tx.ScanInPlace(table, nil) {
			if err == nil {
				err = c.tx.Context().Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if len(r.Key) > len(table) && r.Key[len(table)] >= kindSingle {
				return
			}
			if len(r.Key) == len(table) || r.Key[len(table)] != kindBlock || !isWhole(r.Value, last, r.Key[len(table)+1:]) {
				c.isBad(r.Key, r.Value)
				continue
			}
			last = append(last[:0], r.Key[len(table)+1:]...)
			for u := (unpacker{rest: r.Value}); u.next(); {
				if !yield(u.entry, nil) {
					return
				}
			}
		}
	}
}

// isWhole reports whether a block is well-formed, its entries ascend from after behind, and it ends with last.
func isWhole(block, behind, last []byte) bool {
	var p packer
	before := behind
	u := unpacker{rest: block}
	for u.next() {
		word, topic, ok := split(u.entry)
		if !ok || bytes.Compare(before, u.entry) >= 0 || bytes.IndexByte(topic, 0) >= 0 {
			return false
		}
		p.add(word, topic)
		before = append([]byte(nil), u.entry...)
	}
	return !u.bad && p.n > 0 && bytes.Equal(before, last) && bytes.Equal(p.packed, block)
}

// singles iterates over single rows.
func (c *checking) singles() iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		table := c.id.Index(name)
		for r, err := range c.tx.ScanInPlace(table, append(bytes.Clone(table), kindSingle)) {
			if err != nil {
				yield(r, err)
				return
			}
			entry := r.Key[len(table)+1:]
			_, _, ok := split(entry)
			if r.Key[len(table)] != kindSingle || !ok || len(r.Value) > 0 && !bytes.Equal(r.Value, gone) {
				c.isBad(r.Key, r.Value)
				continue
			}
			if !yield(kv.Row{Key: entry, Value: r.Value}, nil) {
				return
			}
		}
	}
}
