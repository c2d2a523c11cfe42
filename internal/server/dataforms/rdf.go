package dataforms

import (
	"bytes"
	"fmt"
	"io"
	"iter"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/stream"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/mapping"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Resource is what an entry says of its topic, as statements whose subject is the resource with its TopicSI.
type Resource struct {
	view   *store.View
	entry  *store.Entry
	stored []byte          // XTM 2.1 of which the statements can be made; nil: there are none
	then   fragment.Source // they are made of the map as the entry shows it
}

// Of returns the resource of an entry. Where node is false, a blank node has no statements: no resource has the IRI that stands for it
// in the map.
//
// What was stored with the entry says all, unless it leads to blank nodes: they are topics of their own, of which it has no more than the identifiers.
func Of(v *store.View, e *store.Entry, node bool) (*Resource, error) {
	r := &Resource{view: v, entry: e}
	var read func(*store.Entry, xtm.Version) (rendered.Document, error)
	switch {
	case !e.Lives() || !node && mapping.IsBlank(e.TopicSI):
		return r, nil
	case e.Stored:
		read = v.StoredFragment
	case e.RecordStored():
		read = v.StoredRecord
	}
	if read != nil {
		document, err := read(e, xtm.V21)
		if err == nil {
			r.stored, err = document.Plain()
		}
		if err != nil || !mapping.HasBlank(r.stored) {
			return r, err
		}
	}
	then, err := v.Then(e)
	r.then = then
	return r, err
}

// Rendered reports whether the statements are made of the map, and not of what was stored with the entry.
func (r *Resource) Rendered() bool { return r.then != nil }

// Identity returns bytes that are others for each other document, of one that is not rendered.
func (r *Resource) Identity() []byte { return fmt.Append(r.stored, r.entry.TopicSI) }

// Write writes the statements in a notation of RDF.
func (r *Resource) Write(w io.Writer, f *formats.Format) error {
	return written(w, f, r.view.SP, func(to *mapping.Records) error {
		switch {
		case r.then != nil:
			return to.Resource(r.then, r.entry.TopicSI)
		case r.stored == nil:
			return nil
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.stored)), nil }
		return to.Subject(recordsIn(open, r.view.SP), r.entry.TopicSI)
	})
}

// WriteMap writes all statements of a map.
func WriteMap(w io.Writer, f *formats.Format, sp string, src fragment.Source) error {
	return writeRecords(w, f, sp, fragment.Records(src))
}

// WriteXTM writes all statements of a document in XTM 2.1. It may be opened twice.
func WriteXTM(w io.Writer, f *formats.Format, sp string, open func() (io.ReadCloser, error)) error {
	return writeRecords(w, f, sp, recordsIn(open, sp))
}

// Unpacked opens what is stored packed.
func Unpacked(open func() (io.ReadCloser, error)) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		packed, err := open()
		if err != nil {
			return nil, err
		}
		z, err := gzip.NewReader(packed)
		if err != nil {
			packed.Close()
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{z, packed}, nil
	}
}

func recordsIn(open func() (io.ReadCloser, error), sp string) iter.Seq2[fragment.Record, error] {
	return stream.Snapshot(open, xtm.Options{Base: tmdm.Locator(sp)})
}

func writeRecords(w io.Writer, f *formats.Format, sp string, records iter.Seq2[fragment.Record, error]) error {
	return written(w, f, sp, func(to *mapping.Records) error { return to.All(records) })
}

func written(w io.Writer, f *formats.Format, sp string, say func(*mapping.Records) error) error {
	to := f.Statements(w)
	if err := say(mapping.NewRecords(sp, func(q rdf.Quad) error { return to.Write(q) })); err != nil {
		return err
	}
	return to.Close()
}
