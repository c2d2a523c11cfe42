package turtle

import (
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
)

// lines reads N-Triples (RDF 1.1 N-Triples §7, Grammar) or N-Quads (RDF 1.1 N-Quads §4, Grammar).
func (p *parser) lines() {
	for p.space(true); !p.end(); p.space(true) {
		if p.keyword(version) {
			p.refuseVersion()
		}
		s := p.node("a statement begins with an IRI in <> or a blank node")
		p.space(false)
		if p.at(0) != '<' {
			p.fail("a property is an IRI in <>; there is %s", p.next())
		}
		property := p.absolute()
		p.space(false)
		var o rdf.Term
		if p.at(0) == '"' {
			o = p.lineLiteral()
		} else {
			o = p.node("an object is an IRI in <>, a blank node or a text in double quotes")
		}
		p.space(false)
		p.graph = rdf.Term{}
		if p.notation == NQuads && p.at(0) != '.' {
			p.graph = p.node("the name of a graph is an IRI in <> or a blank node")
			p.space(false)
		}
		p.expect('.', "at the end of the statement")
		p.say(s, property, o)
		p.space(false)
		if c := p.at(0); c != '\n' && c != '\r' && !p.end() {
			p.fail("the next statement needs a line of its own; there is %s", p.next())
		}
	}
}

func (p *parser) node(rule string) rdf.Term {
	switch p.at(0) {
	case '<':
		return p.absolute()
	case '_':
		return p.blank()
	}
	p.fail("%s; there is %s", rule, p.next())
	return rdf.Term{}
}

func (p *parser) absolute() rdf.Term {
	p.iriRef()
	s := p.text()
	if !iri.IsAbsolute(s) {
		p.fail("the IRI <%.100s> is relative; this notation has only absolute ones", s)
	}
	return rdf.NewIRI(s)
}

func (p *parser) lineLiteral() rdf.Term {
	p.quoted(false)
	value := string(p.scratch)
	switch {
	case p.at(0) == '@':
		return rdf.NewText(value, p.language())
	case p.at(0) == '^' && p.at(1) == '^':
		p.pos += 2
		if p.at(0) != '<' {
			p.fail("a datatype is an IRI in <>; there is %s", p.next())
		}
		return p.typed(value, p.absolute().Value)
	}
	return rdf.NewLiteral(value, "")
}
