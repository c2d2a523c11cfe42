package feeds

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tmshare/tmshare/internal/xmlscan"
)

// Limits bound what Decode takes from a remote document. A zero field means
// the default.
type Limits struct {
	MaxBytes      int64 // length of the document; default 32 MiB
	MaxToken      int64 // bytes of one tag, text or comment; default 1 MiB
	MaxDepth      int   // nesting of elements; default 64
	MaxAttributes int   // of one element, and namespace prefixes in scope; default 1000
	MaxEntries    int   // default 100,000
}

func (l Limits) withDefaults() Limits {
	or(&l.MaxBytes, 32<<20)
	or(&l.MaxToken, 1<<20)
	or(&l.MaxDepth, 64)
	or(&l.MaxAttributes, 1000)
	or(&l.MaxEntries, 100_000)
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
		// Nothing in Atom needs a DTD, and entities are what makes small
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
func (d *decoder) next() (xmlscan.Kind, error) {
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
		return 0, &LimitError{limit.URI, limit.Line, limit.Column, limitFields[limit.Limit], limit.Max}
	}
	// What is left is an error of the reader, which the scanner wraps.
	return 0, fmt.Errorf("feeds: reading %s: %w", d.uri, errors.Unwrap(err))
}

// errorf returns a SyntaxError at the current event.
func (d *decoder) errorf(format string, args ...any) error {
	line, column := d.xml.Position()
	return &SyntaxError{d.uri, line, column, fmt.Sprintf(format, args...)}
}

// attr returns the value of an attribute without a namespace, or "".
func (d *decoder) attr(local string) string {
	value, _ := d.xml.Attr("", local)
	return string(value)
}

// children calls each for the children of the element that started. each reads
// its child to the end.
func (d *decoder) children(each func(name) error) error {
	for {
		switch kind, err := d.next(); {
		case err != nil:
			return err
		case kind == xmlscan.EndElement:
			return nil
		case kind == xmlscan.StartElement:
			n := d.xml.Name()
			if err := each(name{n.Space, n.Local}); err != nil {
				return err
			}
		}
	}
}

// text reads the element that started to its end and returns all text in it, and
// whether there are elements in it too.
func (d *decoder) text() (s string, nested bool, err error) {
	d.buf = d.buf[:0]
	for depth := d.xml.Depth(); ; {
		switch kind, err := d.next(); {
		case err != nil:
			return "", nested, err
		case kind == xmlscan.Text:
			d.buf = append(d.buf, d.xml.Text()...)
		case kind == xmlscan.StartElement:
			nested = true
		case d.xml.Depth() == depth:
			return string(d.buf), nested, nil
		}
	}
}

// skip reads the element that started to its end.
func (d *decoder) skip() error {
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
