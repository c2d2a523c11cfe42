package words

import (
	"bytes"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Index returns the index.
func Index() txn.Index {
	return txn.Index{
		Name: name, Rules: rules, Change: change, Stored: stored,
		Collect: func(id keys.Source, check bool, add func(key, value []byte) error) txn.Collector {
			return &collector{id: id, give: add, each: check}
		},
		Pack: func(id keys.Source, put func(key, value []byte) error) txn.Packer { return &blocks{id: id, put: put} },
	}
}

const (
	name  = "words"
	start = keys.SourceSize + len(name) + 1 // of the entry in a key
)

// The kinds of rows: the first byte after the name of the index. They are greater than all ranks.
const (
	kindBlock  = 'b' // the last entry of the block → all its entries
	kindSingle = 'd' // an entry → how it differs from the blocks
)

// The values of single rows.
var (
	added = []byte{}    // the entry is in no block
	gone  = []byte{'-'} // the entry is in a block, and the topic no longer has it
)

// perBlock is the maximum number of entries of a block, and blockBytes its approximate limit of bytes.
const (
	perBlock   = 128
	blockBytes = 4 << 10
)

// appendEntry appends an entry as keys have it. Words and locators have no zero byte.
func appendEntry(b []byte, e Entry, topic fragment.Ref) []byte {
	b = append(append(append(b, byte(e.Rank)), e.Word...), 0)
	return append(b, topic...)
}

// kindKey returns the key of a row of a kind.
func kindKey(id keys.Source, kind byte, entry []byte) []byte {
	return append(append(id.Index(name), kind), entry...)
}

// split splits an entry into its word with the rank before it, and the topic. ok is false for invalid entries.
func split(entry []byte) (word, topic []byte, ok bool) {
	word, topic, ok = bytes.Cut(entry, []byte{0})
	return word[:len(word):len(word)], topic, ok && len(word) > 1 && len(topic) > 0
}

// topicOf returns the topic of an entry.
func topicOf(entry []byte) fragment.Ref {
	_, topic, _ := split(entry)
	return fragment.Ref(topic)
}

// packer writes consecutive entries, each by its difference from the previous one.
type packer struct {
	packed      []byte
	word, topic []byte
	n           int
}

func (p *packer) reset() { p.packed, p.word, p.topic, p.n = nil, p.word[:0], p.topic[:0], 0 }

func (p *packer) add(word, topic []byte) {
	p.packed = keys.AppendShared(keys.AppendShared(p.packed, p.word, word), p.topic, topic)
	p.word, p.topic = append(p.word[:0], word...), append(p.topic[:0], topic...)
	p.n++
}

// unpacker reads the output of a packer.
type unpacker struct {
	rest        []byte
	fits        func(word []byte) bool // nil: all entries are read
	word, topic []byte
	entry       []byte
	bad         bool
}

// next advances to the next entry, which is valid until the next call, and reports whether there is one.
func (u *unpacker) next() (ok bool) {
	for len(u.rest) > 0 && !u.bad {
		if u.word, u.rest, ok = keys.NextShared(u.rest, u.word); ok {
			u.topic, u.rest, ok = keys.NextShared(u.rest, u.topic)
		}
		if u.bad = !ok; u.bad || u.fits == nil || u.fits(u.word) {
			u.entry = append(append(append(u.entry[:0], u.word...), 0), u.topic...)
			return ok
		}
	}
	return false
}
