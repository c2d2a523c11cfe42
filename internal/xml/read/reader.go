// Package read reads documents of data, such as feeds and lists: elements and attributes, text
// in one piece, no DTD, and bounds on all that a document may cost.
package read

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tmshare/tmshare/internal/otherformat"
	"github.com/tmshare/tmshare/internal/xml/scan"
)

// Limits bound the cost of a document. All must be positive, except MaxGrowth, whose zero value is the default of scan.
type Limits struct {
	MaxBytes      int64 // length of the document
	MaxToken      int64 // bytes of one tag, text or comment
	MaxDepth      int   // nesting of elements
	MaxAttributes int   // of one element, and namespace prefixes in scope
	MaxGrowth     int64 // bytes that bases may add to links, beyond scan's allowance for the document's size
}

// Place is where something is in a document. Lines and columns count from 1, columns are bytes.
type Place struct {
	URI          string
	Line, Column int
}

// Errors makes a package's own errors of the errors of a document.
type Errors struct {
	Syntax func(at Place, reason string) error
	Limit  func(at Place, field string, most int64) error // field is the one of Limits
}

// Reader reads one document. The methods of the scanner return the current event.
type Reader struct {
	*scan.Scanner
	URI    string
	Buf    []byte // the result of the last ReadText
	errors Errors
}

// NewReader returns a Reader. uri names the document in errors; contentType is that with which it came.
func NewReader(r io.Reader, uri, contentType string, l Limits, e Errors) *Reader {
	token := int(min(l.MaxToken, math.MaxInt))
	return &Reader{URI: uri, errors: e, Scanner: scan.NewScanner(r, scan.Options{
		URI: uri, ContentType: contentType,
		Limits: scan.Limits{
			Bytes: l.MaxBytes, Token: token, Name: token, Depth: l.MaxDepth,
			Attributes: l.MaxAttributes, Namespaces: l.MaxAttributes, Growth: l.MaxGrowth,
		},
		// No such document needs a DTD, and entities can make small documents large.
		NoDTD: true,
	})}
}

// fields are the names here of scan.Limits. The rest of those is about DTDs.
var fields = map[string]string{
	"Bytes": "MaxBytes", "Token": "MaxToken", "Name": "MaxToken", "Depth": "MaxDepth",
	"Attributes": "MaxAttributes", "Namespaces": "MaxAttributes", "Growth": "MaxGrowth",
}

// Next advances to the next event: the start or end of an element, or text. Its errors are final; io.EOF comes after a
// complete document only.
func (r *Reader) Next() (scan.Kind, error) {
	kind, err := r.Scanner.Next()
	return kind, r.translated(err)
}

// Root advances to the root element, which is must accept. For another document, the error states its apparent format
// and the expected one.
func (r *Reader) Root(expected string, is func(scan.Name) bool) error {
	_, err := r.Scanner.Next()
	var syntax *scan.SyntaxError
	switch {
	case errors.As(err, &syntax):
		syntax.Reason = otherformat.Explain(expected, syntax.Reason, "", r.Unread(), nil)
		return r.translated(err)
	case err != nil:
		return r.translated(err)
	}
	root := r.Name()
	if is(root) {
		return nil
	}
	reason := "root element is " + Clip(root.Local)
	if explained := otherformat.Explain(expected, reason, root.Local, nil, nil); explained != reason {
		return r.Errorf("%s", explained)
	}
	return r.Errorf("%s of the namespace %q, not %s", reason, Clip(root.Space), expected)
}

// Grow counts bytes that the document generates, such as resolved links, against MaxGrowth.
func (r *Reader) Grow(n int) error { return r.translated(r.Scanner.Grow(max(0, n))) }

func (r *Reader) translated(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	var syntax *scan.SyntaxError
	var limit *scan.LimitError
	switch {
	case errors.As(err, &syntax):
		return r.errors.Syntax(Place{syntax.URI, syntax.Line, syntax.Column}, syntax.Reason)
	case errors.As(err, &limit):
		return r.errors.Limit(Place{limit.URI, limit.Line, limit.Column}, fields[limit.Limit], limit.Max)
	}
	// The remaining error is one of the reader, which the scanner wraps.
	return fmt.Errorf("reading %s: %w", r.URI, errors.Unwrap(err))
}

// Place is where the current event is.
func (r *Reader) Place() Place {
	line, column := r.Position()
	return Place{r.URI, line, column}
}

// Errorf returns a syntax error at the current event.
func (r *Reader) Errorf(format string, args ...any) error {
	return r.errors.Syntax(r.Place(), fmt.Sprintf(format, args...))
}

// TooMany returns an error of a limit at the current event.
func (r *Reader) TooMany(field string, most int) error {
	return r.errors.Limit(r.Place(), field, int64(most))
}

// ReadText reads the rest of the element that has started, and stores its text in Buf. nested reports whether it
// contains elements.
func (r *Reader) ReadText() (nested bool, err error) {
	r.Buf = r.Buf[:0]
	for depth := r.Depth(); ; {
		switch kind, err := r.Next(); {
		case err != nil:
			return nested, err
		case kind == scan.Text:
			r.Buf = append(r.Buf, r.Text()...)
		case kind == scan.StartElement:
			nested = true
		case r.Depth() == depth:
			return nested, nil
		}
	}
}

// Skip reads the element that started to its end.
func (r *Reader) Skip() error {
	for depth := r.Depth(); ; {
		kind, err := r.Next()
		if err != nil {
			return err
		}
		if kind == scan.EndElement && r.Depth() == depth {
			return nil
		}
	}
}

// Or gives a limit its default where it is not positive.
func Or[T int | int64](field *T, otherwise T) {
	if *field <= 0 {
		*field = otherwise
	}
}

// Clip shortens text of a document for an error message.
func Clip(s string) string {
	const most = 80
	runes := 0
	for i := range s {
		if runes == most {
			return s[:i] + "…"
		}
		runes++
	}
	return s
}
