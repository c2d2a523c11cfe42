package jsonld

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/piprate/json-gold/ld"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/xtm"
)

// Limits bound the cost of a document. A field that is zero or less means the default.
type Limits struct {
	Size  int // bytes of the document; default 64 MiB
	Depth int // arrays and objects inside of each other; default 200
}

// Options are the options for reading a document.
type Options struct {
	URI    string // names the document in messages; not opened
	Base   string // of relative IRIs; default: URI
	Limits Limits

	// Tolerated, if not nil, is called for each thing that is left out, or changed, with one of the rules of package rdf.
	Tolerated func(*rdf.SyntaxError)
}

// Read calls each with the statements of a document, in order, until it returns an error (JSON-LD 1.1 Processing
// Algorithms and API §8.1, Deserialize JSON-LD to RDF Algorithm). It reports parts that the algorithm drops, such as
// keys that no context maps to IRIs; if nothing remains, it refuses the document. An error of the document is a
// *[rdf.SyntaxError] with its place in the JSON, or, for an error of meaning, the place of a node.
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
	quads, m, err := d.statements(value, base)
	if err != nil {
		return err
	}
	if len(m.lost) > 0 && o.Tolerated != nil {
		m.report(o.Tolerated)
	}
	for _, q := range quads {
		if err := each(q); err != nil {
			return err
		}
	}
	return nil
}

// expand has the library expand the value of a document (JSON-LD 1.1 API §5.1, Expansion Algorithm).
func expand(value any, o *ld.JsonLdOptions) (expanded []any, err error) {
	defer func() {
		if failed := recover(); failed != nil { // the library takes some documents for granted
			err = fmt.Errorf("%v", failed)
		}
	}()
	return ld.NewJsonLdProcessor().Expand(value, o)
}

// statements returns the statements of a document's value, in order, and their maker.
func (d *document) statements(value any, base string) (all []rdf.Quad, m *maker, err error) {
	m = &maker{d: d, places: places{}, blanks: map[string]rdf.Term{}, more: map[xtm.Rule]int{}}
	value = changed(value, escape)
	d.standIns(value, false)
	o := ld.NewJsonLdOptions(d.base(base))
	o.DocumentLoader, o.ExpandedElementHandler, o.SafeMode = table{d}, m.places.note, true
	expanded, err := expand(value, o)
	var failed *ld.JsonLdError
	if errors.As(err, &failed) && failed.Code == ld.InvalidProperty {
		o.SafeMode = false
		if expanded, err = expand(value, o); err == nil {
			m.unmapped(value, o)
		}
	}
	if err != nil {
		return nil, nil, d.explain(err, func() (int, string) {
			return d.culprit(value, func(part any) bool { _, err := expand(part, o); return err != nil })
		})
	}
	if len(expanded) == 0 && unmapped(value) {
		return nil, nil, d.fail(0, `no context maps a key of the document to an IRI, so it says nothing; `+
			`write what they mean into its @context, such as {"@vocab": "https://schema.org/"}`)
	}
	for _, restore := range d.restore {
		restore()
	}
	m.free(value)
	m.all(expanded, rdf.Term{})
	slices.SortFunc(m.quads, func(a, b rdf.Quad) int {
		return cmp.Or(rdf.Compare(a.Graph, b.Graph), rdf.Compare(a.Subject, b.Subject),
			rdf.Compare(a.Predicate, b.Predicate), rdf.Compare(a.Object, b.Object))
	})
	return slices.Compact(m.quads), m, m.err
}

// report reports the dropped parts, each with the place of its node.
func (m *maker) report(tolerated func(*rdf.SyntaxError)) {
	d, lost := m.d, m.lost
	var pointers []string
	for _, l := range lost {
		pointers = append(pointers, l.pointer)
	}
	offsets := d.offsets(pointers...)
	slices.SortStableFunc(lost, func(a, b loss) int { return cmp.Compare(offsets[a.pointer], offsets[b.pointer]) })
	line, start, last := 1, 0, 0
	for _, l := range lost {
		passed := d.data[last:offsets[l.pointer]]
		line += bytes.Count(passed, []byte("\n"))
		if at := bytes.LastIndexByte(passed, '\n'); at >= 0 {
			start = last + at + 1
		}
		last = offsets[l.pointer]
		tolerated(&rdf.SyntaxError{
			URI: d.uri, Line: line, Column: last - start + 1, Reason: l.reason + " (in " + l.named + ")",
			Rule: l.rule, Of: l.what, In: l.named,
		})
	}
	for _, rule := range slices.Sorted(maps.Keys(m.more)) {
		for range m.more[rule] {
			tolerated(&rdf.SyntaxError{URI: d.uri, Line: 1, Column: 1, Rule: rule,
				Reason: "the same, beyond those that are named"})
		}
	}
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
		return d.fail(bytes.Index(d.data, []byte(unknown.iri)), "%v", unknown)
	case errors.As(err, &failed):
		if cause, ok := failed.Details.(*contextError); ok {
			return d.fail(bytes.Index(d.data, []byte(cause.iri)), "%v", cause)
		}
	}
	offset, name := culprit()
	if failed != nil {
		details := plain(inMessage.ReplaceAllStringFunc(fmt.Sprint(failed.Details), d.resolved))
		return d.fail(offset, "the document is no JSON-LD: %s: %.300s%s", failed.Code, details, name)
	}
	return d.fail(offset, "the document is no JSON-LD: %v%s", err, name)
}
