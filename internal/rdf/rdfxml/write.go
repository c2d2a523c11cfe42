package rdfxml

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/internal/xml/write"
)

// Write writes statements, which it groups by their subjects. The same statements in the same order give the same
// bytes. Names of graphs are left out. A property whose IRI does not end in an XML name, and a text with characters that XML does
// not have, cannot be written: that is an error.
func Write(w io.Writer, all []rdf.Quad) error {
	out := &output{Writer: bufio.NewWriter(w), prefixes: map[string]string{rdf.NS: "rdf"}}
	var order []rdf.Term
	of := map[rdf.Term][]rdf.Quad{}
	for _, q := range all {
		space, local, err := divide(q.Predicate.Value)
		if err != nil {
			return err
		}
		if _, ok := out.prefixes[space]; !ok {
			out.prefixes[space] = "ns" + strconv.Itoa(len(out.prefixes))
		}
		if err := writable(q.Object.Value); err != nil {
			return fmt.Errorf("the text of the property %s of %s: %w", local, q.Subject.Value, err)
		}
		if of[q.Subject] == nil {
			order = append(order, q.Subject)
		}
		of[q.Subject] = append(of[q.Subject], q)
	}
	out.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rdf:RDF")
	spaces := make([]string, len(out.prefixes))
	for space, prefix := range out.prefixes {
		n, _ := strconv.Atoi(strings.TrimPrefix(prefix, "ns")) // rdf is 0
		spaces[n] = space
	}
	for _, space := range spaces {
		out.attr("xmlns:"+out.prefixes[space], space)
	}
	out.WriteString(">\n")
	for _, subject := range order {
		out.WriteString("  <rdf:Description")
		out.reference("about", subject)
		out.WriteString(">\n")
		for _, q := range of[subject] {
			out.property(q)
		}
		out.WriteString("  </rdf:Description>\n")
	}
	out.WriteString("</rdf:RDF>\n")
	return out.Flush()
}

type output struct {
	*bufio.Writer
	prefixes map[string]string // by namespace
}

func (w *output) attr(name, value string) {
	w.WriteString(" " + name + `="`)
	w.Write(write.Escape(nil, value, write.Attr))
	w.WriteByte('"')
}

func (w *output) reference(attribute string, t rdf.Term) {
	if t.Kind == rdf.Blank {
		w.attr("rdf:nodeID", label(t.Value))
		return
	}
	w.attr("rdf:"+attribute, t.Value)
}

// label returns an XML name for a blank node.
func label(s string) string {
	if s = strings.ReplaceAll(s, ".", "_"); !scan.IsNCName(s) {
		return "_" + s
	}
	return s
}

func (w *output) property(q rdf.Quad) {
	space, local, _ := divide(q.Predicate.Value)
	name := w.prefixes[space] + ":" + local
	w.WriteString("    <" + name)
	if q.Object.Kind != rdf.Literal {
		w.reference("resource", q.Object)
		w.WriteString("/>\n")
		return
	}
	switch {
	case q.Object.Language != "":
		w.attr("xml:lang", q.Object.Language)
	case q.Object.Datatype != rdf.String:
		w.attr("rdf:datatype", q.Object.Datatype)
	}
	w.WriteByte('>')
	w.Write(write.Escape(nil, q.Object.Value, write.Text))
	w.WriteString("</" + name + ">\n")
}

// divide returns the namespace and the name of a property's element.
func divide(iri string) (space, local string, err error) {
	at := len(iri)
	for at > 0 {
		r, size := utf8.DecodeLastRuneInString(iri[:at])
		if !scan.IsNCName("a" + string(r)) {
			break
		}
		at -= size
	}
	for at < len(iri) && !scan.IsNCName(iri[at:]) {
		_, size := utf8.DecodeRuneInString(iri[at:])
		at += size
	}
	space, local = iri[:at], iri[at:]
	reserved := space == rdf.NS && slices.Contains(slices.Concat(core, old, []string{"Description", "li"}), local)
	if local == "" || space == "" || reserved {
		return "", "", fmt.Errorf("RDF/XML cannot have the property <%.200s>: choose Turtle or N-Triples", iri)
	}
	return space, local, nil
}

func writable(text string) error {
	for _, r := range text {
		if !scan.IsChar(r) {
			return fmt.Errorf("XML cannot have the character %q: choose Turtle or N-Triples", r)
		}
	}
	return nil
}
