package resourcesync

import (
	"io"
	"strconv"
	"time"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/xml/read"
	"github.com/tmshare/tmshare/internal/xml/write"
)

// Options are the options of a document. The zero value has the defaults.
type Options struct {
	// MaxItems and MaxBytes limit a document. The defaults are the limits of Z39.99; greater values mean these.
	MaxItems int
	MaxBytes int64
	// Version10 leaves out datetime, which version 1.1 added. Readers of 1.0 ignore it, but the schema of 1.0 refuses it.
	// That schema also refuses media types with punctuation, such as "+xml".
	Version10 bool
}

func (o Options) withDefaults() Options {
	if o.MaxItems <= 0 || o.MaxItems > MaxItems {
		o.MaxItems = MaxItems
	}
	if o.MaxBytes <= 0 || o.MaxBytes > MaxBytes {
		o.MaxBytes = MaxBytes
	}
	return o
}

// Writer writes one document, item by item. Equal items give equal bytes. An item that Z39.99 forbids is not written:
// the error is an *[InvalidError], and other items may follow. A Writer remembers the URIs of the document; in a list
// of changes, only those of the last time. It is not safe for concurrent use.
type Writer struct {
	w       io.Writer
	options Options
	rules   rules
	buf     []byte // whole items that were not written yet
	bytes   int64  // of the document, with buf
	footer  string
	err     error // of w
}

// writerBuffer is the number of bytes that a Writer collects before it writes.
const writerBuffer = 32 << 10

// NewWriter begins a document. If d is invalid, the error is an *[InvalidError], and nothing is written to w.
//
// A document without items conforms to ResourceSync, but its schemas and some readers do not accept it.
func NewWriter(w io.Writer, d Document, options Options) (*Writer, error) {
	wr := &Writer{w: w, options: options.withDefaults(), rules: rules{head: d}}
	if err := wr.rules.checkHead(); err != nil {
		return nil, err
	}
	root := wr.rules.root()
	b := append(wr.buf, `<?xml version="1.0" encoding="UTF-8"?>`+"\n<"+root+` xmlns="`+NamespaceSitemap+`" xmlns:rs="`+
		NamespaceRS+`">`+"\n"...)
	b = wr.appendMetadata(b, &Metadata{Capability: d.Capability, Times: d.Times})
	b = append(b, '\n')
	for i := range d.Links {
		b = append(appendLink(b, &d.Links[i]), '\n')
	}
	wr.buf, wr.bytes, wr.footer = b, int64(len(b)), "</"+root+">\n"
	if wr.bytes+int64(len(wr.footer)) > wr.options.MaxBytes {
		return nil, &InvalidError{Element: root, Rule: "is too long for a document, without any item"}
	}
	return wr, nil
}

// Write adds an item. The error is [ErrFull] if the document has no space for it. A change needs LastMod or Datetime;
// both are written.
func (w *Writer) Write(item *Item) error {
	if w.err != nil {
		return w.err
	}
	i := w.rules.complete(item)
	before := len(w.buf)
	if err := w.add(&i); err != nil {
		return err
	}
	w.bytes += int64(len(w.buf) - before)
	w.rules.note(&i)
	if len(w.buf) >= writerBuffer {
		w.flush()
	}
	return w.err
}

// fits returns the error that Write would return.
func (w *Writer) fits(item *Item) error {
	i, before := w.rules.complete(item), len(w.buf)
	defer func() { w.buf = w.buf[:before] }()
	return w.add(&i)
}

// add appends the item to the buffer. After an error the buffer is as before.
func (w *Writer) add(i *Item) error {
	if w.rules.items == w.options.MaxItems {
		return ErrFull
	}
	if err := w.rules.checkItem(i); err != nil {
		return err
	}
	before := len(w.buf)
	w.buf = w.appendItem(w.buf, i)
	if w.bytes+int64(len(w.buf)-before+len(w.footer)) > w.options.MaxBytes {
		w.buf = w.buf[:before]
		if w.rules.items == 0 {
			return &InvalidError{Element: "item 1 (" + read.Clip(i.Loc) + ")", Rule: "is too long for any document"}
		}
		return ErrFull
	}
	return nil
}

// Items returns the number of items in the document.
func (w *Writer) Items() int { return w.rules.items }

// Bytes returns the length in bytes that the document would have if it were closed now.
func (w *Writer) Bytes() int64 { return w.bytes + int64(len(w.footer)) }

// Close ends the document. It does not close the underlying writer.
func (w *Writer) Close() error {
	w.buf = append(w.buf, w.footer...)
	w.bytes, w.footer = w.bytes+int64(len(w.footer)), ""
	w.flush()
	return w.err
}

func (w *Writer) flush() {
	if w.err == nil {
		_, w.err = w.w.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

// appendItem writes loc, lastmod, changefreq, rs:md and rs:ln, in the one order
// that the schemas allow.
func (w *Writer) appendItem(b []byte, i *Item) []byte {
	element := "url>"
	if w.rules.head.Index {
		element = "sitemap>"
	}
	b = append(append(b, '<'), element...)
	b = append(write.Escape(append(b, "<loc>"...), i.Loc, write.Either), "</loc>"...)
	if !i.LastMod.IsZero() {
		b = append(appendTime(append(b, "<lastmod>"...), i.LastMod), "</lastmod>"...)
	}
	if i.ChangeFreq != "" {
		b = append(append(append(b, "<changefreq>"...), i.ChangeFreq...), "</changefreq>"...)
	}
	b = w.appendMetadata(b, &i.Metadata)
	for n := range i.Links {
		b = appendLink(b, &i.Links[n])
	}
	return append(append(append(b, "</"...), element...), '\n')
}

// appendMetadata writes <rs:md>, unless it has no attributes.
func (w *Writer) appendMetadata(b []byte, m *Metadata) []byte {
	const start = "<rs:md"
	before := len(b)
	b = append(b, start...)
	b = appendAttribute(b, "capability", string(m.Capability))
	b = appendAttribute(b, "change", string(m.Change))
	if !w.options.Version10 {
		b = appendTimeAttribute(b, "datetime", m.Datetime)
	}
	b = appendTimeAttribute(b, "at", m.At)
	b = appendTimeAttribute(b, "completed", m.Completed)
	b = appendTimeAttribute(b, "from", m.From)
	b = appendTimeAttribute(b, "until", m.Until)
	b = appendRepresentation(b, &m.Representation)
	if len(b) == before+len(start) {
		return b[:before]
	}
	return append(b, "/>"...)
}

func appendLink(b []byte, l *Link) []byte {
	b = appendAttribute(append(b, "<rs:ln"...), "rel", l.Rel)
	b = appendAttribute(b, "href", iri.ToURI(l.Href))
	b = appendNumber(b, "pri", int64(l.Pri), false)
	b = appendTimeAttribute(b, "modified", l.Modified)
	return append(appendRepresentation(b, &l.Representation), "/>"...)
}

func appendRepresentation(b []byte, r *Representation) []byte {
	for n, h := range r.Hashes {
		if n == 0 {
			b = append(b, ` hash="`...)
		} else {
			b = append(b, ' ')
		}
		b = write.Escape(b, h.Algorithm, write.Either)
		b = write.Escape(append(b, ':'), h.Digest, write.Either)
	}
	if len(r.Hashes) > 0 {
		b = append(b, '"')
	}
	b = appendNumber(b, "length", r.Length, r.Empty)
	b = appendAttribute(b, "type", r.Type)
	b = appendAttribute(b, "encoding", r.Encoding)
	return appendAttribute(b, "path", r.Path)
}

func appendAttribute(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(append(append(b, ' '), name...), `="`...)
	return append(write.Escape(b, value, write.Either), '"')
}

// appendNumber writes a number that is not 0, or a 0 that is stated.
func appendNumber(b []byte, name string, n int64, stated bool) []byte {
	if n == 0 && !stated {
		return b
	}
	b = append(append(append(b, ' '), name...), `="`...)
	return append(strconv.AppendInt(b, n, 10), '"')
}

func appendTimeAttribute(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	b = append(append(append(b, ' '), name...), `="`...)
	return append(appendTime(b, t), '"')
}
