package feeds

import (
	"fmt"

	"github.com/tmshare/tmshare/internal/xml/read"
)

// InvalidError reports a feed that breaks a rule of Atom or of the protocol. It can neither be encoded nor, once
// decoded, be used.
type InvalidError struct {
	Element string // the place: "feed/id", `entry 3 ("Oslo")/updated`; entries count from 1
	Rule    string // the broken rule
}

func (e *InvalidError) Error() string { return e.Element + ": " + e.Rule }

// SyntaxError reports a document that is not well-formed XML, or no feed at all.
type SyntaxError struct {
	URI          string
	Line, Column int // both count from 1; columns are bytes
	Reason       string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.URI, e.Line, e.Column, e.Reason)
}

// LimitError reports a document that exceeds one of its [Limits].
type LimitError struct {
	URI          string
	Line, Column int    // the place of the excess
	Limit        string // the field of Limits
	Max          int64  // its value
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s:%d:%d: exceeds Limits.%s, which is %d", e.URI, e.Line, e.Column, e.Limit, e.Max)
}

// entryLabel returns the name of an entry in errors: its position from 1 on, and its title. index is from 0 on.
func entryLabel(index int, title string) string {
	if title == "" {
		return fmt.Sprintf("entry %d", index+1)
	}
	return fmt.Sprintf("entry %d (%q)", index+1, read.Clip(title))
}
