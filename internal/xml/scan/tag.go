package scan

// startTag reads a start tag or an empty-element tag (XML 1.0 §3.1). Its name
// begins at p. Nothing is changed that matters before all of the tag is there.
func (s *Scanner) startTag(p int) (Kind, error) {
	if s.names.full() {
		s.names.forget()
	}
	b := s.buf
	q := nameEnd(b, p)
	element := s.names.find(b, p, q)
	if element == nil {
		var err error
		if element, err = s.newName(p, q); err != nil {
			return 0, err
		}
	}
	s.attrs, s.attrNames, s.values, s.declared = s.attrs[:0], s.attrNames[:0], s.values[:0], s.declared[:0]
	s.tag++
	prefixed, empty := false, false
	for {
		c := b[q]
		if c == '>' {
			q++
			break
		}
		if c == '/' {
			if b[q+1] != '>' {
				return 0, s.unexpected(q+1, "'>' is expected behind '/' in a tag")
			}
			empty = true
			q += 2
			break
		}
		if !isSpace(c) {
			return 0, s.unexpected(q, "white space or the end of the tag <%s> is expected", element.raw)
		}
		for q++; isSpace(b[q]); q++ {
		}
		if c = b[q]; c == '>' || c == '/' {
			continue
		}

		at := q
		q = nameEnd(b, q)
		n := s.names.find(b, at, q)
		if n == nil {
			var err error
			if n, err = s.newName(at, q); err != nil {
				return 0, err
			}
		}
		if b[q] != '=' {
			if q = spaceEnd(b, q); b[q] != '=' {
				return 0, s.unexpected(q, "'=' is expected behind the name of the attribute %s", n.raw)
			}
		}
		// only now the window cannot cut the name
		if n.tag == s.tag {
			return 0, s.errorf(at, "the attribute %s is there twice in <%s>", excerpt(n.raw), excerpt(element.raw))
		}
		n.tag = s.tag
		q++
		quote := b[q]
		if quote != '"' && quote != '\'' {
			q = spaceEnd(b, q)
			if quote = b[q]; quote != '"' && quote != '\'' {
				return 0, s.unexpected(q, "the value of the attribute %s must be in quotes", n.raw)
			}
		}
		q++
		begin := q
		if q = valueEnd(b, q, quote); b[q] >= 0x80 {
			q = plainValue(b, q, quote)
		}
		value := b[begin:q:q]
		if b[q] != quote {
			var err error
			if value, q, err = s.value(begin, quote); err != nil {
				return 0, err
			}
		}
		q++

		if len(s.attrs)+len(s.declared) == s.limits.Attributes {
			return 0, s.limitError(at, "Attributes", int64(s.limits.Attributes))
		}
		if n.declares != nil {
			s.declared = append(s.declared, declaration{n, value})
		} else {
			prefixed = prefixed || n.prefixed
			s.attrs = append(s.attrs, Attr{Name{"", n.local, n.prefix.name}, value})
			s.attrNames = append(s.attrNames, n)
		}
	}
	if err := s.checkTag(p, q, element, prefixed); err != nil {
		return 0, err
	}
	s.state = inContent
	s.closed = empty
	s.pos = q
	return StartElement, nil
}

// checkTag completes a tag after it was read: it applies the DTD, resolves prefixes, and opens the element.
func (s *Scanner) checkTag(p, q int, element *name, prefixed bool) error {
	if err := s.fits(q); err != nil {
		return err
	}
	if element.attlist != nil {
		if err := s.applyAttlist(p, element.attlist); err != nil {
			return err
		}
		prefixed = true
	}
	if len(s.open) == s.limits.Depth {
		return s.limitError(s.pos, "Depth", int64(s.limits.Depth))
	}
	outside := len(s.bindings)
	if len(s.declared) > 0 {
		if err := s.declare(p); err != nil {
			return err
		}
	}
	if element.prefixed && element.prefix.space == "" && !s.assume(p, element.prefix) {
		return s.undeclared(p, element.prefix.name, "element", element.raw)
	}
	if prefixed {
		if err := s.resolve(p); err != nil {
			return err
		}
	}
	s.open = append(s.open, openElement{element, outside})
	return nil
}

// endEmpty reports the end of an element that has an empty-element tag.
func (s *Scanner) endEmpty() (Kind, error) {
	s.closed = false
	s.kind = EndElement
	return EndElement, nil
}

// endTag reads an end tag (XML 1.0 §3.1). Its name begins at p.
func (s *Scanner) endTag(p int) (Kind, error) {
	element := s.open[len(s.open)-1].name
	b, q := s.buf, p+element.size
	if q+pad > len(b) { // the window ends before the name can
		return s.oddEndTag(p)
	}
	k := keyOf(b, p, q)
	if k != element.key || k.size > wholeKey && string(b[p:q]) != element.raw || b[q] != '>' {
		return s.oddEndTag(p)
	}
	s.pos = q + 1
	return s.close()
}

// oddEndTag reads an end tag that is not just the name and '>', or is wrong.
func (s *Scanner) oddEndTag(p int) (Kind, error) {
	b, element := s.buf, s.open[len(s.open)-1].name
	q := nameEnd(b, p)
	if s.names.find(b, p, q) == nil {
		if _, err := s.checkName(p, q); err != nil {
			return 0, err
		}
	} else if q >= s.end {
		return 0, s.short()
	}
	if string(b[p:q]) != element.raw {
		return 0, s.errorf(s.pos, "<%s> is closed by </%s>", excerpt(element.raw), excerpt(b[p:q]))
	}
	q = spaceEnd(b, q)
	if b[q] != '>' {
		return 0, s.unexpected(q, "the end tag </%s> must end here", element.raw)
	}
	if err := s.fits(q + 1); err != nil {
		return 0, err
	}
	s.pos = q + 1
	return s.close()
}

// close ends the innermost element. An entity must close exactly the elements that it opens (XML 1.0 §4.3.2,
// Well-Formed Parsed Entities).
func (s *Scanner) close() (Kind, error) {
	if n := len(s.frames); n > 0 && len(s.open) == s.frames[n-1].depth {
		return 0, s.errorf(s.pos, "</%s> closes an element that begins outside of the entity",
			excerpt(s.open[len(s.open)-1].name.raw))
	}
	return EndElement, nil
}

// leave closes the element whose end was reported.
func (s *Scanner) leave() {
	last := len(s.open) - 1
	if outside := s.open[last].bindings; outside < len(s.bindings) {
		s.undeclare(outside)
	}
	s.open = s.open[:last]
	s.kind = 0
	if last == 0 {
		s.state = inEpilog
	}
}

func spaceEnd(b []byte, p int) int {
	for isSpace(b[p]) {
		p++
	}
	return p
}
