package scan

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// SyntaxError is the error for a document that is not well-formed, breaks a constraint of Namespaces in XML, or cannot
// be decoded.
type SyntaxError struct {
	URI          string // see Options
	Line, Column int    // from 1; columns count bytes of UTF-8
	Reason       string
	Prefix       string // the prefix that is not declared, where that is the reason
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s: %s", location(e.URI, e.Line, e.Column), e.Reason)
}

// LimitError is the error for a document that exceeds one of its [Limits].
type LimitError struct {
	URI          string
	Line, Column int
	Limit        string // the field of Limits
	Max          int64  // its value
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: exceeds Limits.%s, which is %d", location(e.URI, e.Line, e.Column), e.Limit, e.Max)
}

func location(uri string, line, column int) string {
	if uri == "" {
		return fmt.Sprintf("%d:%d", line, column)
	}
	return fmt.Sprintf("%s:%d:%d", uri, line, column)
}

// errShort is the error for a window that ends before the token. Next handles it; it never leaves the package.
var errShort = errors.New("the window is too short")

// errorf returns a SyntaxError at index p of the window. In an entity, its position is that of the reference in the
// document, which its author sees.
func (s *Scanner) errorf(p int, format string, args ...any) *SyntaxError {
	line, column := s.lineAt(p)
	reason := fmt.Sprintf(format, args...)
	if n := len(s.frames); n > 0 {
		reason = fmt.Sprintf("in the entity %s: %s", excerpt(s.frames[n-1].entity.name), reason)
	}
	return &SyntaxError{URI: s.uri, Line: line, Column: column, Reason: reason}
}

func (s *Scanner) limitError(p int, limit string, limitMax int64) *LimitError {
	line, column := s.lineAt(p)
	return &LimitError{s.uri, line, column, limit, limitMax}
}

// short returns the error for a token that does not end within the window: errShort in a document, but a syntax error
// in an entity, whose text is complete.
func (s *Scanner) short() error {
	if len(s.frames) == 0 {
		return errShort
	}
	return s.errorf(s.end, "%s does not end where the entity ends", s.unfinished())
}

// unexpected returns the error for an invalid character at p. A name replaces %s in the message. At the end of the
// window it returns the result of short.
func (s *Scanner) unexpected(p int, message string, name ...string) error {
	if p >= s.end {
		return s.short()
	}
	if err := s.badChar(p); err != nil {
		return err
	}
	for _, n := range name {
		message = strings.Replace(message, "%s", excerpt(n), 1)
	}
	r, _ := utf8.DecodeRune(s.buf[p:s.end])
	return s.errorf(p, "%s, not %q", message, r)
}

// badChar returns an error if p has no valid character of XML (XML 1.0 §2.2, Characters), and errShort if that is not
// decidable yet.
func (s *Scanner) badChar(p int) error {
	b := s.buf[p:s.end]
	if !utf8.FullRune(b) {
		return s.short()
	}
	r, n := utf8.DecodeRune(b)
	switch {
	case r == utf8.RuneError && n == 1:
		return s.errorf(p, "the byte %#02x is not legal in UTF-8 here", b[0])
	case !IsChar(r):
		return s.errorf(p, "the character U+%04X is not allowed in XML", r)
	}
	return nil
}

// unfinished describes the token at the beginning of the window, for errors about a missing end.
func (s *Scanner) unfinished() string {
	b := string(s.buf[s.pos:min(s.end, s.pos+16)])
	for _, kind := range []struct{ begin, what string }{
		{"<!--", "a comment"},
		{"<![CDATA[", "a CDATA section"},
		{"<!DOCTYPE", "the document type declaration"},
		{"<!", "a declaration"},
		{"<?", "a processing instruction"},
		{"</", "an end tag"},
		{"<", "a tag"},
		{"&", "a reference"},
	} {
		if strings.HasPrefix(b, kind.begin) {
			return kind.what
		}
	}
	return "the text"
}

// excerpt shortens a text of a document for an error message.
func excerpt[T string | []byte](text T) string {
	const most = 60
	s := string(text[:min(len(text), most+utf8.UTFMax)])
	if len(s) <= most {
		return s
	}
	i := most
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return s[:i] + "…"
}
