package mapping_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
)

// ofTheMapping are the subjects that the mapping needs for statements of all graphs.
var ofTheMapping = []string{
	string(tmdm.PSITypeInstance), string(tmdm.PSIType), string(tmdm.PSIInstance), string(tmdm.PSISupertypeSubtype), string(tmdm.PSISupertype), string(tmdm.PSISubtype),
	string(tmdm.PSIDefaultNameType), rdf.NS + "subject", rdf.NS + "object", mapping.NS + "language/en",
}

// A topic without statements is kept, whatever its subject is: also one of those that the mapping needs for other
// statements, with such statements or without them. A plain graph has it as a resource.
func TestTopicsWithoutStatementsAreKept(t *testing.T) {
	testenv.Check(t, 500, 10_000, func(t *rapid.T) {
		m := tmdm.New()
		bare := rapid.SliceOfNDistinct(rapid.SampledFrom(ofTheMapping), 1, 4, rapid.ID).Draw(t, "bare")
		for _, subject := range bare {
			m.CreateTopicBySubjectIdentifier(tmdm.Locator(subject))
		}
		a, b := tmdm.Locator(ex+"a"), tmdm.Locator(ex+"b")
		for _, statement := range rapid.SliceOfNDistinct(rapid.IntRange(0, 6), 0, 3, rapid.ID).Draw(t, "statements") {
			topic, other := m.CreateTopicBySubjectIdentifier(a), m.CreateTopicBySubjectIdentifier(b)
			switch statement {
			case 0:
				topic.AddSupertype(other)
			case 1:
				topic.AddType(other)
			case 2:
				topic.AddName("n", nil)
			case 3:
				topic.AddName("n", m.CreateTopicBySubjectIdentifier(ex+"c"), m.CreateTopicBySubjectIdentifier(mapping.NS+"language/en"))
			case 4:
				topic.AddOccurrence("o", rdf.LangStr, other, m.CreateTopicBySubjectIdentifier(mapping.NS+"language/en"))
			case 5:
				association := m.CreateAssociation(other)
				association.AddRole(m.CreateTopicBySubjectIdentifier(rdf.NS+"subject"), topic)
				association.AddRole(m.CreateTopicBySubjectIdentifier(rdf.NS+"object"), topic)
			case 6: // the topic itself is spoken of
				m.CreateTopicBySubjectIdentifier(tmdm.Locator(bare[0])).AddType(other)
			}
		}
		graph, losses := mapping.Graph(m, mapping.Options{})
		require.Zero(t, losses.Total())
		require.Equal(t, canonical(t, m), canonical(t, build(t, graph)), "%s", text(graph))
		require.Equal(t, canonical(t, m), canonical(t, build(t, served(t, m))), "%s", text(served(t, m)))
		graph, _ = mapping.Graph(m, mapping.Options{Plain: true})
		require.NotEmpty(t, graph)
	})
}

// A graph that declares such resources as topics is kept, with statements that need them or without them.
func TestStatementsThatTopicsAreThereAreKept(t *testing.T) {
	statement := rapid.Custom(func(t *rapid.T) rdf.Quad {
		subject, property, object := rdf.NewIRI(ex+"a"), ex+"p", rdf.NewIRI(ex+"b")
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			property = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
		case 1:
			property = rdf.Type
		case 2:
		case 3:
			property, object = "http://www.w3.org/2000/01/rdf-schema#label", rdf.NewText("n", "en")
		case 4:
			object = rdf.NewIRI(rapid.SampledFrom(ofTheMapping).Draw(t, "object"))
		default:
			subject, property, object = rdf.NewIRI(rapid.SampledFrom(ofTheMapping).Draw(t, "subject")), rdf.Type, rdf.NewIRI(mapping.NS+"Topic")
		}
		return rdf.Quad{Subject: subject, Predicate: rdf.NewIRI(property), Object: object}
	})
	testenv.Check(t, 500, 10_000, func(t *rapid.T) {
		graph := rapid.SliceOfN(statement, 1, 5).Draw(t, "graph")
		m := build(t, graph)
		again, losses := mapping.Graph(m, mapping.Options{})
		require.Zero(t, losses.Total())
		require.True(t, rdf.Isomorphic(graph, again), "%s, not\n%s", text(again), text(graph))
		require.True(t, rdf.Isomorphic(graph, served(t, m)), "%s, not\n%s", text(served(t, m)), text(graph))
	})
}
