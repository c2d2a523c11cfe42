package tmdm

import "hash/maphash"

// identifiers finds topics by locators. It takes about half the memory of a map with
// the same keys, because the topics keep their identifiers in its own arrays.
// It is a hash table with linear probing.
type identifiers struct {
	seed   maphash.Seed
	tags   []uint8  // of each slot: free, deleted, or seven bits of the hash
	slots  []uint32 // where in the chunks the entry is
	taken  int      // slots that are not free
	live   int      // slots in use
	chunks []*chunk
	next   int // place in the last chunk
}

// chunk holds entries, which never move and are not used again: lists of
// identifiers are made of them.
type chunk struct {
	locators [chunkSize]Locator
	topics   [chunkSize]*Topic // may have been merged into others
	roles    [chunkSize]role
}

const chunkSize = 80 // that many fit well into 2 KB

// role is the set of properties of its topic that contain a locator.
type role uint8

const (
	asSubject role = 1 << iota
	asItem
)

const (
	freeSlot = 0
	goneSlot = 1
	usedSlot = 0x80
)

func (x *identifiers) hash(loc Locator) uint64 { return maphash.String(x.seed, string(loc)) }

// find returns the slot of loc and the entry, or -1.
func (x *identifiers) find(loc Locator) (slot int, c *chunk, i int) {
	if x.live == 0 {
		return -1, nil, 0
	}
	return x.findHashed(loc, x.hash(loc))
}

func (x *identifiers) findHashed(loc Locator, hash uint64) (slot int, c *chunk, i int) {
	tag, mask := tagOf(hash), uint64(len(x.slots)-1)
	for s := hash & mask; ; s = (s + 1) & mask {
		switch x.tags[s] {
		case freeSlot:
			return -1, nil, 0
		case tag:
			pos := x.slots[s]
			if c, i := x.chunks[pos/chunkSize], int(pos%chunkSize); c.locators[i] == loc {
				return int(s), c, i
			}
		}
	}
}

func tagOf(hash uint64) uint8 { return usedSlot | uint8(hash>>57) }

// topic returns the topic that has loc in one of the properties of as, or nil.
func (x *identifiers) topic(loc Locator, as role) *Topic {
	if _, c, i := x.find(loc); c != nil && c.roles[i]&as != 0 {
		return c.topics[i].live()
	}
	return nil
}

// add records that loc is in a property of t, and returns a list with loc; nil if it was recorded already. If another
// topic has loc, in any property, it changes nothing and returns that topic.
func (x *identifiers) add(loc Locator, t *Topic, as role) (list []Locator, other *Topic) {
	if 5*(x.taken+1) > 4*len(x.slots) {
		x.grow()
	}
	hash := x.hash(loc)
	_, c, i := x.findHashed(loc, hash)
	switch {
	case c == nil:
		c, i = x.insert(loc, t, as, hash)
	case c.topics[i].live() != t:
		return nil, c.topics[i].live()
	case c.roles[i]&as != 0:
		return nil, nil
	default:
		c.roles[i] |= as
	}
	return c.locators[i : i+1 : i+1], nil
}

func (x *identifiers) insert(loc Locator, t *Topic, as role, hash uint64) (c *chunk, i int) {
	if len(x.chunks) == 0 || x.next == chunkSize {
		x.chunks, x.next = append(x.chunks, new(chunk)), 0
	}
	c, i = x.chunks[len(x.chunks)-1], x.next
	c.locators[i], c.topics[i], c.roles[i] = loc, t, as
	x.put(hash, uint32((len(x.chunks)-1)*chunkSize+i))
	x.next++
	return c, i
}

// put fills a slot.
func (x *identifiers) put(hash uint64, pos uint32) {
	mask := uint64(len(x.slots) - 1)
	s := hash & mask
	for x.tags[s] != freeSlot {
		s = (s + 1) & mask
	}
	x.tags[s], x.slots[s] = tagOf(hash), pos
	x.taken++
	x.live++
}

// grow makes space for twice the present number of entries. If most were removed, it moves the rest, so that the old
// space can be freed.
func (x *identifiers) grow() {
	if x.slots == nil {
		x.seed = maphash.MakeSeed()
	}
	old, size := *x, 8
	for size < 2*(old.live+1) {
		size *= 2
	}
	x.tags, x.slots, x.taken, x.live = make([]uint8, size), make([]uint32, size), 0, 0
	sparse := old.live < old.places()/2
	if sparse {
		x.chunks, x.next = nil, 0
	}
	for s, tag := range old.tags {
		if tag < usedSlot {
			continue
		}
		pos := old.slots[s]
		c, i := old.chunks[pos/chunkSize], pos%chunkSize
		if hash := x.hash(c.locators[i]); sparse {
			x.insert(c.locators[i], c.topics[i], c.roles[i], hash)
		} else {
			x.put(hash, pos)
		}
	}
}

func (x *identifiers) places() int { return max(len(x.chunks)-1, 0)*chunkSize + x.next }

// remove notes that loc no longer stands in the property as of its topic.
func (x *identifiers) remove(loc Locator, as role) {
	slot, c, i := x.find(loc)
	if c == nil {
		return
	}
	if c.roles[i] &^= as; c.roles[i] == 0 {
		c.topics[i] = nil
		x.tags[slot] = goneSlot
		x.live--
	}
}

// settle replaces merged topics by the topics that they were merged into.
func (x *identifiers) settle() {
	for _, c := range x.chunks {
		for i, t := range c.topics {
			c.topics[i] = t.live()
		}
	}
}
