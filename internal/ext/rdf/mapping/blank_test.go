package mapping_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/rdf"
)

// nodesOf returns the subject identifiers of the blank nodes of a document, with their statements.
func nodesOf(t *testing.T, document string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for topic := range mapOf(t, readTurtle(t, []byte("@prefix : <http://example.org/> .\n"+document), "http://example.org/doc")).Topics() {
		for _, l := range topic.SubjectIdentifiers() {
			if strings.Contains(string(l), "genid") {
				for _, n := range topic.Occurrences() {
					all[string(l)] += n.Value() + " "
				}
				all[string(l)] += "."
			}
		}
	}
	return all
}

// A blank node keeps its label when other things change, and when the document has other labels and another order.
func TestUnchangedNodesKeepTheirLabels(t *testing.T) {
	before := nodesOf(t, `:a :address [ :city "Oslo" ] ; :list ( [ :n 1 ] [ :n 2 ] ) . :b :address [ :city "Oslo" ] . _:x :knows _:y . _:y :knows _:x ; :n 3 .`)
	require.Len(t, before, 8)
	after := nodesOf(t, `_:q :knows _:p . _:p :n 3 ; :knows _:q . :c :address [ :city "Rome" ] . :b :address _:o . _:o :city "Oslo" . :a :list ( [ :n 1 ] [ :n 2 ] ) ; :label "new" ; :address [ :city "Oslo" ] .`)
	require.Len(t, after, 9)
	for l, says := range before {
		assert.Equal(t, says, after[l], l)
	}
	changed := nodesOf(t, `:a :address [ :city "Bergen" ] .`)
	require.Len(t, changed, 1)
	for l := range changed {
		assert.NotContains(t, before, l)
	}
}

// Very many nodes that look alike, and very long lists, take time in proportion.
func TestManyNodesAlike(t *testing.T) {
	alike := nodesOf(t, strings.Repeat(":a :b [] .\n", 20_000))
	assert.Len(t, alike, 20_000)
	list := nodesOf(t, ":a :b ("+strings.Repeat(" 1", 20_000)+" ) .")
	assert.Len(t, list, 20_000)
}

func TestSeveralGraphsAreRefused(t *testing.T) {
	for graph, want := range map[string]string{
		"":                      "the document has several graphs, and a topic map is one: _:x, default, http://example.org/g1. Choose one with ",
		"http://example.org/g":  "the document has no graph http://example.org/g; it has _:x, default, http://example.org/g1. Choose one of these with ",
		"http://example.org/g1": "", "default": "", "_:x": "",
	} {
		b := mapping.NewBuilder("http://example.org/", 0, mapping.Options{Graph: graph})
		for i, name := range []rdf.Term{{}, rdf.NewIRI("http://example.org/g1"), rdf.NewBlank("x")} {
			require.NoError(t, b.Add(rdf.Quad{Subject: rdf.NewIRI("http://example.org/a"), Predicate: rdf.NewIRI("http://example.org/b"), Object: rdf.NewLiteral(fmt.Sprint(i), ""), Graph: name}))
		}
		m, err := b.Map(t.Context())
		if want != "" {
			assert.EqualError(t, err, want)
			continue
		}
		require.NoError(t, err, graph)
		all, _ := mapping.Graph(m, mapping.Options{})
		require.Len(t, all, 1)
		assert.Equal(t, map[string]string{"default": "0", "http://example.org/g1": "1", "_:x": "2"}[graph], all[0].Object.Value)
	}
}

// Circles of blank nodes, and nodes in many circles, take time in proportion too, and come back.
func TestCirclesOfNodes(t *testing.T) {
	const n = 20_000
	var circle, hub []rdf.Quad
	p := rdf.NewIRI("http://example.org/p")
	node := func(i int) rdf.Term { return rdf.NewBlank(fmt.Sprint("n", i)) }
	for i := range n {
		circle = append(circle, rdf.Quad{Subject: node(i), Predicate: p, Object: node((i + 1) % n)})
		hub = append(hub, rdf.Quad{Subject: node(n), Predicate: p, Object: node(i)}, rdf.Quad{Subject: node(i), Predicate: p, Object: node(n)})
	}
	for _, graph := range [][]rdf.Quad{circle, hub, append(circle, rdf.Quad{Subject: node(0), Predicate: p, Object: rdf.NewLiteral("here", "")})} {
		again, losses := mapping.Graph(mapOf(t, graph), mapping.Options{})
		assert.Zero(t, losses)
		assert.Len(t, again, len(graph))
	}
}
