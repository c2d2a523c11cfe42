package scan

import (
	"strings"
	"unicode/utf8"
)

// isSpace reports whether c is white space (XML 1.0 §2.3, Common Syntactic Constructs).
func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// IsChar reports whether r is a character of XML (XML 1.0 §2.2, Characters).
func IsChar(r rune) bool {
	return r >= 0x20 && r < 0xD800 || r == '\n' || r == '\t' || r == '\r' ||
		r > 0xDFFF && r < 0xFFFE || r > 0xFFFF && r <= utf8.MaxRune
}

// Uncarried returns the first character of a text that XML cannot have, [utf8.RuneError] for a byte that is no UTF-8.
func Uncarried(text string) (bad rune, found bool) {
	for i, r := range text {
		if ' ' <= r && r < 0xD800 {
			continue
		}
		if !IsChar(r) || r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			return r, true
		}
	}
	return 0, false
}

// Classes of ASCII characters in names (XML 1.0 §2.3). Bytes of other characters
// are taken for both until validName looks closer.
const (
	startsName = 1 << iota
	inName
)

var classes = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == ':', c >= utf8.RuneSelf:
			t[c] = startsName | inName
		case c >= '0' && c <= '9', c == '-', c == '.':
			t[c] = inName
		}
	}
	return t
}()

// wordEnd returns the index of the first byte from p on that cannot be part of a
// name.
func wordEnd(b []byte, p int) int {
	for classes[b[p]]&inName != 0 {
		p++
	}
	return p
}

// validName returns the length in bytes of the Name at the beginning of b (XML 1.0 §2.3, production 5).
func validName(b []byte) int {
	for i := 0; i < len(b); {
		c, n := rune(b[i]), 1
		switch {
		case c >= utf8.RuneSelf:
			c, n = utf8.DecodeRune(b[i:])
			if c == utf8.RuneError && n == 1 || !isNameStart(c) && (i == 0 || !isNameOther(c)) {
				return i
			}
		case classes[c]&inName == 0, i == 0 && classes[c]&startsName == 0:
			return i
		}
		i += n
	}
	return len(b)
}

// IsNCName reports whether s is a name without a colon, as ids are (Namespaces in
// XML 1.0 §3, production 4).
func IsNCName(s string) bool {
	for i, r := range s {
		switch {
		case r >= utf8.RuneSelf:
			if !isNameStart(r) && (i == 0 || !isNameOther(r)) {
				return false
			}
		case r == ':' || classes[r]&inName == 0 || i == 0 && classes[r]&startsName == 0:
			return false
		}
	}
	return s != "" && utf8.ValidString(s)
}

// isNameStart reports whether a character beyond ASCII may begin a name (XML 1.0 §2.3, production 4).
func isNameStart(r rune) bool {
	switch {
	case r < 0xC0, r == 0xD7, r == 0xF7:
		return false
	case r < 0x2000:
		return r < 0x300 || r >= 0x370 && r != 0x37E
	case r < 0x3001:
		return r == 0x200C || r == 0x200D || r >= 0x2070 && r <= 0x218F || r >= 0x2C00 && r <= 0x2FEF
	}
	return r <= 0xD7FF || r >= 0xF900 && r <= 0xFDCF || r >= 0xFDF0 && r <= 0xFFFD || r >= 0x10000 && r <= 0xEFFFF
}

// isNameOther reports whether a character beyond ASCII may be in a name, but not begin it (XML 1.0 §2.3, production
// 4a).
func isNameOther(r rune) bool {
	return r == 0xB7 || r >= 0x300 && r <= 0x36F || r == 0x203F || r == 0x2040
}

// skipHigh returns the index of the first byte from p on that is ASCII or does not begin a valid character of XML. The
// zero bytes after the window end a character that the window cuts.
func skipHigh(b []byte, p int) int {
	for {
		switch c := b[p]; {
		case c < 0xC2: // ASCII, or no first byte of a character
			return p
		case c < 0xE0:
			if b[p+1]&0xC0 != 0x80 {
				return p
			}
			p += 2
		case c < 0xF0:
			d, e := b[p+1], b[p+2]
			if d&0xC0 != 0x80 || e&0xC0 != 0x80 {
				return p
			}
			switch {
			case c == 0xE0 && d < 0xA0, // too long
				c == 0xED && d > 0x9F,              // a surrogate
				c == 0xEF && d == 0xBF && e > 0xBD: // U+FFFE, U+FFFF
				return p
			}
			p += 3
		default:
			d := b[p+1]
			if d&0xC0 != 0x80 || b[p+2]&0xC0 != 0x80 || b[p+3]&0xC0 != 0x80 {
				return p
			}
			if c > 0xF4 || c == 0xF0 && d < 0x90 || c == 0xF4 && d > 0x8F {
				return p
			}
			p += 4
		}
	}
}
