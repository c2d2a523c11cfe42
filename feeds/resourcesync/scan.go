package resourcesync

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/internal/xml/read"
)

// Limits bound a remote document. A zero field means the default.
type Limits struct {
	MaxBytes      int64 // length of the document; default 100,000,000, twice the limit of Z39.99
	MaxToken      int64 // bytes of one tag, text, comment or URI; default 1 MiB
	MaxDepth      int   // nesting of elements; default 64
	MaxAttributes int   // of one element, and namespace prefixes in scope; default 1,000
	MaxItems      int   // default 100,000
	MaxLinks      int   // of an item, or of the document; default 1,000

	// ContentType is the Content-Type of the response. Its charset takes precedence over the document's declaration (RFC
	// 7303 §3.2).
	ContentType string
}

func (l Limits) withDefaults() Limits {
	read.Or(&l.MaxBytes, 2*MaxBytes)
	read.Or(&l.MaxToken, 1<<20)
	read.Or(&l.MaxDepth, 64)
	read.Or(&l.MaxAttributes, 1000)
	read.Or(&l.MaxItems, 2*MaxItems)
	read.Or(&l.MaxLinks, 1000)
	return l
}

// newReader returns a reader of a document. Its errors are those of this package.
func newReader(r io.Reader, uri string, l Limits) *read.Reader {
	return read.NewReader(r, uri, l.ContentType, read.Limits{
		MaxBytes: l.MaxBytes, MaxToken: l.MaxToken, MaxDepth: l.MaxDepth, MaxAttributes: l.MaxAttributes,
	}, read.Errors{
		Syntax: func(at read.Place, reason string) error { return &SyntaxError{at.URI, at.Line, at.Column, reason} },
		Limit: func(at read.Place, field string, most int64) error {
			return &LimitError{URI: at.URI, Line: at.Line, Column: at.Column, Limit: field, Max: most}
		},
	})
}

// invalid returns an InvalidError at the current event.
func (d *Reader) invalid(element, format string, args ...any) error {
	if d.items > 0 {
		element = fmt.Sprintf("item %d/%s", d.items, element)
	}
	at := d.in.Place()
	return &InvalidError{at.URI, at.Line, at.Column, element, fmt.Sprintf(format, args...)}
}

// text reads the element that has started to its end, and leaves all its text in Buf.
func (d *Reader) text() error {
	_, err := d.in.ReadText()
	return err
}

// value returns b as a string. The few values that most items share are allocated once.
func (d *Reader) value(b []byte) string {
	const most = 256
	if s, ok := d.values[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(d.values) < most {
		d.values[s] = s
	}
	return s
}

func trim(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

// isSitemap reports whether a namespace is that of Sitemaps. Some Sources omit it or misspell it.
func isSitemap(space string) bool {
	return space == NamespaceSitemap || space == "" || isLike(space, NamespaceSitemap)
}

// isRS reports whether a namespace is that of ResourceSync. It may be misspelt, not omitted.
func isRS(space string) bool { return space == NamespaceRS || isLike(space, NamespaceRS) }

// isLike compares two namespaces regardless of https and of a slash at the end.
func isLike(a, b string) bool {
	bare := func(s string) string {
		if rest, ok := strings.CutPrefix(s, "https:"); ok {
			s = "http:" + rest
		}
		return strings.TrimSuffix(s, "/")
	}
	return bare(a) == bare(b)
}
