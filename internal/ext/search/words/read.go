package words

import (
	"bytes"
	"iter"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// entriesWith iterates over the entries of a source with a prefix (a rank and the beginning of a word) after the given
// entry. Each is valid until the next one.
func entriesWith(t *txn.Tx, id keys.Source, prefix, after []byte) iter.Seq2[[]byte, error] {
	return entriesThat(t, id, prefix, after, nil)
}

// entriesThat is entriesWith without most entries that do not fit, of which the words are given with their rank.
func entriesThat(t *txn.Tx, id keys.Source, prefix, after []byte,
	fits func(word []byte) bool) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		from := prefix
		if bytes.Compare(after, prefix) > 0 {
			from = append(bytes.Clone(after), 0)
		}
		if t.Changing() {
			if err := changesOf(t, id).writeEarly(); err != nil {
				yield(nil, err)
				return
			}
		}
		for m, err := range merged(inBlocks(t, id, prefix, from, fits), inSingles(t, id, prefix, from)) {
			if err == nil && !m.there() {
				continue
			}
			if !yield(m.entry, err) || err != nil {
				return
			}
		}
	}
}

// mergedEntry is an entry that is in a block, or has a single row, or both.
type mergedEntry struct {
	entry   []byte
	inBlock bool
	single  []byte // nil: none
}

func (m *mergedEntry) there() bool {
	if m.single == nil {
		return m.inBlock
	}
	return len(m.single) == 0
}

// merged iterates over the entries of blocks and of single rows in their order.
func merged(blocks iter.Seq2[[]byte, error], singles iter.Seq2[kv.Row, error]) iter.Seq2[mergedEntry, error] {
	return func(yield func(mergedEntry, error) bool) {
		for p, err := range seq.Pairs(blocks, singles, func(entry []byte, single kv.Row) int {
			return bytes.Compare(entry, single.Key)
		}) {
			m := mergedEntry{inBlock: p.A != nil}
			if m.inBlock {
				m.entry = *p.A
			}
			if p.B != nil {
				m.entry, m.single = p.B.Key, append(added, p.B.Value...)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// inBlocks iterates over the entries in blocks with a prefix that fits accepts, from one on. It skips damaged blocks.
func inBlocks(t *txn.Tx, id keys.Source, prefix, from []byte, fits func([]byte) bool) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for r, err := range t.ScanInPlace(kindKey(id, kindBlock, prefix[:1]), kindKey(id, kindBlock, from)) {
			if err != nil {
				yield(nil, err)
				return
			}
			for u := (unpacker{rest: r.Value, fits: fits}); u.next(); {
				if bytes.Compare(u.entry, from) < 0 {
					continue
				}
				if !bytes.HasPrefix(u.entry, prefix) || !yield(u.entry, nil) {
					return
				}
			}
		}
	}
}

// inSingles iterates over the single rows of entries that begin with a prefix, from one on. Their keys are the entries.
func inSingles(t *txn.Tx, id keys.Source, prefix, from []byte) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		for r, err := range t.ScanInPlace(kindKey(id, kindSingle, prefix), kindKey(id, kindSingle, from)) {
			if err == nil {
				r.Key = r.Key[start+1:]
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
