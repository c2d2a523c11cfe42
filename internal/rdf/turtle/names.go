package turtle

import "unicode/utf8"

// The characters of names (RDF 1.1 Turtle §6.5, Grammar: PN_CHARS_BASE, PN_CHARS_U, PN_CHARS).

func isNameBase(r rune) bool {
	switch {
	case r < 0x80:
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	case r < 0x300:
		return r >= 0xC0 && r != 0xD7 && r != 0xF7
	}
	for _, span := range nameBase {
		if r <= span[1] {
			return r >= span[0]
		}
	}
	return false
}

var nameBase = [][2]rune{
	{0x370, 0x37D}, {0x37F, 0x1FFF}, {0x200C, 0x200D}, {0x2070, 0x218F}, {0x2C00, 0x2FEF}, {0x3001, 0xD7FF},
	{0xF900, 0xFDCF}, {0xFDF0, 0xFFFD}, {0x10000, 0xEFFFF},
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// isName reports whether a character may be in a name after the first one.
func isName(r rune) bool {
	return isNameBase(r) || r == '_' || r == '-' || '0' <= r && r <= '9' || r == 0xB7 || 0x300 <= r && r <= 0x36F ||
		r == 0x203F || r == 0x2040
}

// rune returns the character n positions ahead, and its length; 0 if there is none. It reports an error if the bytes
// are not UTF-8.
func (in *input) rune(n int) (rune, int) {
	c := in.at(n)
	if c < utf8.RuneSelf {
		return rune(c), 1
	}
	in.at(n + utf8.UTFMax - 1)
	r, size := utf8.DecodeRune(in.buf[in.pos+n:])
	if r == utf8.RuneError && size < 2 {
		in.pos += n
		in.fail("the bytes are not UTF-8; save the file in that encoding")
	}
	return r, size
}

// dots returns the number of next dots, if a character of the same name follows them.
func (l *lexer) dots(follows func(rune) bool) int {
	n := 1
	for l.at(n) == '.' {
		if n++; n > l.limits.Term {
			l.fail("the name is longer than %d bytes", l.limits.Term)
		}
	}
	if r, _ := l.rune(n); r == 0 || !follows(r) {
		return 0
	}
	return n
}

// name appends the characters of a name to the scratch: those that rest allows, and dots between them.
func (l *lexer) name(rest func(rune) bool) {
	for {
		c := l.at(0)
		if c == '.' {
			n := l.dots(rest)
			if n == 0 {
				return
			}
			l.use(n)
			continue
		}
		r, size := l.rune(0)
		if c == 0 || !rest(r) {
			return
		}
		l.use(size)
	}
}

// use appends the next bytes to the scratch.
func (l *lexer) use(n int) {
	l.scratch = append(l.scratch, l.buf[l.pos:l.pos+n]...)
	l.pos += n
	if len(l.scratch) > l.limits.Term {
		l.fail("the term is longer than %d bytes", l.limits.Term)
	}
}

// local appends the local part of a prefixed name, with its escapes undone (PN_LOCAL, PLX).
func (l *lexer) local() {
	starts := func(r rune) bool {
		return isNameBase(r) || r == '_' || r == ':' || '0' <= r && r <= '9' || r == '%' || r == '\\'
	}
	rest := func(r rune) bool { return isName(r) || r == ':' || r == '%' || r == '\\' }
	for allowed := starts; ; allowed = rest {
		c := l.at(0)
		if c == '.' {
			n := 0
			if len(l.scratch) > 0 {
				n = l.dots(rest)
			}
			if n == 0 {
				return
			}
			l.use(n)
			continue
		}
		r, size := l.rune(0)
		switch {
		case c == 0 || !allowed(r):
			return
		case c == '%':
			if !isHex(l.at(1)) || !isHex(l.at(2)) {
				l.fail("%% in a name needs two hexadecimal digits behind it")
			}
			l.use(3)
		case c == '\\':
			switch l.at(1) {
			case '_', '~', '.', '-', '!', '$', '&', '\'', '(', ')', '*', '+', ',', ';', '=', '/', '?', '#', '@', '%':
				l.pos++
				l.use(1)
			default:
				l.fail("a name cannot have the escape \\%c", max(l.at(1), ' '))
			}
		default:
			l.use(size)
		}
	}
}
