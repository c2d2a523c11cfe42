package scan

import (
	"bytes"
	"strings"
)

// comment reads the comment at p (XML 1.0 §2.5, Comments).
func (s *Scanner) comment(p int) (Kind, error) {
	b := s.buf
	if b[p+3] != '-' {
		return 0, s.unexpected(p+3, "a comment begins with <!--")
	}
	q, plain := p+4, true
	for {
		q = s.run(q, '-')
		switch c := b[q]; {
		case c == '\r':
			plain = false
		case c != '-':
			return 0, s.unexpected(q, "a comment must go on or end here")
		case q+2 >= s.end:
			return 0, s.short()
		case b[q+1] == '-' && b[q+2] == '>':
			return s.reported(Comment, "", p+4, q, q+3, plain)
		case b[q+1] == '-':
			return 0, s.errorf(q, "-- can only stand in a comment to end it")
		}
		q++
	}
}

// procInst reads the processing instruction at p (XML 1.0 §2.6, Processing
// Instructions).
func (s *Scanner) procInst(p int) (Kind, error) {
	c := cursor{s: s, p: p + 2}
	target := c.name(withoutColon)
	spaced := c.space()
	begin, plain := c.p, true
	if c.err != nil {
		return 0, c.err
	}
	if len(target) == 3 && bytes.EqualFold(target, []byte("xml")) {
		return 0, s.errorf(p, "<?%s can only stand at the very beginning of a document, as its XML declaration", target)
	}
	b, q := s.buf, begin
	if !spaced && b[q] != '?' {
		return 0, s.unexpected(q, "white space or ?> is expected behind the target %s", string(target))
	}
	for {
		q = s.run(q, '?')
		switch c := b[q]; {
		case c == '\r':
			plain = false
		case c != '?':
			return 0, s.unexpected(q, "a processing instruction must go on or end here")
		case q+1 >= s.end:
			return 0, s.short()
		case b[q+1] == '>':
			name := ""
			if s.options.Misc {
				name = string(target)
			}
			return s.reported(ProcInst, name, begin, q, q+2, plain)
		case !spaced:
			return 0, s.unexpected(q+1, "'>' is expected behind '?'")
		}
		q++
	}
}

// reported continues at next, after a comment or a processing instruction whose text is buf[begin:end], and reports it
// if that is enabled.
func (s *Scanner) reported(kind Kind, target string, begin, end, next int, plain bool) (Kind, error) {
	if err := s.fits(next); err != nil {
		return 0, err
	}
	text := s.buf[begin:end:end]
	s.pos = next
	if !s.options.Misc {
		return 0, nil
	}
	if !plain && len(s.frames) == 0 {
		s.scratch = appendLines(s.scratch[:0], text)
		text = s.scratch
	}
	s.text, s.target = text, target
	return kind, nil
}

// appendLines normalises line ends (XML 1.0 §2.11).
func appendLines(to, text []byte) []byte {
	for i, c := range text {
		switch {
		case c != '\r':
			to = append(to, c)
		case i+1 == len(text) || text[i+1] != '\n':
			to = append(to, '\n')
		}
	}
	return to
}

// start reads the beginning of a document: the marks of its encoding, and the XML declaration (XML 1.0 §2.8, production
// 23).
func (s *Scanner) start() error {
	if !s.detected {
		return s.detect()
	}
	const begin = "<?xml"
	b := s.buf[s.pos:s.end]
	switch {
	case len(b) <= len(begin) && strings.HasPrefix(begin, string(b)):
		return errShort
	case !bytes.HasPrefix(b, []byte(begin)) || !isSpace(b[len(begin)]):
		s.state = inProlog
		return s.encoding(s.pos, "")
	}
	c := cursor{s: s, p: s.pos + len(begin)}
	c.needSpace()
	c.expect("version")
	version := c.assigned()
	if c.err == nil && !isVersion(version) {
		c.failAt(c.p, "XML of version %q is not read, only 1.0", excerpt(version))
	}
	encoding, place := "", c.p
	spaced := c.space()
	if spaced && c.eat("encoding") {
		place = c.p
		encoding = c.assigned()
		if c.err == nil && !isEncodingName(encoding) {
			c.failAt(place, "%q is not the name of an encoding", excerpt(encoding))
		}
		spaced = c.space()
	}
	standalone := ""
	if spaced && c.eat("standalone") {
		standalone = c.assigned()
		if c.err == nil && standalone != "yes" && standalone != "no" {
			c.failAt(c.p, "standalone is yes or no, not %q", excerpt(standalone))
		}
		c.space()
	}
	c.expect("?>")
	if c.err != nil {
		return c.err
	}
	s.pos, s.state, s.standalone = c.p, inProlog, standalone == "yes"
	return s.encoding(place, encoding)
}

// isVersion reports whether a processor for XML 1.0 accepts a version: it reads a document of a later one as 1.0 (XML
// 1.0 §2.8, production 26).
func isVersion(v string) bool {
	digits, ok := strings.CutPrefix(v, "1.")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// isEncodingName follows XML 1.0 §4.3.3, production 81.
func isEncodingName(v string) bool {
	for i, c := range []byte(v) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || classes[c]&inName == 0 || c == ':' || c >= 0x80) {
			return false
		}
	}
	return v != ""
}
