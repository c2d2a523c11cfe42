package xtm

import (
	"cmp"
	"errors"
	"io"

	"github.com/tmshare/tmshare/tmdm"
)

// Options say how to read a document. All but Base have a useful zero value.
type Options struct {
	// Base is the locator of the document: all others resolve against it and
	// against xml:base.
	Base tmdm.Locator
	// URI names the document in errors; the default is Base.
	URI string
	// ReadAs, if not nil, says in errors what to do with a document in another format, such as "Turtle".
	ReadAs func(format string) string
	// ContentType is that with which the document came. Its charset counts before what the
	// document declares (RFC 7303 §3.2).
	ContentType string
	// Lenient accepts what widely used software writes against the rules:
	// a type in the baseName of XTM 1.0 (Ontopia), the prefix xlink and the
	// namespace of XTM 1.0 left to the DTD, text between elements, markup in a
	// value without a datatype, a reifier that is named by the item identity of
	// its topic, and an item identifier given to a second statement, which is
	// left out there.
	Lenient bool
	// DropClashes leaves out an item identifier given to a second statement, as
	// Lenient does, and is strict otherwise: servers repeat ids that mean nothing
	// beyond one document.
	DropClashes bool
	// Limits bound what the document may cost.
	Limits Limits
	// Loader opens the documents that mergeMap names. Without it, a document
	// with a mergeMap is an error.
	Loader func(loc tmdm.Locator) (io.ReadCloser, error)
	// Tolerated, if not nil, is called for each thing that breaks a [Rule] and was
	// tolerated because of Lenient or DropClashes. A [Tally] counts them.
	Tolerated func(*SyntaxError)
	// Problem, if not nil, is called for each thing that is wrong in the document,
	// and reading goes on behind the topic or association that it was found in.
	// Only a document that is not well-formed XML, or cannot be read, is still an
	// error. What was wrong is not in the result.
	Problem func(*SyntaxError)
	// FoundVersion, if not nil, is called once with the version of the document: not with those of
	// documents that mergeMap names, and not for a document that has none.
	FoundVersion func(Version)
}

func (o Options) name() string { return cmp.Or(o.URI, string(o.Base)) }

// tolerated reports what was tolerated.
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
