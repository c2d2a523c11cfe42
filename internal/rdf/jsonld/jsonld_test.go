package jsonld_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	_ "github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/internal/testkit/w3c"
)

const archive = "../../../../shared/conformance/w3c-rdf11.tar.gz"

func read(document string) (all []rdf.Quad, err error) {
	err = jsonld.Read(strings.NewReader(document), jsonld.Options{URI: "doc", Base: "http://example.org/doc", Limits: jsonld.Limits{Size: 1 << 20}}, func(q rdf.Quad) error {
		all = append(all, q)
		return nil
	})
	return all, err
}

func text(t testing.TB, all []rdf.Quad) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, turtle.WriteNTriples(&b, all))
	return b.String()
}

// The constructs of JSON-LD 1.1 are understood: contexts in contexts, lists, languages, numbers, graphs, types
// that bring a context.
func TestRead(t *testing.T) {
	all, err := read(`{
 "@context": ["http://www.w3.org/2013/json-ld-context/rdfa11", {"@version": 1.1, "@base": "http://example.org/base/", "label": {"@id": "rdfs:label", "@container": "@language"},
  "list": {"@id": "http://example.org/list", "@container": "@list"}, "Person": {"@id": "foaf:Person", "@context": {"knows": {"@id": "foaf:knows", "@type": "@id"}}}}],
 "@id": "a", "@type": "Person", "knows": "b", "label": {"en": "A", "de": ["Ä"]}, "list": [1, 2.5, true, {"@id": "c"}],
 "unmapped": "left out", "skos:note": {"@value": "7", "@type": "xsd:integer"}
}`)
	require.NoError(t, err)
	want, err := read("[]")
	require.NoError(t, err)
	assert.Empty(t, want)
	require.NoError(t, turtle.Read(strings.NewReader(`@base <http://example.org/base/> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<a> a foaf:Person ; foaf:knows <b> ; rdfs:label "A"@en, "Ä"@de ; <http://example.org/list> ( 1 2.5E0 true <c> ) ; skos:note 7 .`), turtle.Turtle, turtle.Options{}, func(q rdf.Quad) error {
		want = append(want, q)
		return nil
	}))
	assert.True(t, rdf.Isomorphic(want, all), "%s", text(t, all))

	all, err = read(`[{"@id": "http://example.org/g", "@graph": [{"@id": "http://example.org/s", "http://example.org/p": "v"}]}, {"@id": "_:n", "http://example.org/p": "w"}]`)
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, rdf.Term{}, all[0].Graph)
	assert.Equal(t, rdf.NewIRI("http://example.org/g"), all[1].Graph)
}

// Each message states the place, the fault and the remedy. Nothing is fetched.
func TestMessages(t *testing.T) {
	long := strings.Repeat("x", 9000)
	for document, want := range map[string]string{
		`{"@context":` + "\n" + `{"@vocab": "x:` + long + `"}, "a": 1}`: `doc:2:13: the IRI <x:xxx`,
		`{"@context": {"@base": "x:` + long + `"}, "@id": "a"}`:         `has 9002 bytes; the most for an IRI is 8192: shorten the namespace or the base`,
		`[{"a": {"@context": [{"e": {"@id": "x:` + long + `"}}]}}]`:     `has 9002 bytes`,
		`{"@context": {"` + long + `": "x:y"}}`:                         `has 9000 bytes`,
		``:                                                              "doc:1:1: the document ends early",
		"{\n \"a\": }":                                                  "doc:2:7: this is no JSON: invalid character '}' looking for beginning of value",
		`{"a": 1`:                                                       "doc:1:8: the document ends early",
		`{} []`:                                                         "doc:1:4: there is something behind the end of the document",
		"{\"a\": \"\xff\"}":                                             "doc:1:8: the bytes are not UTF-8; save the file in that encoding",
		"{\"@context\":\n \"https://schema.org/\", \"name\": \"x\"}":               "doc:2:3: the context <https://schema.org/> is not fetched; write what it has into the @context of the document",
		`{"@context": {"@import": "http://127.0.0.1:1/c"}, "a": 1}`:                "doc:1:27: the context <http://127.0.0.1:1/c> is not fetched",
		`{"@context": ["http://www.w3.org/2013/json-ld-context/rdfa11", "other"]}`: "the context <http://example.org/other> is not fetched",
		`{"@context": {"@version": 2}}`:                                            "doc:1:1: the document is no JSON-LD: invalid @version value",
		`{"@context": {"@vocab": "#", "a/b": {"@id": "c"}}}`:                       `term a/b expands to http://example.org/doc#c, not http://example.org/doc#a/b`,
		`{"@id": 5}`: "doc:1:1: the document is no JSON-LD: invalid @id value",
		"{\"@id\": \"x:a\",\n \"x:b\": {\"@value\": \"c\", \"@language\": \"En US\"}}":                          `doc:2:38: the language tag "en us" is not well-formed (BCP 47); write one such as en or en-GB`,
		"{\"@context\": {\"b\": {\"@id\": \"x:b\", \"@container\": \"@language\"}},\n \"b\": {\"en-\": \"c\"}}": `doc:2:8: the language tag "en-" is not well-formed`,
		"{\"@id\": \"x:a\",\n \"x:p\": \"\\ud83d\\ude00 \\udc00\"}":                                             `doc:2:23: \udc00 is half of a surrogate pair, which is no character; write the character, or both halves`,
		"{\"@id\": \"x:a\",\n \"x:\\uD800p\": \"c\"}":                                                           `doc:2:5: \uD800 is half of a surrogate pair`,
		`{"@context": {"@vocab": "x:\ud800"}, "a": {"@type": "@json", "@value": 1}}`:                            `doc:1:28: \ud800 is half`,
		`{"@id": "x:a", "x:p": {"@type": "@json", "@value": {"\udfff": ["\ud800"]}}}`:                           `doc:1:54: \udfff is half`,
		`{"no context has it \ud800": 1, "@id": "x:a", "x:p": 1}`:                                               `doc:1:21: \ud800 is half`,
		strings.Repeat(`[`, 300):                     "doc:1:201: arrays and objects are more than 200 deep",
		`{"a":"` + strings.Repeat(`x`, 1<<20) + `"}`: "the document has more than 1048576 bytes, and JSON-LD is read as a whole; convert it to N-Triples",
		`{"@id": "http://example.org/a", "http://example.org/p": {"@id": "http://example.org/a<b"}}`: "the IRI <http://example.org/a<b> has the character '<', which no IRI has; escape it with a percent sign",
	} {
		_, err := read(document)
		var syntax *rdf.SyntaxError
		if assert.ErrorAs(t, err, &syntax, "%.100s", document) {
			assert.Contains(t, err.Error(), want)
		}
	}
	wrong := errors.New("wrong")
	err := jsonld.Read(strings.NewReader(`{"http://example.org/p": 1}`), jsonld.Options{}, func(rdf.Quad) error { return wrong })
	assert.ErrorIs(t, err, wrong)
}

// A written graph is read as the same graph.
func TestGraphsAreWritten(t *testing.T) {
	s := w3c.Open(t, archive, "rdf-turtle")
	written := 0
	for _, c := range s.Cases {
		if c.Negative() {
			continue
		}
		var graph []rdf.Quad
		require.NoError(t, turtle.Read(bytes.NewReader(s.File(c.Action)), turtle.Turtle, turtle.Options{URI: c.Base}, func(q rdf.Quad) error {
			graph = append(graph, q)
			return nil
		}))
		var b bytes.Buffer
		require.NoError(t, jsonld.Write(&b, graph))
		again, err := read(b.String())
		require.NoError(t, err, "%s: %s", c.Name, b.String())
		assert.True(t, rdf.Isomorphic(graph, again), "%s: %s, not\n%s", c.Name, text(t, again), text(t, graph))
		written++
	}
	require.Greater(t, written, 200)
	t.Log(written, "graphs")
}

// A context that refers to itself, or is very wide, takes time in proportion.
func TestHostileContexts(t *testing.T) {
	var wide strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&wide, `"t%d": "t%d:x", `, i, i+1)
	}
	for _, document := range []string{
		`{"@context": {"a": {"@id": "http://example.org/a", "@context": {"a": {"@id": "a", "@context": {"a": "a"}}}}}, "a": {"a": {"a": 1}}}`,
		`{"@context": {"a": "b:x", "b": "a:x"}, "a": 1}`,
		`{"@context": {` + wide.String() + `"t3000": "http://example.org/"}, "t0": 1}`,
		`{"@context": {"@vocab": "http://example.org/"}, ` + strings.Repeat(`"a": {`, 180) + strings.Repeat(`}`, 181),
		`{"@context": {"p": {"@id": "http://example.org/p", "@container": "@list"}}, "p": ` + strings.Repeat(`[`, 180) + strings.Repeat(`]`, 180) + `}`,
	} {
		_, _ = read(document)
	}
}

// A document that is accepted is the same graph when it is written and read again.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"@context": {"p": {"@id": "http://e/p", "@container": "@list"}, "@language": "en"}, "@id": "a", "p": ["b", 1, {"@id": "c"}]}`,
		`[{"@type": "http://e/T", "http://e/p": {"@value": "x", "@type": "@json"}, "@graph": [{"@id": "_:b"}], "@reverse": {"http://e/q": {"@id": "d"}}}]`,
		`{"@context": {"p": {"@id": "http://e/p", "@context": {"x": "http://e/x"}}, "T": {"@id": "http://e/T", "@context": [{"y": "http://e/y"}, null]}}, "@type": "T", "y": 1, "p": {"@context": {"z": "http://e/z"}, "x": 1, "z": 2}}`,
		`{"@context": {"@vocab": "http://e/", "i": {"@container": ["@graph", "@index"]}, "n": {"@nest": "x", "@id": "n"}}, "i": {"a": {"b": "c"}}, "@included": []}`,
	} {
		f.Add(s)
	}
	for _, s := range []string{testhostile.Dense["list.jsonld"](20), testhostile.Dense["container.jsonld"](20), testhostile.Dense["empty.jsonld"](20), testhostile.Contexts(5, 5)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, document string) {
		graph, err := read(document)
		if err != nil || len(graph) > 50 {
			return
		}
		for i := range graph {
			graph[i].Graph = rdf.Term{}
		}
		var b bytes.Buffer
		require.NoError(t, jsonld.Write(&b, graph))
		again, err := read(b.String())
		require.NoError(t, err, b.String())
		require.True(t, rdf.Isomorphic(graph, again), "%s, not\n%s", text(t, again), text(t, graph))
	})
}
