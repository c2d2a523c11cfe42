package dataforms

import (
	"io"
	"iter"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/stream"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/mapping"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// WriteResource writes what an entry says of its topic, as statements whose subject is the resource with its TopicSI. Where node is false, a
// blank node has no statements: no resource has the IRI that stands for it in the map.
func WriteResource(w io.Writer, f *formats.Format, v *store.View, e *store.Entry, node bool) error {
	return written(w, f, v.SP, func(to *mapping.Records) error {
		if !e.Lives() || !node && mapping.IsBlank(e.TopicSI) {
			return nil
		}
		then, _, err := v.Shown(e)
		if err != nil {
			return err
		}
		return to.Resource(then, e.TopicSI)
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
