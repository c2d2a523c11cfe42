package scan

import "strings"

// cursor reads the parts of one declaration. It stores its first error, including the end of the window, and does
// nothing afterwards: the code reads a declaration without checks, and checks the error at its end. Every loop must end
// after an error, when peek returns 0.
type cursor struct {
	s   *Scanner
	p   int // in the window
	err error
}

// fail stores the error for an unexpected character at p.
func (c *cursor) fail(message string, name ...string) {
	if c.err == nil {
		c.err = c.s.unexpected(c.p, message, name...)
	}
}

func (c *cursor) failAt(p int, format string, args ...any) {
	if c.err == nil {
		c.err = c.s.errorf(p, format, args...)
	}
}

// peek returns the next byte; 0 if there is none.
func (c *cursor) peek() byte {
	if c.err != nil {
		return 0
	}
	return c.s.buf[c.p]
}

// eat skips text if it comes next, and reports whether it did.
func (c *cursor) eat(text string) bool {
	if c.err != nil {
		return false
	}
	b := c.s.buf[c.p:c.s.end]
	if len(b) < len(text) && strings.HasPrefix(text, string(b)) {
		c.err = c.s.short()
		return false
	}
	if len(b) < len(text) || string(b[:len(text)]) != text {
		return false
	}
	c.p += len(text)
	return true
}

func (c *cursor) expect(text string) {
	if !c.eat(text) {
		c.fail(`"%s" is expected`, text)
	}
}

// space skips white space and reports whether there was any.
func (c *cursor) space() bool {
	if c.err != nil {
		return false
	}
	p := c.p
	c.p = spaceEnd(c.s.buf, p)
	return c.p > p
}

func (c *cursor) needSpace() {
	if !c.space() {
		c.fail("white space is expected")
	}
}

// The kinds of names that may stand in a place.
type nameForm uint8

const (
	token        nameForm = iota // an Nmtoken, XML 1.0 production 7
	qualified                    // Namespaces in XML 1.0 production 7
	withoutColon                 // Namespaces in XML 1.0 production 4
)

// name returns the next name. It is a part of the window.
func (c *cursor) name(form nameForm) []byte {
	if c.err != nil {
		return nil
	}
	s, p := c.s, c.p
	q := wordEnd(s.buf, p)
	text := s.buf[p:q]
	switch {
	case form != token:
		var colon int
		colon, c.err = s.checkName(p, q)
		if c.err == nil && form == withoutColon && colon >= 0 {
			c.failAt(p, "a name without a colon is expected, not %s", excerpt(text))
		}
	case len(text) > s.limits.Name:
		c.err = s.limitError(p, "Name", int64(s.limits.Name))
	case q >= s.end:
		c.err = s.short()
	case len(text) == 0:
		c.fail("a name is expected")
	default:
		// a name may begin with "_" and continues with the characters of a token
		if n := validName(append([]byte("_"), text...)) - 1; n < len(text) {
			c.p += n
			c.fail("a name token must go on or end here")
		}
	}
	if c.err != nil {
		return nil
	}
	c.p = q
	return text
}

// quoted returns the text between the next quotes, with any characters.
func (c *cursor) quoted() []byte {
	quote := c.peek()
	if quote != '"' && quote != '\'' {
		c.fail("a value in quotes is expected")
		return nil
	}
	begin, q := c.p+1, c.p+1
	for {
		q = c.s.run(q, quote)
		switch c.s.buf[q] {
		case quote:
			c.p = q + 1
			return c.s.buf[begin:q]
		case '\r':
			q++
		default:
			c.p = q
			c.fail("a value in quotes must go on or end here")
			return nil
		}
	}
}

// assigned returns the value after '=' in an XML declaration.
func (c *cursor) assigned() string {
	c.space()
	c.expect("=")
	c.space()
	return string(c.quoted())
}
