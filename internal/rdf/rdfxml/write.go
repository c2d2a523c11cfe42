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

// Write writes statements grouped by subject. The output is deterministic. It drops names of graphs. It returns an
// error for a property whose IRI does not end in an XML name, and for a text with characters that XML does not allow.
func Write(w io.Writer, all []rdf.Quad) error {
	out := newOutput(w)
	var order []rdf.Term
	bySubject := map[rdf.Term][]rdf.Quad{}
	for _, q := range all {
		if _, err := out.add(q); err != nil {
			return err
		}
		if bySubject[q.Subject] == nil {
			order = append(order, q.Subject)
		}
		bySubject[q.Subject] = append(bySubject[q.Subject], q)
	}
	spaces := make([]string, len(out.prefixes))
	for space, prefix := range out.prefixes {
		n, _ := strconv.Atoi(strings.TrimPrefix(prefix, "ns")) // rdf is 0
		spaces[n] = space
	}
	out.begin(spaces)
	for _, subject := range order {
		out.description(bySubject[subject], nil)
	}
	return out.end()
}

// Writer writes statements as a stream: it groups consecutive ones about one resource. Its memory does not grow with
// the graph. The first error ends it.
type Writer struct {
	out    *output
	groups *rdf.Groups
}

// NewWriter returns a Writer of a document.
func NewWriter(w io.Writer) *Writer {
	to := &Writer{out: newOutput(w)}
	to.groups = rdf.NewGroups(to.group)
	to.out.begin([]string{rdf.NS})
	return to
}

// Write writes a statement. The errors are those of the function Write.
func (w *Writer) Write(q rdf.Quad) error { return w.groups.Add(q) }

// group writes one element. It declares the namespaces of its properties.
func (w *Writer) group(all []rdf.Quad) error {
	w.out.prefixes = map[string]string{rdf.NS: "rdf"}
	var spaces []string
	for _, q := range all {
		added, err := w.out.add(q)
		if err != nil {
			return err
		}
		if added != "" {
			spaces = append(spaces, added)
		}
	}
	w.out.description(all, spaces)
	_, err := w.out.Write(nil) // the error of a write before
	return err
}

// Close writes the rest.
func (w *Writer) Close() error {
	if err := w.groups.Flush(); err != nil {
		return err
	}
	return w.out.end()
}

func newOutput(w io.Writer) *output {
	return &output{Writer: bufio.NewWriter(w), prefixes: map[string]string{rdf.NS: "rdf"}}
}

// add checks that a statement can be written. It returns the namespace of the property, if that has got a prefix now.
func (w *output) add(q rdf.Quad) (added string, err error) {
	space, local, err := divide(q.Predicate.Value)
	if err != nil {
		return "", err
	}
	for _, text := range [...]string{q.Object.Value, q.Object.Datatype, q.Subject.Value, space} {
		if err := write.Check(text); err != nil {
			return "", fmt.Errorf("the property %s of %q: %w", local, q.Subject.Value, err)
		}
	}
	if _, ok := w.prefixes[space]; ok {
		return "", nil
	}
	w.prefixes[space] = "ns" + strconv.Itoa(len(w.prefixes))
	return space, nil
}

// begin writes the document's head.
func (w *output) begin(spaces []string) {
	w.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rdf:RDF")
	w.declare(spaces)
	w.WriteString(">\n")
}

func (w *output) end() error {
	w.WriteString("</rdf:RDF>\n")
	return w.Flush()
}

func (w *output) declare(spaces []string) {
	for _, space := range spaces {
		w.attr("xmlns:"+w.prefixes[space], space)
	}
}

// description writes statements about one resource. spaces are the namespaces that are declared with it.
func (w *output) description(all []rdf.Quad, spaces []string) {
	w.WriteString("  <rdf:Description")
	w.declare(spaces)
	w.reference("about", all[0].Subject)
	w.WriteString(">\n")
	for _, q := range all {
		w.property(q)
	}
	w.WriteString("  </rdf:Description>\n")
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
		return "", "", fmt.Errorf("RDF/XML cannot have the property <%.200s>: choose Turtle, N-Triples or JSON-LD", iri)
	}
	return space, local, nil
}
