package rdfxml

import (
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/xml/c14n"
	"github.com/tmshare/tmshare/internal/xml/scan"
)

// propertyElement holds the attributes of a property's element (RDF 1.1 XML Syntax §7.2.14, Production propertyElt).
type propertyElement struct {
	statement  string   // the IRI that rdf:ID gives the statement, or ""
	parse      string   // rdf:parseType
	datatype   string   // rdf:datatype
	object     rdf.Term // rdf:resource or rdf:nodeID
	properties []attr   // properties of the object
	typed      bool     // it has an rdf:parseType
}

func (p *parser) propertyAttributes(s scope) (e propertyElement) {
	for _, a := range p.attributes() {
		switch {
		case isRDF(a.Name, "ID"):
			e.statement = p.give(s, a.value)
		case isRDF(a.Name, "parseType") && a.value == "Triple":
			p.fail("%s", rdf.Newer(`rdf:parseType="Triple"`))
		case isRDF(a.Name, "parseType"):
			e.parse, e.typed = a.value, true
		case isRDF(a.Name, "datatype"):
			e.datatype = p.resolve(s, a.value)
		case isRDF(a.Name, "resource"), isRDF(a.Name, "nodeID"):
			if e.object.Kind != rdf.None {
				p.fail("a property has one of rdf:resource and rdf:nodeID; this one has two")
			}
			if a.Local == "resource" {
				e.object = rdf.NewIRI(p.resolve(s, a.value))
				break
			}
			p.mustName("rdf:nodeID", a.value)
			e.object = rdf.NewBlank(a.value)
		default:
			e.properties = append(e.properties, a)
		}
	}
	switch {
	case e.typed && (e.datatype != "" || e.object.Kind != rdf.None || len(e.properties) > 0):
		p.fail("a property with rdf:parseType has no other attributes than rdf:ID")
	case e.datatype != "" && (e.object.Kind != rdf.None || len(e.properties) > 0):
		p.fail("a property with rdf:datatype has a text: it cannot have rdf:resource, rdf:nodeID or properties")
	}
	return e
}

// propertyOf reads the element of a property of a node, which has started, up to its end.
func (p *parser) propertyOf(s scope, subject rdf.Term, property string) {
	e := p.propertyAttributes(s)
	var object rdf.Term
	switch {
	case e.parse == "Resource":
		object = p.fresh()
		p.stated(e, subject, property, object)
		p.propertiesOf(s, object)
		return
	case e.parse == "Collection":
		p.collection(s, e, subject, property)
		return
	case e.typed:
		object = rdf.NewLiteral(p.markup(), rdf.NS+"XMLLiteral")
	case e.object.Kind != rdf.None || len(e.properties) > 0:
		if object = e.object; object.Kind == rdf.None {
			object = p.fresh()
		}
		p.stated(e, subject, property, object)
		p.attributesOf(s, object, e.properties)
		if p.child() {
			p.fail("a property with rdf:resource, rdf:nodeID or properties in its attributes is empty; it has an element")
		}
		return
	default:
		object = p.content(s, e)
	}
	p.stated(e, subject, property, object)
}

// content reads a text or the element of a node.
func (p *parser) content(s scope, e propertyElement) (object rdf.Term) {
	var text []byte
	for {
		switch p.next() {
		case scan.Text:
			if text = append(text, p.xml.Text()...); len(text) > maxText {
				p.fail("a text has more than %d bytes", maxText)
			}
		case scan.StartElement:
			switch {
			case object.Kind != rdf.None:
				p.fail("a property has one object; write each in an element of the property of its own")
			case e.datatype != "":
				p.fail("a property with rdf:datatype has a text; it has an element")
			}
			object = p.node(s)
		case scan.EndElement:
			switch {
			case object.Kind == rdf.None && e.datatype != "":
				if untagged := rdf.Untagged(string(text), e.datatype); untagged != nil {
					p.tolerate(untagged)
				}
				return rdf.NewLiteral(string(text), e.datatype)
			case object.Kind == rdf.None:
				return rdf.NewText(string(text), s.language)
			case !isSpace(text):
				p.fail("a property has a text or the element of a node; this one has both")
			}
			return object
		}
	}
}

// collection reads the elements of the nodes of a list (RDF 1.1 XML Syntax §7.2.19, Production
// parseTypeCollectionPropertyElt).
func (p *parser) collection(s scope, e propertyElement, subject rdf.Term, property string) {
	last := rdf.Term{}
	link := func(to rdf.Term) {
		if last.Kind == rdf.None {
			p.stated(e, subject, property, to)
		} else {
			p.say(last, rdf.Rest, to)
		}
	}
	for p.child() {
		node := p.fresh()
		link(node)
		last = node
		p.say(node, rdf.First, p.node(s))
	}
	link(rdf.NewIRI(rdf.Nil))
}

// stated passes on a statement, and its reification if it has a name (RDF 1.1 XML Syntax §7.3, Reification Rules).
func (p *parser) stated(e propertyElement, subject rdf.Term, property string, object rdf.Term) {
	p.say(subject, property, object)
	if e.statement == "" {
		return
	}
	statement := rdf.NewIRI(e.statement)
	p.say(statement, rdf.Type, rdf.NewIRI(rdf.NS+"Statement"))
	p.say(statement, rdf.NS+"subject", subject)
	p.say(statement, rdf.NS+"predicate", rdf.NewIRI(property))
	p.say(statement, rdf.NS+"object", object)
}

// maxText is the maximum length of a literal, in bytes.
const maxText = 16 << 20

// markup reads the content of the element as an XML literal, in Exclusive XML Canonicalization 1.0 with comments (RDF
// 1.1 XML Syntax §7.2.17, Production parseTypeLiteralPropertyElt).
func (p *parser) markup() string {
	var c c14n.Canonicalizer
	for depth := p.xml.Depth(); ; {
		if len(c.Out) > maxText {
			p.fail("an XML literal has more than %d bytes", maxText)
		}
		switch p.next() {
		case scan.StartElement:
			for _, b := range c.Start(p.xml) {
				p.grow(len(b.Space))
			}
		case scan.Text:
			c.Text(p.xml.Text())
		case scan.Comment:
			c.Comment(p.xml.Text())
		case scan.ProcInst:
			c.ProcInst(p.xml.Target(), p.xml.Text())
		case scan.EndElement:
			if p.xml.Depth() == depth {
				return string(c.Out)
			}
			c.End(p.xml.Name())
		}
	}
}
