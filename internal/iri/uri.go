package iri

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ToURI returns the URI of an IRI: characters that URIs do not have are percent-encoded in
// UTF-8 (RFC 3987 §3.1, Mapping of IRIs to URIs).
func ToURI(s string) string {
	const kept = "-._~:/?#[]@!$&'()*+,;=%"
	var b strings.Builder
	written := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(kept, c) >= 0 {
			continue
		}
		const digits = "0123456789ABCDEF"
		b.WriteString(s[written:i])
		b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		written = i + 1
	}
	if written == 0 {
		return s
	}
	b.WriteString(s[written:])
	return b.String()
}

// FromURI returns the IRI of a URI: what is percent-encoded and is a character beyond ASCII in
// UTF-8 becomes that, unless it cannot be seen (RFC 3987 §3.2, Converting URIs to IRIs).
func FromURI(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		var encoded []byte
		for n := i; n+2 < len(s) && s[n] == '%' && isHex(s[n+1]) && isHex(s[n+2]) && len(encoded) < utf8.UTFMax; n += 3 {
			encoded = append(encoded, unhex(s[n+1])<<4|unhex(s[n+2]))
		}
		if r, size := utf8.DecodeRune(encoded); size > 1 && unicode.IsGraphic(r) {
			b.WriteRune(r)
			i += 3 * size
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}
