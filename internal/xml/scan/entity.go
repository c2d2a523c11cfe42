package scan

import (
	"bytes"
	"unicode/utf8"
)

// entity is the declaration of a general or a parameter entity.
type entity struct {
	name        string
	text        []byte // the replacement text of an internal entity (XML 1.0 §4.5), and pad zero bytes
	external    bool
	unparsed    bool // it has a notation
	inParameter bool // it is declared inside of a parameter entity
	open        bool // its text is being read
}

// frame is the window to return to when the text of an entity has been read.
type frame struct {
	window
	entity *entity
	depth  int // elements that were open
}

// reference is the referent of "&…;": a character, an entity, or nothing if it is skipped.
type reference struct {
	char   rune
	entity *entity
}

// referenceAt reads the reference at p in the window.
func (s *Scanner) referenceAt(p int) (reference, int, error) {
	r, next, err := s.reference(s.buf, p, s.end, p)
	if err == errShort {
		err = s.short()
	}
	return r, next, err
}

// reference reads the reference at b[p], before end (XML 1.0 §4.1, Character and Entity References). It returns the
// index after the reference, or errShort if its end is missing. place is its index in the window, for errors.
func (s *Scanner) reference(b []byte, p, end, place int) (r reference, next int, err error) {
	if b[p+1] == '#' {
		return s.charReference(b, p+2, end, place)
	}
	q := wordEnd(b, p+1)
	if q >= end {
		return r, 0, errShort
	}
	text := b[p+1 : q]
	if b[q] != ';' || validName(text) < len(text) || len(text) == 0 {
		return r, 0, s.errorf(place, "'&' begins no reference; as text it is written &amp;")
	}
	switch string(text) { // XML 1.0 §4.6, Predefined Entities
	case "lt":
		r.char = '<'
	case "gt":
		r.char = '>'
	case "amp":
		r.char = '&'
	case "apos":
		r.char = '\''
	case "quot":
		r.char = '"'
	default:
		r.entity, err = s.entityNamed(text, place)
	}
	return r, q + 1, err
}

func (s *Scanner) charReference(b []byte, p, end, place int) (r reference, next int, err error) {
	base := rune(10)
	if b[p] == 'x' {
		base = 16
		p++
	}
	digits := p
	for {
		d := rune(99)
		switch c := b[p]; {
		case c >= '0' && c <= '9':
			d = rune(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			d = rune(c|0x20-'a') + 10
		}
		if d >= base {
			break
		}
		r.char = min(r.char*base+d, utf8.MaxRune+1)
		p++
	}
	switch {
	case p >= end:
		return r, 0, errShort
	case b[p] != ';' || p == digits:
		return r, 0, s.errorf(place, "a character reference is digits between &# or &#x and ';'")
	case !IsChar(r.char):
		return r, 0, s.errorf(place, "a reference to U+%04X, which is not allowed in XML", r.char)
	}
	return r, p + 1, nil
}

// entityNamed returns the entity with a name, nil where the reference is skipped (XML 1.0 §4.1, constraints Entity
// Declared and Parsed Entity).
func (s *Scanner) entityNamed(text []byte, place int) (*entity, error) {
	var e *entity
	if s.dtd != nil {
		e = s.dtd.entities[string(text)]
	}
	switch {
	case e == nil || e.inParameter && s.standalone:
		return nil, s.noEntity(text, place)
	case e.unparsed:
		return nil, s.errorf(place, "the entity %s is not text and cannot be referred to", excerpt(text))
	}
	return e, nil
}

// noEntity returns the error of a reference to an entity that is not declared. It is nil where the part of the DTD that
// was not read may declare the entity.
func (s *Scanner) noEntity(text []byte, place int) error {
	if bytes.IndexByte(text, ':') >= 0 {
		return s.errorf(place, "the name of an entity has no colon, unlike %s", excerpt(text))
	}
	switch {
	case s.standalone || s.dtd == nil || !s.dtd.partial:
		return s.errorf(place, "the entity %s is not declared", excerpt(text))
	case s.options.SkipUnread, s.state == inSubset && s.dtd.stopped:
		return nil
	}
	return s.errorf(place, "the entity %s is not declared in the document itself, and declarations elsewhere are not read",
		excerpt(text))
}

// textReference adds the character of the reference at p to the present text, or begins to read the text of the entity.
func (s *Scanner) textReference(p int) error {
	r, next, err := s.referenceAt(p)
	switch {
	case err != nil:
		return err
	case r.char != 0:
		var encoded [utf8.UTFMax]byte
		return s.take(utf8.AppendRune(encoded[:0], r.char), next)
	case r.entity != nil && r.entity.external && !s.options.SkipUnread:
		return s.errorf(p, "the entity %s is external, and external entities are not read", excerpt(r.entity.name))
	case r.entity == nil || r.entity.external:
		return s.take(nil, next)
	}
	return s.push(r.entity, p, next)
}

// push begins to read the text of an entity (XML 1.0 §4.4.2, Included), which is
// referred to between p and next.
func (s *Scanner) push(e *entity, p, next int) error {
	switch {
	case e.open:
		return s.errorf(p, "the entity %s contains itself", excerpt(e.name))
	case len(s.frames) == s.limits.EntityDepth:
		return s.limitError(p, "EntityDepth", int64(s.limits.EntityDepth))
	}
	if err := s.charge(p, len(e.text)); err != nil {
		return err
	}
	if len(s.frames) == 0 {
		s.Position() // before place changes
		s.countTo(p)
		s.refLine, s.refColumn = s.place.line, s.place.column
	}
	e.open = true
	s.pos = next
	s.frames = append(s.frames, frame{s.window, e, len(s.open)})
	s.window = window{buf: e.text, end: len(e.text) - pad}
	return nil
}

// pop returns to the window of the reference at the end of the entity's text. The elements in the text must be balanced
// (XML 1.0 §4.3.2, Well-Formed Parsed Entities).
func (s *Scanner) pop() error {
	last := len(s.frames) - 1
	f := &s.frames[last]
	if len(s.open) != f.depth {
		return s.errorf(s.pos, "<%s> is not closed where the entity ends", excerpt(s.open[len(s.open)-1].name.raw))
	}
	f.entity.open = false
	s.window = f.window
	*f = frame{}
	s.frames = s.frames[:last]
	return nil
}
