package words

import (
	"bytes"
	"iter"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Entries iterates over the entries of a source that begin with a prefix, a rank and the beginning of a word, behind the entry after. Each is
// valid until the next one.
func Entries(t *txn.Tx, id keys.Source, prefix, after []byte) iter.Seq2[[]byte, error] {
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
		merged(inBlocks(t, id, prefix, from), inSingles(t, id, prefix, from), func(m mergedEntry, err error) bool {
			return err == nil && !m.there() || yield(m.entry, err)
		})
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

// merged yields the entries of blocks and of single rows in their order.
func merged(blocks iter.Seq2[[]byte, error], singles iter.Seq2[kv.Row, error], yield func(mergedEntry, error) bool) {
	next, stop := iter.Pull2(singles)
	defer stop()
	single, err, more := next()
	// before yields the single rows up to an entry, nil for all, and returns the value of the one of that entry.
	before := func(entry []byte) (value []byte, ok bool) {
		for more {
			if err != nil {
				yield(mergedEntry{}, err)
				return nil, false
			}
			order := -1
			if entry != nil {
				order = bytes.Compare(single.Key, entry)
			}
			if order > 0 {
				return nil, true
			}
			if order == 0 {
				value = bytes.Clone(single.Value)
				if value == nil {
					value = added
				}
				single, err, more = next()
				return value, true
			}
			value := single.Value
			if value == nil {
				value = added
			}
			if !yield(mergedEntry{entry: single.Key, single: value}, nil) {
				return nil, false
			}
			single, err, more = next()
		}
		return nil, true
	}
	for entry, failed := range blocks {
		if failed != nil {
			yield(mergedEntry{}, failed)
			return
		}
		value, ok := before(entry)
		if !ok || !yield(mergedEntry{entry, true, value}, nil) {
			return
		}
	}
	before(nil)
}

// inBlocks iterates over the entries in blocks that begin with a prefix, from one on. Blocks that cannot be read have none.
func inBlocks(t *txn.Tx, id keys.Source, prefix, from []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for r, err := range t.ScanInPlace(kindKey(id, kindBlock, prefix[:1]), kindKey(id, kindBlock, from)) {
			if err != nil {
				yield(nil, err)
				return
			}
			for u := (unpacker{rest: r.Value}); u.next(); {
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
		start := keys.SourceSize + 1
		for r, err := range t.ScanInPlace(kindKey(id, kindSingle, prefix), kindKey(id, kindSingle, from)) {
			if err == nil {
				r.Key = r.Key[start:]
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
