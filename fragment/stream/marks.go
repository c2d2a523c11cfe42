package stream

// mark is the state of a hash; 0 is the absence of one.
type mark uint64

// markBits are the lowest bits of a place in marks. The others hold the hash.
const markBits mark = 3

// marks is a table of hashes and their marks, 8 bytes for each place.
type marks struct {
	places []place
	used   int
}

// place is where the mark of a hash is, or will be.
type place uint64

func (p place) mark() mark { return mark(p) & markBits }

func (p *place) set(m mark) { *p = place(mark(*p)&^markBits | m) }

// at returns the place of a hash. It is valid until the next call, and without a
// mark where the hash is new; the caller must then set one.
func (m *marks) at(hash uint64) *place {
	if m.used >= len(m.places)/4*3 {
		m.grow()
	}
	p := m.find(hash)
	if p.mark() == 0 {
		m.used++
		*p = place(mark(hash) &^ markBits)
	}
	return p
}

// once marks a hash that is new, and returns the error of taken for one that is not.
func (m *marks) once(hash uint64, as mark, taken func() error) error {
	p := m.at(hash)
	if p.mark() != 0 {
		return taken()
	}
	p.set(as)
	return nil
}

// find returns the place of the hash, or the free place for it.
func (m *marks) find(hash uint64) *place {
	last := uint64(len(m.places) - 1) // their number is a power of two
	for i := hash >> 2 & last; ; i = (i + 1) & last {
		if p := &m.places[i]; p.mark() == 0 || mark(*p)&^markBits == mark(hash)&^markBits {
			return p
		}
	}
}

func (m *marks) grow() {
	old := m.places
	m.places = make([]place, max(1024, 2*len(old)))
	for _, p := range old {
		if p.mark() != 0 {
			*m.find(uint64(p)) = p
		}
	}
}
