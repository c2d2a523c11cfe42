package jsonld

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/piprate/json-gold/ld"

	"github.com/tmshare/tmshare/internal/rdf"
)

// Limits bound what a document may cost. A field that is zero or less means the default.
type Limits struct {
	Size  int // bytes of the document; default 64 MiB
	Depth int // arrays and objects inside of each other; default 200
}

// Options say how a document is read.
type Options struct {
	URI    string // names the document in messages; not opened
	Base   string // of relative IRIs; default: URI
	Limits Limits
}

// Read calls each with the statements of a document, in order, until it returns an error (JSON-LD 1.1 Processing
// Algorithms and API §8.1, Deserialize JSON-LD to RDF Algorithm). What the algorithm leaves out, such as keys that no
// context maps to IRIs, is left out; a document of which that leaves nothing is refused. An error of the document is a
// *[rdf.SyntaxError]. That of the JSON has its place; that of what the JSON means has the place of the node at the top
// that has it.
func Read(r io.Reader, o Options, each func(rdf.Quad) error) error {
	if o.Limits.Size <= 0 {
		o.Limits.Size = 64 << 20
	}
	if o.Limits.Depth <= 0 {
		o.Limits.Depth = 200
	}
	d, err := readDocument(r, o.URI, o.Limits.Size)
	if err != nil {
		return err
	}
	value, err := d.decode(o.Limits.Depth)
	if err != nil {
		return err
	}
	if err := d.checkContexts(value, false); err != nil {
		return err
	}
	if err := d.checkCopies(value); err != nil {
		return err
	}
	base := cmp.Or(o.Base, o.URI)
	if err := d.checkGrowth(value, base); err != nil {
		return err
	}
	quads, err := d.statements(value, base)
	if err != nil {
		return err
	}
	for _, q := range quads {
		if err := each(q); err != nil {
			return err
		}
	}
	return nil
}

// errTooMany says that the library would compare too many values.
var errTooMany = errors.New("a property of a node has too many values to read them as JSON-LD; convert the document to N-Triples")

// graphs has the library make the statements of the value of a document, and returns whether that has any node.
func (d *document) graphs(value any, o *ld.JsonLdOptions) (made *ld.RDFDataset, empty bool, err error) {
	defer func() {
		if failed := recover(); failed != nil { // the library takes some documents for granted
			err = fmt.Errorf("%v", failed)
		}
	}()
	expanded, err := ld.NewJsonLdProcessor().Expand(value, o)
	if err != nil {
		return nil, false, err
	}
	if tooMany(expanded) {
		return nil, false, errTooMany
	}
	if err := rdf.CheckDensity(statements(expanded, 1), int64(len(d.data))); err != nil {
		return nil, false, d.fail(0, "%v", err)
	}
	if err := d.languages(expanded); err != nil {
		return nil, false, err
	}
	shield(expanded)
	result, err := ld.NewJsonLdProcessor().ToRDF(expanded, o)
	if err != nil {
		return nil, false, err
	}
	return result.(*ld.RDFDataset), len(expanded) == 0, nil
}

// statements returns the statements of the value of a document.
func (d *document) statements(value any, base string) (all []rdf.Quad, err error) {
	o := ld.NewJsonLdOptions(base)
	o.DocumentLoader = table{}
	made, empty, err := d.graphs(value, o)
	if err != nil {
		return nil, d.explain(err, func() (int, string) {
			return d.culprit(value, func(part any) bool { _, _, err := d.graphs(part, o); return err != nil })
		})
	}
	if empty && unmapped(value) {
		return nil, d.fail(0, `no context maps a key of the document to an IRI, so it says nothing; write what they mean into its @context, such as {"@vocab": "https://schema.org/"}`)
	}
	for name, quads := range made.Graphs {
		var graph rdf.Term
		if name != "@default" {
			graph = resource(name)
		}
		all = slices.Grow(all, len(quads))
		for _, q := range quads {
			all = append(all, rdf.Quad{Subject: term(q.Subject), Predicate: term(q.Predicate), Object: term(q.Object), Graph: graph})
		}
	}
	for _, q := range all {
		for _, iri := range []string{q.Subject.Value, q.Predicate.Value, q.Graph.Value, q.Object.Datatype} {
			if err := d.checkIRI(iri); err != nil {
				return nil, err
			}
		}
		if q.Object.Kind == rdf.IRI {
			if err := d.checkIRI(q.Object.Value); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(all, func(a, b rdf.Quad) int {
		return cmp.Or(rdf.Compare(a.Graph, b.Graph), rdf.Compare(a.Subject, b.Subject), rdf.Compare(a.Predicate, b.Predicate), rdf.Compare(a.Object, b.Object))
	})
	return slices.Compact(all), nil
}

// explain makes an error of the library one of the document. culprit finds the node that has it.
func (d *document) explain(err error, culprit func() (offset int, name string)) error {
	var unknown *contextError
	var failed *ld.JsonLdError
	var syntax *rdf.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return err
	case errors.As(err, &unknown):
		return d.fail(strings.Index(string(d.data), unknown.iri), "%v", unknown)
	case errors.Is(err, errTooMany):
		return d.fail(0, "%v", err)
	case errors.As(err, &failed):
		if cause, ok := failed.Details.(*contextError); ok {
			return d.fail(strings.Index(string(d.data), cause.iri), "%v", cause)
		}
	}
	offset, name := culprit()
	if failed != nil {
		return d.fail(offset, "the document is no JSON-LD: %s: %.300s%s", failed.Code, fmt.Sprint(failed.Details), name)
	}
	return d.fail(offset, "the document is no JSON-LD: %v%s", err, name)
}

// checkIRI refuses what no other notation of RDF can write (RDF 1.1 Turtle §6.5, IRIREF).
func (d *document) checkIRI(s string) error {
	if bad, found := rdf.BadInIRI(s); found {
		_, behind, _ := strings.Cut(s, string(bad))
		return d.fail(bytes.Index(d.data, []byte(string(bad)+behind)), "the IRI <%.100s> has the character %q, which no IRI has; escape it with a percent sign", s, bad)
	}
	return nil
}

func resource(s string) rdf.Term {
	if label, ok := strings.CutPrefix(s, "_:"); ok {
		return rdf.NewBlank(label)
	}
	return rdf.NewIRI(s)
}

func term(n ld.Node) rdf.Term {
	switch n := n.(type) {
	case ld.IRI:
		return rdf.NewIRI(n.Value)
	case ld.BlankNode:
		return resource(n.Attribute)
	}
	l := n.(ld.Literal)
	switch {
	case l.Datatype == shielded:
		return rdf.NewLiteral(l.Value, jsonLiteral)
	case l.Language != "":
		return rdf.NewText(l.Value, l.Language)
	}
	return rdf.NewLiteral(l.Value, l.Datatype)
}
