// Package rdf holds the terms and statements of RDF 1.1 Concepts and Abstract Syntax, and how two
// sets of statements are compared.
package rdf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/xtm"
)

// Kind is the kind of a term (RDF 1.1 Concepts §3.1, Triples).
type Kind uint8

// The kinds of terms. None is that of no term, as of the name of the default graph.
const (
	None Kind = iota
	IRI
	Blank
	Literal
)

// Term is a node of a graph, or the name of a property. Two terms that are equal with == are
// the same; language tags are compared without case (RDF 1.1 Concepts §3.3, Literals).
type Term struct {
	Kind     Kind
	Value    string // the IRI; the label of a blank node, which only its document knows; the lexical form
	Language string // of a literal, as [Language] returns it; "" for none
	Datatype string // of a literal: its IRI
}

// The names that all of RDF needs.
const (
	NS      = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	XSD     = "http://www.w3.org/2001/XMLSchema#"
	Type    = NS + "type"
	First   = NS + "first"
	Rest    = NS + "rest"
	Nil     = NS + "nil"
	LangStr = NS + "langString"
	String  = XSD + "string"
)

// NewIRI returns the term of an IRI.
func NewIRI(iri string) Term { return Term{Kind: IRI, Value: iri} }

// NewBlank returns a blank node.
func NewBlank(label string) Term { return Term{Kind: Blank, Value: label} }

// NewLiteral returns a literal without a language. No datatype is xsd:string, and so is rdf:langString, which only
// literals with a language have (RDF 1.1 Concepts §3.3, Literals).
func NewLiteral(value, datatype string) Term {
	if datatype == "" || datatype == LangStr {
		datatype = String
	}
	return Term{Kind: Literal, Value: value, Datatype: datatype}
}

// NewText returns a literal in a language, which is a tag as [Language] returns it; "": in none.
func NewText(value, language string) Term {
	if language == "" {
		return NewLiteral(value, "")
	}
	return Term{Kind: Literal, Value: value, Language: language, Datatype: LangStr}
}

// Quad is a statement of a graph. A Graph without a kind is the default graph.
type Quad struct{ Subject, Predicate, Object, Graph Term }

// SyntaxError describes the reason and the place of a fault, for which a document was rejected or which was
// tolerated.
type SyntaxError = xtm.SyntaxError

// Newer returns the reason to refuse a syntax that RDF 1.2 adds to a notation.
func Newer(syntax string) string {
	return fmt.Sprintf("this is RDF 1.2 syntax (%s), which this reader does not know; write the document in RDF 1.1",
		syntax)
}

// Compare orders terms by kind, value, language and datatype.
func Compare(a, b Term) int { return compareTerms(&a, &b) }

func compareTerms(a, b *Term) int {
	if a.Kind != b.Kind {
		return cmp.Compare(a.Kind, b.Kind)
	}
	if order := strings.Compare(a.Value, b.Value); order != 0 || a.Kind != Literal {
		return order
	}
	return cmp.Or(strings.Compare(a.Language, b.Language), strings.Compare(a.Datatype, b.Datatype))
}

// Sorted returns statements sorted and without duplicates: those with rdf:type come first for each subject. It drops
// names of graphs. If all are sorted already, it returns them unchanged.
func Sorted(all []Quad) []Quad {
	if inOrder(all) {
		return all
	}
	order := make([]*Quad, len(all)) // a statement is large
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortFunc(order, compareQuads)
	sorted := make([]Quad, 0, len(all))
	for _, q := range order {
		if n := len(sorted); n == 0 || compareQuads(&sorted[n-1], q) != 0 {
			sorted = append(sorted, Quad{Subject: q.Subject, Predicate: q.Predicate, Object: q.Object})
		}
	}
	return sorted
}

func inOrder(all []Quad) bool {
	for i := range all {
		if all[i].Graph.Kind != None || i > 0 && compareQuads(&all[i-1], &all[i]) >= 0 {
			return false
		}
	}
	return true
}

func compareQuads(a, b *Quad) int {
	if order := compareTerms(&a.Subject, &b.Subject); order != 0 {
		return order
	}
	if a.Predicate != b.Predicate {
		switch {
		case a.Predicate.Value == Type:
			return -1
		case b.Predicate.Value == Type:
			return 1
		}
		if order := compareTerms(&a.Predicate, &b.Predicate); order != 0 {
			return order
		}
	}
	return compareTerms(&a.Object, &b.Object)
}

// BadInIRI returns the first character of a string that is not allowed in an IRI, if there is one.
func BadInIRI(s string) (bad rune, found bool) {
	if i := strings.IndexAny(s, iri.Refused); i >= 0 {
		return rune(s[i]), true
	}
	return 0, false
}

// MaxIRI is the maximum length in bytes of a namespace or a base, and of an IRI made with one, because each use repeats
// it.
const MaxIRI = 8 << 10

// CheckLength refuses an IRI of more than [MaxIRI] bytes.
func CheckLength[T string | []byte](iri T) error {
	if len(iri) <= MaxIRI {
		return nil
	}
	return fmt.Errorf("the IRI <%.100s…> has %d bytes; the most for an IRI is %d: shorten the namespace or the base", iri,
		len(iri), MaxIRI)
}

// TooMuchMade returns the reason to refuse a document whose names and relative IRIs expand beyond a limit, in bytes.
func TooMuchMade(limit int64) string {
	return fmt.Sprintf("namespaces and bases add more than %d bytes to the document; shorten them", limit)
}
