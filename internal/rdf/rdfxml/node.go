package rdfxml

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/xml/scan"
)

// Names that RDF reserves for its syntax (RDF 1.1 XML Syntax §7.2.2 to §7.2.6, Productions coreSyntaxTerms,
// syntaxTerms, oldTerms).
var (
	core = []string{"RDF", "ID", "about", "parseType", "resource", "nodeID", "datatype"}
	old  = []string{"aboutEach", "aboutEachPrefix", "bagID"}
)

func isRDF(n scan.Name, local string) bool { return n.Space == rdf.NS && n.Local == local }

func among(n scan.Name, lists ...[]string) bool {
	return n.Space == rdf.NS && slices.ContainsFunc(lists, func(list []string) bool {
		return slices.Contains(list, n.Local)
	})
}

// attr is an attribute that RDF interprets.
type attr struct {
	scan.Name
	value string
}

// unqualified are the attributes of RDF that may lack its namespace, as in earlier versions (RDF 1.1 XML Syntax §6.1.4,
// Attribute Event).
var unqualified = []string{"ID", "about", "resource", "parseType", "type"}

// attributes returns the attributes of the element that RDF interprets.
func (p *parser) attributes() (all []attr) {
	for _, a := range p.xml.Attrs() {
		p.refuseNewer(a.Name)
		n := a.Name
		if first := cmp.Or(n.Prefix, n.Local); len(first) >= 3 && strings.EqualFold(first[:3], "xml") {
			continue // names that XML reserves
		}
		if n.Space == "" {
			if !slices.Contains(unqualified, n.Local) {
				p.fail("the attribute %s has no namespace; a property is an attribute with a prefix", n.Local)
			}
			n.Space = rdf.NS
		}
		all = append(all, attr{n, string(a.Value)})
	}
	return all
}

const itsSpace = "http://www.w3.org/2005/11/its"

// refuseNewer refuses attributes to which RDF 1.2 gives a meaning.
func (p *parser) refuseNewer(n scan.Name) {
	switch {
	case n.Space == itsSpace && (n.Local == "dir" || n.Local == "version"):
		p.fail("%s", rdf.Newer("its:"+n.Local))
	case isRDF(n, "version"), isRDF(n, "annotation"), isRDF(n, "annotationNodeID"):
		p.fail("%s", rdf.Newer("rdf:"+n.Local))
	}
}

// node reads the node element that has started, to its end, and returns its subject (RDF 1.1 XML Syntax §7.2.11,
// Production nodeElement).
func (p *parser) node(s scope) (subject rdf.Term) {
	name := p.xml.Name()
	if among(name, core, old) || isRDF(name, "li") {
		p.fail("rdf:%s cannot be the name of a node's element", name.Local)
	}
	typed := p.property(name)
	s = p.enter(s)
	var properties []attr
	for _, a := range p.attributes() {
		switch {
		case isRDF(a.Name, "ID"), isRDF(a.Name, "nodeID"), isRDF(a.Name, "about"):
			if subject.Kind != rdf.None {
				p.fail("a node has one of rdf:ID, rdf:nodeID and rdf:about; this one has two")
			}
			switch a.Local {
			case "ID":
				subject = rdf.NewIRI(p.give(s, a.value))
			case "nodeID":
				p.mustName("rdf:nodeID", a.value)
				subject = rdf.NewBlank(a.value)
			default:
				subject = rdf.NewIRI(p.resolve(s, a.value))
			}
		default:
			properties = append(properties, a)
		}
	}
	if subject.Kind == rdf.None {
		subject = p.fresh()
	}
	if !isRDF(name, "Description") {
		p.say(subject, rdf.Type, rdf.NewIRI(typed))
	}
	p.attributesOf(s, subject, properties)
	p.propertiesOf(s, subject)
	return subject
}

// property returns the IRI of the name of an element or attribute.
func (p *parser) property(n scan.Name) string {
	if n.Space == "" {
		p.fail("the name %s has no namespace; declare one with xmlns", n.Local)
	}
	p.checkLength(n.Space)
	p.checkIRI(n.Space)
	if !iri.IsAbsolute(n.Space) {
		p.fail("the name %s has the namespace %.100q, which begins with no scheme such as http: so the name stands for no "+
			"IRI; write the whole IRI of the namespace", n.Local, n.Space)
	}
	p.grow(len(n.Space))
	return n.Space + n.Local
}

// attributesOf emits the property attributes of a node (RDF 1.1 XML Syntax §7.2.25, Production propertyAttr).
func (p *parser) attributesOf(s scope, subject rdf.Term, all []attr) {
	for _, a := range all {
		switch {
		case among(a.Name, core, old), isRDF(a.Name, "Description"), isRDF(a.Name, "li"):
			p.fail("rdf:%s cannot be an attribute here", a.Local)
		case isRDF(a.Name, "type"):
			p.say(subject, rdf.Type, rdf.NewIRI(p.resolve(s, a.value)))
		default:
			p.say(subject, p.property(a.Name), rdf.NewText(a.value, s.language))
		}
	}
}

// propertiesOf reads the property elements in the present element, up to its end.
func (p *parser) propertiesOf(s scope, subject rdf.Term) {
	for members := 0; p.child(); {
		name := p.xml.Name()
		property := p.property(name)
		switch {
		case isRDF(name, "li"):
			members++
			property = rdf.NS + "_" + strconv.Itoa(members)
		case among(name, core, old), isRDF(name, "Description"):
			p.fail("rdf:%s cannot be the name of a property's element", name.Local)
		}
		p.propertyOf(p.enter(s), subject, property)
	}
}
