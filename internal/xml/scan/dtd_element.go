package scan

// elementDeclaration reads a declaration up to its '>' (XML 1.0 §3.2, Element
// Type Declarations). Content is not validated, so the model is only checked.
func (c *cursor) elementDeclaration() {
	c.needSpace()
	c.name(qualified)
	c.needSpace()
	if c.eat("EMPTY") || c.eat("ANY") {
		return
	}
	c.expect("(")
	c.space()
	if c.eat("#PCDATA") {
		c.mixed()
		return
	}
	c.children()
}

// mixed reads a model of mixed content after "(#PCDATA" (XML 1.0 §3.2.2, Mixed-content Declaration).
func (c *cursor) mixed() {
	named := false
	for c.space(); c.eat("|"); c.space() {
		named = true
		c.space()
		c.name(qualified)
	}
	c.expect(")")
	if !c.eat("*") && named {
		c.fail("'*' is expected: mixed content with elements is of the form (#PCDATA | a | b)*")
	}
}

// children reads a content model after its first "(" (XML 1.0 §3.2.1, Element Content).
func (c *cursor) children() {
	groups := []byte{0} // for each open group its separator; 0: none so far
	for c.err == nil {
		c.space()
		if c.eat("(") {
			if len(groups) == c.s.limits.Depth {
				c.err = c.s.limitError(c.p, "Depth", int64(c.s.limits.Depth))
				return
			}
			groups = append(groups, 0)
			continue
		}
		c.name(qualified)
		c.occurrence()
		for c.space(); c.eat(")"); c.space() {
			groups = groups[:len(groups)-1]
			c.occurrence()
			if len(groups) == 0 {
				return
			}
		}
		separator := &groups[len(groups)-1]
		switch b := c.peek(); {
		case b != '|' && b != ',', *separator != 0 && *separator != b:
			c.fail("')', or the same separator as before in the group, is expected")
		default:
			*separator = b
			c.p++
		}
	}
}

// occurrence reads the occurrence indicator of a part of a content model.
func (c *cursor) occurrence() {
	if b := c.peek(); b == '?' || b == '*' || b == '+' {
		c.p++
	}
}
