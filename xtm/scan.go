package xtm

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/tmshare/tmshare/internal/xml/scan"
)

// Limits bound the cost of a document. A zero field means the default.
type Limits struct {
	Depth      int   // nesting of elements; default 200
	Attributes int   // of one element, and prefixes in scope; default 256
	Name       int   // bytes of the name of an element or attribute; default 4 KiB
	Token      int   // bytes of one tag, text or comment; default 16 MiB
	Bytes      int64 // bytes of a document; default: no limit
	Expansion  int64 // bytes that entities may add to a document, beyond its length; default 8 MiB
	Locator    int   // bytes of a locator once it is resolved, and of the name of a namespace; default 8 KiB
	// bytes that bases, inherited themes and namespaces may add, beyond 16 times its length; default 8 MiB
	Growth    int64
	Documents int // documents that mergeMap brings in; default 1000
	Themes    int // topics in the scope of one statement; default 200
	Roles     int // of one association; default 100,000
	// bytes of memory of one topic or association while it is read, and of a map that [Read] makes, estimated to within a
	// factor of 2; default: no limit
	Memory int64
}

// DefaultLocator is the default of [Limits.Locator].
const DefaultLocator = 8 << 10

func (l Limits) withDefaults() Limits {
	l.Depth = cmp.Or(l.Depth, 200)
	l.Attributes = cmp.Or(l.Attributes, 256)
	l.Name = cmp.Or(l.Name, 4<<10)
	l.Token = cmp.Or(l.Token, 16<<20)
	l.Expansion = cmp.Or(l.Expansion, 8<<20)
	l.Locator = cmp.Or(l.Locator, DefaultLocator)
	l.Growth = cmp.Or(l.Growth, 8<<20)
	l.Documents = cmp.Or(l.Documents, 1000)
	l.Themes = cmp.Or(l.Themes, 200)
	l.Roles = cmp.Or(l.Roles, 100_000)
	return l
}

func newScanner(r io.Reader, o Options, l Limits) *scan.Scanner {
	options := scan.Options{
		URI: o.name(), ContentType: o.ContentType,
		Limits: scan.Limits{
			Depth: l.Depth, Attributes: l.Attributes, Namespaces: l.Attributes, Name: l.Name,
			Token: l.Token, Bytes: l.Bytes, Expansion: l.Expansion, Growth: l.Growth,
		},
		Misc: true, // embedded XML keeps processing instructions
	}
	if o.Lenient {
		options.Namespaces = map[string]string{"xlink": nsXLink}
		options.Assumed = func(prefix string, line, column int) {
			o.tolerated(&SyntaxError{
				URI: o.name(), Line: line, Column: column, Rule: DeclaredPrefix,
				Reason: fmt.Sprintf("the prefix %s is not declared", prefix),
			})
		}
	}
	return scan.NewScanner(r, options)
}

// scanError turns an error of the scanner into one of this package.
func (d *Decoder) scanError(err error) error {
	var syntax *scan.SyntaxError
	var limit *scan.LimitError
	switch {
	case err == io.EOF:
		return err
	case errors.As(err, &syntax):
		e := &SyntaxError{URI: syntax.URI, Line: syntax.Line, Column: syntax.Column, Reason: syntax.Reason, Err: err}
		if syntax.Prefix == "xlink" {
			e.Rule = DeclaredPrefix
			e.Reason += "; where a document relies on the DTD for it, lenient reading supplies it"
		}
		return e
	case errors.As(err, &limit):
		reason := fmt.Sprintf(limitReasons[limit.Limit], limit.Max)
		return &SyntaxError{URI: limit.URI, Line: limit.Line, Column: limit.Column, Reason: reason,
			Err: errors.Join(ErrLimit, err)}
	}
	return fmt.Errorf("reading %s: %w", d.o.name(), errors.Unwrap(err)) // without the scanner's words
}

// limitReasons are the reasons for exceeding each of scan.Limits.
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
	"Growth": "resolved locators, inherited themes and namespaces add more than 16 times the document and %d " +
		"bytes; use a shorter xml:base, shorter namespaces and smaller scopes",
}
