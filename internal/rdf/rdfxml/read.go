package rdfxml

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/xml/scan"
)

// Options are the options for reading a document.
type Options struct {
	URI    string // names the document in messages; not opened
	Base   string // of relative IRIs; default: URI
	Limits scan.Limits

	ContentType string // as in scan.Options

	// Tolerated, if not nil, is called for each thing that is changed, with the Rule of that.
	Tolerated func(*rdf.SyntaxError)
}

// Read calls each with the statements of a document, in their order, until it returns an error. An
// error of the document is a *[rdf.SyntaxError]. The labels of blank nodes are those of rdf:nodeID; those
// of nodes without one begin with a dot, which no label does.
func Read(r io.Reader, o Options, each func(rdf.Quad) error) (err error) {
	p := &parser{uri: o.URI, each: each, tolerated: o.Tolerated, given: map[string]bool{}}
	p.xml = scan.NewScanner(r, scan.Options{URI: o.URI, ContentType: o.ContentType, Limits: o.Limits, Misc: true})
	defer func() {
		switch b := recover().(type) {
		case nil:
		case broken:
			err = b.err
		default:
			panic(b)
		}
	}()
	p.document(scope{base: cmp.Or(o.Base, o.URI)})
	return nil
}

type parser struct {
	xml   *scan.Scanner
	uri   string
	each  func(rdf.Quad) error
	given map[string]bool // IRIs that rdf:ID has given

	tolerated func(*rdf.SyntaxError)

	nodes      int   // blank nodes without a label
	statements int64 // statements
}

// scope holds the properties that elements inherit.
type scope struct{ base, language string }

type broken struct{ err error }

func (p *parser) fail(format string, args ...any) {
	line, column := p.xml.Position()
	panic(broken{&rdf.SyntaxError{URI: p.uri, Line: line, Column: column, Reason: fmt.Sprintf(format, args...)}})
}

// next returns the next event.
func (p *parser) next() scan.Kind {
	kind, err := p.xml.Next()
	if err == nil {
		return kind
	}
	var syntax *scan.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return 0
	case errors.As(err, &syntax):
		err = &rdf.SyntaxError{URI: p.uri, Line: syntax.Line, Column: syntax.Column, Reason: syntax.Reason}
	}
	p.failLimit(err)
	return 0
}

// failLimit ends parsing with an error of the scanner; it rewords those of limits.
func (p *parser) failLimit(err error) {
	var limit *scan.LimitError
	if errors.As(err, &limit) {
		reason := rdf.TooMuchMade(limit.Max)
		if words, ok := limitReasons[limit.Limit]; ok {
			reason = fmt.Sprintf(words, limit.Max)
		}
		err = &rdf.SyntaxError{URI: p.uri, Line: limit.Line, Column: limit.Column, Reason: reason}
	}
	panic(broken{err})
}

// limitReasons are the reasons for exceeding each of scan.Limits, except Growth.
var limitReasons = map[string]string{
	"Depth":       "elements are more than %d deep; write them beside each other",
	"Attributes":  "an element has more than %d attributes; write properties as elements",
	"Name":        "a name has more than %d bytes; shorten it",
	"Token":       "a tag or text has more than %d bytes, which is the limit; shorten it",
	"Bytes":       "the document has more than %d bytes; divide it",
	"Namespaces":  "more than %d prefixes are in scope; declare fewer",
	"DTD":         "the internal DTD subset has more than %d bytes; shorten it",
	"EntityDepth": "entities are more than %d deep, which is the limit; write their text in place of them",
	"Expansion": "entities add more than %d bytes to the document, which is the limit; write their text in " +
		"place of them",
}

// grow counts bytes generated from a namespace or a base.
func (p *parser) grow(n int) {
	if err := p.xml.Grow(n); err != nil {
		p.failLimit(err)
	}
}

// child advances to the next child element, and reports whether there is one. Only white space may precede it.
func (p *parser) child() bool {
	for {
		switch p.next() {
		case scan.StartElement:
			return true
		case scan.EndElement, 0:
			return false
		case scan.Text:
			if !isSpace(p.xml.Text()) {
				p.fail("there is text where only elements may be: %.60q", p.xml.Text())
			}
		}
	}
}

func isSpace(text []byte) bool {
	for _, c := range text {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// document reads the root: rdf:RDF with elements of nodes, or one such element (RDF 1.1 XML Syntax §7.2.8, Production
// doc).
func (p *parser) document(s scope) {
	if !p.child() {
		p.fail("the document has no element")
	}
	if n := p.xml.Name(); n.Space != rdf.NS || n.Local != "RDF" {
		p.node(s)
	} else {
		s = p.enter(s)
		for _, a := range p.xml.Attrs() {
			if p.refuseNewer(a.Name); a.Prefix != "xml" {
				p.fail("rdf:RDF cannot have the attribute %s", a.Local)
			}
		}
		for p.child() {
			p.node(s)
		}
	}
	for p.next() != 0 { // comments and white space after the root
	}
}

const xmlSpace = "http://www.w3.org/XML/1998/namespace"

// enter returns the scope of the element that has started.
func (p *parser) enter(s scope) scope {
	if base, ok := p.xml.Attr(xmlSpace, "base"); ok {
		s.base = p.resolve(s, string(base))
		p.checkLength(s.base)
	}
	if language, ok := p.xml.Attr(xmlSpace, "lang"); ok {
		s.language = p.language(string(language))
	}
	return s
}

// language returns the language of xml:lang; an empty value stands for none (XML 1.0 §2.12, Language Identification).
func (p *parser) language(tag string) string {
	if tag == "" {
		return ""
	}
	normal, err := rdf.Language(tag)
	if err != nil {
		p.fail("%v", err)
	}
	if normal != tag {
		p.tolerate(&rdf.SyntaxError{
			Rule: rdf.LanguageTags, Of: strconv.Quote(tag),
			Reason: fmt.Sprintf("the language tag %q is read as %q", tag, normal),
		})
	}
	return normal
}

// tolerate reports a change at the present position.
func (p *parser) tolerate(e *rdf.SyntaxError) {
	if p.tolerated != nil {
		e.URI = p.uri
		e.Line, e.Column = p.xml.Position()
		p.tolerated(e)
	}
}

// resolve returns an absolute IRI.
func (p *parser) resolve(s scope, ref string) string {
	resolved, err := iri.ResolveAsIs(s.base, ref)
	if err != nil {
		p.fail("the IRI %.100q is relative, and there is no base that it is relative to; give one with xml:base", ref)
	}
	if resolved != ref {
		p.checkLength(resolved)
	}
	p.checkIRI(resolved)
	p.grow(len(resolved))
	return resolved
}

// checkLength refuses a text that is too long for a namespace, a base, or an IRI made with one.
func (p *parser) checkLength(s string) {
	if err := rdf.CheckLength(s); err != nil {
		p.fail("%v", err)
	}
}

func (p *parser) checkIRI(s string) {
	if bad, found := rdf.BadInIRI(s); found {
		p.fail("the IRI <%.100s> has the character %q, which no IRI has; escape it with a percent sign", s, bad)
	}
}

// give returns the IRI of a name that rdf:ID gives.
func (p *parser) give(s scope, name string) string {
	p.mustName("rdf:ID", name)
	id := p.resolve(s, "#"+name)
	if p.given[id] {
		p.fail("rdf:ID gives the name %s again", id)
	}
	p.given[id] = true
	return id
}

func (p *parser) mustName(attribute, name string) {
	if !scan.IsNCName(name) {
		p.fail("%s must be a name without a colon; it is %.100q", attribute, name)
	}
}

func (p *parser) fresh() rdf.Term {
	p.nodes++
	return rdf.NewBlank("." + strconv.Itoa(p.nodes))
}

func (p *parser) say(s rdf.Term, property string, o rdf.Term) {
	p.statements++
	if err := rdf.CheckDensity(p.statements, p.xml.Read()); err != nil {
		p.fail("%v", err)
	}
	if err := p.each(rdf.Quad{Subject: s, Predicate: rdf.NewIRI(property), Object: o}); err != nil {
		panic(broken{err})
	}
}
