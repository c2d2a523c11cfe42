package resourcesync

import (
	"errors"
	"fmt"

	"github.com/tmshare/tmshare/internal/xml/read"
)

// ErrFull is the error for an item that does not fit into a document or package. The item was not written: the caller
// closes the document and begins the next one.
var ErrFull = errors.New("the document has no space for the item")

// InvalidError is the error for a document that breaks a rule of Z39.99, so that it cannot be written or used.
type InvalidError struct {
	URI          string // of the document, where one was read
	Line, Column int    // likewise; both count from 1, columns are bytes
	Element      string // where: "urlset/rs:md", "item 3 (http://example.com/res3)/lastmod"; items count from 1
	Rule         string // the broken rule
}

func (e *InvalidError) Error() string {
	if e.Line == 0 {
		return e.Element + ": " + e.Rule
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", e.URI, e.Line, e.Column, e.Element, e.Rule)
}

// SyntaxError reports a document that is not well-formed XML, or no Sitemap.
type SyntaxError struct {
	URI          string
	Line, Column int // both count from 1; columns are bytes
	Reason       string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.URI, e.Line, e.Column, e.Reason)
}

// LimitError reports a document that exceeds one of its [Limits], or a package
// that exceeds one of its [PackageLimits].
type LimitError struct {
	URI          string
	Line, Column int    // where a document does; 0 in a package
	Entry        string // which file of a package does; "" for all together
	Limit        string // the field of Limits or PackageLimits
	Max          int64  // its value
}

func (e *LimitError) Error() string {
	switch {
	case e.Line > 0:
		return fmt.Sprintf("%s:%d:%d: exceeds Limits.%s, which is %d", e.URI, e.Line, e.Column, e.Limit, e.Max)
	case e.Entry != "":
		return fmt.Sprintf("%s: %q exceeds PackageLimits.%s, which is %d", e.URI, read.Clip(e.Entry), e.Limit, e.Max)
	}
	return fmt.Sprintf("%s: exceeds PackageLimits.%s, which is %d", e.URI, e.Limit, e.Max)
}

// PackageError is the error for a ZIP package that is damaged, hostile, or lacks a part of its manifest.
type PackageError struct {
	URI    string // of the package
	Entry  string // the file in it, or the path that the manifest gives; "" for the whole
	Reason string
	Err    error // the error of the ZIP reader, or nil
}

func (e *PackageError) Error() string {
	s := e.URI + ": "
	if e.Entry != "" {
		s += fmt.Sprintf("%q ", read.Clip(e.Entry))
	}
	s += e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *PackageError) Unwrap() error { return e.Err }

// MismatchError is the error for content that differs from its metadata.
type MismatchError struct {
	URI       string // of the resource
	Property  string // "length", or the algorithm of a hash: "sha-256"
	Want, Got string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: its %s is %s, not %s", e.URI, e.Property, e.Got, read.Clip(e.Want))
}
