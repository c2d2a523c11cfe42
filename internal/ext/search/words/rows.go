package words

import (
	"bytes"
	"encoding/binary"

	"github.com/tmshare/tmshare/fragment"
	search "github.com/tmshare/tmshare/internal/ext/search/text"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// The kinds of rows, the first byte behind what names the source. They are greater than all ranks.
const (
	kindBlock  = 'b' // the last entry of the block → all its entries
	kindSingle = 'd' // an entry → how it differs from the blocks
)

// The values of single rows.
var (
	added = []byte{}    // the entry is in no block
	gone  = []byte{'-'} // the entry is in a block, and the topic has it no more
)

// perBlock is how many entries a block has, and blockBytes how many bytes, about, if those are fewer.
const (
	perBlock   = 128
	blockBytes = 4 << 10
)

// appendEntry appends an entry as keys have it. Words and locators have no zero byte.
func appendEntry(b []byte, e search.Entry, topic fragment.Ref) []byte {
	b = append(append(append(b, byte(e.Rank)), e.Word...), 0)
	return append(b, topic...)
}

// Entry returns an entry of a topic as keys have it.
func Entry(e search.Entry, topic fragment.Ref) []byte { return appendEntry(nil, e, topic) }

// Key returns the key under which an entry is told of in lists of what there should be: no row has it.
func Key(id keys.Source, entry []byte) []byte { return append(id.Key(keys.TableWord), entry...) }

// kindKey returns the key of a row of a kind.
func kindKey(id keys.Source, kind byte, entry []byte) []byte {
	return append(append(id.Key(keys.TableWord), kind), entry...)
}

// split takes an entry apart: its word with the rank before it, and the topic. ok is false where it is none.
func split(entry []byte) (word, topic []byte, ok bool) {
	word, topic, ok = bytes.Cut(entry, []byte{0})
	return word, topic, ok && len(word) > 1 && len(topic) > 0
}

// Topic returns the topic of an entry.
func Topic(entry []byte) fragment.Ref {
	_, topic, _ := split(entry)
	return fragment.Ref(topic)
}

// packer writes entries one behind the other, each by what differs from the one before.
type packer struct {
	packed      []byte
	word, topic []byte
	n           int
}

func (p *packer) reset() { p.packed, p.word, p.topic, p.n = nil, p.word[:0], p.topic[:0], 0 }

func (p *packer) add(word []byte, topic fragment.Ref) {
	p.packed, p.word = appendPart(p.packed, p.word, string(word))
	p.packed, p.topic = appendPart(p.packed, p.topic, string(topic))
	p.n++
}

// appendPart appends what differs from the last text, and makes that the new one.
func appendPart(packed, last []byte, now string) (to, text []byte) {
	same := 0
	for same < len(last) && same < len(now) && last[same] == now[same] {
		same++
	}
	packed = binary.AppendUvarint(packed, uint64(same))
	packed = binary.AppendUvarint(packed, uint64(len(now)-same))
	return append(packed, now[same:]...), append(last[:same], now[same:]...)
}

// unpacker reads what a packer has written.
type unpacker struct {
	rest  []byte
	entry []byte // the word, a zero byte, the topic
	word  int    // length of the word
	bad   bool
}

// next reports whether there is another entry, which is valid until the next one.
func (u *unpacker) next() bool {
	if len(u.rest) == 0 || u.bad {
		return false
	}
	same, rest := u.part()
	topicSame, topicRest := u.part()
	oldTopic := u.entry[min(len(u.entry), u.word+1):]
	if u.bad || same > u.word || topicSame > len(oldTopic) {
		u.bad = true
		return false
	}
	if same == u.word && len(rest) == 0 && u.word > 0 { // the same word: most often so
		u.entry = append(u.entry[:u.word+1+topicSame], topicRest...)
		return true
	}
	next := make([]byte, 0, same+len(rest)+1+topicSame+len(topicRest)+16)
	next = append(append(next, u.entry[:same]...), rest...)
	u.word = len(next)
	next = append(append(next, 0), oldTopic[:topicSame]...)
	u.entry = append(next, topicRest...)
	return true
}

func (u *unpacker) part() (same int, rest []byte) {
	s, n := binary.Uvarint(u.rest)
	if n <= 0 {
		u.bad = true
		return 0, nil
	}
	l, m := binary.Uvarint(u.rest[n:])
	if m <= 0 || l > uint64(len(u.rest)-n-m) || s > 1<<20 {
		u.bad = true
		return 0, nil
	}
	rest = u.rest[n+m : n+m+int(l)]
	u.rest = u.rest[n+m+int(l):]
	return int(s), rest
}
