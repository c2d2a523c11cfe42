package xtm

import (
	"unicode"
	"unicode/utf8"
)

// isNCName reports whether s can be an XML id (Namespaces in XML 1.0 §3, NCName).
func isNCName(s string) bool {
	for i, r := range s {
		if !isNameStart(r) && (i == 0 || !isNameChar(r)) {
			return false
		}
	}
	return s != "" && utf8.ValidString(s)
}

// isNameStart is NameStartChar of XML 1.0 §2.3 without the colon.
func isNameStart(r rune) bool {
	if r < 0x80 {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_'
	}
	return unicode.Is(nameStart, r)
}

// isNameChar is what NameChar of XML 1.0 §2.3 adds to NameStartChar.
func isNameChar(r rune) bool {
	return '0' <= r && r <= '9' || r == '-' || r == '.' || r == 0xB7 ||
		0x300 <= r && r <= 0x36F || r == 0x203F || r == 0x2040
}

var nameStart = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0xC0, Hi: 0xD6, Stride: 1}, {Lo: 0xD8, Hi: 0xF6, Stride: 1}, {Lo: 0xF8, Hi: 0x2FF, Stride: 1},
		{Lo: 0x370, Hi: 0x37D, Stride: 1}, {Lo: 0x37F, Hi: 0x1FFF, Stride: 1}, {Lo: 0x200C, Hi: 0x200D, Stride: 1},
		{Lo: 0x2070, Hi: 0x218F, Stride: 1}, {Lo: 0x2C00, Hi: 0x2FEF, Stride: 1}, {Lo: 0x3001, Hi: 0xD7FF, Stride: 1},
		{Lo: 0xF900, Hi: 0xFDCF, Stride: 1}, {Lo: 0xFDF0, Hi: 0xFFFD, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x10000, Hi: 0xEFFFF, Stride: 1}},
}

// isXMLChar is Char of XML 1.0 §2.2.
func isXMLChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || 0x20 <= r && r <= 0xD7FF || 0xE000 <= r && r <= 0xFFFD || 0x10000 <= r && r <= 0x10FFFF
}
