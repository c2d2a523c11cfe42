package xtm

import (
	"cmp"
	"errors"
	"io"

	"github.com/tmshare/tmshare/tmdm"
)

// Options are the options for reading a document. All but Base have a useful zero value.
type Options struct {
	// Base is the locator of the document: all others resolve against it and
	// against xml:base.
	Base tmdm.Locator
	// URI names the document in errors; the default is Base.
	URI string
	// ReadAs, if not nil, returns the advice in errors for a document in another format, such as "Turtle".
	ReadAs func(format string) string
	// ContentType is the Content-Type of the document. Its charset takes precedence over that in the document (RFC 7303
	// §3.2).
	ContentType string
	// Lenient accepts known violations by widely used software: a type in the baseName of XTM 1.0 (Ontopia), the prefix
	// xlink and the namespace of XTM 1.0 declared only in the DTD, text between elements, markup in a value without a
	// datatype, a reifier that is named by the item identity of its topic, and an item identifier given to a second
	// statement, where it is dropped.
	Lenient bool
	// DropClashes drops an item identifier given to a second statement, as Lenient does, and is strict otherwise,
	// because servers repeat ids that are valid within one document only.
	DropClashes bool
	// Limits bound the cost of the document.
	Limits Limits
	// Loader opens the documents that mergeMap names. Without it, a document
	// with a mergeMap is an error.
	Loader func(loc tmdm.Locator) (io.ReadCloser, error)
	// Tolerated, if not nil, is called for each thing that breaks a [Rule] and was
	// tolerated because of Lenient or DropClashes. A [Tally] counts them.
	Tolerated func(*SyntaxError)
	// Problem, if not nil, is called for each problem in the document, and reading continues after the topic or
	// association with it. Only a document that is not well-formed XML, or cannot be read, is still an error. The
	// result lacks the parts with problems.
	Problem func(*SyntaxError)
	// FoundVersion, if not nil, is called once with the version of the document, but not for documents that mergeMap
	// names, and not for a document without one.
	FoundVersion func(Version)
}

func (o Options) name() string { return cmp.Or(o.URI, string(o.Base)) }

// tolerated reports a tolerated violation.
func (o Options) tolerated(err *SyntaxError) {
	if o.Tolerated != nil {
		o.Tolerated(err)
	}
}

// problem reports err where problems are collected and it is one of a document,
// and returns it otherwise.
func (o Options) problem(err error) error {
	var syntax *SyntaxError
	if err == nil || o.Problem == nil || !errors.As(err, &syntax) {
		return err
	}
	o.Problem(syntax)
	return nil
}
