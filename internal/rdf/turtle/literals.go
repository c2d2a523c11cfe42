package turtle

import "github.com/tmshare/tmshare/internal/rdf"

// boolean reads a word if it comes next as a whole.
func (p *parser) boolean(word string) bool {
	for i := range len(word) {
		if p.at(i) != word[i] {
			return false
		}
	}
	if r, _ := p.rune(len(word)); r == ':' || isName(r) {
		return false
	}
	p.pos += len(word)
	return true
}

func (p *parser) literal() rdf.Term {
	quote := p.at(0)
	long := p.at(1) == quote && p.at(2) == quote
	p.quoted(long)
	value := string(p.scratch)
	switch {
	case p.at(0) == '@':
		return rdf.NewText(value, p.language())
	case p.at(0) == '^' && p.at(1) == '^':
		p.pos += 2
		return p.typed(value, p.named("a datatype").Value)
	}
	return rdf.NewLiteral(value, "")
}

// typed returns the literal of a datatype, which has just been read.
func (p *parser) typed(value, datatype string) rdf.Term {
	if e := rdf.Untagged(value, datatype); e != nil && p.tolerated != nil {
		e.URI, e.Line, e.Column = p.uri, p.line, p.column()
		p.tolerated(e)
	}
	return rdf.NewLiteral(value, datatype)
}

// number reads an integer, a decimal or a double.
func (p *parser) number() rdf.Term {
	n := 0
	digits := func() (some bool) {
		for ; isDigit(p.at(n)); n++ {
			if some = true; n > p.limits.Term {
				p.fail("the number is longer than %d bytes", p.limits.Term)
			}
		}
		return some
	}
	exponent := func(at int) int { // returns its length before the first digit; 0: none
		if p.at(at)|0x20 != 'e' {
			return 0
		}
		sign := 0
		if c := p.at(at + 1); c == '+' || c == '-' {
			sign = 1
		}
		if !isDigit(p.at(at + 1 + sign)) {
			return 0
		}
		return 1 + sign
	}
	if c := p.at(0); c == '+' || c == '-' {
		n++
	}
	whole := digits()
	datatype := "integer"
	if p.at(n) == '.' && (isDigit(p.at(n+1)) || whole && exponent(n+1) > 0) {
		n++
		datatype = "decimal"
		whole = digits() || whole
	}
	if !whole {
		p.fail("a number has digits; there is %s", p.next())
	}
	if e := exponent(n); e > 0 {
		datatype = "double"
		n += e
		digits()
	}
	p.scratch = p.scratch[:0]
	p.use(n)
	return rdf.NewLiteral(p.text(), rdf.XSD+datatype)
}
