package turtle

import (
	"bufio"
	"io"

	"github.com/tmshare/tmshare/internal/rdf"
)

// WriteNTriples writes statements in N-Triples, sorted: equal graphs with equal labels of blank nodes give equal bytes.
// It drops names of graphs.
func WriteNTriples(w io.Writer, all []rdf.Quad) error {
	out := bufio.NewWriter(w)
	for _, q := range rdf.Sorted(all) {
		writeLine(out, q)
	}
	return out.Flush()
}

func writeLine(out *bufio.Writer, q rdf.Quad) {
	for _, t := range [...]*rdf.Term{&q.Subject, &q.Predicate, &q.Object} {
		writeTerm(out, *t, nil)
		out.WriteByte(' ')
	}
	if q.Graph.Kind != rdf.None {
		writeTerm(out, q.Graph, nil)
		out.WriteByte(' ')
	}
	out.WriteString(".\n")
}

// Write writes statements in Turtle: grouped by subject and property, sorted, with [rdf.Prefixes], blank nodes in
// brackets, and lists in parentheses. The same graph gives the same bytes, if its blank nodes have the same labels.
// Names of graphs are left out.
func Write(w io.Writer, all []rdf.Quad) error {
	all = rdf.Sorted(all)
	to := NewOrdered(w, rdf.UsedPrefixes(all), all)
	for _, q := range all {
		if err := to.Write(q); err != nil {
			return err
		}
	}
	return to.Close()
}

// Ordered writes statements in the order of [rdf.Sorted], without duplicates, in the format of Write. If their graph
// has a name, the format is TriG. Its memory does not grow with the graph. The first error ends it.
type Ordered struct {
	writer
	last   rdf.Quad
	nested bool // the statements about the subject are written elsewhere
}

// NewOrdered begins a document. blanks are the statements with a blank node that will follow, sorted, so that such
// nodes can be written in brackets.
func NewOrdered(w io.Writer, short *rdf.Shortener, blanks []rdf.Quad) *Ordered {
	o := newOrdered(bufio.NewWriter(w), short, nest(blanks))
	for _, name := range short.Names() {
		o.declare(name)
	}
	return o
}

func newOrdered(out *bufio.Writer, short *rdf.Shortener, n *nesting) *Ordered {
	return &Ordered{writer: writer{out, short, n}}
}

func (w *writer) declare(name string) {
	w.WriteString("@prefix " + name + ": <" + rdf.Prefixes[name] + "> .\n")
}

// Write writes a statement.
func (w *Ordered) Write(q rdf.Quad) error {
	if q.Graph != w.last.Graph {
		w.WriteString("\nGRAPH ")
		writeTerm(w.Writer, q.Graph, nil)
		w.WriteString(" {")
	}
	if q.Subject != w.last.Subject {
		w.end()
		w.nested = q.Subject.Kind == rdf.Blank && w.nesting.nested(q.Subject.Value)
	}
	if !w.nested {
		w.statement(q)
	}
	w.last = q
	_, err := w.Writer.Write(nil) // the error of a write before
	return err
}

func (w *Ordered) statement(q rdf.Quad) {
	switch {
	case q.Subject != w.last.Subject:
		w.WriteByte('\n')
		writeTerm(w.Writer, q.Subject, w.short)
		w.WriteByte(' ')
	case q.Predicate == w.last.Predicate:
		w.WriteString(" ,\n        ")
		w.object(q.Object)
		return
	default:
		w.WriteString(" ;\n    ")
	}
	writeProperty(w.Writer, q.Predicate, w.short)
	w.WriteByte(' ')
	w.object(q.Object)
}

// end ends the statements about a subject.
func (w *Ordered) end() {
	if w.last.Subject.Kind != rdf.None && !w.nested {
		w.WriteString(" .\n")
	}
}

// Close writes the rest.
func (w *Ordered) Close() error {
	w.end()
	if w.last.Graph.Kind != rdf.None {
		w.WriteString("}\n")
	}
	return w.Flush()
}

type writer struct {
	*bufio.Writer
	short   *rdf.Shortener
	nesting *nesting
}

// properties writes the statements in brackets.
func (w *writer) properties(statements []rdf.Quad) {
	for i, q := range statements {
		switch {
		case i > 0 && statements[i-1].Predicate == q.Predicate:
			w.WriteString(" , ")
		case i > 0:
			w.WriteString(" ; ")
			fallthrough
		default:
			writeProperty(w.Writer, q.Predicate, w.short)
			w.WriteByte(' ')
		}
		w.object(q.Object)
	}
}

// object writes an object, in brackets if it is nested.
func (w *writer) object(o rdf.Term) {
	if o.Kind != rdf.Blank || !w.nesting.nested(o.Value) {
		writeTerm(w.Writer, o, w.short)
		return
	}
	at, says := w.nesting.begin[o.Value]
	switch {
	case !says:
		w.WriteString("[]")
	case w.nesting.list[o.Value]:
		w.WriteByte('(')
		for o != rdf.NewIRI(rdf.Nil) {
			link := about(w.nesting.all, w.nesting.begin[o.Value])
			w.WriteByte(' ')
			w.object(link[0].Object)
			o = link[1].Object
		}
		w.WriteString(" )")
	default:
		w.WriteString("[ ")
		w.properties(about(w.nesting.all, at))
		w.WriteString(" ]")
	}
}

func writeProperty(out *bufio.Writer, t rdf.Term, p *rdf.Shortener) {
	if t.Value == rdf.Type {
		out.WriteByte('a')
		return
	}
	writeTerm(out, t, p)
}

// writeTerm writes a term; p, if not nil, shortens IRIs.
func writeTerm(out *bufio.Writer, t rdf.Term, p *rdf.Shortener) {
	switch t.Kind {
	case rdf.Blank:
		out.WriteString("_:" + rdf.Label(t.Value))
	case rdf.IRI:
		writeIRI(out, t.Value, p)
	default:
		out.WriteByte('"')
		escaped(out, t.Value, &plainText)
		out.WriteByte('"')
		switch {
		case t.Language != "":
			out.WriteString("@" + t.Language)
		case t.Datatype != rdf.String:
			out.WriteString("^^")
			writeIRI(out, t.Datatype, p)
		}
	}
}

func writeIRI(out *bufio.Writer, iri string, p *rdf.Shortener) {
	if p != nil {
		if short, ok := p.Short(iri); ok {
			out.WriteString(short)
			return
		}
	}
	out.WriteByte('<')
	escaped(out, iri, &plainIRI)
	out.WriteByte('>')
}

// plainText has the bytes that a text may have as they stand.
var plainText = func() (plain [256]bool) {
	for c := range plain {
		plain[c] = c >= 0x20 && c != '"' && c != '\\' && c != 0x7F
	}
	return plain
}()

// escaped writes a string, with escapes for the bytes that are not plain.
func escaped(out *bufio.Writer, s string, plain *[256]bool) {
	from := 0
	for i := range len(s) {
		if c := s[i]; !plain[c] {
			out.WriteString(s[from:i])
			from = i + 1
			if short, ok := escapes[c]; ok && plain == &plainText {
				out.WriteString(short)
			} else {
				writeEscape(out, c)
			}
		}
	}
	out.WriteString(s[from:])
}

var escapes = map[byte]string{
	'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`,
}

func writeEscape(out *bufio.Writer, r byte) {
	const digits = "0123456789ABCDEF"
	out.WriteString(`\u00`)
	out.WriteByte(digits[r>>4&15])
	out.WriteByte(digits[r&15])
}
