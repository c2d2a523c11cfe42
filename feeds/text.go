package feeds

import (
	"html"
	"strings"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/xml/scan"
)

// whiteSpace has the white space of XML 1.0 §2.3. Other spaces, such as U+00A0, are content.
const whiteSpace = " \t\r\n"

func isWhiteSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\r' || r == '\n' }

// line returns s on one line: it replaces each run of white space by one space, trims the ends, and replaces characters
// that XML does not allow by U+FFFD.
func line(s string) string {
	if isPlainLine(s) {
		return s
	}
	s = strings.Map(func(r rune) rune { // also replaces invalid UTF-8
		if scan.IsChar(r) {
			return r
		}
		return utf8.RuneError
	}, s)
	return strings.Join(strings.FieldsFunc(s, isWhiteSpace), " ")
}

// isPlainLine reports whether line returns s unchanged, as s is one line of printable ASCII.
func isPlainLine(s string) bool {
	before := byte(' ')
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == ' ' && before == ' ' {
			return false
		}
		before = s[i]
	}
	return s == "" || before != ' '
}

// strip removes all white space from a URL.
func strip(s string) string {
	if !strings.ContainsAny(s, whiteSpace) {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, isWhiteSpace), "")
}

// unwrap joins an identifier that was broken across lines. It removes white space at the ends, and each run within that
// has a tab or the end of a line. Other spaces stay, since locators of topic maps contain them.
func unwrap(s string) string {
	s = strings.Trim(s, whiteSpace)
	if !strings.ContainsAny(s, "\t\r\n") {
		return s
	}
	var b strings.Builder
	for s != "" {
		word := strings.IndexAny(s, whiteSpace)
		if word < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:word])
		rest := strings.TrimLeft(s[word:], whiteSpace)
		if gap := s[word : len(s)-len(rest)]; !strings.ContainsAny(gap, "\t\r\n") {
			b.WriteString(gap)
		}
		s = rest
	}
	return b.String()
}

// plain reduces HTML to its text: tags and comments go, character references
// are resolved.
func plain(markup string) string {
	var b strings.Builder
	for {
		text, rest, found := strings.Cut(markup, "<")
		b.WriteString(text)
		if !found {
			break
		}
		end := ">"
		if strings.HasPrefix(rest, "!--") {
			end = "-->"
		}
		_, after, closed := strings.Cut(rest, end)
		if !closed { // no tag: the rest is text
			b.WriteString("<" + rest)
			break
		}
		markup = after
	}
	return html.UnescapeString(b.String())
}
