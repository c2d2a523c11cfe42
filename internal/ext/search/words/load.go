package words

import (
	"bytes"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// collector collects the entries of topics that are loaded, to be sorted.
type collector struct {
	id   keys.Source
	give func(key, value []byte) error
	each bool // each entry gets a single row

	lists     map[string]*list // of topics, by rank and word: most entries are of words of many topics
	last      fragment.Ref
	unordered bool // topics are not sorted by TopicSI
	entry     []byte
}

// list are topics that have a word, in their order.
type list struct {
	first []byte // key of the first entry
	rest  packer // the topics after it
}

// The limits of the entries collected before they are sorted.
const (
	mostLists = 10_000
	mostOfOne = 256
)

// Topic implements [txn.Collector].
func (c *collector) Topic(t *fragment.Topic) error {
	ref := t.TopicSI()
	if ref <= c.last && !c.unordered { // lists would overlap
		c.unordered = true
		if err := c.Close(); err != nil {
			return err
		}
	}
	c.last = ref
	for _, e := range allEntries(t) {
		if err := c.add(e, ref); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) add(e Entry, topic fragment.Ref) error {
	if c.each || c.unordered || e.Rank > OfIdentifier { // few topics share those of higher ranks
		return c.give(c.key(e, topic), added)
	}
	word := append(append(c.entry[:0], byte(e.Rank)), e.Word...)
	c.entry = word
	l := c.lists[string(word)]
	if l == nil {
		if len(c.lists) >= mostLists {
			if err := c.Close(); err != nil {
				return err
			}
		}
		if c.lists == nil {
			c.lists = make(map[string]*list, mostLists)
		}
		c.lists[string(word)] = &list{first: c.key(e, topic)}
		return nil
	}
	if l.rest.n == 0 {
		l.rest.word, l.rest.topic, _ = split(bytes.Clone(l.first[start:]))
	}
	if l.rest.add(word, []byte(topic)); l.rest.n < mostOfOne {
		return nil
	}
	delete(c.lists, string(word))
	return c.give(l.first, l.rest.packed)
}

func (c *collector) key(e Entry, topic fragment.Ref) []byte {
	key := make([]byte, 0, start+2+len(e.Word)+len(topic))
	return appendEntry(append(key, c.id.Index(name)...), e, topic)
}

// Close implements [txn.Collector].
func (c *collector) Close() error {
	for _, l := range c.lists {
		if err := c.give(l.first, l.rest.packed); err != nil {
			return err
		}
	}
	clear(c.lists)
	return nil
}

// blocks writes the sorted entries of a [collector] into blocks. The blocks depend only on the entries.
type blocks struct {
	id  keys.Source
	put func(key, value []byte) error

	waiting [][]byte // sorted entries that may follow those of the next row
	block   packer
	last    []byte // entry of the block
}

// Add implements [txn.Packer].
func (b *blocks) Add(key, value []byte) error {
	first := bytes.Clone(key[start:])
	n := 0
	for n < len(b.waiting) && bytes.Compare(b.waiting[n], first) < 0 {
		if err := b.write(b.waiting[n]); err != nil {
			return err
		}
		n++
	}
	b.waiting = slices.Delete(b.waiting, 0, n)
	if len(value) == 0 && len(b.waiting) == 0 {
		return b.write(first)
	}
	across := len(b.waiting) > 0
	b.waiting = append(b.waiting, first)
	u := unpacker{rest: value}
	for u.word, u.topic, _ = split(bytes.Clone(first)); u.next(); {
		b.waiting = append(b.waiting, bytes.Clone(u.entry))
	}
	if across {
		slices.SortFunc(b.waiting, bytes.Compare)
	}
	return nil
}

// write adds an entry to the block, and writes that if it is full.
func (b *blocks) write(entry []byte) error {
	word, topic, _ := split(entry)
	if b.block.n >= perBlock || len(b.block.packed) >= blockBytes || b.block.n > 0 && b.last[0] != entry[0] {
		if err := b.end(); err != nil {
			return err
		}
	}
	b.block.add(word, topic)
	b.last = entry
	return nil
}

func (b *blocks) end() error {
	if b.block.n == 0 {
		return nil
	}
	err := b.put(kindKey(b.id, kindBlock, b.last), b.block.packed)
	b.block.reset()
	return err
}

// Close implements [txn.Packer].
func (b *blocks) Close() error {
	for _, entry := range b.waiting {
		if err := b.write(entry); err != nil {
			return err
		}
	}
	b.waiting = nil
	return b.end()
}
