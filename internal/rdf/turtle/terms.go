package turtle

import (
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/rdf"
)

// lexer reads terms.
type lexer struct {
	input
	limits  Limits
	scratch []byte            // of the term that is being read
	known   map[string]string // IRIs and labels that were read before
	made    int64             // bytes of IRIs that were made with a prefix or a base
	tag     string            // the last language tag
}

// growthFactor is how many times the document what is made of it may be, beyond Limits.Growth.
const growthFactor = 16

// madeIRI returns the scratch as an IRI that was made with a prefix or a base. One that is known costs nothing.
func (l *lexer) madeIRI() rdf.Term {
	l.checkLength()
	if s, ok := l.known[string(l.scratch)]; ok {
		return rdf.NewIRI(s)
	}
	l.made += int64(len(l.scratch))
	if l.made > int64(l.limits.Growth)+growthFactor*(l.before+int64(l.pos)) {
		l.fail("%s", rdf.TooMuchMade(int64(l.limits.Growth)))
	}
	return rdf.NewIRI(l.text())
}

// checkLength refuses the scratch if it is too long for a namespace, a base, or an IRI that is made with one.
func (l *lexer) checkLength() {
	if err := rdf.CheckLength(l.scratch); err != nil {
		l.fail("%v", err)
	}
}

// maxKnown is how many strings are remembered: most documents say the same few thousand again and again.
const maxKnown = 1 << 15

// text returns the scratch as a string, the same for the same bytes as far as that is remembered.
func (l *lexer) text() string {
	if s, ok := l.known[string(l.scratch)]; ok {
		return s
	}
	s := string(l.scratch)
	if len(l.known) >= maxKnown {
		clear(l.known)
	}
	l.known[s] = s
	return s
}

// plainIRI has the bytes that an IRI in brackets may have as they stand.
var plainIRI = func() (plain [256]bool) {
	for c := 0x21; c < 256; c++ {
		plain[c] = true
	}
	for _, c := range []byte("<>\"{}|^`\\") {
		plain[c] = false
	}
	return plain
}()

// iriRef reads an IRI in brackets into the scratch (IRIREF).
func (l *lexer) iriRef() {
	l.refuseNewer("<<(", "<<")
	l.pos++
	l.scratch = l.scratch[:0]
	beyondASCII := false
	for {
		i := l.pos
		for ; i < len(l.buf) && plainIRI[l.buf[i]]; i++ {
			beyondASCII = beyondASCII || l.buf[i] >= utf8.RuneSelf
		}
		l.use(i - l.pos)
		switch c := l.at(0); {
		case plainIRI[c]:
		case c == '>':
			if beyondASCII && !utf8.Valid(l.scratch) {
				l.fail("the bytes are not UTF-8; save the file in that encoding")
			}
			l.pos++
			return
		case c == '\\':
			r := l.unicodeEscape()
			if r < 0x80 && !plainIRI[byte(r)] {
				l.fail("an IRI cannot have the character %q", r)
			}
			l.scratch = utf8.AppendRune(l.scratch, r)
		case l.end():
			l.fail("the IRI has no end")
		default:
			l.fail("an IRI cannot have the character %q", rune(c))
		}
	}
}

// refuseNewer refuses what RDF 1.2 has and RDF 1.1 has not, if it comes next.
func (l *lexer) refuseNewer(all ...string) {
	for _, syntax := range all {
		n := 0
		for n < len(syntax) && l.at(n) == syntax[n] {
			n++
		}
		if n == len(syntax) {
			l.fail("%s", rdf.Newer(syntax))
		}
	}
}

// unicodeEscape reads \uXXXX or \UXXXXXXXX.
func (l *lexer) unicodeEscape() (r rune) {
	digits := map[byte]int{'u': 4, 'U': 8}[l.at(1)]
	if digits == 0 {
		l.fail("%s is no escape that may be here", l.next())
	}
	for i := range digits {
		c := l.at(2 + i)
		if !isHex(c) {
			l.fail("\\%c needs %d hexadecimal digits behind it", l.at(1), digits)
		}
		if c > '9' {
			c = c&^0x20 - 'A' + '9' + 1
		}
		if r = r<<4 | rune(c-'0'); r > utf8.MaxRune {
			l.fail("there is no such character as %s", l.next())
		}
	}
	if !utf8.ValidRune(r) {
		l.fail("there is no such character as %s", l.next())
	}
	l.pos += 2 + digits
	return r
}

// blank reads the label of a blank node (BLANK_NODE_LABEL).
func (l *lexer) blank() rdf.Term {
	if l.at(1) != ':' {
		l.fail("a blank node is written _:label; there is %s", l.next())
	}
	l.pos += 2
	l.scratch = l.scratch[:0]
	if r, _ := l.rune(0); !isNameBase(r) && r != '_' && !('0' <= r && r <= '9') {
		l.fail("the label of a blank node cannot begin with %s", l.next())
	}
	l.name(isName)
	return rdf.NewBlank(l.text())
}

// quoted reads a string in quotes into the scratch; long ones have three.
func (l *lexer) quoted(long bool) {
	quote := l.at(0)
	l.pos++
	if long {
		l.pos += 2
	}
	l.scratch = l.scratch[:0]
	beyondASCII := false
	for {
		i := l.pos
		for ; i < len(l.buf); i++ {
			if c := l.buf[i]; c == quote || c == '\\' || c == '\n' || c == '\r' {
				break
			} else if c >= utf8.RuneSelf {
				beyondASCII = true
			}
		}
		l.use(i - l.pos)
		switch c := l.at(0); {
		case c == quote:
			if long && (l.at(1) != quote || l.at(2) != quote) {
				l.use(1)
				continue
			}
			l.pos++
			if long {
				l.pos += 2
			}
			if beyondASCII && !utf8.Valid(l.scratch) {
				l.fail("the bytes of the text are not UTF-8; save the file in that encoding")
			}
			return
		case c == '\\':
			l.escape()
		case (c == '\n' || c == '\r') && !l.end():
			if !long {
				l.fail("the text has no end on its line; a text of several lines has three quotes at each end")
			}
			l.use(1)
			if c == '\n' || l.at(0) != '\n' {
				l.newline()
			}
		case l.end():
			l.fail("the text has no end")
		}
	}
}

// escape reads an escape of a string into the scratch (ECHAR, UCHAR).
func (l *lexer) escape() {
	c := l.at(1)
	switch c {
	case 't':
		c = '\t'
	case 'b':
		c = '\b'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 'f':
		c = '\f'
	case '"', '\'', '\\':
	default:
		l.scratch = utf8.AppendRune(l.scratch, l.unicodeEscape())
		return
	}
	l.scratch = append(l.scratch, c)
	l.pos += 2
}

// language reads a language tag, whose @ comes next (LANGTAG).
func (l *lexer) language() string {
	l.pos++
	l.scratch = l.scratch[:0]
	for first := true; ; first = false {
		n := 0
		for c := l.at(n); isLetter(c) || !first && isDigit(c); c = l.at(n) {
			n++
		}
		if n == 0 {
			if !first {
				l.pos--
				l.refuseNewer("--ltr", "--rtl")
				l.pos++
			}
			l.fail("the language tag is not complete: it has letters, and parts behind hyphens, as in en-GB")
		}
		l.use(n)
		if l.at(0) != '-' {
			break
		}
		l.use(1)
	}
	if l.at(0) == '_' {
		l.fail("a language tag has hyphens between its parts, and no underscore; there is %s", l.next())
	}
	tag := l.text()
	if tag != l.tag { // most documents have few languages
		if _, err := rdf.Language(tag); err != nil {
			l.pos -= len(tag)
			l.fail("%v", err)
		}
		l.tag = tag
	}
	return tag
}
