package jsonld_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
)

// readWarned reads a document, and returns the place, rule and text of each warning.
func readWarned(document string) (all []rdf.Quad, warnings []string, err error) {
	err = jsonld.Read(strings.NewReader(document), jsonld.Options{
		URI: "doc", Base: "http://example.org/doc",
		Tolerated: func(e *rdf.SyntaxError) {
			warnings = append(warnings, fmt.Sprintf("%d:%d %s %s in %s", e.Line, e.Column, e.Rule, e.Of, e.In))
		},
	}, func(q rdf.Quad) error {
		all = append(all, q)
		return nil
	})
	return all, warnings, err
}

// Parts of a document that its graph does not have are reported, with the place and the name of the node. The
// other parts are read.
func TestNothingIsLeftOutSilently(t *testing.T) {
	const context = `"@context": {"@version": 1.1, "p": "x:p", "none": null, "g": "@graph", "s": {"@id": "x:s", "@context": {"q": "x:q"}},
  "T": {"@id": "x:T", "@context": {"q": "x:q"}}, "empty": {"@id": "x:e", "@context": null}, "list": {"@id": "x:l", "@container": "@list"}}`
	for _, c := range []struct {
		document   string
		statements int
		want       []string
	}{
		{"{" + context + ",\n \"@id\": \"x:a\",\n \"p\": 1, \"name\": \"A\", \"none\": \"B\"}", 1, []string{`1:1 unmapped-keys "name" in the node "x:a"`}},
		{"{" + context + ",\n \"@id\": \"x:a\", \"p\":\n  {\"p\": 1, \"name\": \"A\", \"q\": 2},\n \"s\": {\"q\": 1}}", 4,
			[]string{`4:3 unmapped-keys "name" in a node without @id`, `4:3 unmapped-keys "q" in a node without @id`}},
		{"[{" + context + ",\n \"@id\": \"x:a\", \"p\": 1, \"geo\": {\"lat\": 1, \"long\": [[1], {\"x\": 1}]}}]", 1, []string{`1:2 unmapped-keys "geo" in the node "x:a"`}},
		{"[{" + context + ",\n \"@id\": \"x:a\", \"p\": 1, \"a/b~ü c\": {\"d e\": 1}}]", 1, []string{`1:2 unmapped-keys "a/b~ü c" in the node "x:a"`}},
		{"{" + context + ",\n \"@type\": \"T\", \"q\": 1, \"empty\": {\"p\": 1, \"x:p\": 1}}", 4, []string{`3:33 unmapped-keys "p" in a node without @id`}},
		{"{" + context + ",\n \"p\": 1, \"@foo\": 1}", 1, []string{`1:1 unmapped-keys "@foo" in a node without @id`}},
		{"{" + context + ",\n \"p\": 1, \"name\": {\"@value\": []}}", 1, []string{`1:1 unmapped-keys  in the document`}},
		{`{"@context": {"@vocab": "x:"}, "p": {"@context": {"@vocab": null}, "q": 1, "x:q": 2}}`, 2, []string{`1:37 unmapped-keys "q" in a node without @id`}},
		{`{"@context": {"@vocab": "v#"}, "p": {"@context": [null], "q": 1, "x:q": 2}}`, 2, []string{`1:37 unmapped-keys "q" in a node without @id`}},
		{`{"@context": {"@vocab": "x:"}, "p": 1, "name": "A", "@omitDefault": true}`, 2, []string{`1:1 unmapped-keys "@omitDefault" in a node without @id`}},
		{"{\"@context\": {\"@base\": null},\n\"@id\": \"a\", \"x:p\": {\"@id\": \"b\",\n \"x:q\": {\"@id\": \"x:c\", \"x:p\": 1}}}", 1,
			[]string{`1:1 relative-iris "a" in the node "a"`, `2:20 relative-iris "b" in the node "b"`}},
		{`{"@context": {"@base": null}, "@id": "x:a", "@type": "T"}`, 0, []string{`1:1 relative-iris "T" in the node "x:a"`}},
		{`{"@context": {"@base": null}, "@id": "a", "@graph": [{"@id": "x:b", "x:p": 1}]}`, 0, []string{`1:1 relative-iris "a" in the node "a"`}},
		{`{"@id": "x:a", "_:p": "v", "x:p": [1, {"@id": "_:p"}]}`, 2, []string{`1:1 blank-properties "_:p" in the node "x:a"`}},
		{`{"@id": "x:a", "x:p": {"@value": "v", "@direction": "rtl"}}`, 1, []string{`1:1 directions  in the node "x:a"`}},
		{`{"@id": "x:a", "x:p": [0.1, 1234567890123456789012345, 1E400]}`, 3,
			[]string{`1:1 rounded-numbers 1234567890123456789012345 in the node "x:a"`, `1:1 rounded-numbers 1E400 in the node "x:a"`}},
		{`["text", {"@value": 1}, {"@id": "x:a", "x:p": 1}, {"@list": [1]}, null]`, 1,
			[]string{`1:2 free-values  in the top of the document`, `1:10 free-values  in the top of the document`, `1:51 free-values  in the top of the document`}},
		{`{"@id": "x:a", "x:p": {"@value": "v", "@language": "en_US"}}`, 1, []string{`1:1 language-tags "en_US" in the node "x:a"`}},
		{`{"@id": "x:a", "x:p": {"@value": "v", "@language": "en-US", "@index": "i"}, "x:q": null}`, 1, nil},
		{`{"@context": {"p": {"@id": "x:p", "@type": "@json"}}, "@id": "x:a", "p": {"name": {"@foo": 1}}}`, 1, nil},
	} {
		all, warnings, err := readWarned(c.document)
		require.NoError(t, err, c.document)
		assert.Len(t, all, c.statements, c.document)
		assert.Equal(t, c.want, warnings, c.document)
	}
}

// Of very many losses the first are named, and all are counted, in the memory that such a document takes anyway.
func TestVeryManyLossesAreCounted(t *testing.T) {
	for _, c := range []struct{ document, rule string }{
		{`{"@id": "x:a", "x:p": 1, ` + repeated(150_000, `"k%d":1,`) + `"x:q": 1}`, "unmapped-keys"},
		{`{"@context": {"@base": null}, "@id": "x:a", "@type": [` + repeated(150_000, `"%d",`) + `"x:T"]}`, "relative-iris"},
	} {
		_, warnings, err := readWarned(c.document)
		require.NoError(t, err)
		assert.Len(t, warnings, 150_000, c.rule)
		assert.Contains(t, warnings[0], c.rule)
		assert.Equal(t, "1:1 "+c.rule+"  in ", warnings[149_999])
	}
}

// IRIs that no notation of RDF can write are refused wherever they stand, and so are values that are lost in
// the JSON itself.
func TestWhatRDFDoesNotHaveIsRefused(t *testing.T) {
	for document, want := range map[string]string{
		"[{},\n {\"@id\": \"http://e/a b\", \"x:p\": 1}]":                                   `doc:2:21: the IRI <http://e/a b> has the character ' ', which no IRI has; escape it with a percent sign (in the node "http://e/a b")`,
		"[{\"@id\": \"x:a\", \"x:p\":\n {\"@id\": \"http://e/a b\"}}]":                      `doc:2:21: the IRI <http://e/a b> has the character ' '`,
		"{\"@id\": \"x:a\",\n \"http://e/a b\": 1}":                                         `doc:2:13: the IRI <http://e/a b> has the character ' ', which no IRI has; escape it with a percent sign (in the node "x:a")`,
		"{\"@id\": \"x:a\",\n \"@type\": \"http://e/a b\"}":                                 `doc:2:22: the IRI <http://e/a b>`,
		"{\"@id\": \"x:a\",\n \"x:p\": {\"@value\": \"1\", \"@type\": \"http://e/a b\"}}":   `doc:2:45: the IRI <http://e/a b>`,
		`{"@id": "a b", "x:p": 1}`:                                                          `the IRI <http://example.org/a b> has the character ' '`,
		`{"@context": {"@base": null}, "@id": "x:a", "x:p": {"@value": "1", "@type": "t"}}`: `must have an absolute IRI for the value of @type (in the node "x:a")`,
		"{\"@id\": \"x:a\",\n \"x:p\": 1, \"x:p\": 2}":                                      `doc:2:12: an object has the key "x:p" twice, and JSON-LD takes one; write the values as an array`,
		`{"@id": "x:a", "x:p": {"@list": [1, {"@id": 5}]}}`:                                 `a list or a set has a value that is no JSON-LD (in the node "x:a")`,
		`{"@id": "x:a", "x:p": {"@value": "v", "@language": "en US"}}`:                      `the language tag "en us" is not well-formed`,
	} {
		_, _, err := readWarned(document)
		assert.ErrorContains(t, err, want, document)
	}
}

// IRIs are as they are written, and whatever their characters are.
func TestIRIsAreExact(t *testing.T) {
	long := "http://example.org/" + strings.Repeat("x", 3000)
	for document, want := range map[string]string{
		`{"@id": "ü/~%7e%41", "x:p": 1}`:                                                           "http://example.org/ü/~%7e%41",
		`{"@context": {"é": "http://e/é#"}, "@id": "é:ö", "x:p": 1}`:                               "http://e/é#ö",
		`{"@id": "#", "x:p": 1}`:                                                                   "http://example.org/doc#",
		`{"@id": "http://localhost_x:/a", "x:p": 1}`:                                               "http://localhost_x:/a",
		`{"@id": "` + long + `", "x:p": 1}`:                                                        long,
		`{"@context": {"http": "http://www.w3.org/2011/http#"}, "@id": "http://e/a", "http:p": 1}`: "http://e/a",
		`{"@context": {"@base": "http://e/b/"}, "@id": "c", "x:p": 1}`:                             "http://e/b/c",
		`{"@context": [{"@base": null}, {"@base": "http://e/b/"}], "@id": "c", "x:p": 1}`:          "http://e/b/c",
		`{"@context": {"@base": "http://e/./b//c/d?q"}, "@id": "../x/./y", "x:p": 1}`:              "http://e/b//x/y",
		`{"@context": [{"@base": "http://e/b/c"}, {"@base": ".."}], "@id": "a..b/..", "x:p": 1}`:   "http://e/",
		`{"@context": {"@base": "http://e/b?c#d"}, "@id": "", "x:p": 1}`:                           "http://e/b?c",
		`{"@context": {"@base": "http://e/b?c#d"}, "@id": "?f#", "x:p": 1}`:                        "http://e/b?f#",
		`{"@context": {"@base": "http://e/b/c"}, "@id": "//f/../g", "x:p": 1}`:                     "http://f/g",
		`{"@context": {"@vocab": "#", "t": "b"}, "@id": "/b", "x:p": 1}`:                           "http://example.org/b",
	} {
		all, warnings, err := readWarned(document)
		require.NoError(t, err, document)
		assert.Empty(t, warnings, document)
		require.Len(t, all, 1, document)
		assert.Equal(t, want, all[0].Subject.Value, document)
	}
}

// An object in a JSON literal that resembles a context is part of the literal.
func TestLiteralsMayHaveContexts(t *testing.T) {
	const literal = `{"@context":{"@base":"http://e/","@vocab":"v","a b":"../ü"},"@id":".."}`
	all, warnings, err := readWarned(`{"x:p": {"@type": "@json", "@value": ` + literal + `}, "@context": {"@base": ".."}}`)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	require.Len(t, all, 1)
	assert.Equal(t, rdf.NewLiteral(literal, rdf.NS+"JSON"), all[0].Object)
}

// A vocabulary that is relative stands before keys as it is once it is resolved.
func TestRelativeVocabularies(t *testing.T) {
	for document, want := range map[string]string{
		`{"@context": {"@vocab": "#"}, "p": 1}`:                             "http://example.org/doc#p",
		`{"@context": {"@vocab": ""}, "p": 1}`:                              "http://example.org/docp",
		`{"@context": {"@vocab": "../v/"}, "p/../q": 1}`:                    "http://example.org/v/p/../q",
		`{"@context": [{"@vocab": "x:"}, {"@vocab": "v#"}], "p": 1}`:        "x:v#p",
		`{"@context": [{"ex": "http://e/"}, {"@vocab": "ex"}], "p": 1}`:     "http://e/p",
		`{"@context": {"@base": "http://e/b/c", "@vocab": "./d/"}, "p": 1}`: "http://e/b/d/p",
		`{"@context": {"@vocab": "#", "t": {"@id": "s"}}, "t": 1}`:          "http://example.org/doc#s",
	} {
		all, warnings, err := readWarned(document)
		require.NoError(t, err, document)
		assert.Empty(t, warnings, document)
		require.Len(t, all, 1, document)
		assert.Equal(t, want, all[0].Predicate.Value, document)
	}
}

// Numbers keep their values: integers all their digits, others the nearest double, in its canonical form.
func TestNumbers(t *testing.T) {
	const integer, double = rdf.XSD + "integer", rdf.XSD + "double"
	for number, want := range map[string]rdf.Term{
		"1234567890123456789":      rdf.NewLiteral("1234567890123456789", integer),
		"-999999999999999999999":   rdf.NewLiteral("-999999999999999999999", integer),
		"1000000000000000000000":   rdf.NewLiteral("1.0E21", double),
		"1e20":                     rdf.NewLiteral("100000000000000000000", integer),
		"12.50e1":                  rdf.NewLiteral("125", integer),
		"1.0":                      rdf.NewLiteral("1", integer),
		"-0.0":                     rdf.NewLiteral("0", integer),
		"2.5":                      rdf.NewLiteral("2.5E0", double),
		"-0.00015":                 rdf.NewLiteral("-1.5E-4", double),
		"0.30000000000000004":      rdf.NewLiteral("3.0000000000000004E-1", double),
		"1E400":                    rdf.NewLiteral("INF", double),
		"-1E999999999999999999999": rdf.NewLiteral("-INF", double),
		"1E-400":                   rdf.NewLiteral("0.0E0", double),
		`{"@value": 5, "@type": "` + double + `"}`:         rdf.NewLiteral("5.0E0", double),
		`{"@value": 0, "@type": "` + double + `"}`:         rdf.NewLiteral("0.0E0", double),
		`{"@value": 12345678901234567890, "@type": "x:t"}`: rdf.NewLiteral("12345678901234567890", "x:t"),
		`{"@value": [1.0, 1e3, 1E400], "@type": "@json"}`:  rdf.NewLiteral("[1,1000,1E400]", rdf.NS+"JSON"),
	} {
		all, _, err := readWarned(`{"x:p": ` + number + `}`)
		require.NoError(t, err, number)
		require.Len(t, all, 1, number)
		assert.Equal(t, want, all[0].Object, number)
	}
}

// The error names the term that other terms are made of, not one of those.
func TestTheRightTermIsBlamed(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for document, want := range map[string]string{
		"{\"@id\": \"b\",\n\"@context\": {\"a\": \"t150:x\", \"t0\": \"x:\", " + chain(150) + `"b": "a:x"}}`:         `doc:2:`,
		"{\"@context\": {\"a\": \"b:x\",\n \"c\": \"d:x\", \"d\": \"c:x\",\n \"b\": \"c:x\"}}":                       `doc:2:2: the term "c" is made of itself; write out what it stands for`,
		"{\"@context\": {\"a\": \"c:x\",\n \"b\": \"x:" + long + "\",\n \"c\": \"b:" + long + "\"}, \"x:p\": \"c\"}": `doc:3:2: the term "c" stands for an IRI of up to 10002 bytes`,
	} {
		_, _, err := readWarned(document)
		assert.ErrorContains(t, err, want, "%.200s", document)
	}
	_, _, err := readWarned("{\"@context\": {\"a\": \"t150:x\", \"t0\": \"x:\", " + chain(150) + `"b": "a:x"}}`)
	assert.ErrorContains(t, err, `the term "t100" is made of more than 100 others`)
}

// A property may have many values. A context that is imported is the same for the next document.
func TestManyValuesAndImports(t *testing.T) {
	all, _, err := readWarned(`{"@id": "x:a", "x:p": [` + repeated(80_000, `"%d",`) + `"a"]}`)
	require.NoError(t, err)
	assert.Len(t, all, 80_001)
	const imports = `{"@context": {"@version": 1.1, "@import": "http://www.w3.org/2013/json-ld-context/rdfa11"%s}, "@id": "x:a", "foaf:name": "A"}`
	for document, want := range map[string]string{fmt.Sprintf(imports, `, "foaf": "x:"`): "x:name", fmt.Sprintf(imports, ""): "http://xmlns.com/foaf/0.1/name"} {
		all, _, err = readWarned(document)
		require.NoError(t, err)
		assert.Equal(t, want, all[0].Predicate.Value, document)
	}
}
