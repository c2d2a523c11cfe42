package turtle

import (
	"bufio"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/rdf"
)

// WriteNTriples writes statements in N-Triples, sorted, whatever their order: the same graph gives the same bytes,
// if its blank nodes have the same labels. Names of graphs are left out.
func WriteNTriples(w io.Writer, all []rdf.Quad) error {
	out := bufio.NewWriter(w)
	for _, q := range rdf.Sorted(all) {
		for _, t := range []rdf.Term{q.Subject, q.Predicate, q.Object} {
			writeTerm(out, t, nil)
			out.WriteByte(' ')
		}
		out.WriteString(".\n")
	}
	return out.Flush()
}

// Prefixes are those that Write declares where it uses them.
var Prefixes = map[string]string{
	"rdf": rdf.NS, "xsd": rdf.XSD,
	"rdfs": "http://www.w3.org/2000/01/rdf-schema#", "owl": "http://www.w3.org/2002/07/owl#",
	"skos": "http://www.w3.org/2004/02/skos/core#", "dc": "http://purl.org/dc/elements/1.1/", "dcterms": "http://purl.org/dc/terms/",
	"foaf": "http://xmlns.com/foaf/0.1/", "schema": "https://schema.org/", "prov": "http://www.w3.org/ns/prov#",
	"dcat": "http://www.w3.org/ns/dcat#", "tm": "http://psi.topicmaps.org/iso13250/model/", "tmshare": "https://github.com/tmshare/tmshare/ns/1/",
}

// Write writes statements in Turtle: grouped by subject and property, sorted, with Prefixes. The same graph
// gives the same bytes, if its blank nodes have the same labels. Names of graphs are left out.
func Write(w io.Writer, all []rdf.Quad) error {
	out := bufio.NewWriter(w)
	p := &prefixed{used: map[string]bool{}, names: map[string]string{}}
	for name, space := range Prefixes {
		p.names[space] = name
	}
	all = rdf.Sorted(all)
	for _, q := range all {
		for _, t := range []rdf.Term{q.Subject, q.Predicate, q.Object} {
			p.shorten(t.Value, t.Kind == rdf.IRI)
			p.shorten(t.Datatype, t.Datatype != rdf.String && t.Language == "" && t.Kind == rdf.Literal)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.used)) {
		out.WriteString("@prefix " + name + ": <" + Prefixes[name] + "> .\n")
	}
	for i, q := range all {
		switch {
		case i == 0 || all[i-1].Subject != q.Subject:
			if i > 0 {
				out.WriteString(" .\n")
			}
			out.WriteByte('\n')
			writeTerm(out, q.Subject, p)
			out.WriteByte(' ')
			p.property(out, q.Predicate)
		case all[i-1].Predicate != q.Predicate:
			out.WriteString(" ;\n    ")
			p.property(out, q.Predicate)
		default:
			out.WriteString(" ,\n       ")
		}
		out.WriteByte(' ')
		writeTerm(out, q.Object, p)
	}
	if len(all) > 0 {
		out.WriteString(" .\n")
	}
	return out.Flush()
}

// prefixed shortens IRIs.
type prefixed struct {
	names map[string]string // of namespaces
	used  map[string]bool
}

// shorten returns the prefixed name of an IRI, and notes the use of its prefix.
func (p *prefixed) shorten(iri string, wanted bool) (string, bool) {
	if !wanted {
		return "", false
	}
	end := strings.LastIndexAny(iri, "#/") + 1
	name, ok := p.names[iri[:end]]
	if !ok || !isPlain(iri[end:]) {
		return "", false
	}
	p.used[name] = true
	return name + ":" + iri[end:], true
}

// isPlain reports whether a local part needs no escapes.
func isPlain(local string) bool {
	for i := range len(local) {
		if c := local[i]; !isLetter(c) && c != '_' && (i == 0 || !isDigit(c) && c != '-') {
			return false
		}
	}
	return true
}

func (p *prefixed) property(out *bufio.Writer, t rdf.Term) {
	if t.Value == rdf.Type {
		out.WriteByte('a')
		return
	}
	writeTerm(out, t, p)
}

// writeTerm writes a term; p shortens IRIs, if there is one.
func writeTerm(out *bufio.Writer, t rdf.Term, p *prefixed) {
	switch t.Kind {
	case rdf.Blank:
		out.WriteString("_:" + label(t.Value))
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

// label returns a label that documents can have: those of nodes without one begin with a dot.
func label(s string) string {
	if n, ok := strings.CutPrefix(s, "."); ok {
		return "_" + n + "_"
	}
	return s
}

func writeIRI(out *bufio.Writer, iri string, p *prefixed) {
	if p != nil {
		if short, ok := p.shorten(iri, true); ok {
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
