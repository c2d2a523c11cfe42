package turtle

import (
	"bufio"
	"io"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/rdf"
)

// WriteNTriples writes statements in N-Triples, sorted, whatever their order: the same graph gives the same bytes,
// if its blank nodes have the same labels. Names of graphs are left out.
func WriteNTriples(w io.Writer, all []rdf.Quad) error {
	out := bufio.NewWriter(w)
	for _, q := range rdf.Sorted(all) {
		writeLine(out, q)
	}
	return out.Flush()
}

func writeLine(out *bufio.Writer, q rdf.Quad) {
	for _, t := range [...]rdf.Term{q.Subject, q.Predicate, q.Object} {
		writeTerm(out, t, nil)
		out.WriteByte(' ')
	}
	out.WriteString(".\n")
}

// Write writes statements in Turtle: grouped by subject and property, sorted, with [rdf.Prefixes], blank nodes in
// brackets, and lists in parentheses. The same graph gives the same bytes, if its blank nodes have the same labels.
// Names of graphs are left out.
func Write(w io.Writer, all []rdf.Quad) error {
	out := bufio.NewWriter(w)
	all = rdf.Sorted(all)
	p := rdf.UsedPrefixes(all)
	for _, name := range p.Names() {
		out.WriteString("@prefix " + name + ": <" + rdf.Prefixes[name] + "> .\n")
	}
	writeGroups(out, all, p, nest(all))
	return out.Flush()
}

// writeGroups writes statements that are sorted. n says which blank nodes are in brackets: none, where other statements
// may follow.
func writeGroups(out *bufio.Writer, all []rdf.Quad, p *rdf.Shortener, n *nesting) {
	w := &writer{out, p, n}
	for i := 0; i < len(all); {
		said := about(all, i)
		i += len(said)
		if s := said[0].Subject; s.Kind == rdf.Blank && n.nested(s.Value) {
			continue
		}
		out.WriteByte('\n')
		writeTerm(out, said[0].Subject, p)
		out.WriteByte(' ')
		w.properties(said, " ;\n    ", " ,\n        ")
		out.WriteString(" .\n")
	}
}

type writer struct {
	*bufio.Writer
	short   *rdf.Shortener
	nesting *nesting
}

// properties writes statements about the same subject, with what is between two properties, and two objects.
func (w *writer) properties(said []rdf.Quad, semicolon, comma string) {
	for i, q := range said {
		switch {
		case i > 0 && said[i-1].Predicate == q.Predicate:
			w.WriteString(comma)
		case i > 0:
			w.WriteString(semicolon)
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
		w.properties(about(w.nesting.all, at), " ; ", " , ")
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

// writeTerm writes a term; p shortens IRIs, if there is one.
func writeTerm(out *bufio.Writer, t rdf.Term, p *rdf.Shortener) {
	switch t.Kind {
	case rdf.Blank:
		out.WriteString("_:" + rdf.Label(t.Value))
	case rdf.IRI:
		writeIRI(out, t.Value, p)
	default:
		out.WriteByte('"')
		writeText(out, t.Value)
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
	for _, r := range iri {
		if r < utf8.RuneSelf && !plainIRI[byte(r)] {
			writeEscape(out, r)
			continue
		}
		out.WriteRune(r)
	}
	out.WriteByte('>')
}

var escapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

func writeText(out *bufio.Writer, s string) {
	for _, r := range s {
		if escape, ok := escapes[r]; ok {
			out.WriteString(escape)
		} else if r < 0x20 || r == 0x7F {
			writeEscape(out, r)
		} else {
			out.WriteRune(r)
		}
	}
}

func writeEscape(out *bufio.Writer, r rune) {
	const digits = "0123456789ABCDEF"
	out.WriteString(`\u00`)
	out.WriteByte(digits[r>>4&15])
	out.WriteByte(digits[r&15])
}
