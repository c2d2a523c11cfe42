package xtm

import (
	"errors"
	"fmt"
)

// ErrLimit matches, by errors.Is, each error for a document that exceeds one of its [Limits]. A retry will fail in the
// same way.
var ErrLimit = errors.New("beyond a limit")

// ErrMemory is the ErrLimit for a map that would exceed Limits.Memory.
var ErrMemory = fmt.Errorf("%w: memory", ErrLimit)

// SyntaxError describes why and where a document was rejected: it is not XML, not a topic map, breaks the rules of its
// version of XTM, or is inconsistent.
type SyntaxError struct {
	URI          string // name of the document, see [Options]
	Line, Column int    // where the trouble was noticed, counted from 1; columns count bytes
	Reason       string
	Rule         Rule   // the rule that lenient reading tolerates; "" for other errors
	Of, In       string // with a Rule, in words: the violation, and the part of the document; "": not known
	Err          error  // the cause of the error, or nil
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.URI, e.Line, e.Column, e.Reason)
}

// Unwrap returns the cause of the error, or nil.
func (e *SyntaxError) Unwrap() error { return e.Err }

// EncodeError is the error for a construct that cannot be written. The document ends before it.
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
