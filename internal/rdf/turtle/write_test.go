package turtle_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/testenv"
)

func written(t *testing.T, document string) string {
	t.Helper()
	all, err := read([]byte(document), turtle.Turtle, "http://example.org/doc")
	require.NoError(t, err)
	return writtenQuads(t, all)
}

func writtenQuads(t *testing.T, all []rdf.Quad) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, turtle.Write(&b, all))
	again, err := read(b.Bytes(), turtle.Turtle, "http://example.org/other")
	require.NoError(t, err, "%.2000s", b.String())
	if len(all) < 1000 {
		require.True(t, rdf.Isomorphic(all, again), "%s", b.String())
	}
	require.Len(t, again, len(all))
	return b.String()
}

// Documents have the forms that people write: prefixes, groups, brackets for nodes with one place, parentheses
// for lists.
func TestWrittenAsPeopleDo(t *testing.T) {
	assert.Equal(t, `@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .

<http://x/a> a <http://x/T> ;
    <http://x/in> ( "1"^^xsd:integer [] ( _:s ) [ a <http://x/U> ; rdfs:label "u"@en , "v"@en ] ) ;
    <http://x/on> _:s .

_:s rdfs:label "shared" .
`, written(t, `@prefix : <http://x/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a :on _:s ; a :T ; :in ( 1 [] ( _:s ) [ rdfs:label "v"@en, "u"@en ; a :U ] ) . _:s rdfs:label "shared" .`))
}

// Circles, lists that lead back to themselves, brackets that would be very deep and lists that are very long.
func TestNodesThatCannotBeInBrackets(t *testing.T) {
	const prefixes = "@prefix : <http://x/> . @prefix rdf: <" + rdf.NS + "> .\n"
	assert.Contains(t, written(t, prefixes+"_:a :p _:b . _:b :p _:c . _:c :p _:a ."), "_:")
	written(t, prefixes+"_:a :p _:a .")
	written(t, prefixes+"_:a rdf:first _:x ; rdf:rest _:b . _:b rdf:first [ :p _:a ] ; rdf:rest () . _:x :p 1 .")
	written(t, prefixes+"_:a rdf:first 1, 2 ; rdf:rest ( 3 ) . :x :p _:a .")
	written(t, prefixes+":a :b "+strings.Repeat("[ :p ", 300)+"1"+strings.Repeat(" ]", 300)+" .")
	written(t, prefixes+":a :b "+strings.Repeat("( ", 300)+"1"+strings.Repeat(" )", 300)+" .")
	assert.Contains(t, written(t, prefixes+":a :b ("+strings.Repeat(" 1", 50_000)+" ) ."), "( \"1\"")
	var circle []rdf.Quad
	for i := range 50_000 {
		circle = append(circle, rdf.Quad{Subject: rdf.NewBlank(fmt.Sprint("n", i)), Predicate: rdf.NewIRI("http://x/p"), Object: rdf.NewBlank(fmt.Sprint("n", (i+1)%50_000))})
	}
	writtenQuads(t, circle)
}

// Any graph comes back.
func TestAnyNodesAreWritten(t *testing.T) {
	random := testenv.Rand(7)
	properties := []string{rdf.First, rdf.Rest, "http://x/p"}
	for range testenv.Rounds(2000, 50_000) {
		nodes := 1 + random.IntN(7)
		term := func() rdf.Term {
			switch n := random.IntN(nodes + 2); n {
			case nodes:
				return rdf.NewIRI(rdf.Nil)
			case nodes + 1:
				return rdf.NewIRI("http://x/a")
			default:
				return rdf.NewBlank(fmt.Sprint("n", n))
			}
		}
		seen := map[rdf.Quad]bool{}
		var graph []rdf.Quad
		for range 1 + random.IntN(12) {
			q := rdf.Quad{Subject: term(), Predicate: rdf.NewIRI(properties[random.IntN(3)]), Object: term()}
			if !seen[q] {
				seen[q] = true
				graph = append(graph, q)
			}
		}
		writtenQuads(t, graph)
	}
}
