package scan

import (
	"bytes"
	"strings"
)

// entityDeclaration reads a declaration up to its '>' (XML 1.0 §4.2, Entity Declarations), and returns the function
// that puts it into effect.
func (c *cursor) entityDeclaration() (commit func()) {
	c.needSpace()
	parameter := c.eat("%")
	if parameter {
		c.needSpace()
	}
	e := &entity{name: string(c.name(withoutColon)), inParameter: len(c.s.frames) > 0}
	c.needSpace()
	if quote := c.peek(); quote == '"' || quote == '\'' {
		e.text = c.entityValue(quote)
	} else {
		e.external = true
		c.externalID(false)
		if spaced := c.space(); !parameter && c.peek() == 'N' {
			if !spaced {
				c.fail("white space is expected")
			}
			c.expect("NDATA")
			c.needSpace()
			c.name(withoutColon)
			e.unparsed = true
		}
	}
	return func() {
		all := c.s.dtd.entities
		if parameter {
			all = c.s.dtd.parameters
		}
		if all[e.name] == nil { // the first declaration is the one that counts
			all[e.name] = e
		}
	}
}

// entityValue returns the replacement text that the value of an entity makes:
// character references are replaced, others are left for when the entity is
// referred to (XML 1.0 §4.5, Construction of Entity Replacement Text).
func (c *cursor) entityValue(quote byte) []byte {
	s, text := c.s, []byte{}
	for q := c.p + 1; ; {
		begin := q
		q = valueEnd(s.buf, q, quote)
		if i := bytes.IndexByte(s.buf[begin:q], '%'); i >= 0 {
			c.failAt(begin+i,
				"a parameter entity cannot be referred to inside a declaration of the internal DTD subset; as text, '%%' is "+
					"written &#37;")
			return nil
		}
		text = append(text, s.buf[begin:q]...)
		switch b := s.buf[q]; {
		case b == quote:
			c.p = q + 1
			return append(text, make([]byte, pad)...)
		case b == '<', b == '\t', b == '\n', b == '\r' && len(s.frames) > 0:
			text = append(text, b)
			q++
		case b == '\r':
			if q+1 >= s.end {
				c.err = errShort
				return nil
			}
			if q++; s.buf[q] == '\n' {
				q++
			}
			text = append(text, '\n')
		case b == '&' && s.buf[q+1] == '#':
			r, next, err := s.referenceAt(q)
			if err != nil {
				c.err = err
				return nil
			}
			text = append(text, string(r.char)...)
			q = next
		case b == '&':
			c.p = q + 1
			c.name(withoutColon)
			c.expect(";")
			if c.err != nil {
				return nil
			}
			text = append(text, s.buf[q:c.p]...)
			q = c.p
		case b >= 0x80:
			high := skipHigh(s.buf, q)
			if high == q {
				c.p = q
				c.fail("the value of an entity must go on here")
				return nil
			}
			text = append(text, s.buf[q:high]...)
			q = high
		default:
			c.p = q
			c.fail("the value of an entity must go on or end here")
			return nil
		}
	}
}

// externalID reads where an external entity is (XML 1.0 §4.2.2, External
// Entities). Of a notation the public identifier is enough.
func (c *cursor) externalID(notation bool) {
	if c.eat("SYSTEM") {
		c.needSpace()
		c.quoted()
		return
	}
	if !c.eat("PUBLIC") {
		c.fail("SYSTEM, PUBLIC or, for an entity, a value in quotes is expected")
	}
	c.needSpace()
	at := c.p
	for i, r := range string(c.quoted()) {
		if !isPubid(r) {
			c.failAt(at+1+i, "%q cannot stand in a public identifier", r)
			break
		}
	}
	spaced := c.space()
	if quote := c.peek(); notation && quote != '"' && quote != '\'' {
		return
	}
	if !spaced {
		c.fail("white space is expected")
	}
	c.quoted()
}

// isPubid follows XML 1.0 §2.3, production 13.
func isPubid(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
		strings.ContainsRune(" \r\n-'()+,./:=?;!*#@$_%", r)
}

// notationDeclaration reads a declaration up to its '>' (XML 1.0 §4.7, Notation
// Declarations). Nothing is done with notations.
func (c *cursor) notationDeclaration() {
	c.needSpace()
	c.name(withoutColon)
	c.needSpace()
	c.externalID(true)
}
