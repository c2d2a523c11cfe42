package mapping_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
)

// Any graph in our vocabulary becomes a topic map, and that becomes a graph that gives the same topic map.
func FuzzVocabulary(f *testing.F) {
	const begin = "@prefix t: <" + mapping.NS + "> . @prefix r: <" + rdf.NS + "> . @prefix : <http://e/> .\n"
	for _, s := range []string{
		`:a :p "x" . [] a t:Statement ; r:subject :a ; r:predicate :p ; r:object "x" ; t:scope :s ; t:reifier :r ; t:itemIdentifier <http://e/i> .`,
		`[] a t:Association, :c ; :r :a ; t:role [ t:roleType :q ; t:player :b ; t:reifier :z ] .`,
		`:a a t:Topic ; t:subjectIdentifier :b ; t:subjectLocator :a ; t:itemIdentifier :c . :p a t:NameType . :a :p "n"@en .`,
		`[] a t:Statement, t:Occurrence ; r:subject :a ; r:predicate :p ; r:object "x" ; t:datatype :d ; t:variant [ t:value "v" ; t:scope :s ] . :a :p "x" . [] a t:TopicMap ; t:reifier :m .`,
	} {
		f.Add(begin + s)
	}
	f.Fuzz(func(t *testing.T, document string) {
		var graph []rdf.Quad
		b := mapping.NewBuilder("http://example.org/map/", 0, mapping.Options{})
		err := turtle.Read(bytes.NewReader([]byte(document)), turtle.Turtle, turtle.Options{URI: "http://example.org/doc"}, func(q rdf.Quad) error {
			graph = append(graph, q)
			return b.Add(q)
		})
		if err != nil || len(graph) > 100 {
			return
		}
		m, err := b.Map(t.Context())
		if err != nil {
			return // an item has the value of another one
		}
		written, _ := mapping.Graph(m, mapping.Options{})
		again, _ := mapping.Graph(mapOf(t, written), mapping.Options{})
		require.True(t, rdf.Isomorphic(written, again), "%s\n%s\n%s", document, show(written), show(again))
	})
}
