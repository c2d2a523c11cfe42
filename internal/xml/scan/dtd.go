package scan

// dtd holds the declarations of the internal DTD subset.
type dtd struct {
	entities   map[string]*entity
	parameters map[string]*entity
	attlists   map[string]*attlist

	begin    int64 // offset of the document type declaration
	included int64 // bytes of parameter entities

	// partial states that there is an external subset, or a reference to a parameter entity: then an undeclared entity
	// is not an error of well-formedness (XML 1.0 §4.1, constraint Entity Declared).
	partial bool
	// stopped states that a parameter entity was not read. Because its declarations would have come first, later
	// declarations of entities and attributes have no effect (XML 1.0 §5.1, Validating and Non-Validating Processors);
	// they are still checked.
	stopped bool
}

// doctype reads a document type declaration up to its internal subset
// (XML 1.0 §2.8, production 28).
func (s *Scanner) doctype() error {
	switch {
	case s.dtd != nil:
		return s.errorf(s.pos, "a second document type declaration")
	case s.options.NoDTD:
		return s.errorf(s.pos, "document type declarations are not accepted")
	}
	c := cursor{s: s, p: s.pos}
	c.expect("<!DOCTYPE")
	c.needSpace()
	c.name(qualified)
	external := false
	if spaced := c.space(); c.peek() == 'S' || c.peek() == 'P' {
		if !spaced {
			c.fail("white space is expected")
		}
		external = true
		c.externalID(false)
		c.space()
	}
	next := inSubset
	if !c.eat("[") {
		next = inProlog
		c.expect(">")
	}
	if err := s.declarationEnds(&c); err != nil {
		return err
	}
	s.dtd = &dtd{
		entities:   make(map[string]*entity),
		parameters: make(map[string]*entity),
		attlists:   make(map[string]*attlist),
		begin:      s.base + int64(s.pos),
		partial:    external,
	}
	s.pos, s.state = c.p, next
	s.names.forget() // cached names assume that there is no DTD
	return nil
}

// declarationEnds returns the error of a declaration that c has read.
func (s *Scanner) declarationEnds(c *cursor) error {
	if c.err != nil {
		return c.err
	}
	return s.fits(c.p)
}

// subset reads the next part of the internal subset, or of the text of a
// parameter entity in it (XML 1.0 §2.8, production 28b; §3.4, production 31).
func (s *Scanner) subset() (Kind, error) {
	s.pos = spaceEnd(s.buf, s.pos)
	s.begin()
	at := s.base + int64(s.document().pos)
	if at-s.dtd.begin+s.dtd.included > int64(s.limits.DTD) {
		return 0, s.limitError(s.pos, "DTD", int64(s.limits.DTD))
	}
	switch c := s.buf[s.pos]; {
	case c == '<':
		return s.declarationOrMisc()
	case c == '%':
		return 0, s.parameterReference()
	case c == ']':
		return 0, s.subsetEnd()
	case s.pos < s.end:
		return 0, s.unexpected(s.pos, "a declaration, or the end of the DTD, is expected")
	case len(s.frames) == 0:
		return 0, errShort
	}
	return 0, s.pop()
}

func (s *Scanner) declarationOrMisc() (Kind, error) {
	p := s.pos
	switch s.buf[p+1] {
	case '?':
		return s.procInst(p)
	case '!':
		switch s.buf[p+2] {
		case '-':
			return s.comment(p)
		case '[':
			// XML 1.0 §3.4, Conditional Sections
			return 0, s.errorf(p, "a conditional section can only stand in an external DTD subset or entity")
		}
	}
	c := cursor{s: s, p: p}
	s.values = s.values[:0]
	commit := func() {}
	switch {
	case c.eat("<!ELEMENT"):
		c.elementDeclaration()
	case c.eat("<!ATTLIST"):
		commit = c.attlistDeclaration()
	case c.eat("<!ENTITY"):
		commit = c.entityDeclaration()
	case c.eat("<!NOTATION"):
		c.notationDeclaration()
	default:
		c.fail("a declaration is expected")
	}
	c.space()
	c.expect(">")
	if err := s.declarationEnds(&c); err != nil {
		return 0, err
	}
	s.pos = c.p
	if !s.dtd.stopped {
		commit()
	}
	return 0, nil
}

// subsetEnd reads the end of the DTD.
func (s *Scanner) subsetEnd() error {
	if len(s.frames) > 0 {
		return s.errorf(s.pos, "']' ends a DTD that began outside of the entity")
	}
	c := cursor{s: s, p: s.pos}
	c.expect("]")
	c.space()
	c.expect(">")
	if c.err != nil {
		return c.err
	}
	s.pos, s.state = c.p, inProlog
	return nil
}

// parameterReference reads a reference to a parameter entity between
// declarations (XML 1.0 §4.4.8, Included as PE). One that is external, or is not
// declared, is not read.
func (s *Scanner) parameterReference() error {
	p := s.pos
	c := cursor{s: s, p: p + 1}
	text := c.name(withoutColon)
	c.expect(";")
	if c.err != nil {
		return c.err
	}
	s.dtd.partial = true
	e := s.dtd.parameters[string(text)]
	if e == nil || e.external {
		s.dtd.stopped = s.dtd.stopped || !s.standalone
		s.pos = c.p
		return nil
	}
	s.dtd.included += int64(len(e.text) - pad)
	return s.push(e, p, c.p)
}
