package turtle

import (
	"bufio"
	"io"
	"strings"

	"github.com/tmshare/tmshare/internal/rdf"
)

// Writer writes statements in Turtle as a stream: it groups and sorts consecutive ones about one resource. Its memory
// does not grow with the graph. The first error ends it.
type Writer struct {
	out      *bufio.Writer
	declared map[string]bool // prefixes
	groups   *rdf.Groups
}

// NewWriter returns a Writer of a document.
func NewWriter(w io.Writer) *Writer {
	to := &Writer{out: bufio.NewWriter(w), declared: map[string]bool{}}
	to.groups = rdf.NewGroups(to.group)
	return to
}

// Write writes a statement.
func (w *Writer) Write(q rdf.Quad) error { return w.groups.Add(q) }

func (w *Writer) group(all []rdf.Quad) error {
	all = rdf.Sorted(all)
	p := rdf.UsedPrefixes(all)
	to := newOrdered(w.out, p, &nesting{})
	for _, name := range p.Names() {
		if !w.declared[name] {
			w.declared[name] = true
			to.declare(name)
		}
	}
	for _, q := range all {
		if err := to.Write(q); err != nil {
			return err
		}
	}
	to.end()
	return nil
}

// Close writes the rest.
func (w *Writer) Close() error {
	if err := w.groups.Flush(); err != nil {
		return err
	}
	return w.out.Flush()
}

// Line returns a statement as a line of N-Triples.
func Line(q rdf.Quad) string {
	var b strings.Builder
	out := bufio.NewWriterSize(&b, 256)
	writeLine(out, q)
	_ = out.Flush() // a builder has no errors
	return b.String()
}

// LineWriter writes statements as a stream, in N-Triples, or in N-Quads if their graph has a name. The first error ends
// it.
type LineWriter struct{ out *bufio.Writer }

// NewLineWriter returns a LineWriter of a document.
func NewLineWriter(w io.Writer) *LineWriter { return &LineWriter{bufio.NewWriter(w)} }

// Write writes a statement.
func (w *LineWriter) Write(q rdf.Quad) error {
	writeLine(w.out, q)
	_, err := w.out.Write(nil)
	return err
}

// Close writes the rest.
func (w *LineWriter) Close() error { return w.out.Flush() }
