package resourcesync

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/tmshare/tmshare/internal/xmlscan"
)

// Limits bound what Read takes from a remote document. A zero field means the
// default.
type Limits struct {
	MaxBytes      int64 // length of the document; default 100,000,000, twice what Z39.99 allows
	MaxToken      int64 // bytes of one tag, text or comment, of one URI too; default 1 MiB
	MaxDepth      int   // nesting of elements; default 64
	MaxAttributes int   // of one element, and namespace prefixes in scope; default 1,000
	MaxItems      int   // default 100,000
	MaxLinks      int   // of an item, or of the document; default 1,000
}

func (l Limits) withDefaults() Limits {
	or(&l.MaxBytes, 2*MaxBytes)
	or(&l.MaxToken, 1<<20)
	or(&l.MaxDepth, 64)
	or(&l.MaxAttributes, 1000)
	or(&l.MaxItems, 2*MaxItems)
	or(&l.MaxLinks, 1000)
	return l
}

func or[T int | int64](field *T, otherwise T) {
	if *field <= 0 {
		*field = otherwise
	}
}

func newScanner(r io.Reader, uri string, l Limits) *xmlscan.Scanner {
	token := int(min(l.MaxToken, math.MaxInt))
	return xmlscan.NewScanner(r, xmlscan.Options{
		URI: uri,
		Limits: xmlscan.Limits{
			Bytes: l.MaxBytes, Token: token, Name: token, Depth: l.MaxDepth,
			Attributes: l.MaxAttributes, Namespaces: l.MaxAttributes,
		},
		// Nothing in a Sitemap needs a DTD, and entities are what makes small
		// documents large.
		NoDTD: true,
	})
}

// limitFields are our names of xmlscan.Limits. The rest of those is about DTDs.
var limitFields = map[string]string{
	"Bytes": "MaxBytes", "Token": "MaxToken", "Name": "MaxToken", "Depth": "MaxDepth",
	"Attributes": "MaxAttributes", "Namespaces": "MaxAttributes",
}

// next moves on to the next event, which is the start or end of an element or
// text. Its errors are final; io.EOF comes after a complete document only.
func (d *Reader) next() (xmlscan.Kind, error) {
	kind, err := d.xml.Next()
	if err == nil || err == io.EOF {
		return kind, err
	}
	var syntax *xmlscan.SyntaxError
	var limit *xmlscan.LimitError
	switch {
	case errors.As(err, &syntax):
		return 0, &SyntaxError{syntax.URI, syntax.Line, syntax.Column, syntax.Reason}
	case errors.As(err, &limit):
		return 0, &LimitError{URI: limit.URI, Line: limit.Line, Column: limit.Column, Limit: limitFields[limit.Limit], Max: limit.Max}
	}
	// What is left is an error of the reader, which the scanner wraps.
	return 0, fmt.Errorf("resourcesync: reading %s: %w", d.uri, errors.Unwrap(err))
}

// errorf returns a SyntaxError at the current event.
func (d *Reader) errorf(format string, args ...any) error {
	line, column := d.xml.Position()
	return &SyntaxError{d.uri, line, column, fmt.Sprintf(format, args...)}
}

// invalid returns an InvalidError at the current event.
func (d *Reader) invalid(element, format string, args ...any) error {
	if d.items > 0 {
		element = fmt.Sprintf("item %d/%s", d.items, element)
	}
	line, column := d.xml.Position()
	return &InvalidError{d.uri, line, column, element, fmt.Sprintf(format, args...)}
}

// text reads the element that started to its end, and leaves all text in it in
// buf.
func (d *Reader) text() error {
	d.buf = d.buf[:0]
	for depth := d.xml.Depth(); ; {
		switch kind, err := d.next(); {
		case err != nil:
			return err
		case kind == xmlscan.Text:
			d.buf = append(d.buf, d.xml.Text()...)
		case kind == xmlscan.EndElement && d.xml.Depth() == depth:
			return nil
		}
	}
}

// skip reads the element that started to its end.
func (d *Reader) skip() error {
	for depth := d.xml.Depth(); ; {
		kind, err := d.next()
		if err != nil {
			return err
		}
		if kind == xmlscan.EndElement && d.xml.Depth() == depth {
			return nil
		}
	}
}

// value returns the string, without a new one for each of the few values that
// most items share.
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

// isSitemap reports whether elements of the namespace are those of Sitemaps.
// Some Sources forget it, or spell it otherwise.
func isSitemap(space string) bool {
	return space == NamespaceSitemap || space == "" || isLike(space, NamespaceSitemap)
}

// isRS is isSitemap for the elements of ResourceSync, which cannot be told
// without a namespace.
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
