package rdf

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
)

// straight implements [formats.Format.Straight]: it reads and writes a graph with the result of the conversion through
// a topic map, but for the labels of blank nodes.
func (c *choices) straight(f *formats.Format, read reader) func(*formats.Format) formats.Straight {
	return func(to *formats.Format) formats.Straight {
		out := c.outputs[to]
		if !out.ordered || c.Plain || c.MergeSameAs {
			return nil
		}
		return func(_ context.Context, r io.Reader, o formats.ReadOptions) (formats.Copy, error) {
			options, err := c.reading(&o)
			if err != nil {
				return nil, err
			}
			graphs := mapping.NewGraphs(options.Graph)
			g := newGraph(out)
			err = document(f, read, r, &o, func(q rdf.Quad) error {
				if !graphs.Take(q.Graph) {
					return nil
				}
				return g.add(q)
			}, func() (string, error) {
				if out.named {
					return "", graphs.Check()
				}
				return graphs.Name(), graphs.Check()
			})
			if err != nil {
				_ = g.Close() // return the error of reading instead
				return nil, err
			}
			return g, nil
		}
	}
}

// graph collects the statements of a graph, and writes them in the order of [rdf.Sorted]. It implements [formats.Copy].
type graph struct {
	rows   extsort.Sorter
	key    []byte
	short  *rdf.Shortener // nil: in N-Triples
	blanks []rdf.Quad     // statements with blank nodes, until there are too many for brackets
	flat   bool           // there are too many of them
	named  bool           // the document to write has the name of the graph
	name   rdf.Term
	count  int
}

// The limits of the memory of a graph: the size of the parts that are sorted, and the number of statements with blank
// nodes that are buffered for brackets.
const (
	sortedMemory = 16 << 20
	maxBlanks    = 50_000
)

func newGraph(out output) *graph {
	g := &graph{flat: !out.brackets, named: out.named}
	g.rows = extsort.Sorter{Path: filepath.Join(os.TempDir(), "tmshare-"+rand.Text()), Most: sortedMemory, Unnamed: true}
	if out.brackets {
		g.short = &rdf.Shortener{}
	}
	return g
}

func (g *graph) add(q rdf.Quad) error {
	if g.named {
		g.name = q.Graph
		g.flat = g.flat || g.name.Kind == rdf.Blank // its label must not be lost in brackets
	}
	q.Graph = rdf.Term{}
	q.Object.Language = strings.ToLower(q.Object.Language)
	if g.short != nil {
		g.short.See(q)
	}
	if !g.flat && (q.Subject.Kind == rdf.Blank || q.Object.Kind == rdf.Blank) {
		if g.blanks = append(g.blanks, q); len(g.blanks) > maxBlanks {
			return g.flatten()
		}
		if q.Subject.Kind == rdf.Blank { // it follows all statements in rows
			return nil
		}
	}
	return g.row(q)
}

// flatten gives up brackets.
func (g *graph) flatten() error {
	for _, q := range g.blanks {
		if err := g.row(q); err != nil {
			return err
		}
	}
	g.blanks, g.flat = nil, true
	return nil
}

func (g *graph) row(q rdf.Quad) error {
	property := q.Predicate
	if property.Value == rdf.Type { // types are first
		property = rdf.Term{}
	}
	g.key = appendTerm(appendTerm(appendTerm(g.key[:0], &q.Subject), &property), &q.Object)
	return g.rows.Add(g.key, nil)
}

// Write implements [formats.Copy].
func (g *graph) Write(w io.Writer) error {
	g.blanks, g.count = rdf.Sorted(g.blanks), 0
	var to statements = turtle.NewLineWriter(w)
	if g.short != nil {
		to = turtle.NewOrdered(w, g.short, g.blanks)
	}
	var last []byte
	for row, err := range g.rows.Sorted() {
		if err != nil {
			return err
		}
		if bytes.Equal(row.Key, last) {
			continue
		}
		last = row.Key
		g.count++
		if err := to.Write(g.statementOf(string(row.Key))); err != nil {
			return err
		}
	}
	for _, q := range g.blanks {
		if q.Subject.Kind != rdf.Blank {
			continue
		}
		g.count++
		q.Graph = g.name
		if err := to.Write(q); err != nil {
			return err
		}
	}
	return to.Close()
}

// Statements implements [formats.Copy].
func (g *graph) Statements() int { return g.count }

// Close implements [formats.Copy].
func (g *graph) Close() error { return g.rows.Close() }

// A term in a key is its kind and its texts. Keys sort like [rdf.Compare]: a zero byte ends a text, and a zero byte in
// a text is followed by 0xFF.
const endOfText = "\x00\x01"

func appendTerm(key []byte, t *rdf.Term) []byte {
	key = appendText(append(key, byte(t.Kind)), t.Value)
	if t.Kind == rdf.Literal {
		key = appendText(appendText(key, t.Language), t.Datatype)
	}
	return key
}

func appendText(key []byte, s string) []byte {
	begin := len(key)
	key = append(key, s...)
	if at := bytes.IndexByte(key[begin:], 0); at >= 0 {
		escaped := bytes.ReplaceAll(key[begin:], []byte{0}, []byte{0, 0xFF})
		key = append(key[:begin], escaped...)
	}
	return append(key, endOfText...)
}

// statementOf returns the statement that has a key.
func (g *graph) statementOf(key string) rdf.Quad {
	q := rdf.Quad{Graph: g.name}
	for _, t := range []*rdf.Term{&q.Subject, &q.Predicate, &q.Object} {
		t.Kind = rdf.Kind(key[0])
		t.Value, key = textOf(key[1:])
		if t.Kind == rdf.Literal {
			t.Language, key = textOf(key)
			t.Datatype, key = textOf(key)
		}
	}
	if q.Predicate.Kind == rdf.None {
		q.Predicate = rdf.NewIRI(rdf.Type)
	}
	return q
}

func textOf(key string) (text, rest string) {
	text, rest, _ = strings.Cut(key, endOfText)
	return strings.ReplaceAll(text, "\x00\xFF", "\x00"), rest
}
