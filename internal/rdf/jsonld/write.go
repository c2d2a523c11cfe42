package jsonld

import (
	"bufio"
	"io"

	"github.com/tmshare/tmshare/internal/rdf"
)

// Write writes statements as a document with a context of [rdf.Prefixes], an object for each subject, sorted. The same
// graph gives the same bytes, if its blank nodes have the same labels. Names of graphs are left out.
func Write(w io.Writer, all []rdf.Quad) error {
	all = rdf.Sorted(all)
	out := &output{Writer: bufio.NewWriter(w), short: rdf.UsedPrefixes(all)}
	out.WriteString("{\n  \"@context\": {")
	for i, name := range out.short.Names() {
		out.comma(i, "\n    ")
		out.text(name)
		out.WriteString(": ")
		out.text(rdf.Prefixes[name])
	}
	out.WriteString("\n  },\n  \"@graph\": [")
	for i := 0; i < len(all); {
		end := i
		for end < len(all) && all[end].Subject == all[i].Subject {
			end++
		}
		out.comma(i, "\n    ")
		out.node(all[i:end])
		i = end
	}
	out.WriteString("\n  ]\n}\n")
	return out.Flush()
}

type output struct {
	*bufio.Writer
	short *rdf.Shortener
}

// comma begins the next value of several. i is the number of values before it.
func (w *output) comma(i int, begin string) {
	if i > 0 {
		w.WriteByte(',')
	}
	w.WriteString(begin)
}

func (w *output) text(s string) {
	w.WriteString(canonical(s))
}

// iri writes an IRI or the label of a blank node.
func (w *output) iri(t rdf.Term) {
	if t.Kind == rdf.Blank {
		w.text("_:" + rdf.Label(t.Value))
		return
	}
	if short, ok := w.short.Short(t.Value); ok {
		w.text(short)
		return
	}
	w.text(t.Value)
}

// node writes the statements about a subject.
func (w *output) node(statements []rdf.Quad) {
	w.WriteString("{\n      \"@id\": ")
	w.iri(statements[0].Subject)
	for i := 0; i < len(statements); {
		end := i
		for end < len(statements) && statements[end].Predicate == statements[i].Predicate &&
			isType(statements[end]) == isType(statements[i]) {
			end++
		}
		w.WriteString(",\n      ")
		if isType(statements[i]) {
			w.WriteString("\"@type\"")
		} else {
			w.iri(statements[i].Predicate)
		}
		w.WriteString(": ")
		if end-i > 1 {
			w.WriteByte('[')
		}
		for n, q := range statements[i:end] {
			if n > 0 {
				w.WriteString(", ")
			}
			w.object(q)
		}
		if end-i > 1 {
			w.WriteByte(']')
		}
		i = end
	}
	w.WriteString("\n    }")
}

// isType reports whether a statement gives the type of a node. Texts are no types.
func isType(q rdf.Quad) bool {
	return q.Predicate.Value == rdf.Type && q.Object.Kind != rdf.Literal
}

func (w *output) object(q rdf.Quad) {
	switch o := q.Object; {
	case isType(q):
		w.iri(o)
	case o.Kind != rdf.Literal:
		w.WriteString(`{"@id": `)
		w.iri(o)
		w.WriteByte('}')
	case o.Language != "":
		w.WriteString(`{"@value": `)
		w.text(o.Value)
		w.WriteString(`, "@language": `)
		w.text(o.Language)
		w.WriteByte('}')
	case o.Datatype != rdf.String:
		w.WriteString(`{"@value": `)
		w.text(o.Value)
		w.WriteString(`, "@type": `)
		w.iri(rdf.NewIRI(o.Datatype))
		w.WriteByte('}')
	default:
		w.text(o.Value)
	}
}
