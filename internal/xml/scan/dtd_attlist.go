package scan

import "bytes"

// attlist holds the declared attributes of an element.
type attlist struct {
	byName    map[string]*attDef
	defaults  []*attDef // attributes with a default, in the order of their declaration
	tokenized bool      // some are
}

type attDef struct {
	raw       string
	padded    []byte // raw, and pad zero bytes, to be found among the names
	colon     int
	tokenized bool   // its type is not CDATA
	value     []byte // the default, normalised, or nil
}

// attlistDeclaration reads a declaration up to its '>' (XML 1.0 §3.3, Attribute-List Declarations), and returns the
// function that puts it into effect.
func (c *cursor) attlistDeclaration() (commit func()) {
	c.needSpace()
	element := string(c.name(qualified))
	var defs []*attDef
	for {
		spaced := c.space()
		if b := c.peek(); b == '>' || b == 0 {
			if b == 0 {
				c.fail("the declaration of an attribute is expected")
			}
			break
		}
		if !spaced {
			c.fail("white space is expected")
		}
		defs = append(defs, c.attDef())
	}
	return func() { c.s.dtd.declareAttributes(element, defs) }
}

// declareAttributes: the first declaration of an attribute is the one that
// counts.
func (d *dtd) declareAttributes(element string, defs []*attDef) {
	list := d.attlists[element]
	if list == nil {
		list = &attlist{byName: make(map[string]*attDef)}
		d.attlists[element] = list
	}
	for _, def := range defs {
		if list.byName[def.raw] != nil {
			continue
		}
		list.byName[def.raw] = def
		list.tokenized = list.tokenized || def.tokenized
		if def.value != nil {
			list.defaults = append(list.defaults, def)
		}
	}
}

// attDef reads the declaration of one attribute (XML 1.0 §3.3, production 53).
func (c *cursor) attDef() *attDef {
	def := &attDef{raw: string(c.name(qualified))}
	def.padded = append([]byte(def.raw), make([]byte, pad)...)
	def.colon = bytes.IndexByte(def.padded, ':')
	c.needSpace()
	def.tokenized = c.attType()
	c.needSpace()
	switch {
	case c.eat("#REQUIRED"), c.eat("#IMPLIED"):
		return def
	case c.eat("#FIXED"):
		c.needSpace()
	}
	quote := c.peek()
	if quote != '"' && quote != '\'' {
		c.fail("#REQUIRED, #IMPLIED, #FIXED or a value in quotes is expected")
		return def
	}
	value, q, err := c.s.value(c.p+1, quote)
	if err != nil {
		c.err = err
		return def
	}
	c.p = q + 1
	if def.tokenized {
		value = c.s.collapse(value)
	}
	def.value = append([]byte{}, value...)
	return def
}

// attType reads the type of an attribute (XML 1.0 §3.3.1, Attribute Types) and reports whether it is not CDATA.
func (c *cursor) attType() (tokenized bool) {
	switch {
	case c.eat("CDATA"):
		return false
	case c.eat("IDREFS"), c.eat("IDREF"), c.eat("ID"),
		c.eat("ENTITIES"), c.eat("ENTITY"), c.eat("NMTOKENS"), c.eat("NMTOKEN"):
	case c.eat("NOTATION"):
		c.needSpace()
		c.alternatives(withoutColon)
	case c.peek() == '(':
		c.alternatives(token)
	default:
		c.fail("the type of an attribute is expected")
	}
	return true
}

// alternatives reads names in parentheses, with '|' between them.
func (c *cursor) alternatives(form nameForm) {
	c.expect("(")
	for {
		c.space()
		c.name(form)
		c.space()
		if !c.eat("|") {
			break
		}
	}
	c.expect(")")
}
