package dataforms

import (
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
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// WriteResource writes what an entry says of its topic, as statements whose subject is the resource with its TopicSI.
// A blank node has no statements if node is false: no resource has the IRI that stands for it in the map.
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

// WriteSnapshot writes a snapshot in another form than the one in which it is stored. It may open the file twice. A
// file whose content is not what was written is an error, whatever was made of it.
func WriteSnapshot(w io.Writer, f *formats.Format, sp string, open func() (io.ReadCloser, error)) error {
	unpacked := unpacked(open)
	var err error
	if f.Statements != nil {
		err = writeRecords(w, f, sp, stream.Snapshot(unpacked, own(sp)))
	} else {
		err = writeXTM(w, f.Stored, sp, unpacked)
	}
	if err == nil {
		return nil
	}
	whole, openErr := unpacked()
	if openErr == nil {
		_, openErr = io.Copy(io.Discard, whole) // which compares the checksum
		whole.Close()
	}
	if openErr != nil {
		return fmt.Errorf("the file of a snapshot cannot be unpacked; \"check --repair\" makes another one: %w", openErr)
	}
	return err
}

// writeXTM writes a document in XTM in another version, element by element.
func writeXTM(w io.Writer, version xtm.Version, sp string, open func() (io.ReadCloser, error)) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	var to xtm.Encoder
	to.Reset(w, version, tmdm.Locator(sp))
	for from := xtm.NewDecoder(r, own(sp)); ; {
		e, err := from.Next()
		switch e := e.(type) {
		case *xtm.Topic:
			err = to.Topic(e)
		case *xtm.Association:
			err = to.Association(e)
		}
		if err == io.EOF {
			return to.Close()
		}
		if err != nil {
			return err
		}
	}
}

// own are the options with which a document is read that this program has written: what was published has passed the
// limits that held then.
func own(sp string) xtm.Options {
	const most = 1 << 30
	return xtm.Options{Base: tmdm.Locator(sp), Limits: xtm.Limits{Token: most, Locator: most, Themes: most, Roles: most}}
}

// unpacked opens what is stored packed.
func unpacked(open func() (io.ReadCloser, error)) func() (io.ReadCloser, error) {
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
