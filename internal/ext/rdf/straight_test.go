package rdf_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/testkit/w3c"
	"github.com/tmshare/tmshare/xtm"
)

// straight returns the conversion of a document to another format without a map between.
func straight(t *testing.T, from, to, document string) string {
	t.Helper()
	all := with(t).All()
	f, err := all.Named(from)
	require.NoError(t, err)
	other, err := all.Named(to)
	require.NoError(t, err)
	copied, err := f.Straight(other)(t.Context(), strings.NewReader(document), formats.ReadOptions{Options: xtm.Options{Base: "http://example.org/doc"}})
	require.NoError(t, err, document)
	var once, again bytes.Buffer
	require.NoError(t, copied.Write(&once))
	n := copied.Statements()
	require.NoError(t, copied.Write(&again))
	assert.Equal(t, once.String(), again.String())
	assert.Equal(t, n, copied.Statements())
	assert.Len(t, statementsOf(t, to, once.String()), n, document)
	require.NoError(t, copied.Close())
	return once.String()
}

func statementsOf(t *testing.T, notation, document string) (all []rdf.Quad) {
	t.Helper()
	notations := map[string]turtle.Notation{"turtle": turtle.Turtle, "trig": turtle.TriG, "ntriples": turtle.NTriples, "nquads": turtle.NQuads}
	require.NoError(t, turtle.Read(strings.NewReader(document), notations[notation], turtle.Options{}, func(q rdf.Quad) error {
		all = append(all, q)
		return nil
	}), "%.2000s", document)
	return all
}

// A conversion without a map between equals the one with a map: the same graph, and the same bytes if it has no blank
// nodes.
func TestDocumentsAreWrittenStraightAsByAMap(t *testing.T) {
	s := w3c.Open(t, "../../../../shared/conformance/w3c-rdf11.tar.gz", "rdf-turtle")
	same := 0
	for _, c := range s.Cases {
		if c.Negative() {
			continue
		}
		document := string(s.File(c.Action))
		m := readAs(t, "turtle", document)
		for _, to := range []string{"turtle", "ntriples", "trig", "nquads"} {
			got, want := straight(t, "turtle", to, document), writtenAs(t, notation(to), m)
			if !strings.Contains(want, "_:") && !strings.Contains(want, "[") {
				assert.Equal(t, want, got, c.Name)
				same++
			}
			assert.True(t, rdf.Isomorphic(statementsOf(t, to, want), statementsOf(t, to, got)), "%s: %s, not\n%s", c.Name, got, want)
		}
	}
	require.Greater(t, same, 400)
}

// All notations are read straight: statements once, in order, with brackets and with labels that no two nodes share.
func TestDocumentsAreWrittenInOrder(t *testing.T) {
	const lines = "<x:a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <x:t> .\n<x:a> <x:p> \"a\\u0000\\u0001b\" .\n<x:a> <x:p> \"v\"@en-gb .\n<x:b> <x:p> <x:a> .\n"
	for from, document := range map[string]string{
		"ntriples": `<x:b> <x:p> <x:a> . <x:a> <x:p> "v"@en-GB . <x:a> <x:p> "v"@EN-gb . <x:a> <x:p> "a\u0000\u0001b" . <x:b> <x:p> <x:a> . <x:a> a <x:t> .`,
		"turtle":   `<x:b> <x:p> <x:a>, <x:a> . <x:a> <x:p> "v"@en-GB, "a\u0000\u0001b" ; a <x:t> .`,
		"trig":     `<x:g> { <x:b> <x:p> <x:a> . <x:a> <x:p> "v"@en-GB, "a\u0000\u0001b" ; a <x:t> }`,
		"nquads":   strings.ReplaceAll(lines, " .\n", " <x:g> .\n"),
		"jsonld":   `{"@id": "x:a", "@type": "x:t", "x:p": ["a\u0000\u0001b", {"@value": "v", "@language": "en-GB"}], "@reverse": {"x:p": {"@id": "x:b"}}}`,
	} {
		if from == "ntriples" {
			document = strings.ReplaceAll(strings.ReplaceAll(document, " . ", " .\n"), " a ", " <"+rdf.Type+"> ")
		}
		assert.Equal(t, lines, straight(t, from, "ntriples", document), from)
	}
	assert.Equal(t, "<x:s> <x:p> \"1\" .\n", straight(t, "rdfxml", "nquads",
		`<rdf:Description xmlns:rdf="`+rdf.NS+`" xmlns:e="x:" rdf:about="x:s" e:p="1"/>`))
	assert.Contains(t,
		straight(t, "turtle", "turtle", `<x:a> <x:p> ("1" [<x:q> <x:c>]), _:_1_, _:_2_ . _:_1_ <x:q> _:_2_ .`),
		"\n<x:a> <x:p> ( \"1\" [ <x:q> <x:c> ] ) ,\n        [ <x:q> _:__2_ ] ,\n        _:__2_ .\n")
	assert.Equal(t, 3, strings.Count(straight(t, "turtle", "ntriples", `[] <x:p> 1 . _:_1_ <x:p> 1 . _:__1_ <x:p> 1 .`), "\n"))
}

// TriG and N-Quads keep the name of the graph, whether it was chosen or is the only one. All other notations lose it,
// and so does each way through a map: that is counted.
func TestNamesOfGraphsAreKeptOrCounted(t *testing.T) {
	documents := map[string]string{
		"nquads": "<x:b> <x:p> <x:c> <x:g> .\n<x:a> <x:p> _:l <x:g> .\n_:l <x:q> \"1\" <x:g> .\n",
		"trig":   `<x:g> { <x:b> <x:p> <x:c> . <x:a> <x:p> [ <x:q> "1" ] }`,
		"jsonld": `{"@id": "x:g", "@graph": [{"@id": "x:b", "x:p": {"@id": "x:c"}}, {"@id": "x:a", "x:p": {"x:q": "1"}}]}`,
	}
	const other = "\n<x:o> <x:p> <x:c> <x:h> .\n<x:o> <x:p> <x:d> .\n"
	read := func(from, to, document string, flags ...string) (string, []string) {
		var lost []string
		all := with(t, flags...).All()
		f, err := all.Named(from)
		require.NoError(t, err)
		into, err := all.Named(to)
		require.NoError(t, err)
		o := formats.ReadOptions{Options: xtm.Options{Base: "http://example.org/doc", Tolerated: func(e *xtm.SyntaxError) {
			lost = append(lost, string(e.Rule)+" "+e.Of)
		}}}
		var b bytes.Buffer
		if straight := f.Straight(into); straight != nil {
			copied, err := straight(t.Context(), strings.NewReader(document), o)
			require.NoError(t, err)
			require.NoError(t, copied.Write(&b))
			require.NoError(t, copied.Close())
			return b.String(), lost
		}
		m, err := f.Read(t.Context(), strings.NewReader(document), o)
		require.NoError(t, err)
		_, err = into.Write(&b, m, formats.WriteOptions{})
		require.NoError(t, err)
		return b.String(), lost
	}
	counted := []string{string(rdf.GraphNames) + " x:g"}
	for from, document := range documents {
		for _, flags := range [][]string{nil, {"--graph", "x:g"}} {
			written, lost := read(from, "trig", document, flags...)
			assert.Equal(t, "\nGRAPH <x:g> {\n<x:a> <x:p> [ <x:q> \"1\" ] .\n\n<x:b> <x:p> <x:c> .\n}\n", written, from)
			assert.Empty(t, lost, from)
			written, lost = read(from, "nquads", document, flags...)
			assert.Regexp(t, `^<x:a> <x:p> (_:\w+) <x:g> \.\n<x:b> <x:p> <x:c> <x:g> \.\n_:\w+ <x:q> "1" <x:g> \.\n$`, written, from)
			assert.Empty(t, lost, from)
			for _, to := range []string{"turtle", "ntriples", "rdfxml", "jsonld", "xtm2.1"} {
				written, lost = read(from, to, document, flags...)
				assert.Equal(t, counted, lost, "%s to %s, %s", from, to, flags)
				assert.NotContains(t, written, "x:g")
			}
			written, lost = read(from, "nquads", document, append(flags, "--plain")...)
			assert.Equal(t, counted, lost)
			assert.NotContains(t, written, "x:g")
		}
	}
	written, lost := read("nquads", "trig", documents["nquads"]+other, "--graph", "x:h")
	assert.Equal(t, "\nGRAPH <x:h> {\n<x:o> <x:p> <x:c> .\n}\n", written)
	assert.Empty(t, lost)
	for _, to := range []string{"trig", "nquads", "turtle", "xtm2.1"} {
		written, lost = read("nquads", to, documents["nquads"]+other, "--graph", "default")
		assert.NotContains(t, written, "GRAPH")
		assert.NotContains(t, written, "x:h")
		assert.Empty(t, lost)
	}
	// A blank node that is the name of the graph, and of a statement too, is one: it keeps its label.
	written, _ = read("trig", "trig", `_:g { <x:a> <x:p> _:g . _:g <x:q> [ <x:r> 1 ] }`)
	assert.True(t, rdf.Isomorphic(statementsOf(t, "nquads", "<x:a> <x:p> _:g _:g .\n_:g <x:q> _:b _:g .\n_:b <x:r> \"1\"^^<"+rdf.XSD+"integer> _:g .\n"),
		statementsOf(t, "trig", written)), written)
}

// The documents of the W3C with one graph come back with its name.
func TestDocumentsKeepTheNamesOfTheirGraphs(t *testing.T) {
	kept := 0
	for suite, from := range map[string]string{"rdf-trig": "trig", "rdf-n-quads": "nquads"} {
		s := w3c.Open(t, "../../../../shared/conformance/w3c-rdf11.tar.gz", suite)
		for _, c := range s.Cases {
			if c.Negative() {
				continue
			}
			var want []rdf.Quad
			document, graphs := string(s.File(c.Action)), map[rdf.Term]bool{}
			form := map[string]turtle.Notation{"trig": turtle.TriG, "nquads": turtle.NQuads}[from]
			require.NoError(t, turtle.Read(strings.NewReader(document), form, turtle.Options{Base: "http://example.org/doc"}, func(q rdf.Quad) error {
				graphs[q.Graph] = true
				want = append(want, q)
				return nil
			}), c.Name)
			if len(graphs) != 1 || graphs[rdf.Term{}] {
				continue
			}
			kept++
			for _, to := range []string{"trig", "nquads"} {
				assert.True(t, rdf.Isomorphic(want, statementsOf(t, to, straight(t, from, to, document))), "%s to %s", c.Name, to)
			}
		}
	}
	require.Greater(t, kept, 20)
}

// A document whose statements are more than fit into memory, or whose blank nodes are too many for brackets, is written
// as a small one is. No file is left.
func TestLargeDocumentsAreWrittenStraight(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var document strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&document, "<http://example.org/%d/%s> <http://example.org/p> _:n%d .\n", i%1000, strings.Repeat("x", 300), i)
	}
	document.WriteString("_:n7 <http://example.org/p> _:n8 .\n")
	graph := statementsOf(t, "ntriples", document.String())
	var want bytes.Buffer
	require.NoError(t, turtle.WriteNTriples(&want, graph))
	assert.True(t, want.String() == straight(t, "ntriples", "ntriples", document.String()))
	written := statementsOf(t, "turtle", straight(t, "ntriples", "turtle", document.String()))
	assert.True(t, len(graph) == len(written) && fmt.Sprint(rdf.Sorted(graph)) == fmt.Sprint(rdf.Sorted(written)))
	files, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	assert.Empty(t, files)
}

// A map is needed where a choice of the user is about maps, and by the formats that have no statements in order.
func TestAMapIsMadeWhereItIsNeeded(t *testing.T) {
	for _, flags := range [][]string{nil, {"--plain"}, {"--merge-same-as"}} {
		all := with(t, flags...).All()
		for _, from := range all {
			for _, to := range all {
				needed := from.Straight == nil || from.Straight(to) == nil
				ordered := to.Name == "turtle" || to.Name == "trig" || to.Name == "ntriples" || to.Name == "nquads"
				assert.Equal(t, flags != nil || from.Exchange == nil || !ordered, needed, "%v: %s to %s", flags, from, to)
			}
		}
	}
}
