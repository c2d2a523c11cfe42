package xtm

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/internal/xmlscan"
)

// Limits bound what a document may cost. A zero field means the default.
type Limits struct {
	Depth      int   // nesting of elements; default 200
	Attributes int   // of one element, and prefixes in scope; default 256
	Name       int   // bytes of the name of an element or attribute; default 4 KiB
	Token      int   // bytes of one tag, text or comment; default 16 MiB
	Bytes      int64 // bytes of a document; default: no limit
	Expansion  int64 // bytes that entities may add to a document, beyond its length; default 8 MiB
	Documents  int   // documents that mergeMap brings in; default 1000
	Themes     int   // topics in the scope of one statement; default 200
}

func (l Limits) withDefaults() Limits {
	l.Depth = orDefault(l.Depth, 200)
	l.Attributes = orDefault(l.Attributes, 256)
	l.Name = orDefault(l.Name, 4<<10)
	l.Token = orDefault(l.Token, 16<<20)
	l.Expansion = orDefault(l.Expansion, 8<<20)
	l.Documents = orDefault(l.Documents, 1000)
	l.Themes = orDefault(l.Themes, 200)
	return l
}

func orDefault[T int | int64](n, otherwise T) T {
	if n == 0 {
		return otherwise
	}
	return n
}

func newScanner(r io.Reader, o Options, l Limits) *xmlscan.Scanner {
	options := xmlscan.Options{
		URI: o.name(),
		Limits: xmlscan.Limits{
			Depth: l.Depth, Attributes: l.Attributes, Namespaces: l.Attributes, Name: l.Name,
			Token: l.Token, Bytes: l.Bytes, Expansion: l.Expansion,
		},
		Misc: true, // embedded XML keeps processing instructions
	}
	if o.Lenient {
		options.Namespaces = map[string]string{"xlink": nsXLink}
	}
	return xmlscan.NewScanner(r, options)
}

// scanError turns an error of the scanner into one of this package.
func (d *Decoder) scanError(err error) error {
	var syntax *xmlscan.SyntaxError
	var limit *xmlscan.LimitError
	switch {
	case err == io.EOF:
		return err
	case errors.As(err, &syntax):
		e := &SyntaxError{URI: syntax.URI, Line: syntax.Line, Column: syntax.Column, Reason: syntax.Reason, Err: err}
		if syntax.Prefix == "xlink" {
			e.Reason += "; where a document relies on the DTD for it, the lenient option supplies it"
		}
		return e
	case errors.As(err, &limit):
		reason := fmt.Sprintf(limitReasons[limit.Limit], limit.Max)
		return &SyntaxError{URI: limit.URI, Line: limit.Line, Column: limit.Column, Reason: reason, Err: err}
	}
	return fmt.Errorf("xtm: reading %s: %w", d.o.name(), errors.Unwrap(err)) // without the scanner's words
}

// limitReasons say what it means to go beyond one of xmlscan.Limits.
var limitReasons = map[string]string{
	"Depth":       "elements are nested more than %d deep",
	"Attributes":  "an element has more than %d attributes",
	"Name":        "a name is longer than %d bytes",
	"Token":       "a tag or text is longer than %d bytes",
	"Bytes":       "the document is longer than %d bytes",
	"Namespaces":  "more than %d prefixes are in scope",
	"DTD":         "the internal DTD subset is longer than %d bytes",
	"EntityDepth": "entities are nested more than %d deep",
	"Expansion":   "entities add more than %d bytes to the document",
}

// arena makes the short lists that elements are made of, many at a time.
type arena[T any] struct{ buf []T }

// one returns a list of x alone.
func (a *arena[T]) one(x T) []T { return a.keep(x) }

// keep returns a list of its own with what is in list.
func (a *arena[T]) keep(list ...T) []T {
	if len(list) == 0 {
		return nil
	}
	if cap(a.buf)-len(a.buf) < len(list) {
		a.buf = make([]T, 0, max(64, len(list)))
	}
	from := len(a.buf)
	a.buf = append(a.buf, list...)
	return a.buf[from:len(a.buf):len(a.buf)]
}

// texts makes strings that live as long as a topic map does, many at a time.
type texts struct{ chunk strings.Builder }

const (
	textChunk = 16 << 10
	longText  = 1 << 10 // what is longer is made by itself
)

func (t *texts) string(head string, tail []byte) string {
	size := len(head) + len(tail)
	if size > longText {
		return head + string(tail)
	}
	if t.chunk.Cap()-t.chunk.Len() < size {
		t.chunk = strings.Builder{}
		t.chunk.Grow(textChunk)
	}
	from := t.chunk.Len()
	t.chunk.WriteString(head)
	t.chunk.Write(tail)
	return t.chunk.String()[from:]
}
