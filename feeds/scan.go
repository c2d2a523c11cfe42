package feeds

import (
	"io"
	"strconv"

	"github.com/tmshare/tmshare/internal/xml/read"
	"github.com/tmshare/tmshare/internal/xml/scan"
)

// Limits bound a remote document. A zero field means the default.
type Limits struct {
	MaxBytes      int64 // length of the document; default 32 MiB
	MaxToken      int64 // bytes of one tag, text or comment; default 1 MiB
	MaxDepth      int   // nesting of elements; default 64
	MaxAttributes int   // of one element, and namespace prefixes in scope; default 1000
	MaxEntries    int   // default 100,000
	MaxLocator    int   // bytes of an id, a locator or a URL, once it is resolved; default 8 KiB
	MaxLinks      int   // of a feed or an entry, and names of the topic of one; default 1000
	MaxGrowth     int64 // bytes that bases may add to links, beyond 16 times the document; default 8 MiB

	// ContentType is the Content-Type of the document. Its charset takes precedence over that in the document (RFC 7303
	// §3.2).
	ContentType string
}

func (l Limits) withDefaults() Limits {
	read.Or(&l.MaxBytes, 32<<20)
	read.Or(&l.MaxToken, 1<<20)
	read.Or(&l.MaxDepth, 64)
	read.Or(&l.MaxAttributes, 1000)
	read.Or(&l.MaxEntries, 100_000)
	read.Or(&l.MaxLocator, 8<<10)
	read.Or(&l.MaxLinks, 1000)
	read.Or(&l.MaxGrowth, 8<<20)
	return l
}

// newReader returns a reader of a document with the errors of this package.
func newReader(r io.Reader, uri string, l Limits) *read.Reader {
	return read.NewReader(r, uri, l.ContentType, read.Limits{
		MaxBytes: l.MaxBytes, MaxToken: l.MaxToken, MaxDepth: l.MaxDepth, MaxAttributes: l.MaxAttributes,
		MaxGrowth: l.MaxGrowth,
	}, read.Errors{
		Syntax: func(at read.Place, reason string) error { return &SyntaxError{at.URI, at.Line, at.Column, reason} },
		Limit: func(at read.Place, field string, most int64) error {
			return &LimitError{at.URI, at.Line, at.Column, field, most}
		},
	})
}

// attr returns the value of an attribute without a namespace, or "".
func (d *decoder) attr(local string) string {
	value, _ := d.Attr("", local)
	return string(value)
}

// states reports whether an attribute of our namespace has a value.
func (d *decoder) states(local, value string) bool {
	stated, _ := d.Attr(NamespaceOwn, local)
	return string(stated) == value
}

// number returns the number in an attribute of TMShare's namespace; 0 if there is none.
func (d *decoder) number(local string) uint64 {
	value, ok := d.Attr(NamespaceOwn, local)
	n, err := strconv.ParseUint(string(value), 10, 64)
	if ok && (err != nil || n == 0) {
		d.invalid(local, "%q is no whole number above 0", read.Clip(string(value)))
	}
	return n
}

// children calls each for the children of the element that started. each reads
// its child to the end.
func (d *decoder) children(each func(name) error) error {
	for {
		switch kind, err := d.Next(); {
		case err != nil:
			return err
		case kind == scan.EndElement:
			return nil
		case kind == scan.StartElement:
			n := d.Name()
			if err := each(name{n.Space, n.Local}); err != nil {
				return err
			}
		}
	}
}

// text reads the rest of the element that has started and returns its text, and whether it contains elements.
func (d *decoder) text() (s string, nested bool, err error) {
	nested, err = d.ReadText()
	return string(d.Buf), nested, err
}
