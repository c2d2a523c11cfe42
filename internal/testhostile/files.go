package testhostile

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"
)

// File is a document that takes much more to process than to send, as large as an attacker would make it.
type File struct {
	Name   string
	Type   string // its media type
	Ending string // of a file that has it
	Make   func() string
	Local  bool // programs read it from a file: a server takes minutes to publish this number of topics
}

const (
	typeXTM  = "application/x-tm+xml"
	typeAtom = "application/atom+xml"
)

var typesOfRDF = map[string]string{
	".ttl": "text/turtle", ".trig": "application/trig", ".nt": "application/n-triples", ".jsonld": "application/ld+json",
	".rdf": "application/rdf+xml",
}

// Files returns all that the package makes. size scales the numbers of the things in them.
func Files(size func(int) int) (all []File) {
	xtm := func(name string, f func() string) {
		all = append(all, File{Name: name, Type: typeXTM, Ending: ".xtm", Make: f})
	}
	for _, name := range slices.Sorted(maps.Keys(Amplifying)) {
		xtm(name+", 8 KB, 20,000 times", func() string { return Amplifying[name](8000, size(20_000)) })
		xtm(name+", 1 MB, 20,000 times", func() string { return Amplifying[name](1<<20, size(20_000)) })
	}
	xtm("200 themes of 5 KB, 5,000 variants", func() string { return Scope(200, 5000, size(5000)) })
	xtm("name of 10,000 variants of 199 themes", func() string { return Scope(199, 5, size(10_000)) })
	xtm("topic with 3,000 names of 199 themes", func() string { return ThemedNames(size(3000), 199) })
	xtm("association with 100,000 roles", func() string { return Association(size(100_000)) })
	xtm("association with 1,000 roles", func() string { return Association(1000) })
	xtm("topic with 40,000 identifiers", func() string { return Identifiers(size(40_000), "name") })
	xtm("hub of 5,000 topics", func() string { return Hub(size(5000)) })
	xtm("names of 1 MB", func() string { return Names(size(64<<20), 1<<20) })
	xtm("topics of 17 bytes", func() string { return Topics(size(100_000)) })
	for _, name := range slices.Sorted(maps.Keys(Encodings)) {
		xtm(name, func() string { return Encodings[name].Document(size(8 << 20)) })
		all[len(all)-1].Type = Encodings[name].Type
	}
	for _, name := range slices.Sorted(maps.Keys(Dense)) {
		ending := filepath.Ext(name)
		all = append(all, File{Name: "1,000,000 of " + name, Type: typesOfRDF[ending], Ending: ending, Make: func() string {
			return Dense[name](size(1_000_000))
		}})
	}
	return append(all,
		File{Name: "3,900 contexts among 4,000 terms", Type: typesOfRDF[".jsonld"], Ending: ".jsonld", Make: func() string {
			return Contexts(size(4000), size(3900))
		}},
		File{Name: "50,000 statements of three new IRIs", Type: typesOfRDF[".nt"], Ending: ".nt", Make: func() string {
			return Statements(size(50_000))
		}},
		File{Name: "530,000 statements of three new IRIs", Type: typesOfRDF[".nt"], Ending: ".nt", Make: func() string {
			return Statements(size(530_000))
		}, Local: true},
		File{Name: "feed with a base of 8 KB, 20,000 entries", Type: typeAtom, Ending: ".atom", Make: func() string {
			return Feed(8000, size(20_000))
		}},
	)
}

// Encoding is a document whose encodings contradict each other, or take more as text than as bytes.
type Encoding struct {
	Type     string                // the media type that it is sent with
	Document func(size int) string // with a name of about so many bytes
}

// Encodings are such documents by what they do.
var Encodings = map[string]Encoding{
	"bytes that become three": {typeXTM + "; charset=windows-1252", func(size int) string {
		return named("", strings.Repeat("\x80", size))
	}},
	"UTF-16 that is said to be UTF-8": {typeXTM + "; charset=utf-8", func(size int) string {
		var b strings.Builder
		b.WriteString("\xff\xfe")
		for _, unit := range utf16.Encode([]rune(named("utf-8", strings.Repeat("n", size/2)))) {
			b.Write([]byte{byte(unit), byte(unit >> 8)})
		}
		return b.String()
	}},
	"UTF-8 but for the last byte": {typeXTM + "; charset=utf-8", func(size int) string {
		return named("ISO-8859-1", strings.Repeat("n", size)+"\xe9")
	}},
	"UTF-8 but for the last byte, all said": {typeXTM + "; charset=utf-8", func(size int) string {
		return named("utf-8", strings.Repeat("n", size)+"\xe9")
	}},
	"a mark of UTF-16, and half a unit": {typeXTM + "; charset=utf-16", func(size int) string {
		return "\xfe\xff" + strings.Repeat("\x00\xd8", size/2) + "\x00"
	}},
	"an encoding that nobody knows": {typeXTM + "; charset=utf-7", func(size int) string {
		return named("utf-7", strings.Repeat("+AOk-", size/5))
	}},
}

// named returns a document in a declared encoding of names of at most 100 bytes each, which are a text together.
func named(encoding, text string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"`)
	if encoding != "" {
		b.WriteString(` encoding="` + encoding + `"`)
	}
	b.WriteString(`?>` + Head21)
	for i := 0; len(text) > 0; i++ {
		n := min(100, len(text))
		fmt.Fprintf(&b, `<topic><subjectIdentifier href="x:a%d"/><name><value>%s</value></name></topic>`, i, text[:n])
		text = text[n:]
	}
	b.WriteString(Foot)
	return b.String()
}

// ThemedNames returns a document with one topic of so many names, n1000 and on, each of which has all of so many
// themes.
func ThemedNames(names, themes int) string {
	var scope, b strings.Builder
	for i := range themes {
		fmt.Fprintf(&scope, `<subjectIdentifierRef href="x:s%d"/>`, i)
	}
	b.WriteString(Head21 + `<topic><subjectIdentifier href="x:t"/>`)
	for i := range names {
		fmt.Fprintf(&b, `<name><scope>%s</scope><value>n%d</value></name>`, scope.String(), 1000+i)
	}
	b.WriteString(`</topic>` + Foot)
	return b.String()
}

// Statements returns a document in N-Triples of n statements, each with three new IRIs, which are as short as can be.
func Statements(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<x:a%[1]x><x:b%[1]x><x:c%[1]x>.\n", i)
	}
	return b.String()
}
