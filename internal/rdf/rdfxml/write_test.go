package rdfxml_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/rdfxml"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/internal/testkit/w3c"
)

func collect(all *[]rdf.Quad) func(rdf.Quad) error {
	return func(q rdf.Quad) error {
		*all = append(*all, q)
		return nil
	}
}

// A written graph is read as the same graph, or is refused with the reason.
func TestGraphsAreWritten(t *testing.T) {
	s := w3c.Open(t, archive, "rdf-turtle")
	written, refused := 0, 0
	for _, c := range s.Cases {
		if c.Negative() {
			continue
		}
		var graph, again []rdf.Quad
		require.NoError(t, turtle.Read(bytes.NewReader(s.File(c.Action)), turtle.Turtle, turtle.Options{URI: c.Base}, collect(&graph)))
		var b bytes.Buffer
		if err := rdfxml.Write(&b, graph); err != nil {
			assert.ErrorContains(t, err, "choose Turtle, N-Triples or JSON-LD")
			refused++
			continue
		}
		require.NoError(t, rdfxml.Read(&b, rdfxml.Options{URI: "http://example.org/other"}, collect(&again)), c.Name)
		assert.True(t, rdf.Isomorphic(graph, again), "%s: %v, not %v", c.Name, again, graph)
		written++
	}
	assert.Greater(t, written, 180)
	t.Log(written, "graphs,", refused, "refused")
}

// A statement that XML cannot carry is refused wherever the character stands.
func TestStatementsThatXMLCannotCarry(t *testing.T) {
	for _, wrong := range []string{"a\x01", "a\uFFFF", "a\xff"} {
		for name, q := range map[string]rdf.Quad{
			"subject":  {Subject: rdf.NewIRI("x:" + wrong), Predicate: rdf.NewIRI("x:p"), Object: rdf.NewIRI("x:o")},
			"property": {Subject: rdf.NewIRI("x:s"), Predicate: rdf.NewIRI("x:" + wrong + "/p"), Object: rdf.NewIRI("x:o")},
			"object":   {Subject: rdf.NewIRI("x:s"), Predicate: rdf.NewIRI("x:p"), Object: rdf.NewIRI("x:" + wrong)},
			"text":     {Subject: rdf.NewIRI("x:s"), Predicate: rdf.NewIRI("x:p"), Object: rdf.Term{Kind: rdf.Literal, Value: wrong, Datatype: rdf.String}},
			"datatype": {Subject: rdf.NewIRI("x:s"), Predicate: rdf.NewIRI("x:p"), Object: rdf.Term{Kind: rdf.Literal, Datatype: "x:" + wrong}},
		} {
			assert.ErrorContains(t, rdfxml.Write(io.Discard, []rdf.Quad{q}), "the property p of", "%s %q", name, wrong)
		}
	}
}

func FuzzRead(f *testing.F) {
	const begin = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">`
	f.Add([]byte(begin + `<rdf:Description rdf:about="a" e:b="c"><e:d rdf:parseType="Collection"><e:f/></e:d><rdf:li xml:lang="en">g</rdf:li></rdf:Description></rdf:RDF>`))
	f.Add([]byte(begin + `<e:a rdf:ID="x"><e:b rdf:ID="y" rdf:parseType="Literal"><!--c--><d>e</d></e:b><e:f rdf:nodeID="n"/><e:g rdf:parseType="Resource"><e:h rdf:datatype="i">j</e:h></e:g></e:a></rdf:RDF>`))
	f.Add([]byte(testhostile.Dense["list.rdf"](20)))
	f.Add([]byte(`<urlset xmlns="http+//www.sitemaps.org/schemas/sitst"/>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var graph, again []rdf.Quad
		if rdfxml.Read(bytes.NewReader(data), rdfxml.Options{URI: "http://example.org/doc"}, collect(&graph)) != nil || len(graph) > 50 {
			return
		}
		var b strings.Builder
		if rdfxml.Write(&b, graph) != nil {
			return
		}
		require.NoError(t, rdfxml.Read(strings.NewReader(b.String()), rdfxml.Options{URI: "http://example.org/other"}, collect(&again)), "%s", b.String())
		require.True(t, rdf.Isomorphic(graph, again), "%s", b.String())
	})
}
