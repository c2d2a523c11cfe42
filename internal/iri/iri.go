// Package iri resolves, normalises and checks the locators of topic maps.
//
// A locator is an IRI (RFC 3987). References are resolved by RFC 3986 §5.2
// (Relative Resolution) on the string as it stands: non-ASCII characters are
// neither escaped nor composed. [Normalize] gives the one form in which
// locators are stored and compared.
package iri

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is the error of a string that is no usable locator.
type Error struct {
	IRI    string // the string as given
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("%.200q: %s", e.IRI, e.Reason) }

// parts are the five components of RFC 3986 §3 (Syntax Components). The has
// flags tell an empty component from an undefined one.
type parts struct {
	scheme, authority, path, query, fragment string
	hasAuthority, hasQuery, hasFragment      bool
}

func split(s string) parts {
	var p parts
	if i := strings.IndexByte(s, '#'); i >= 0 {
		s, p.fragment, p.hasFragment = s[:i], s[i+1:], true
	}
	if i := strings.IndexByte(s, '?'); i >= 0 {
		s, p.query, p.hasQuery = s[:i], s[i+1:], true
	}
	if i := schemeEnd(s); i > 0 {
		p.scheme, s = s[:i], s[i+1:]
	}
	if rest, ok := strings.CutPrefix(s, "//"); ok {
		p.hasAuthority = true
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			p.authority, s = rest[:i], rest[i:]
		} else {
			p.authority, s = rest, ""
		}
	}
	p.path = s
	return p
}

func (p parts) String() string {
	s := p.path
	if p.hasAuthority {
		s = "//" + p.authority + s
	}
	if p.scheme != "" {
		s = p.scheme + ":" + s
	}
	if p.hasQuery {
		s += "?" + p.query
	}
	if p.hasFragment {
		s += "#" + p.fragment
	}
	return s
}

// schemeEnd returns the index of the colon that ends the scheme of s, or 0
// where s has none.
func schemeEnd(s string) int {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case c == ':':
			return i
		default:
			return 0
		}
	}
	return 0
}

// IsAbsolute reports whether s has a scheme, that is, whether it needs no base.
func IsAbsolute(s string) bool { return schemeEnd(s) > 0 }

// Resolve resolves ref against base by RFC 3986 §5.2.2 (Transform References)
// and returns the normalised result. base must be absolute unless ref is.
func Resolve(base, ref string) (string, error) {
	resolved, err := ResolveAsIs(base, ref)
	if err != nil {
		return "", err
	}
	return Normalize(resolved)
}

// ResolveAsIs is Resolve without normalising: RDF compares IRIs character by character.
func ResolveAsIs(base, ref string) (string, error) {
	if IsAbsolute(ref) {
		return ref, nil
	}
	r := split(ref)
	if !IsAbsolute(base) {
		return "", &Error{ref, fmt.Sprintf("is relative, and its base %.200q is not absolute", base)}
	}
	b := split(base)
	t := parts{scheme: b.scheme, query: r.query, hasQuery: r.hasQuery, fragment: r.fragment, hasFragment: r.hasFragment}
	switch {
	case r.hasAuthority:
		t.authority, t.hasAuthority, t.path = r.authority, true, removeDotSegments(r.path)
	case r.path == "":
		t.authority, t.hasAuthority, t.path = b.authority, b.hasAuthority, b.path
		if !r.hasQuery {
			t.query, t.hasQuery = b.query, b.hasQuery
		}
	default:
		t.authority, t.hasAuthority = b.authority, b.hasAuthority
		if strings.HasPrefix(r.path, "/") {
			t.path = removeDotSegments(r.path)
		} else {
			if b.opaque() {
				return "", &Error{ref, fmt.Sprintf("is relative, and its base %.200q has no hierarchy", base)}
			}
			t.path = removeDotSegments(merge(b, r.path))
		}
	}
	return t.String(), nil
}

// opaque reports whether p has a scheme and a path without hierarchy (urn:x).
func (p parts) opaque() bool {
	return p.scheme != "" && !p.hasAuthority && !strings.HasPrefix(p.path, "/")
}

// merge implements RFC 3986 §5.2.3 (Merge Paths).
func merge(base parts, path string) string {
	if base.hasAuthority && base.path == "" {
		return "/" + path
	}
	return base.path[:strings.LastIndexByte(base.path, '/')+1] + path
}

// removeDotSegments implements RFC 3986 §5.2.4 (Remove Dot Segments).
func removeDotSegments(path string) string {
	if !strings.Contains(path, ".") {
		return path
	}
	segments := strings.Split(path, "/")
	out := make([]string, 0, len(segments))
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".":
			if last {
				out = append(out, "")
			}
		case "..":
			if len(out) > 1 || len(out) == 1 && out[0] != "" {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, s)
		}
	}
	if strings.HasPrefix(path, "/") && (len(out) == 0 || out[0] != "") {
		out = append([]string{""}, out...)
	}
	if len(out) == 1 && out[0] == "" && strings.HasPrefix(path, "/") {
		return "/"
	}
	return strings.Join(out, "/")
}

// Normalize returns the form of s in which locators are stored and compared:
// the scheme in lower case, escapes of unreserved characters and of the space
// decoded (%7E is ~, %20 is a space; + stays +), other escapes with upper-case
// digits, a stray percent sign escaped. Non-ASCII characters stay as they are. s
// must be absolute, valid UTF-8 and free of control characters. Normalising
// twice is normalising once.
func Normalize(s string) (string, error) {
	end := schemeEnd(s)
	if end == 0 {
		return "", &Error{s, "is not absolute: it has no scheme"}
	}
	if !utf8.ValidString(s) {
		return "", &Error{s, "is not valid UTF-8"}
	}
	plain := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < 0x20 || c == 0x7F {
			return "", &Error{s, fmt.Sprintf("has the control character %#02x", c)}
		}
		if c == '%' || i < end && 'A' <= c && c <= 'Z' {
			plain = false
		}
	}
	if plain {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	b = append(b, strings.ToLower(s[:end])...)
	for i := end; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
			b = append(b, "%25"...) // a stray percent sign: real maps have them
			continue
		}
		c := unhex(s[i+1])<<4 | unhex(s[i+2])
		if unreserved(c) || c == ' ' {
			b = append(b, c)
		} else {
			const digits = "0123456789ABCDEF"
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
		i += 2
	}
	return string(b), nil
}

// Escape returns the form of a normalised locator for documents in which a
// space would be white space (attributes, feed elements). Normalize undoes it.
func Escape(s string) string { return strings.ReplaceAll(s, " ", "%20") }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}

// unreserved is RFC 3986 §2.3 (Unreserved Characters).
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}
