package words

import (
	"bytes"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	search "github.com/tmshare/tmshare/internal/ext/search/text"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// Collector collects the entries of topics that are loaded, to be sorted.
type Collector struct {
	ID   keys.Source
	Add  func(key, value []byte) error // takes a row to be sorted
	Each bool                          // each entry is a row of its own

	lists     map[string]*list // of topics, by rank and word: most entries are of words of many topics
	last      fragment.Ref
	unordered bool // topics do not come in the order of their TopicSIs
	entry     []byte
}

// list are topics that have a word, in their order.
type list struct {
	first []byte  // key of the first entry
	rest  *packer // the topics behind it; nil: none
}

// packed returns the topics behind the first one.
func (l *list) packed() []byte {
	if l.rest == nil {
		return nil
	}
	return l.rest.packed
}

// The limits of what is collected before it is given to be sorted.
const (
	mostLists = 10_000
	mostOfOne = 256
)

// Topic takes the entries of a topic.
func (c *Collector) Topic(t *fragment.Topic) error {
	ref := t.TopicSI()
	if ref <= c.last && !c.unordered { // lists would lie across each other
		c.unordered = true
		if err := c.Close(); err != nil {
			return err
		}
	}
	c.last = ref
	for _, e := range search.Entries(t) {
		if err := c.add(e, ref); err != nil {
			return err
		}
	}
	return nil
}

func (c *Collector) add(e search.Entry, topic fragment.Ref) error {
	if c.Each || c.unordered {
		return c.Add(c.key(e, topic), added)
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
	if l.rest == nil {
		l.rest = &packer{}
		l.rest.word, l.rest.topic, _ = split(bytes.Clone(l.first[keys.SourceSize:]))
	}
	if l.rest.add(word, topic); l.rest.n < mostOfOne {
		return nil
	}
	delete(c.lists, string(word))
	return c.Add(l.first, l.packed())
}

func (c *Collector) key(e search.Entry, topic fragment.Ref) []byte {
	key := make([]byte, 0, keys.SourceSize+2+len(e.Word)+len(topic))
	key = append(key, c.ID.Key(keys.TableWord)...)
	return appendEntry(key, e, topic)
}

// Close gives all that is left to be sorted.
func (c *Collector) Close() error {
	for _, l := range c.lists {
		if err := c.Add(l.first, l.packed()); err != nil {
			return err
		}
	}
	clear(c.lists)
	return nil
}

// Blocks writes what a [Collector] has given to be sorted into blocks. They depend on the entries alone.
type Blocks struct {
	ID  keys.Source
	Put func(key, value []byte) error

	waiting [][]byte // entries, sorted, that may come behind one of the next row
	block   packer
	last    []byte // entry of the block
}

// Add takes a row. Rows come in the order of their keys.
func (b *Blocks) Add(key, value []byte) error {
	first := bytes.Clone(key[keys.SourceSize:])
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
	word, _, _ := split(first)
	for u := (unpacker{rest: value, entry: bytes.Clone(first), word: len(word)}); u.next(); {
		b.waiting = append(b.waiting, bytes.Clone(u.entry))
	}
	if across {
		slices.SortFunc(b.waiting, bytes.Compare)
	}
	return nil
}

// write adds an entry to the block, and writes that if it is full.
func (b *Blocks) write(entry []byte) error {
	word, topic, _ := split(entry)
	if b.block.n >= perBlock || len(b.block.packed) >= blockBytes || b.block.n > 0 && b.last[0] != entry[0] {
		if err := b.end(); err != nil {
			return err
		}
	}
	b.block.add(word, fragment.Ref(topic))
	b.last = entry
	return nil
}

func (b *Blocks) end() error {
	if b.block.n == 0 {
		return nil
	}
	err := b.Put(kindKey(b.ID, kindBlock, b.last), b.block.packed)
	b.block.reset()
	return err
}

// Close writes what is left. More can be added afterwards only of what begins with another rank.
func (b *Blocks) Close() error {
	for _, entry := range b.waiting {
		if err := b.write(entry); err != nil {
			return err
		}
	}
	b.waiting = nil
	return b.end()
}
