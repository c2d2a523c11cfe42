package turtle_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/testhostile"
)

func discard(rdf.Quad) error { return nil }

// Each message states the place, the fault and the remedy. Nothing is fetched, and nothing grows without a
// bound.
func TestMessages(t *testing.T) {
	long := strings.Repeat("x", 9000)
	for document, want := range map[string]string{
		"@prefix p: <x:" + long + "> .":                            `doc:1:9016: the IRI <x:xxx`,
		"@base <x:" + long + "> .":                                 `has 9002 bytes; the most for an IRI is 8192: shorten the namespace or the base`,
		"@prefix p: <x:" + long[:8000] + "> .\np:" + long[:300]:    `doc:2:303: the IRI <x:xxx`,
		"@base <x:/" + long[:8000] + "/> .\n<" + long[:300] + "> ": `doc:2:303: the IRI <x:/xxx`,
		"<a>":                                       `doc:1:4: the IRI <a> is relative, and there is no base that it is relative to; declare one with @base <…> .`,
		"<x:a> b 1 .":                               `doc:1:8: "b" is no name that is known here: a property is an IRI in <> or a name with a prefix and a colon`,
		"<x:a>\n <x:b> \"c .\n":                     `doc:2:12: the text has no end on its line; a text of several lines has three quotes at each end`,
		"p:a p:b p:c .":                             `doc:1:2: the prefix "p" is not declared; declare it with @prefix p: <…> .`,
		"<x:a> <x:b> <x:c>":                         `doc:1:18: "." is missing behind the statements about <x:a>; there is the end of the document`,
		"<x:a> <x:b> <x: c> .":                      `doc:1:16: an IRI cannot have the character ' '`,
		"<x:a> <x:b> \"\\q\" .":                     `doc:1:14: "\\q\" ." is no escape that may be here`,
		"<x:a> <x:b> \"\xff\" .":                    `doc:1:16: the bytes of the text are not UTF-8; save the file in that encoding`,
		"<x:a> <x:b> \"c\"@en_US .":                 `doc:1:19: a language tag has hyphens between its parts, and no underscore; there is "_US ."`,
		"<x:a> <x:b> \"c\"@en- .":                   `doc:1:20: the language tag is not complete`,
		"<x:a> <x:b> 'c'@en, 'd'@en-abcdefghi .":    `doc:1:25: the language tag "en-abcdefghi" is not well-formed (BCP 47); write one such as en or en-GB`,
		strings.Repeat("[ <x:b> ", 2000):            `brackets are more than 1000 deep`,
		"<x:a> <x:b> " + strings.Repeat("( ", 2000): `brackets are more than 1000 deep`,
	} {
		err := turtle.Read(strings.NewReader(document), turtle.Turtle, turtle.Options{URI: "doc"}, discard)
		var syntax *rdf.SyntaxError
		require.ErrorAs(t, err, &syntax, document)
		assert.Contains(t, err.Error(), want)
	}
	document := "@prefix p: <x:" + long[:8000] + "> .\n"
	for i := range 2000 {
		document += fmt.Sprintf("p:a p:b p:c%d .\n", i)
	}
	err := turtle.Read(strings.NewReader(document), turtle.Turtle, turtle.Options{}, discard)
	assert.ErrorContains(t, err, "namespaces and bases add more than 8388608 bytes to the document; shorten them")
	err = turtle.Read(strings.NewReader(document), turtle.Turtle, turtle.Options{Limits: turtle.Limits{Growth: 1 << 30}}, discard)
	assert.NoError(t, err)
	err = turtle.Read(strings.NewReader(`<x:a> <x:b> "`+strings.Repeat("c", 2000)+`" .`), turtle.Turtle, turtle.Options{Limits: turtle.Limits{Term: 1000}}, discard)
	assert.ErrorContains(t, err, "the term is longer than 1000 bytes")
}

// Constructs of RDF 1.2 are refused by that name, with their place, in each notation of the family.
func TestSyntaxOfRDF12IsNamed(t *testing.T) {
	const turtles, lines = 1<<turtle.Turtle | 1<<turtle.TriG, 1<<turtle.NTriples | 1<<turtle.NQuads
	for document, want := range map[string]struct {
		notations int
		place     string
	}{
		"<x:a> <x:b> 1 .\n<< <x:a> <x:b> <x:c> >> <x:d> 1 .":  {turtles, "2:1: this is RDF 1.2 syntax (<<)"},
		"<x:a> <x:b> <<<x:a> <x:b> <x:c>>> .":                 {turtles | lines, "1:13: this is RDF 1.2 syntax (<<)"},
		"<x:a> <x:b>\n <<( <x:a> <x:b> 1 )>> .":               {turtles, "2:2: this is RDF 1.2 syntax (<<()"},
		"<x:a> <x:b> <<(<x:a> <x:b> <x:c>)>> .":               {turtles | lines, "1:13: this is RDF 1.2 syntax (<<()"},
		"<x:a> <x:b> [ <x:c> 1 {| <x:d> 1 |} ] .":             {turtles, "1:23: this is RDF 1.2 syntax ({|)"},
		"<x:a> <x:b> 1, 2\n ~ <x:r> .":                        {turtles, "2:2: this is RDF 1.2 syntax (~)"},
		"VERSION \"1.2\"\n<x:a> <x:b> <x:c> .":                {turtles | lines, "1:1: this is RDF 1.2 syntax (VERSION)"},
		"<x:a> <x:b> <x:c> .\n  version \"1.2\"\n":            {turtles | lines, "2:3: this is RDF 1.2 syntax (VERSION)"},
		"<x:a> <x:b> <x:c> .\n@version \"1.2\" .":             {turtles, "2:1: this is RDF 1.2 syntax (@version)"},
		"<x:a> <x:b> \"c\"@en .\n<x:a> <x:b> \"c\"@en--ltr .": {turtles | lines, "2:19: this is RDF 1.2 syntax (--ltr)"},
	} {
		for _, n := range []turtle.Notation{turtle.Turtle, turtle.TriG, turtle.NTriples, turtle.NQuads} {
			if want.notations>>n&1 == 0 {
				continue
			}
			err := turtle.Read(strings.NewReader(document), n, turtle.Options{URI: "doc"}, discard)
			var syntax *rdf.SyntaxError
			require.ErrorAs(t, err, &syntax, "%d: %s", n, document)
			assert.Equal(t, "doc:"+want.place+", which this reader does not know; write the document in RDF 1.1", err.Error(), "%d: %s", n, document)
		}
	}
	const prefix = "@prefix version: <x:> . version:a version:b version:c , ver:d . @prefix ver: <x:> ."
	err := turtle.Read(strings.NewReader(prefix), turtle.Turtle, turtle.Options{URI: "doc"}, discard)
	assert.ErrorContains(t, err, `the prefix "ver" is not declared`)
}

func TestErrorsOfReadingAndOfTheCallerEndIt(t *testing.T) {
	wrong := errors.New("wrong")
	err := turtle.Read(io.MultiReader(strings.NewReader("<x:a> <x:b> 1 ,"), iotest.ErrReader(wrong)), turtle.Turtle, turtle.Options{}, discard)
	assert.ErrorIs(t, err, wrong)
	err = turtle.Read(strings.NewReader("<x:a> <x:b> 1 ."), turtle.Turtle, turtle.Options{}, func(rdf.Quad) error { return wrong })
	assert.ErrorIs(t, err, wrong)
}

// The same bytes are accepted if they come one by one, and the written graph is read as the same graph.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"@prefix p: <http://x/> . p:a a p:b ; p:c 'd'@en, \"\"\"e\n\"\"\"^^p:f, 1, -.5, 1e3, true .", "[ <x:p> ( 1 _:b [] ) ] .",
		"<x:g> { <x:a> <x:b> <x:c> }", "<x:a> <x:b> \"\\u00e9\\n\" <x:g> .\n", "BASE <http://x/y/> <../z> <?q> <#f> .", "PREFIX : <x:> :a.b :c%20d :e\\,f .",
	} {
		f.Add([]byte(s), byte(0))
		f.Add([]byte(s), byte(1))
		f.Add([]byte(s), byte(3))
	}
	for _, name := range []string{"list.ttl", "objects.ttl", "graph.trig", "lines.nt"} {
		f.Add([]byte(testhostile.Dense[name](20)), byte(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, n byte) {
		notation := turtle.Notation(n % 4)
		all, err := read(data, notation, "http://example.org/doc")
		var slowly []rdf.Quad
		err2 := turtle.Read(iotest.OneByteReader(bytes.NewReader(data)), notation, turtle.Options{URI: "http://example.org/doc"}, func(q rdf.Quad) error {
			slowly = append(slowly, q)
			return nil
		})
		require.Equal(t, err, err2)
		require.Equal(t, all, slowly)
		if err != nil || len(all) > 50 {
			return
		}
		for i := range all {
			all[i].Graph = rdf.Term{}
		}
		for form, write := range map[turtle.Notation]func(io.Writer, []rdf.Quad) error{turtle.Turtle: turtle.Write, turtle.NTriples: turtle.WriteNTriples} {
			var b bytes.Buffer
			require.NoError(t, write(&b, all))
			again, err := read(b.Bytes(), form, "http://example.org/other")
			require.NoError(t, err, "%s", b.String())
			require.True(t, rdf.Isomorphic(all, again), "%s", b.String())
		}
	})
}
