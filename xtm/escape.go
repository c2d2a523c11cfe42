package xtm

// What a byte asks for before it can be written.
const (
	inText  byte = 1 << iota // to be escaped in character data
	inAttr                   // to be escaped in the value of an attribute in double quotes
	inHref                   // to be escaped in a locator
	inDoubt                  // part of a character that XML may be unable to carry
)

// special has the bytes that ask for anything. Most text has none of them.
var special = func() (bytes [256]byte) {
	for c := range bytes {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c >= 0x80 {
			bytes[c] = inDoubt
		}
	}
	bytes['&'] = inText | inAttr
	bytes['<'] = inText | inAttr
	bytes['\r'] = inText | inAttr
	bytes['>'] = inText
	bytes['"'] = inAttr
	bytes['\t'] = inAttr
	bytes['\n'] = inAttr
	bytes[' '] = inHref
	return bytes
}()

// plain returns the length of the beginning of s that asks for none of what.
func plain(s string, what byte) int {
	for i := range len(s) {
		if special[s[i]]&what != 0 {
			return i
		}
	}
	return len(s)
}

// appendEscaped appends s as character data, or as the value of an attribute in
// double quotes.
func appendEscaped(b []byte, s string, attr bool) []byte {
	what := inText
	if attr {
		what = inAttr
	}
	for {
		n := plain(s, what)
		b = append(b, s[:n]...)
		if n == len(s) {
			return b
		}
		b = append(b, escaped(s[n])...)
		s = s[n+1:]
	}
}

func escaped(c byte) string {
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
