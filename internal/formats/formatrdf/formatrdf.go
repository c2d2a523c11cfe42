// Package formatrdf holds the notations of RDF 1.1 as formats. docs/rdf.md says what becomes of what.
package formatrdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tmshare/tmshare/internal/formats/format"
	"github.com/tmshare/tmshare/internal/otherformat"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
	"github.com/tmshare/tmshare/internal/rdf/mapping"
	"github.com/tmshare/tmshare/internal/rdf/rdfxml"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const (
	cannot      = "associations without roles"
	titleRDFXML = "RDF/XML"
)

// The notations. TriG and N-Quads have several graphs; a topic map is one of them.
var (
	Turtle = family(turtle.Turtle, turtle.Write, format.Format{
		Name: "turtle", Aliases: []string{"ttl"}, Title: "Turtle", MediaTypes: []string{"text/turtle"}, Endings: []string{".ttl"}, URLEnding: ".ttl",
		Statements: inGroups,
	})
	NTriples = family(turtle.NTriples, turtle.WriteNTriples, format.Format{
		Name: "ntriples", Aliases: []string{"nt"}, Title: "N-Triples", MediaTypes: []string{"application/n-triples"}, Endings: []string{".nt"}, URLEnding: ".nt",
		Statements: inLines,
	})
	TriG = family(turtle.TriG, turtle.Write, format.Format{
		Name: "trig", Title: "TriG", MediaTypes: []string{"application/trig"}, Endings: []string{".trig"},
		Statements: inGroups,
	})
	NQuads = family(turtle.NQuads, turtle.WriteNTriples, format.Format{
		Name: "nquads", Aliases: []string{"nq"}, Title: "N-Quads", MediaTypes: []string{"application/n-quads"}, Endings: []string{".nq"},
		Statements: inLines,
	})
	JSONLD = complete(format.Format{
		Name: "jsonld", Title: "JSON-LD", MediaTypes: []string{"application/ld+json"}, Endings: []string{".jsonld"},
		Statements: func(w io.Writer) format.StatementWriter { return &gathered{to: w, write: jsonld.Write} },
	}, jsonld.Write, func(r io.Reader, o format.ReadOptions, each func(rdf.Quad) error) error {
		return jsonld.Read(r, jsonld.Options{URI: o.URI, Base: string(o.Base), Limits: jsonld.Limits{Depth: o.Limits.Depth}}, each)
	})
	RDFXML = complete(format.Format{
		Name: "rdfxml", Aliases: []string{"rdf"}, Title: titleRDFXML, MediaTypes: []string{"application/rdf+xml"}, Endings: []string{".rdf", ".owl"}, URLEnding: ".rdf",
		Statements: func(w io.Writer) format.StatementWriter { return rdfxml.NewWriter(w) },
	}, rdfxml.Write, func(r io.Reader, o format.ReadOptions, each func(rdf.Quad) error) error {
		limits := scan.Limits{Depth: o.Limits.Depth, Attributes: o.Limits.Attributes, Name: o.Limits.Name, Token: o.Limits.Token, Expansion: o.Limits.Expansion, Growth: o.Limits.Growth}
		return rdfxml.Read(r, rdfxml.Options{URI: o.URI, Base: string(o.Base), Limits: limits, ContentType: o.ContentType}, each)
	})
)

func inGroups(w io.Writer) format.StatementWriter { return turtle.NewWriter(w) }

func inLines(w io.Writer) format.StatementWriter { return turtle.NewLineWriter(w) }

// gathered writes a notation whose document needs all statements.
type gathered struct {
	to    io.Writer
	write writer
	all   []rdf.Quad
}

func (g *gathered) Write(q rdf.Quad) error {
	g.all = append(g.all, q)
	return nil
}

func (g *gathered) Close() error { return g.write(g.to, g.all) }

type (
	reader func(r io.Reader, o format.ReadOptions, each func(rdf.Quad) error) error
	writer func(io.Writer, []rdf.Quad) error
)

func family(n turtle.Notation, write writer, f format.Format) *format.Format {
	return complete(f, write, func(r io.Reader, o format.ReadOptions, each func(rdf.Quad) error) error {
		return turtle.Read(r, n, turtle.Options{URI: o.URI, Base: string(o.Base), Limits: turtle.Limits{Term: o.Limits.Token, Depth: o.Limits.Depth, Growth: int(o.Limits.Growth)}}, each)
	})
}

func complete(f format.Format, write writer, read reader) *format.Format {
	f.Cannot = cannot
	f.Read = func(ctx context.Context, r io.Reader, o format.ReadOptions) (*tmdm.TopicMap, error) {
		if o.URI == "" {
			o.URI = string(o.Base)
		}
		start, r := otherformat.Start(r)
		b := mapping.NewBuilder(o.Base, o.Limits.Memory, o.RDF)
		m, err := (*tmdm.TopicMap)(nil), read(r, o, b.Add)
		err = explained(err, &f, o.URI, start)
		if err == nil {
			m, err = b.Map(ctx)
		}
		return m, inDocument(err, o.URI)
	}
	f.Write = func(w io.Writer, m *tmdm.TopicMap, o format.WriteOptions) (xtm.Losses, error) {
		statements, losses := mapping.Graph(m, o.RDF)
		return losses, write(w, statements)
	}
	return &f
}

// explained says of an error of syntax what the document looks like, by its start. Any XML may be RDF/XML by chance:
// what looks like something else and does not know the namespace of RDF is refused.
func explained(err error, f *format.Format, uri string, start []byte) error {
	var syntax *rdf.SyntaxError
	if err == nil && f.Title == titleRDFXML && !bytes.Contains(start, []byte(rdf.NS)) {
		const reason = "the namespace of RDF is not in it"
		if said := otherformat.Explain(f.Title, reason, "", start); said != reason {
			return &rdf.SyntaxError{URI: uri, Line: 1, Column: 1, Reason: said}
		}
	}
	if errors.As(err, &syntax) {
		syntax.Reason = otherformat.Explain(f.Title, syntax.Reason, "", start)
	}
	return err
}

// inDocument returns an error as readers of XTM have it.
func inDocument(err error, uri string) error {
	var syntax *rdf.SyntaxError
	var graphs *mapping.GraphsError
	switch {
	case errors.As(err, &syntax):
		return &xtm.SyntaxError{URI: syntax.URI, Line: syntax.Line, Column: syntax.Column, Reason: syntax.Reason, Err: err}
	case errors.As(err, &graphs):
		return fmt.Errorf("%s: %w", uri, err)
	}
	return err
}
