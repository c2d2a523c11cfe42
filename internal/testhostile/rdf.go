package testhostile

import (
	"fmt"
	"strings"
)

// Dense are documents in notations of RDF that make many statements of few bytes each: n members of a list, or n
// objects.
var Dense = map[string]func(n int) string{
	"list.ttl": func(n int) string {
		return "<http://example.org/a> <http://example.org/p>\n(" + strings.Repeat(" 1", n) + " ) ."
	},
	"objects.ttl": func(n int) string {
		return "<http://example.org/a> <http://example.org/p>\n[]" + strings.Repeat(",[]", n-1) + " ."
	},
	"graph.trig": func(n int) string {
		return "<http://example.org/g> {\n<http://example.org/a> <http://example.org/p> (" + strings.Repeat("()", n) + ") }"
	},
	"lines.nt": func(n int) string {
		return "_:a <x:p> _:b .\n" + strings.Repeat("_:a<x:p>_:b.\n", n)
	},
	"empty.jsonld": func(n int) string { return "[" + strings.Repeat("\n{},", n) + "{}]" },
	"list.jsonld": func(n int) string {
		return `{"@id": "http://example.org/a",` + "\n" + `"http://example.org/p": {"@list": [1` +
			strings.Repeat(",1", n-1) + `]}}`
	},
	"container.jsonld": func(n int) string {
		return `{"@context": {"p": {"@id": "http://example.org/p", "@container": "@list"}},` + "\n" + `"p": [1` +
			strings.Repeat(",1", n-1) + `]}`
	},
	"list.rdf": func(n int) string {
		return `<a xmlns="x:" xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">` + "\n" +
			`<p r:parseType="Collection">` + strings.Repeat("<a/>", n) + `</p></a>`
	},
}

// Contexts returns a document in JSON-LD with n terms, among which so many contexts are.
func Contexts(n, contexts int) string {
	var b strings.Builder
	b.WriteString(`{"@context": {`)
	for i := range n {
		fmt.Fprintf(&b, `"t%d": "http://example.org/%[1]d", `, i)
	}
	b.WriteString(`"p": "http://example.org/p"}, "p": [{}`)
	b.WriteString(strings.Repeat(`, {"@context": {"x": "http://example.org/x"}, "x": "1"}`, contexts))
	b.WriteString(`]}`)
	return b.String()
}
