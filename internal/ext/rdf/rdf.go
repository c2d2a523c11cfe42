// Package rdf is the extension that reads, writes and exchanges maps in the notations of RDF 1.1. docs/rdf.md describes
// the mapping.
package rdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/otherformat"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
	"github.com/tmshare/tmshare/internal/rdf/rdfxml"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Extension returns the extension.
func Extension() extension.Extension {
	c := &choices{outputs: map[*formats.Format]output{}}
	return extension.Extension{Name: "rdf", Formats: c.formats(), FormatFlags: c.flags}
}

const titleRDFXML = "RDF/XML"

// formats returns the notations. TriG and N-Quads have several graphs; a topic map is one of them.
func (c *choices) formats() formats.Registry {
	inTurtle := output{write: turtle.Write, stream: func(w io.Writer) statements { return turtle.NewWriter(w) },
		ordered: true, brackets: true}
	inLines := output{write: turtle.WriteNTriples, ordered: true,
		stream: func(w io.Writer) statements { return turtle.NewLineWriter(w) }}
	inXML := output{write: rdfxml.Write, stream: func(w io.Writer) statements { return rdfxml.NewWriter(w) }}
	inTriG, inQuads := inTurtle, inLines
	inTriG.named, inQuads.named = true, true
	return formats.Registry{
		c.notation(formats.Format{
			Name: "turtle", Aliases: []string{"ttl"}, Title: "Turtle", MediaTypes: []string{"text/turtle"},
			Endings: []string{".ttl"}, URLEnding: ".ttl",
		}, readTurtle(turtle.Turtle), inTurtle),
		c.notation(formats.Format{
			Name: "ntriples", Aliases: []string{"nt"}, Title: "N-Triples", MediaTypes: []string{"application/n-triples"},
			Endings: []string{".nt"}, URLEnding: ".nt",
		}, readTurtle(turtle.NTriples), inLines),
		c.notation(formats.Format{
			Name: "rdfxml", Aliases: []string{"rdf"}, Title: titleRDFXML, MediaTypes: []string{"application/rdf+xml"},
			Endings: []string{".rdf", ".owl"}, URLEnding: ".rdf",
		}, readXML, inXML),
		c.notation(formats.Format{
			Name: "jsonld", Title: "JSON-LD", MediaTypes: []string{"application/ld+json"}, Endings: []string{".jsonld"},
		}, readJSON, output{write: jsonld.Write}),
		c.notation(formats.Format{
			Name: "trig", Title: "TriG", MediaTypes: []string{"application/trig"}, Endings: []string{".trig"},
		}, readTurtle(turtle.TriG), inTriG),
		c.notation(formats.Format{
			Name: "nquads", Aliases: []string{"nq"}, Title: "N-Quads", MediaTypes: []string{"application/n-quads"},
			Endings: []string{".nq"},
		}, readTurtle(turtle.NQuads), inQuads),
	}
}

// statements writes the statements of a graph as they come. The document is complete after Close.
type statements interface {
	Write(rdf.Quad) error
	Close() error
}

type reader func(r io.Reader, o xtm.Options, each func(rdf.Quad) error) error

// output is how a notation is written.
type output struct {
	write             func(io.Writer, []rdf.Quad) error
	stream            func(io.Writer) statements // nil: its document needs all statements
	ordered, brackets bool                       // statements in order make it as write does; with brackets
	named             bool                       // a graph has its name there, where no map is made
}

func readTurtle(n turtle.Notation) reader {
	return func(r io.Reader, o xtm.Options, each func(rdf.Quad) error) error {
		return turtle.Read(r, n,
			turtle.Options{URI: o.URI, Base: string(o.Base),
				Limits:    turtle.Limits{Term: o.Limits.Token, Depth: o.Limits.Depth, Growth: int(o.Limits.Growth)},
				Tolerated: o.Tolerated}, each)
	}
}

func readJSON(r io.Reader, o xtm.Options, each func(rdf.Quad) error) error {
	return jsonld.Read(r, jsonld.Options{
		URI: o.URI, Base: string(o.Base), Limits: jsonld.Limits{Depth: o.Limits.Depth}, Tolerated: o.Tolerated,
	}, each)
}

func readXML(r io.Reader, o xtm.Options, each func(rdf.Quad) error) error {
	limits := scan.Limits{Depth: o.Limits.Depth, Attributes: o.Limits.Attributes, Name: o.Limits.Name,
		Token: o.Limits.Token, Expansion: o.Limits.Expansion, Growth: o.Limits.Growth}
	return rdfxml.Read(r, rdfxml.Options{
		URI: o.URI, Base: string(o.Base), Limits: limits, ContentType: o.ContentType, Tolerated: o.Tolerated,
	}, each)
}

func (c *choices) notation(f formats.Format, read reader, out output) *formats.Format {
	f.Cannot, f.Asks = "associations without roles", asks
	toMap := func(ctx context.Context, r io.Reader, o formats.ReadOptions, options mapping.Options,
		each func(*mapping.Builder) func(rdf.Quad) error) (*tmdm.TopicMap, error) {
		b := mapping.NewBuilder(o.Base, o.Limits.Memory, options)
		var m *tmdm.TopicMap
		err := document(&f, read, r, &o, each(b), func() (name string, err error) {
			m, err = b.Map(ctx)
			return b.GraphName(), err
		})
		return m, err
	}
	exchanged := func(ctx context.Context, r io.Reader, o xtm.Options, options mapping.Options) (*fragment.Map, error) {
		tm, err := toMap(ctx, r, formats.ReadOptions{Options: o}, options, func(b *mapping.Builder) func(rdf.Quad) error {
			return carried(&o, b.Add)
		})
		if err != nil {
			return nil, err
		}
		return mapOf(tm, o)
	}
	written := func(w io.Writer, sp string, say func(*mapping.Records) error) error {
		to := out.stream(w)
		if err := say(mapping.NewRecords(sp, to.Write)); err != nil {
			return err
		}
		return to.Close()
	}
	f.Read = func(ctx context.Context, r io.Reader, o formats.ReadOptions) (*tmdm.TopicMap, error) {
		options, err := c.reading(&o)
		if err != nil {
			return nil, err
		}
		return toMap(ctx, r, o, options, func(b *mapping.Builder) func(rdf.Quad) error { return b.Add })
	}
	f.Write = func(w io.Writer, m *tmdm.TopicMap, _ formats.WriteOptions) (xtm.Losses, error) {
		all, losses := mapping.Graph(m, c.Options)
		return losses, out.write(w, all)
	}
	f.Exchange = &formats.Exchange{
		Fragment: func(w io.Writer, s formats.Shown) error {
			return written(w, s.SP, func(to *mapping.Records) error {
				if s.State == nil || !s.Record && mapping.IsBlank(s.TopicSI) { // no resource has the IRI of a blank node in the map
					return nil
				}
				return to.Resource(s.State, s.TopicSI)
			})
		},
		Snapshot: func(w io.Writer, sp string, records iter.Seq2[fragment.Record, error]) error {
			return written(w, sp, func(to *mapping.Records) error { return to.All(records) })
		},
		ReadFragment: func(ctx context.Context, r io.Reader, o xtm.Options, topics []string) ([]*fragment.Fragment, error) {
			m, err := exchanged(ctx, r, o, mapping.Options{Fragment: true})
			if err != nil {
				return nil, err
			}
			return fragmentsOf(m, topics)
		},
		Apply: apply,
		ReadSnapshot: func(ctx context.Context, r io.Reader, o xtm.Options) iter.Seq2[fragment.Record, error] {
			return func(yield func(fragment.Record, error) bool) {
				m, err := exchanged(ctx, r, o, mapping.Options{})
				if err != nil {
					yield(fragment.Record{}, err)
					return
				}
				recordsOf(m)(yield)
			}
		},
	}
	c.outputs[&f], f.Straight = out, c.straight(&f, read)
	if out.stream == nil { // servers do not offer it
		f.Fragment, f.Snapshot = nil, nil
	}
	return &f
}

// document reads a document to its end, and then has it used. The use returns the name of the graph that is lost.
func document(f *formats.Format, read reader, r io.Reader, o *formats.ReadOptions, each func(rdf.Quad) error,
	use func() (string, error)) error {
	if o.URI == "" {
		o.URI = string(o.Base)
	}
	start, r := otherformat.Start(r)
	err := explained(read(r, o.Options, each), f, o, start)
	if err != nil {
		return inDocument(err, o)
	}
	name, err := use()
	if err == nil && name != "" && o.Tolerated != nil {
		o.Tolerated(&xtm.SyntaxError{
			URI: o.URI, Line: 1, Column: 1, Rule: rdf.GraphNames, Of: name,
			Reason: "the statements are the graph " + name + ", and its name is left out",
		})
	}
	return inDocument(err, o)
}

// explained adds the apparent format of a document to a syntax error. Any XML may be parsed as RDF/XML, so documents
// without the RDF namespace that look like another format are refused.
func explained(err error, f *formats.Format, o *formats.ReadOptions, start []byte) error {
	var syntax *rdf.SyntaxError
	if err == nil && f.Title == titleRDFXML && !bytes.Contains(start, []byte(rdf.NS)) {
		const reason = "the namespace of RDF is not in it"
		if better := otherformat.Explain(f.Title, reason, "", start, o.ReadAs); better != reason {
			return &rdf.SyntaxError{URI: o.URI, Line: 1, Column: 1, Reason: better}
		}
	}
	if errors.As(err, &syntax) {
		syntax.Reason = otherformat.Explain(f.Title, syntax.Reason, "", start, o.ReadAs)
	}
	return err
}

// inDocument returns an error with the name of the document, and the option that chooses one of its graphs.
func inDocument(err error, o *formats.ReadOptions) error {
	if graphs := (*mapping.GraphsError)(nil); errors.As(err, &graphs) {
		graphs.Way = wayOf(o)
		return fmt.Errorf("%s: %w", o.URI, err)
	}
	return err
}
