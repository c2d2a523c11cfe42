package iri

import (
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Own begins the IRIs that the project makes (docs/rdf.md).
const Own = "https://github.com/tmshare/tmshare/ns/1/"

const (
	keptNS    = Own + "iri/"     // and an IRI in hexadecimal digits, which topic maps would compare otherwise
	writtenNS = Own + "locator/" // and a locator in hexadecimal digits, with characters that no IRI has

	DatatypeNS = Own + "datatype/" // and the name of a datatype whose values topic maps would change
)

// Refused are the characters that no IRI has (RDF 1.1 Turtle §6.5, IRIREF).
const Refused = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\v\f\r\x0E\x0F\x10\x11\x12\x13\x14\x15\x16\x17" +
	"\x18\x19\x1A\x1B\x1C\x1D\x1E\x1F <>\"{}|^`\\"

// Genid stands before the label of a blank node in its IRI (RDF 1.1 Concepts §3.5, Replacing Blank Nodes with IRIs).
const Genid = "/.well-known/genid/"

var label = regexp.MustCompile(`^b[0-9a-f]{32}(-[0-9]+)?$`)

// BlankLabel returns the label of the blank node that an IRI was made for, or "".
func BlankLabel(s string) string {
	if i := strings.LastIndex(s, Genid); i >= 0 && label.MatchString(s[i+len(Genid):]) {
		return s[i+len(Genid):]
	}
	return ""
}

// ToLocator returns the locator of an IRI. RDF compares IRIs character by character (RDF 1.1 Concepts §3.2, IRIs),
// topic maps by their normal form: an IRI that is not the one of its normal form is kept apart, in hexadecimal digits.
func ToLocator(s string) string {
	if l := unwritten(s); l != "" {
		return l
	}
	if normal, err := Normalize(s); err == nil && isPlain(normal) && Escape(normal) == s {
		return normal
	}
	return KeepApart(s)
}

// KeepApart returns what [ToLocator] makes of an IRI, or of the beginning of one, that is not in normal form.
func KeepApart(s string) string { return keptNS + hex.EncodeToString([]byte(s)) }

// isPlain reports whether a locator in normal form is that of itself as an IRI, if its spaces are escaped.
func isPlain(l string) bool {
	return !strings.ContainsAny(Escape(l), Refused) && kept(l) == "" && unwritten(l) == "" &&
		!strings.HasPrefix(l, DatatypeNS) && BlankLabel(l) == ""
}

// FromLocator undoes [ToLocator].
func FromLocator(l string) string {
	if s := kept(l); s != "" {
		return s
	}
	return written(l)
}

// Shown returns a locator as people know it: one that keeps an IRI apart is that IRI.
func Shown(l string) string {
	if s := kept(l); s != "" {
		return s
	}
	return l
}

// ShownInJSON returns a document in JSON whose texts that are locators are as people know them.
func ShownInJSON(document []byte) []byte {
	return inJSON.ReplaceAllFunc(document, func(text []byte) []byte {
		shown, _ := json.Marshal(Shown(string(text[1 : len(text)-1])))
		return shown
	})
}

var inJSON = regexp.MustCompile(`"` + keptNS + `[0-9a-f]+"`)

// kept returns the IRI that a locator keeps apart, or "". Digits of what readers of RDF would refuse stay as they are:
// ToLocator did not make them.
func kept(l string) string {
	s := digits(l, keptNS)
	if s == "" || strings.ContainsAny(s, Refused) || !IsAbsolute(s) || !utf8.ValidString(s) || ToLocator(s) != l {
		return ""
	}
	return s
}

// written returns the IRI of a locator that keeps none apart: itself, or else its hexadecimal digits.
func written(l string) string {
	if isPlain(l) {
		return Escape(l)
	}
	return writtenNS + hex.EncodeToString([]byte(l))
}

// unwritten returns the locator that an IRI has in hexadecimal digits, or "": it must be in normal form, so that it can
// be written and read again, and must give the same IRI when it is written.
func unwritten(s string) string {
	l := digits(s, writtenNS)
	normal, err := Normalize(l)
	if err != nil || normal != l || kept(l) != "" || written(l) != s || strings.ContainsAny(l, "\uFFFE\uFFFF") {
		return "" // XML has neither
	}
	return l
}

// digits returns what stands in hexadecimal digits behind a prefix, or "".
func digits(s, prefix string) string {
	behind, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return ""
	}
	decoded, _ := hex.DecodeString(behind)
	return string(decoded)
}
