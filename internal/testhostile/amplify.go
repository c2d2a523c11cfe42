// Package testhostile makes documents that take much more to process than to
// send. Tests make them small, benchmarks as large as an attacker would.
package testhostile

import (
	"fmt"
	"strings"
)

const (
	Head10 = `<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink">`
	Head20 = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.0">`
	Head21 = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`
	Foot   = `</topicMap>`
)

// Amplifying are XTM documents with a locator of a length that is written once and
// meant as often as times says.
var Amplifying = map[string]func(length, times int) string{
	"base of references, XTM 1.0": func(length, times int) string {
		return based(Head10, length, times, `<topic id="a%[1]d"><instanceOf><topicRef xlink:href="#t"/></instanceOf></topic>`)
	},
	"base of references, XTM 2.0": func(length, times int) string {
		return based(Head20, length, times, `<topic id="a%[1]d"><instanceOf><topicRef href="#t"/></instanceOf></topic>`)
	},
	"base of references, XTM 2.1": func(length, times int) string {
		return based(Head21, length, times, `<topic id="a%[1]d"><instanceOf><topicRef href="#t"/></instanceOf></topic>`)
	},
	"base of identifiers": func(length, times int) string {
		return based(Head21, length, times, `<topic><subjectIdentifier href="a%[1]d"/></topic>`)
	},
	"base of values": func(length, times int) string {
		occurrence := `<occurrence><type><subjectIdentifierRef href="x:t"/></type><resourceRef href="v%[1]d"/></occurrence>`
		return based(Head21, length, times, `<topic><subjectIdentifier href="x:a%[1]d"/>`+occurrence+`</topic>`)
	},
	"namespace of embedded XML": func(length, times int) string {
		value := strings.Repeat("<p:a/>", times)
		return Head21 + `<topic xmlns:p="http://example.org/` + strings.Repeat("n", length) +
			`"><subjectIdentifier href="x:a"/><occurrence><type><subjectIdentifierRef href="x:t"/></type>` +
			`<resourceData datatype="http://www.w3.org/2001/XMLSchema#anyType">` + value +
			`</resourceData></occurrence></topic>` + Foot
	},
}

// based returns a document of statements on a base of a length.
func based(head string, length, times int, statement string) string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(head, ">") + ` xml:base="http://example.org/` + strings.Repeat("b", length) + `/">`)
	for i := range times {
		fmt.Fprintf(&b, statement, i)
	}
	b.WriteString(Foot)
	return b.String()
}

// Scope returns a document with one name of so many themes, each a locator of a
// length, and so many variants, which have all of them.
func Scope(themes, length, variants int) string {
	var b strings.Builder
	b.WriteString(Head21 + `<topic><subjectIdentifier href="x:a"/><name><scope>`)
	for i := range themes {
		fmt.Fprintf(&b, `<subjectIdentifierRef href="x:%0*d"/>`, length, i)
	}
	b.WriteString(`</scope><value>n</value>`)
	for i := range variants {
		fmt.Fprintf(&b,
			`<variant><scope><subjectIdentifierRef href="x:v%d"/></scope><resourceData>v</resourceData></variant>`, i)
	}
	b.WriteString(`</name></topic>` + Foot)
	return b.String()
}

// Feed returns an Atom feed of entries with links on a base of a length.
func Feed(length, entries int) string {
	var b strings.Builder
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/` + strings.Repeat("b", length) +
		`/"><id>x:f</id><title>f</title><updated>2020-01-01T00:00:00Z</updated>`)
	for i := range entries {
		fmt.Fprintf(&b,
			`<entry><id>x:%d</id><title>e</title><updated>2020-01-01T00:00:00Z</updated><link href="e"/></entry>`, i)
	}
	b.WriteString(`</feed>`)
	return b.String()
}

// Association returns a document with one association of so many roles.
func Association(roles int) string {
	var b strings.Builder
	b.WriteString(Head21 + `<association><type><subjectIdentifierRef href="x:together"/></type>`)
	for i := range roles {
		fmt.Fprintf(&b,
			`<role><type><subjectIdentifierRef href="x:member"/></type><subjectIdentifierRef href="x:p%d"/></role>`, i)
	}
	b.WriteString(`</association>` + Foot)
	return b.String()
}

// Identifiers returns a document with one topic that has so many subject
// identifiers and item identifiers, and a name.
func Identifiers(n int, name string) string {
	var b strings.Builder
	b.WriteString(Head21 + `<topic>`)
	for i := range n {
		fmt.Fprintf(&b, `<itemIdentity href="x:i%d"/><subjectIdentifier href="x:s%d"/>`, i, i)
	}
	b.WriteString(`<name><value>` + name + `</value></name></topic>` + Foot)
	return b.String()
}

// Hub returns a document with one topic that is associated with so many others.
func Hub(spokes int) string {
	var b strings.Builder
	b.WriteString(Head21)
	for i := range spokes {
		fmt.Fprintf(&b, `<topic><subjectIdentifier href="x:s%[1]d"/><name><value>Spoke %[1]d</value></name></topic>`+
			`<association><type><subjectIdentifierRef href="x:at"/></type>`+
			`<role><type><subjectIdentifierRef href="x:hub-role"/></type><subjectIdentifierRef href="x:hub"/></role>`+
			`<role><type><subjectIdentifierRef href="x:spoke-role"/></type><subjectIdentifierRef href="x:s%[1]d"/>`+
			`</role></association>`, i)
	}
	b.WriteString(Foot)
	return b.String()
}

// Names returns a document of about a size: topics with names of a length each.
func Names(size, length int) string {
	var b strings.Builder
	b.Grow(size + length + 1000)
	b.WriteString(Head21)
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `<topic><subjectIdentifier href="http://example.org/topic/%d"/><name><value>`, i)
		for n := b.Len(); b.Len()-n < length; {
			fmt.Fprintf(&b, "name %d of many, ", i*length+b.Len())
		}
		b.WriteString(`</value></name></topic>`)
	}
	b.WriteString(Foot)
	return b.String()
}

// Topics returns a document of so many topics of which nothing is said.
func Topics(n int) string {
	var b strings.Builder
	b.WriteString(Head21)
	for i := range n {
		fmt.Fprintf(&b, `<topic id="a%d"/>`, i)
	}
	b.WriteString(Foot)
	return b.String()
}
