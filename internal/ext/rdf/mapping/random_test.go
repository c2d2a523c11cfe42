package mapping_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const ex = "http://example.org/"

// Any graph is the same after it was a topic map, and after that was written as XTM 2.1: with the properties that mean
// something to topic maps, in places where they mean nothing too.
func TestAnyGraphIsKept(t *testing.T) {
	properties := []string{
		ex + "p", ex + "q%7E", rdf.Type, rdf.NS + "subject", rdf.NS + "object", rdf.First, "http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2000/01/rdf-schema#subClassOf",
		"http://www.w3.org/2002/07/owl#sameAs", "http://www.w3.org/2004/02/skos/core#prefLabel", string(tmdm.PSITypeInstance), string(tmdm.PSISupertypeSubtype), string(tmdm.PSIDefaultNameType),
		mapping.NS + "scope", mapping.NS + "Statement", mapping.NS + "language/en", ex + "map/.well-known/genid/b00000000000000000000000000000000",
	}
	resources := append([]string{ex + "a", ex + "%61", ex + "a b", ex + "a%20b", "urn:x", mapping.NS + "Topic", mapping.NS + "NameType", mapping.NS + "Association", mapping.NS + "iri/6162"}, properties...)
	resource := rapid.OneOf(
		rapid.Map(rapid.SampledFrom(resources), func(s string) rdf.Term {
			if s == ex+"a b" { // no IRI
				s = ex + "c"
			}
			return rdf.NewIRI(s)
		}),
		rapid.Map(rapid.SampledFrom([]string{"x", "y", "z"}), rdf.NewBlank),
	)
	literal := rapid.Custom(func(t *rapid.T) rdf.Term {
		value := rapid.SampledFrom([]string{"", "v", " v\n", "<b/>", "http://example.org/%7e", "http://example.org/v"}).Draw(t, "value")
		if language := rapid.SampledFrom([]string{"", "", "en", "EN-gb"}).Draw(t, "language"); language != "" {
			return rdf.NewText(value, language)
		}
		return rdf.NewLiteral(value, rapid.SampledFrom([]string{"", rdf.XSD + "integer", rdf.XSD + "anyURI", rdf.XSD + "anyType", mapping.NS + "datatype/anyURI", ex + "%64"}).Draw(t, "datatype"))
	})
	statement := rapid.Custom(func(t *rapid.T) rdf.Quad {
		return rdf.Quad{Subject: resource.Draw(t, "subject"), Predicate: rdf.NewIRI(rapid.SampledFrom(properties).Draw(t, "property")), Object: rapid.OneOf(resource, literal).Draw(t, "object")}
	})
	testenv.Check(t, 1000, 20_000, func(t *rapid.T) {
		graph := rapid.SliceOfN(statement, 1, 12).Draw(t, "graph")
		m := build(t, graph)
		again, losses := mapping.Graph(m, mapping.Options{})
		require.Zero(t, losses.Total())
		require.True(t, rdf.Isomorphic(graph, again), "%s, not\n%s", text(graph), text(again))
		var b bytes.Buffer
		_, err := xtm.Write(&b, m, xtm.WriteOptions{Version: xtm.V21})
		require.NoError(t, err)
		m, err = xtm.Read(context.Background(), &b, xtm.Options{Base: "file:///map"})
		require.NoError(t, err)
		again, _ = mapping.Graph(m, mapping.Options{})
		require.True(t, rdf.Isomorphic(graph, again), "through XTM: %s, not\n%s", text(graph), text(again))
	})
}

// For any graph in our vocabulary: the graph written of its topic map gives the same map for good.
func TestAnyUseOfTheVocabularySettles(t *testing.T) {
	terms := func(names ...string) (all []string) {
		for _, name := range names {
			all = append(all, mapping.NS+name)
		}
		return all
	}
	properties := append(terms("scope", "reifier", "itemIdentifier", "subjectIdentifier", "subjectLocator", "datatype", "variant", "value", "role", "roleType", "player"),
		rdf.Type, rdf.Type, rdf.Type, rdf.NS+"subject", rdf.NS+"predicate", rdf.NS+"object", ex+"p", "http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2002/07/owl#sameAs", string(tmdm.PSIDefaultNameType))
	objects := append(terms("Statement", "Association", "NameType", "Topic", "TopicMap", "Occurrence"), ex+"a", ex+"b", ex+"p")
	resource := func(all []string) *rapid.Generator[rdf.Term] {
		return rapid.OneOf(rapid.Map(rapid.SampledFrom(all), rdf.NewIRI), rapid.Map(rapid.SampledFrom([]string{"x", "y"}), rdf.NewBlank))
	}
	statement := rapid.Custom(func(t *rapid.T) rdf.Quad {
		object := rapid.OneOf(resource(objects), rapid.Just(rdf.NewLiteral("v", "")))
		return rdf.Quad{Subject: resource([]string{ex + "a", ex + "b"}).Draw(t, "subject"), Predicate: rdf.NewIRI(rapid.SampledFrom(properties).Draw(t, "property")), Object: object.Draw(t, "object")}
	})
	testenv.Check(t, 1000, 20_000, func(t *rapid.T) {
		graph := rapid.SliceOfN(statement, 1, 14).Draw(t, "graph")
		b := mapping.NewBuilder("http://example.org/map/", 0, mapping.Options{})
		for _, q := range graph {
			require.NoError(t, b.Add(q))
		}
		m, err := b.Map(context.Background())
		if err != nil {
			return // an item has the value of another one
		}
		written, _ := mapping.Graph(m, mapping.Options{})
		again, _ := mapping.Graph(build(t, written), mapping.Options{})
		require.True(t, rdf.Isomorphic(written, again), "%s became\n%s and then\n%s", text(graph), text(written), text(again))
	})
}

func build(t require.TestingT, graph []rdf.Quad) *tmdm.TopicMap {
	b := mapping.NewBuilder("http://example.org/map/", 0, mapping.Options{})
	for _, q := range graph {
		require.NoError(t, b.Add(q))
	}
	m, err := b.Map(context.Background())
	require.NoError(t, err)
	return m
}

func text(graph []rdf.Quad) string {
	var b bytes.Buffer
	_ = turtle.WriteNTriples(&b, graph)
	return b.String()
}

// With --merge-same-as the resources that owl:sameAs joins are one topic; --label makes names of the texts of a
// property.
func TestOptions(t *testing.T) {
	const document = `@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
:a :title "A"@en . :b owl:sameAs :a, _:n ; :p :c . _:n :q 1 . :c owl:sameAs :d .`
	graph := readTurtle(t, []byte(document), ex)
	o := mapping.Options{MergeSameAs: true, Labels: []string{ex + "title"}}
	m := mapOf(t, graph, o)
	topic := m.TopicBySubjectIdentifier(ex + "a")
	require.NotNil(t, topic)
	assert.Same(t, topic, m.TopicBySubjectIdentifier(ex+"b"))
	require.Len(t, topic.Names(), 1)
	assert.Equal(t, "A", topic.Names()[0].Value())
	assert.Len(t, topic.Occurrences(), 1)
	written, losses := mapping.Graph(m, o)
	assert.Zero(t, losses)
	assert.Equal(t, canonical(t, m), canonical(t, mapOf(t, written, mapping.Options{Labels: o.Labels})))

	for wrong, want := range map[*mapping.Options]string{
		{Graph: "g"}:            `"g" cannot name a graph: give an absolute IRI, _:label or "default"`,
		{Labels: []string{"l"}}: `"l" cannot be a property: give an absolute IRI, such as http://www.w3.org/2000/01/rdf-schema#label`,
	} {
		assert.EqualError(t, wrong.Validate(), want)
	}
}
