package collections

import (
	"encoding/binary"
	"errors"
	"iter"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// A collection that is created with a map has an entry for each of its topics. They differ only in their TopicSIs. So a
// row stores these of many entries, and the common properties are stored once.

// Beginning holds the common properties of the loaded first entries of a log. Their sequences are 1 to Entries. They
// are one commit.
type Beginning struct {
	Entries      uint64
	From         time.Time // of the first; each is a microsecond later than the one before
	Run          uint32
	Author, Note string `json:",omitempty"`
	Digest       string // of the state after them; the last one states it
	Language     string `json:",omitempty"` // of the collection then: the titles of the entries stay
}

// isFirst reports whether an entry is one of those with which the log begins, and which have no row of their own.
func (c *Collection) isFirst(seq uint64) bool {
	return c.Beginning != nil && seq <= c.Beginning.Entries
}

// entry returns one of the entries.
func (b *Beginning) entry(seq uint64, topicSI fragment.Ref) Entry {
	e := Entry{
		Seq: seq, Run: b.Run, Updated: b.From.Add(time.Duration(seq-1) * time.Microsecond), TopicSI: topicSI, Untitled: true,
		Author: b.Author, Note: b.Note,
	}
	if seq == b.Entries {
		e.Digest = b.Digest
	}
	return e
}

// Load appends the entries of the topics with which a log begins, as one commit.
func (a *Appender) Load(topics int, topicSIs iter.Seq2[fragment.Ref, error]) error {
	c := a.C
	now := a.Now().UTC().Truncate(time.Microsecond)
	from := now.Add(-time.Duration(topics) * time.Microsecond)
	b := &Beginning{From: from, Run: a.Run(), Author: a.Author, Note: a.Note, Language: c.Language}
	if least := c.Updated.Add(time.Microsecond); b.From.Before(least) {
		b.From = least
	}
	rows := firstWriter{c: c, put: a.Put}
	add := func(topicSI fragment.Ref) error {
		e := b.entry(c.Head+1, topicSI)
		c.Head, c.Updated, c.Run = e.Seq, e.Updated, e.Run
		if err := errors.Join(a.Put(TopicKey(c, topicSI), LastRow(e.Seq)), rows.add(e.Seq, []byte(topicSI))); err != nil {
			return err
		}
		return a.sign(&e)
	}
	var waiting fragment.Ref // the last one states the digest
	for topicSI, err := range topicSIs {
		if err == nil && waiting != "" {
			err = add(waiting)
		}
		if err != nil {
			return err
		}
		waiting = topicSI
	}
	if waiting == "" {
		return nil
	}
	digest, err := a.Digest()
	if err != nil {
		return err
	}
	b.Entries, b.Digest = c.Head+1, digest
	c.Beginning = b
	if err := add(waiting); err != nil {
		return err
	}
	return rows.end()
}

// A block is a row with consecutive first entries. Its key has the sequence of the first. The value is
//
// twice the number of its entries, plus one if some of them are removed: as a varint
// if so: a bit for each, the least first, set for existing ones
// the TopicSIs of existing ones, as [keys.AppendShared] lists them
//
// A block ends before each entry after a multiple of blockSize. So the key of the block with an entry is known, unless
// blocks are divided by length.
const (
	blockSize  = 256
	blockBytes = 64 << 10 // from which on a block takes no more
)

// blockStart returns the sequence of the first entry of the block with an entry, where blocks are not cut by their
// length.
func blockStart(seq uint64) uint64 { return seq - (seq-1)%blockSize }

// firstWriter writes blocks.
type firstWriter struct {
	c   *Collection
	put func(key, value []byte) error

	first uint64 // of the block
	count int
	body  []byte
	last  []byte
}

func (w *firstWriter) add(seq uint64, topicSI []byte) error {
	if w.count > 0 && (seq == blockStart(seq) || len(w.body) >= blockBytes) {
		if err := w.end(); err != nil {
			return err
		}
	}
	if w.count == 0 {
		w.first = seq
	}
	w.count++
	w.body, w.last = keys.AppendShared(w.body, w.last, topicSI), topicSI
	return nil
}

// end writes the block.
func (w *firstWriter) end() error {
	value := append(binary.AppendUvarint(make([]byte, 0, len(w.body)+2), uint64(w.count)<<1), w.body...)
	err := w.put(w.c.Log().Numbered(keys.TableFirst, w.first), value)
	w.count, w.body, w.last = 0, w.body[:0], nil
	return err
}

// block reads a block.
type block struct {
	row   kv.Row
	first uint64
	count uint64
	there []byte // nil: all are
	rest  []byte

	read    uint64 // number of entries read
	topicSI []byte // of the last one
}

var errBlock = errors.New("it cannot be read")

// readBlock reads the row of a block.
func readBlock(c *Collection, r kv.Row) (*block, error) {
	b := &block{row: r}
	count, n := binary.Uvarint(r.Value)
	if n <= 0 || len(keys.Rest(r.Key)) != 8 {
		return nil, b.corrupt()
	}
	b.first, b.count, b.rest = keys.NumberIn(r.Key), count>>1, r.Value[n:]
	if c.Beginning == nil || b.first == 0 || b.count == 0 || b.count > blockSize ||
		b.first+b.count-1 > c.Beginning.Entries {
		return nil, b.corrupt()
	}
	if bits := int(b.count+7) / 8; count&1 == 1 {
		if len(b.rest) < bits {
			return nil, b.corrupt()
		}
		b.there, b.rest = b.rest[:bits], b.rest[bits:]
	}
	return b, nil
}

func (b *block) corrupt() error { return txn.Corrupt("first entries", b.row.Key, errBlock) }

// has reports whether the block is for an entry, though that may be removed.
func (b *block) has(seq uint64) bool { return b.first <= seq && seq < b.first+b.count }

// next advances to the next existing entry, and puts its TopicSI in b. It returns 0 at the end.
func (b *block) next() (seq uint64, err error) {
	for ; b.read < b.count; b.read++ {
		if b.there != nil && b.there[b.read/8]&(1<<(b.read%8)) == 0 {
			continue
		}
		var ok bool
		if b.topicSI, b.rest, ok = keys.NextShared(b.rest, b.topicSI); !ok {
			return 0, b.corrupt()
		}
		b.read++
		return b.first + b.read - 1, nil
	}
	if len(b.rest) > 0 {
		return 0, b.corrupt()
	}
	return 0, nil
}

// blockOf returns the block that has or had an entry, nil for none.
func blockOf(t *txn.Tx, c *Collection, seq uint64) (*block, error) {
	key := c.Log().Numbered(keys.TableFirst, blockStart(seq))
	b, err := blockAt(t, c, key)
	if err != nil || b != nil && b.has(seq) {
		return b, err
	}
	for r, err := range t.Descend(c.Log().Key(keys.TableFirst), c.Log().Numbered(keys.TableFirst, seq)) {
		if err != nil {
			return nil, err
		}
		if b, err = blockAt(t, c, append([]byte{}, r.Key...)); b == nil || err != nil || !b.has(seq) {
			return nil, err
		}
		return b, nil
	}
	return nil, nil
}

func blockAt(t *txn.Tx, c *Collection, key []byte) (*block, error) {
	value, err := t.Get(key)
	if value == nil || err != nil {
		return nil, err
	}
	return readBlock(c, kv.Row{Key: key, Value: value})
}

// first returns one of the first entries, nil where it is not there.
func first(t *txn.Tx, c *Collection, seq uint64) (*Entry, error) {
	b, err := blockOf(t, c, seq)
	for b != nil && err == nil {
		var at uint64
		if at, err = b.next(); at == seq {
			e := c.Beginning.entry(seq, fragment.Ref(b.topicSI))
			return &e, nil
		}
		if at == 0 || at > seq {
			break
		}
	}
	return nil, err
}

// InBlock iterates over the entries in the row of a block.
func InBlock(c *Collection, r kv.Row) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		b, err := readBlock(c, r)
		for err == nil {
			var seq uint64
			if seq, err = b.next(); err == nil && (seq == 0 || !yield(c.Beginning.entry(seq, fragment.Ref(b.topicSI)), nil)) {
				return
			}
		}
		yield(Entry{}, err)
	}
}

// keptFirst iterates over the first entries from a sequence on that are there. It reports whether all were wanted.
func keptFirst(t *txn.Tx, c *Collection, from uint64, yield func(Entry, error) bool) (more bool) {
	if !c.isFirst(from) {
		return true
	}
	for r, err := range t.Scan(c.Log().Key(keys.TableFirst), c.Log().Numbered(keys.TableFirst, blockStart(from))) {
		if err != nil {
			yield(Entry{}, err)
			return false
		}
		for e, err := range InBlock(c, r) {
			if (err != nil || e.Seq >= from) && !yield(e, err) || err != nil {
				return false
			}
		}
	}
	return true
}

// lastFirstBefore returns the sequence of the last existing first entry before seq, 0 for none.
func lastFirstBefore(t *txn.Tx, c *Collection, seq uint64) (last uint64, err error) {
	for r, err := range t.Descend(c.Log().Key(keys.TableFirst), c.Log().Numbered(keys.TableFirst, seq-1)) {
		if err != nil {
			return 0, err
		}
		for e, err := range InBlock(c, r) {
			if err != nil {
				return 0, err
			}
			if e.Seq >= seq {
				break
			}
			last = e.Seq
		}
		if last > 0 {
			return last, nil
		}
	}
	return 0, nil
}

// removeFirst removes some of the first entries, in ascending order. It removes a block with the last of its entries.
func removeFirst(t *txn.Tx, c *Collection, gone []uint64) error {
	for len(gone) > 0 {
		b, err := blockOf(t, c, gone[0])
		if err != nil {
			return err
		}
		if b == nil {
			gone = gone[1:]
			continue
		}
		there := make([]byte, (b.count+7)/8)
		var body, last []byte
		left := false
		for {
			seq, err := b.next()
			if err != nil {
				return err
			}
			if seq == 0 {
				break
			}
			for len(gone) > 0 && gone[0] < seq {
				gone = gone[1:]
			}
			if len(gone) > 0 && gone[0] == seq {
				continue
			}
			left = true
			there[(seq-b.first)/8] |= 1 << ((seq - b.first) % 8)
			body = keys.AppendShared(body, last, b.topicSI)
			last = append(last[:0], b.topicSI...)
		}
		for len(gone) > 0 && b.has(gone[0]) {
			gone = gone[1:]
		}
		if left {
			value := append(binary.AppendUvarint(make([]byte, 0, len(body)+len(there)+2), b.count<<1|1), there...)
			err = t.Put(b.row.Key, append(value, body...))
		} else {
			err = t.Delete(b.row.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
