package scan

// chars reads text (XML 1.0 §2.4, Character Data and Markup). It returns plain text up to a tag as a part of the
// window; join handles any other text.
func (s *Scanner) chars() (Kind, error) {
	p := s.plain(s.pos)
	if s.buf[p] == '<' {
		if c := s.buf[p+1]; c != '!' && c != '?' && (c != 0 || p+1 < s.end) {
			if err := s.fits(p); err != nil {
				return 0, err
			}
			s.text = s.buf[s.pos:p:p]
			s.pos = p
			return Text, nil
		}
	}
	if p+1 >= s.end && len(s.frames) == 0 {
		return 0, errShort // perhaps more of the same
	}
	s.scratch = s.scratch[:0]
	return s.join()
}

// plain returns the index of the first byte from p on that is not plain text: it begins markup or a reference, is a
// carriage return, is invalid, or undecidable at the end of the window.
func (s *Scanner) plain(p int) int {
	for b := s.buf; ; {
		p = textEnd(b, p)
		switch c := b[p]; {
		case c == ']':
			if next := b[p+1]; next == 0 || next == ']' && (b[p+2] == '>' || b[p+2] == 0) {
				return p
			}
			p++
		case c >= 0x80:
			high := skipHigh(b, p)
			if high == p {
				return p
			}
			p = high
		default:
			return p
		}
	}
}

// join reads text in pieces: references, CDATA sections, and the text on both sides of a comment make one text. It
// reads no piece twice, so it keeps its state in scratch until a tag ends the text.
func (s *Scanner) join() (Kind, error) {
	s.state = inText
	for {
		b, p := s.buf, s.plain(s.pos)
		if err := s.take(b[s.pos:p], p); err != nil {
			return 0, err
		}
		inDocument := len(s.frames) == 0
		switch c := b[p]; {
		case c == '<':
			done, err := s.markupInText(p)
			if err != nil {
				return 0, err
			}
			if done {
				return s.flush()
			}
		case c == '&':
			if err := s.textReference(p); err != nil {
				return 0, err
			}
		case c == ']':
			switch {
			case inDocument && (p+1 >= s.end || b[p+1] == ']' && p+2 >= s.end):
				return 0, errShort
			case b[p+1] == ']' && b[p+2] == '>':
				return 0, s.errorf(p, "]]> cannot stand in text; it is written ]]&gt;")
			}
			if err := s.take(b[p:p+1], p+1); err != nil {
				return 0, err
			}
		case c == '\r' && inDocument: // XML 1.0 §2.11, End-of-Line Handling
			if p+1 >= s.end {
				return 0, errShort
			}
			next := p + 1
			if b[next] == '\n' {
				next++
			}
			if err := s.take([]byte{'\n'}, next); err != nil {
				return 0, err
			}
		case c == '\r':
			if err := s.take(b[p:p+1], p+1); err != nil {
				return 0, err
			}
		case p < s.end:
			return 0, s.unexpected(p, "text must go on here")
		case inDocument:
			return 0, errShort
		default:
			if err := s.pop(); err != nil {
				return 0, err
			}
			if len(s.scratch) == 0 {
				s.begin()
			}
		}
	}
}

// take adds a piece to the pending text and continues at next.
func (s *Scanner) take(piece []byte, next int) error {
	s.scratch = append(s.scratch, piece...)
	s.pos = next
	if len(s.scratch) > s.limits.Token {
		return s.tooMuchText()
	}
	return nil
}

func (s *Scanner) tooMuchText() error {
	line, column := s.Position()
	return &LimitError{s.uri, line, column, "Token", int64(s.limits.Token)}
}

// flush reports the pending text, if there is any.
func (s *Scanner) flush() (Kind, error) {
	s.state = inContent
	if len(s.scratch) == 0 {
		return 0, nil
	}
	s.text = s.scratch
	return Text, nil
}

// markupInText reads markup that does not end the text; done reports that the markup at p ends it.
func (s *Scanner) markupInText(p int) (done bool, err error) {
	b := s.buf
	switch {
	case p+1 >= s.end:
		return false, s.short()
	case b[p+1] == '?', b[p+1] == '!' && b[p+2] == '-':
		if s.options.Misc {
			return true, nil
		}
		_, err := s.markup()
		return false, err
	case b[p+1] == '!':
		return false, s.cdata(p)
	}
	return true, nil
}

// cdata reads a CDATA section (XML 1.0 §2.7), which begins at p.
func (s *Scanner) cdata(p int) error {
	const begin = "<![CDATA["
	b := s.buf
	for i := range len(begin) {
		if b[p+i] != begin[i] {
			return s.unexpected(p+i, notInContent)
		}
	}
	mark := len(s.scratch)
	p += len(begin)
	for from := p; ; {
		p = s.run(p, ']')
		c := b[p]
		if c == ']' && (b[p+1] != ']' || b[p+2] != '>') && p+2 < s.end {
			p++
			continue
		}
		s.scratch = append(s.scratch, b[from:p]...)
		var err error
		switch {
		case c == ']' && p+2 < s.end:
			return s.endCDATA(p + 3)
		case c == '\r':
			p, err = s.lineEnd(p)
		default:
			if err = s.short(); c != ']' {
				err = s.unexpected(p, "a CDATA section must go on or end here")
			}
		}
		if err != nil {
			s.scratch = s.scratch[:mark]
			return err
		}
		from = p
	}
}

func (s *Scanner) endCDATA(next int) error {
	if err := s.fits(next); err != nil {
		return err
	}
	return s.take(nil, next)
}

// lineEnd adds the line end at p, normalised, to the pending text, and returns the index after it.
func (s *Scanner) lineEnd(p int) (int, error) {
	switch {
	case len(s.frames) > 0:
		s.scratch = append(s.scratch, '\r')
		return p + 1, nil
	case p+1 >= s.end:
		return 0, errShort
	}
	s.scratch = append(s.scratch, '\n')
	if s.buf[p+1] == '\n' {
		return p + 2, nil
	}
	return p + 1, nil
}

// run returns the index of the first byte from p on that is stop or is not an
// ordinary character. Carriage returns are among the latter.
func (s *Scanner) run(p int, stop byte) int {
	for b := s.buf; ; {
		p = runEnd(b, p, stop)
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
