package xtm

import (
	"errors"
	"fmt"
)

// ErrLimit is in the tree of each error that says that a document goes beyond one of its
// [Limits], for errors.Is: another try will end in the same way.
var ErrLimit = errors.New("beyond a limit")

// ErrMemory is an ErrLimit: the map would take more memory than Limits.Memory.
var ErrMemory = fmt.Errorf("%w: memory", ErrLimit)

// SyntaxError says why and where a document was rejected: it is not XML, not a
// topic map, breaks the rules of its version of XTM, or contradicts itself.
type SyntaxError struct {
	URI          string // name of the document, see [Options]
	Line, Column int    // where the trouble was noticed, counted from 1; columns count bytes
	Reason       string
	Rule         Rule   // what lenient reading would tolerate, or has tolerated; "" for all else
	Of, In       string // with a Rule, in words: what breaks it, and in which part of the document; "": not known
	Err          error  // what Reason came from, if anything
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.URI, e.Line, e.Column, e.Reason)
}

// Unwrap returns what the error came from, if anything.
func (e *SyntaxError) Unwrap() error { return e.Err }

// An EncodeError says that a construct cannot be written. The document is
// broken off before it.
type EncodeError struct {
	Construct string // which construct, in words
	Reason    string
}

func (e *EncodeError) Error() string { return fmt.Sprintf("%s: %s", e.Construct, e.Reason) }

// describe names the topic that r refers to.
func (r Ref) describe() string {
	switch r.Kind {
	case ByItemIdentifier:
		return fmt.Sprintf("the topic with the item identifier %s", r.Locator)
	case BySubjectIdentifier:
		return fmt.Sprintf("the topic with the subject identifier %s", r.Locator)
	case BySubjectLocator:
		return fmt.Sprintf("the topic with the subject locator %s", r.Locator)
	}
	return "no topic"
}

// describe names t for an error message.
func (t *Topic) describe() string {
	if self := t.self(); !self.IsZero() {
		return string(self.Locator)
	}
	return "a topic without identifiers"
}
