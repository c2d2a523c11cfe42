package scan

import (
	"math/bits"
	"math/rand/v2"
	"strings"
)

// Name is an expanded name (Namespaces in XML 1.0 §2.1), with the prefix that
// the document uses.
type Name struct {
	Space, Local, Prefix string
}

// name is a qualified name that the scanner knows: it has been checked, and its
// strings are made.
type name struct {
	key
	raw      string // as it is written
	local    string
	prefix   *prefix
	prefixed bool
	declares *prefix  // the prefix that an attribute of this name declares, or nil
	attlist  *attlist // the declared attributes of an element of this name
	tag      uint64   // the last start tag with such an attribute
}

func (n *name) expanded() Name {
	return Name{n.prefix.space, n.local, n.prefix.name}
}

// key holds the first and the last eight bytes of a name and its length. For
// names of up to 16 bytes it is the name.
type key struct {
	head, tail uint64
	size       int
}

const wholeKey = 16

func keyOf(b []byte, p, q int) key {
	head, size := load(b, p), q-p
	if size >= 8 {
		return key{head, load(b, q-8), size}
	}
	return key{head & (1<<(8*uint(size)) - 1), 0, size}
}

// seeds keep a document from choosing names that collide.
var seeds = [2]uint64{rand.Uint64(), rand.Uint64()}

func (k key) hash(b []byte, p, q int) uint64 {
	high, low := bits.Mul64(k.head^seeds[0], k.tail^seeds[1]^uint64(k.size))
	for h := high ^ low; ; h = high ^ low {
		if p += 8; p+8 >= q {
			return h
		}
		high, low = bits.Mul64(h^load(b, p), seeds[1]|1)
	}
}

// names is a hash table with open addressing, at most half full.
type names struct {
	slots    []*name
	count    int
	bytes    int
	prefixes map[string]*prefix
	none     *prefix // the empty prefix

	// names and their strings are made many at a time: a small document has few
	// other allocations
	spare []name
	text  strings.Builder
}

// The limits of the names that a document with ever new names may keep.
const (
	firstSlots = 64
	mostNames  = 4096
	mostBytes  = 256 << 10
	spareNames = 16
	spareBytes = 256
)

func newNames() names {
	none := &prefix{}
	return names{slots: make([]*name, firstSlots), none: none, prefixes: map[string]*prefix{"": none}}
}

// find returns the name b[p:q]; nil if it is not known. b must have eight bytes after p.
func (t *names) find(b []byte, p, q int) *name {
	k := keyOf(b, p, q)
	mask := uint64(len(t.slots) - 1)
	for i := k.hash(b, p, q) & mask; ; i = (i + 1) & mask {
		n := t.slots[i&mask]
		if n == nil || n.key == k && (k.size <= wholeKey || n.raw == string(b[p:q])) {
			return n
		}
	}
}

// add makes b[p:q] known, which is a valid qualified name with its colon at
// index colon, if that is not negative.
func (t *names) add(b []byte, p, q, colon int) *name {
	if len(t.spare) == 0 {
		t.spare = make([]name, spareNames)
	}
	n := &t.spare[0]
	t.spare = t.spare[1:]
	n.key, n.raw, n.prefix = keyOf(b, p, q), t.string(b[p:q]), t.none
	n.local = n.raw
	if colon >= 0 {
		n.prefixed = true
		n.prefix, n.local = t.prefix(n.raw[:colon]), n.raw[colon+1:]
		if n.prefix.name == "xmlns" {
			n.declares = t.prefix(n.local)
		}
	} else if n.raw == "xmlns" {
		n.declares = t.none
	}
	if t.count++; 2*t.count > len(t.slots) {
		old := t.slots
		t.slots = make([]*name, 2*len(old))
		for _, o := range old {
			if o != nil {
				padded := append([]byte(o.raw), make([]byte, pad)...)
				t.put(o, o.hash(padded, 0, len(o.raw)))
			}
		}
	}
	t.bytes += len(n.raw)
	t.put(n, n.hash(b, p, q))
	return n
}

// string makes a string of b that shares its memory with others. Bytes written to a builder never change.
func (t *names) string(b []byte) string {
	if t.text.Cap()-t.text.Len() < len(b) {
		t.text = strings.Builder{}
		t.text.Grow(max(spareBytes, len(b)))
	}
	before := t.text.Len()
	t.text.Write(b)
	return t.text.String()[before:]
}

func (t *names) put(n *name, hash uint64) {
	mask := uint64(len(t.slots) - 1)
	i := hash & mask
	for t.slots[i] != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = n
}

func (t *names) prefix(text string) *prefix {
	p := t.prefixes[text]
	if p == nil {
		p = &prefix{name: text}
		t.prefixes[p.name] = p
	}
	return p
}

// full reports whether the table exceeds its limits.
func (t *names) full() bool { return t.count > mostNames || t.bytes > mostBytes }

// forget drops the names, and the undeclared prefixes. It must not be called within a tag, because two names of one tag
// share their prefix.
func (t *names) forget() {
	t.slots, t.count, t.bytes = make([]*name, firstSlots), 0, 0
	for text, p := range t.prefixes {
		if p.space == "" && p != t.none {
			delete(t.prefixes, text)
		}
	}
}

// newName validates the unknown name b[p:q], and adds it.
func (s *Scanner) newName(p, q int) (*name, error) {
	colon, err := s.checkName(p, q)
	if err != nil {
		return nil, err
	}
	n := s.names.add(s.buf, p, q, colon)
	if s.dtd != nil {
		n.attlist = s.dtd.attlists[n.raw]
	}
	return n, nil
}

// checkName makes sure that b[p:q] is a qualified name (Namespaces in XML 1.0
// §4, production 7) and returns the index of its colon, or -1.
func (s *Scanner) checkName(p, q int) (colon int, err error) {
	b := s.buf[p:q]
	if len(b) > s.limits.Name {
		return 0, s.limitError(p, "Name", int64(s.limits.Name))
	}
	if q >= s.end {
		return 0, s.short()
	}
	switch n := validName(b); {
	case n == 0:
		return 0, s.unexpected(p, "a name is expected here")
	case n < len(b):
		return 0, s.unexpected(p+n, "the name %s… must go on or end here", string(b[:n]))
	}
	colon = -1
	for i, c := range b {
		if c != ':' {
			continue
		}
		if colon >= 0 {
			return 0, s.errorf(p, "the name %s has two colons", excerpt(b))
		}
		colon = i
	}
	if colon == 0 || colon > 0 && validName(b[colon+1:]) == 0 {
		return 0, s.errorf(p, "the name %s has a colon, but not a name on both of its sides", excerpt(b))
	}
	return colon, nil
}
