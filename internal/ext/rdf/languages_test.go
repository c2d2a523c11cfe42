package rdf_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	extrdf "github.com/tmshare/tmshare/internal/ext/rdf"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// with returns the formats as a command has them with some flags.
func with(t *testing.T, flags ...string) formats.Registry {
	t.Helper()
	e := extrdf.Extension()
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	check := e.FormatFlags(fl, formats.Use{Reads: true, Writes: true})
	require.NoError(t, fl.Parse(flags))
	_, err := check(nil)
	require.NoError(t, err)
	return e.Formats
}

func readAs(t *testing.T, name, document string) *tmdm.TopicMap {
	t.Helper()
	m, err := notation(name).Read(t.Context(), strings.NewReader(document), formats.ReadOptions{Options: xtm.Options{Base: "http://example.org/doc"}})
	require.NoError(t, err, document)
	return m
}

func writtenAs(t *testing.T, f *formats.Format, m *tmdm.TopicMap) string {
	t.Helper()
	var b bytes.Buffer
	_, err := f.Write(&b, m, formats.WriteOptions{})
	require.NoError(t, err)
	return b.String()
}

// A language is the same in each notation: an underscore is a hyphen, and an empty tag, or rdf:langString without one,
// is none.
func TestLanguagesAreTheSameInAllNotations(t *testing.T) {
	const xml = `<e:a xmlns:e="x:" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" rdf:about="x:s">`
	const langString = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
	for _, c := range []struct{ format, document, want string }{
		{"rdfxml", xml + `<e:p xml:lang="en_US">c</e:p></e:a>`, `"c"@en-us`},
		{"rdfxml", xml + `<e:p xml:lang="en" rdf:parseType="Resource"><e:q xml:lang="">c</e:q></e:p></e:a>`, `"c" .`},
		{"rdfxml", xml + `<e:p rdf:datatype="` + langString + `">c</e:p></e:a>`, `"c" .`},
		{"jsonld", `{"@id": "x:s", "x:p": {"@value": "c", "@language": "en_US"}}`, `"c"@en-us`},
		{"jsonld", `{"@context": {"@language": "en_US"}, "@id": "x:s", "x:p": "c"}`, `"c"@en-us`},
		{"jsonld", `{"@context": {"p": {"@id": "x:p", "@container": "@language"}}, "@id": "x:s", "p": {"en_US": "c"}}`, `"c"@en-us`},
		{"jsonld", `{"@context": {"p": {"@id": "x:p", "@container": "@language"}}, "@id": "x:s", "p": {"": "c"}}`, `"c" .`},
		{"jsonld", `{"@id": "x:s", "x:p": {"@value": "c", "@language": ""}}`, `"c" .`},
		{"jsonld", `{"@context": {"@language": ""}, "@id": "x:s", "x:p": ["c", {"@value": {"@value": 1, "@language": "a b"}, "@type": "@json"}]}`, `"c" .`},
		{"jsonld", `{"@id": "x:s", "x:p": {"@value": "c", "@type": "` + langString + `"}}`, `"c" .`},
		{"turtle", `<x:s> <x:p> "c"@en-US .`, `"c"@en-us`},
		{"turtle", `<x:s> <x:p> "c"^^<` + langString + `> .`, `"c" .`},
		{"ntriples", `<x:s> <x:p> "c"@EN-us .`, `"c"@en-us`},
		{"ntriples", `<x:s> <x:p> "c"^^<` + langString + `> .`, `"c" .`},
		{"nquads", `<x:s> <x:p> "c"@en-US .`, `"c"@en-us`},
		{"trig", `{ <x:s> <x:p> "c"@en-US }`, `"c"@en-us`},
	} {
		got := writtenAs(t, notation("ntriples"), readAs(t, c.format, c.document))
		assert.Contains(t, got, c.want, c.document)
		assert.NotContains(t, got, "/ns/1/", c.document)
	}
}

// A text of the type rdf:langString without a tag is counted as a loss in each notation, at its place.
func TestATextWithoutItsLanguageIsCounted(t *testing.T) {
	const langString = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
	const xml = `<rdf:RDF xmlns:e="x:" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><e:a rdf:about="x:s">`
	line := "<x:s> <x:p> \"é\" .\n<x:s> <x:p> \"c\"^^<" + langString + "> .\n<x:s> <x:p> \"d\"@en, \"e\"^^<x:t> .\n"
	lines := strings.ReplaceAll(line, `"d"@en, `, "\"d\"@en .\n<x:s> <x:p> ")
	for name, document := range map[string]string{
		"turtle":   line,
		"trig":     "{\n" + strings.TrimPrefix(line, "<x:s> <x:p> \"é\" .\n") + "}",
		"ntriples": lines,
		"nquads":   lines,
		"rdfxml":   xml + "\n<e:p rdf:datatype=\"" + langString + "\">c</e:p><e:p xml:lang=\"en\">d</e:p></e:a></rdf:RDF>",
		"jsonld":   "[1,\n{\"@id\": \"x:s\", \"x:p\": [{\"@value\": \"c\", \"@type\": \"" + langString + "\"}, {\"@value\": \"d\", \"@language\": \"en\"}]}]",
	} {
		var warnings []xtm.SyntaxError
		var tally xtm.Tally
		o := xtm.Options{Base: "http://example.org/doc", Tolerated: func(e *xtm.SyntaxError) {
			if e.Rule == rdf.TextsWithoutLanguage {
				warnings = append(warnings, *e)
				tally.Add(e)
			}
		}}
		_, err := notation(name).Read(t.Context(), strings.NewReader(document), formats.ReadOptions{Options: o})
		require.NoError(t, err, name)
		require.Len(t, warnings, 1, name)
		assert.Equal(t, 2, warnings[0].Line, name)
		assert.Positive(t, warnings[0].Column, name)
		assert.Equal(t, `"c"`, warnings[0].Of, name)
		assert.Equal(t, "http://example.org/doc", warnings[0].URI, name)
		assert.Len(t, tally.Losses(), 1, name)
	}
}

// occurrences are all that a map can say of languages and of rdf:langString, in ways that no document of RDF has.
const occurrences = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
<topic id="t"><subjectIdentifier href="http://example.org/t"/>
 <name><value>n</value><variant><scope><topicRef href="#s"/></scope><resourceData datatype="LANG">v</resourceData></variant></name>
 <occurrence><type><topicRef href="#p"/></type><resourceData datatype="LANG">a</resourceData></occurrence>
 <occurrence><type><topicRef href="#p"/></type><resourceData>a</resourceData></occurrence>
 <occurrence><type><topicRef href="#l"/></type><resourceData datatype="LANG">b</resourceData></occurrence>
 <occurrence><type><topicRef href="#p"/></type><scope><topicRef href="#s"/></scope><resourceData datatype="LANG">c</resourceData></occurrence>
 <occurrence><type><topicRef href="#p"/></type><scope><subjectIdentifierRef href="NSen-"/></scope><resourceData datatype="LANG">d</resourceData></occurrence>
 <occurrence><type><topicRef href="#p"/></type><scope><subjectIdentifierRef href="NSen_us"/></scope><resourceData datatype="LANG">e</resourceData></occurrence>
 <occurrence><type><topicRef href="#p"/></type><scope><subjectIdentifierRef href="NSabcdefghi"/></scope><resourceData datatype="LANG">f</resourceData></occurrence>
 <occurrence><type><topicRef href="#p"/></type><scope><subjectIdentifierRef href="NSen"/></scope><resourceData datatype="LANG">g</resourceData></occurrence>
</topic>
<topic id="p"><subjectIdentifier href="http://example.org/p"/></topic>
<topic id="l"><subjectIdentifier href="http://www.w3.org/2000/01/rdf-schema#label"/></topic>
<topic id="s"><subjectIdentifier href="http://example.org/s"/></topic>
</topicMap>`

// Nothing that is written has a text of the type rdf:langString without a tag, whatever the map has. The map comes
// back, unless the graph is plain.
func TestNoTextIsWrittenInALanguageWithoutATag(t *testing.T) {
	document := strings.NewReplacer("LANG", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "NS", "https://github.com/tmshare/tmshare/ns/1/language/").Replace(occurrences)
	m, err := xtm.Read(t.Context(), strings.NewReader(document), xtm.Options{Base: "http://example.org/doc"})
	require.NoError(t, err)
	for topic := range m.Topics() {
		for _, l := range topic.ItemIdentifiers() { // XTM gives each topic one
			tmdm.RemoveItemIdentifier(topic, l)
		}
	}
	records, err := fragment.NewMap(m, "http://example.org/doc")
	require.NoError(t, err)
	untagged := regexp.MustCompile(`\^\^[^ ]*langString|rdf:datatype="[^"]*langString"|"@type": "rdf:langString"`)
	canonical := func(m *tmdm.TopicMap) string {
		var b bytes.Buffer
		require.NoError(t, cxtm.Write(&b, m, cxtm.Options{Base: "http://example.org/doc"}))
		return b.String()
	}
	plain := with(t, "--plain")
	for i, f := range with(t) {
		written := writtenAs(t, f, m)
		assert.NotRegexp(t, untagged, written)
		assert.Equal(t, canonical(m), canonical(readAs(t, f.Name, written)), written)
		written = writtenAs(t, plain[i], m)
		assert.NotRegexp(t, untagged, written)
		assert.NotRegexp(t, `tmshare:|/ns/1/[a-zA-Z]+["> ]`, written)
		if f.Snapshot == nil {
			continue
		}
		var b bytes.Buffer
		require.NoError(t, f.Snapshot(&b, "http://example.org/doc", fragment.Records(records)))
		require.NoError(t, f.Fragment(&b, formats.Shown{SP: "http://example.org/doc", State: records, TopicSI: "http://example.org/t"}))
		assert.NotRegexp(t, untagged, b.String())
		assert.Contains(t, b.String(), "http://example.org/t")
	}
}
