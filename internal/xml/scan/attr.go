package scan

import "unicode/utf8"

// value reads an attribute value that must be normalised, from begin, after the quote. It returns the normalised value
// (XML 1.0 §3.3.3, Attribute-Value Normalization, for type CDATA) and the index of the closing quote.
func (s *Scanner) value(begin int, quote byte) ([]byte, int, error) {
	mark := len(s.values)
	for b := s.buf; ; {
		p := plainValue(b, begin, quote)
		s.values = append(s.values, b[begin:p]...)
		switch c := b[p]; {
		case c == quote:
			return s.values[mark:len(s.values):len(s.values)], p, nil
		case c == '\r' && len(s.frames) == 0: // in an entity, line ends have been normalised
			if p+1 >= s.end {
				return nil, 0, errShort
			}
			if p++; b[p] == '\n' {
				p++
			}
			s.values = append(s.values, ' ')
		case c == '\n', c == '\t', c == '\r':
			p++
			s.values = append(s.values, ' ')
		case c == '&':
			r, next, err := s.referenceAt(p)
			if err == nil {
				err = s.valueReference(r, p)
			}
			if err != nil {
				return nil, 0, err
			}
			p = next
		case c == '<':
			return nil, 0, s.errorf(p, "'<' cannot stand in an attribute value; it is written &lt;")
		default:
			return nil, 0, s.unexpected(p, "the value of an attribute must go on or end here")
		}
		begin = p
	}
}

// plainValue returns the index of the first byte from p on that ends an attribute value or needs normalisation.
func plainValue(b []byte, p int, quote byte) int {
	for {
		p = valueEnd(b, p, quote)
		if b[p] < 0x80 {
			return p
		}
		high := skipHigh(b, p)
		if high == p {
			return p
		}
		p = high
	}
}

// valueReference adds the replacement text of a reference to the value. p is its index in the window.
func (s *Scanner) valueReference(r reference, p int) error {
	switch {
	case r.char != 0:
		s.values = utf8.AppendRune(s.values, r.char)
		return nil
	case r.entity == nil:
		return nil // skipped
	case r.entity.external:
		return s.errorf(p, "the external entity %s cannot stand in an attribute value", excerpt(r.entity.name))
	}
	return s.expand(r.entity, p, 1)
}

// expand adds the text of an entity to the value (XML 1.0 §4.4.5, Included in
// Literal). Quotes in it are text; '<' is not allowed, however deep it is.
func (s *Scanner) expand(e *entity, p, depth int) error {
	switch {
	case e.open:
		return s.errorf(p, "the entity %s contains itself", excerpt(e.name))
	case depth > s.limits.EntityDepth:
		return s.limitError(p, "EntityDepth", int64(s.limits.EntityDepth))
	}
	if err := s.charge(p, len(e.text)); err != nil {
		return err
	}
	if len(s.values) > s.limits.Token {
		return s.limitError(p, "Token", int64(s.limits.Token))
	}
	e.open = true
	defer func() { e.open = false }()
	end := len(e.text) - pad
	for i := 0; i < end; {
		switch c := e.text[i]; c {
		case '<':
			return s.errorf(p, "the entity %s contains '<', which cannot stand in an attribute value", excerpt(e.name))
		case '\t', '\n', '\r':
			s.values = append(s.values, ' ')
			i++
		case '&':
			r, next, err := s.reference(e.text, i, end, p)
			switch {
			case err == errShort:
				return s.errorf(p, "the entity %s ends inside a reference", excerpt(e.name))
			case err != nil:
				return err
			case r.entity != nil && !r.entity.external:
				err = s.expand(r.entity, p, depth+1)
			default:
				err = s.valueReference(r, p)
			}
			if err != nil {
				return err
			}
			i = next
		default:
			s.values = append(s.values, c)
			i++
		}
	}
	return nil
}

// charge counts bytes added by entities or defaults. Each reference counts at least one, even to an empty entity. p is
// its index.
func (s *Scanner) charge(p, n int) error {
	s.expanded += int64(n)
	if s.expanded > s.limits.Expansion+s.Read() {
		return s.limitError(p, "Expansion", s.limits.Expansion)
	}
	return nil
}

// Grow counts n bytes that the caller makes of the document without their being
// written there, such as the base of a reference that it resolves. The error is a
// [*LimitError] as soon as they are more than Limits.Growth allows.
func (s *Scanner) Grow(n int) error {
	s.grown += int64(n)
	if s.grown > s.limits.Growth+growthFactor*s.Read() {
		return s.limitError(s.pos, "Growth", s.limits.Growth)
	}
	return nil
}

// Read returns the number of bytes of the document that have been read.
func (s *Scanner) Read() int64 { return s.base + int64(s.document().pos) }

// applyAttlist applies the DTD to the attributes of an element: it trims values of types other than CDATA (XML 1.0
// §3.3.3), and adds missing attributes with a default (§3.3.2, Attribute Defaults).
func (s *Scanner) applyAttlist(p int, list *attlist) error {
	if list.tokenized {
		for i := range s.attrs {
			if d := list.byName[s.attrNames[i].raw]; d != nil && d.tokenized {
				s.attrs[i].Value = s.collapse(s.attrs[i].Value)
			}
		}
		for i := range s.declared {
			if d := list.byName[s.declared[i].name.raw]; d != nil && d.tokenized {
				s.declared[i].value = s.collapse(s.declared[i].value)
			}
		}
	}
	for _, d := range list.defaults {
		size := len(d.padded) - pad
		n := s.names.find(d.padded, 0, size)
		if n == nil {
			// its name has been checked when it was declared
			n = s.names.add(d.padded, 0, size, d.colon)
			n.attlist = s.dtd.attlists[n.raw]
		}
		if n.tag == s.tag {
			continue
		}
		n.tag = s.tag
		if err := s.charge(p, size+len(d.value)); err != nil {
			return err
		}
		if len(s.attrs)+len(s.declared) == s.limits.Attributes {
			return s.limitError(p, "Attributes", int64(s.limits.Attributes))
		}
		if n.declares != nil {
			s.declared = append(s.declared, declaration{n, d.value})
		} else {
			s.attrs = append(s.attrs, Attr{Name{"", n.local, n.prefix.name}, d.value})
			s.attrNames = append(s.attrNames, n)
		}
	}
	return nil
}

// collapse leaves out blanks at the beginning and the end of a value, and all
// but one in between.
func (s *Scanner) collapse(value []byte) []byte {
	mark := len(s.values)
	for i, c := range value {
		if c == ' ' && (len(s.values) == mark || i+1 == len(value) || value[i+1] == ' ') {
			continue
		}
		s.values = append(s.values, c)
	}
	return s.values[mark:len(s.values):len(s.values)]
}
