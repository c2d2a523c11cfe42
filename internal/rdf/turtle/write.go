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

// Write writes statements in Turtle: grouped by subject and property, sorted, with [rdf.Prefixes]. The same graph
// gives the same bytes, if its blank nodes have the same labels. Names of graphs are left out.
func Write(w io.Writer, all []rdf.Quad) error {
	out := bufio.NewWriter(w)
	all = rdf.Sorted(all)
	p := rdf.UsedPrefixes(all)
	for _, name := range p.Names() {
		out.WriteString("@prefix " + name + ": <" + rdf.Prefixes[name] + "> .\n")
	}
	writeGroups(out, all, p)
	return out.Flush()
}

// writeGroups writes statements that are sorted.
func writeGroups(out *bufio.Writer, all []rdf.Quad, p *rdf.Shortener) {
	for i, q := range all {
		switch {
		case i == 0 || all[i-1].Subject != q.Subject:
			if i > 0 {
				out.WriteString(" .\n")
			}
			out.WriteByte('\n')
			writeTerm(out, q.Subject, p)
			out.WriteByte(' ')
			writeProperty(out, q.Predicate, p)
		case all[i-1].Predicate != q.Predicate:
			out.WriteString(" ;\n    ")
			writeProperty(out, q.Predicate, p)
		default:
			out.WriteString(" ,\n       ")
		}
		out.WriteByte(' ')
		writeTerm(out, q.Object, p)
	}
	if len(all) > 0 {
		out.WriteString(" .\n")
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
