// Package write escapes text that is written into XML documents.
package write

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/xml/scan"
)

// Set is a set of bytes that need escaping in some context.
type Set uint8

const (
	Text     Set = 1 << iota // escaped in character data (Canonical XML 1.0 §2.3, Text Nodes)
	Attr                     // escaped in the value of an attribute (ibid., Attribute Nodes)
	Either                   // escaped in both, by documents that make no difference
	Space                    // the space, which locators cannot have
	NonASCII                 // part of a character beyond ASCII, or a control character
	Unnormal                 // part of a locator that may not be in normal form
)

// special has the bytes that need escaping anywhere. Most text has none of them.
var special = func() (bytes [256]Set) {
	for c := range bytes {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c >= 0x80 {
			bytes[c] = NonASCII
		}
	}
	bytes['&'] = Text | Attr | Either
	bytes['<'] = Text | Attr | Either
	bytes['\r'] = Text | Attr
	bytes['>'] = Text | Either
	bytes['"'] = Attr | Either
	bytes['\t'] = Attr
	bytes['\n'] = Attr
	bytes[' '] = Space
	bytes['%'], bytes[0x7F] = Unnormal, Unnormal
	return bytes
}()

// Plain returns the length of the beginning of s that has no byte of the sets.
func Plain(s string, sets Set) int {
	for i := range len(s) {
		if special[s[i]]&sets != 0 {
			return i
		}
	}
	return len(s)
}

// Check returns why XML cannot carry s (XML 1.0 §2.2, Characters), nil if it can.
func Check(s string) error {
	switch bad, found := scan.Uncarried(s[Plain(s, NonASCII):]); {
	case !found:
		return nil
	case bad == utf8.RuneError:
		return errors.New("the text is not valid UTF-8")
	default:
		return fmt.Errorf("XML cannot carry the character %U: choose Turtle, N-Triples or JSON-LD", bad)
	}
}

// Escape appends s to b, with references for the bytes of the set: Text, Attr or Either.
func Escape(b []byte, s string, set Set) []byte {
	for {
		n := Plain(s, set)
		b = append(b, s[:n]...)
		if n == len(s) {
			return b
		}
		b = append(b, reference(s[n])...)
		s = s[n+1:]
	}
}

func reference(c byte) string {
	switch c {
	case '&':
		return "&amp;"
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	case '"':
		return "&quot;"
	case '\t':
		return "&#x9;"
	case '\n':
		return "&#xA;"
	default:
		return "&#xD;"
	}
}
