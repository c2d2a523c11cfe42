package mapping_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
	"github.com/tmshare/tmshare/internal/rdf/rdfxml"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Whatever bytes an escaped IRI has: in a graph it is read as a locator in normal form, and is the same graph after it
// was XTM. In a topic map it is written as an IRI that a reader of RDF takes.
func TestEscapesOfAnyBytesAreKept(t *testing.T) {
	check := func(t require.TestingT, namespace string, content []byte) {
		escaped := mapping.NS + namespace + hex.EncodeToString(content)
		graph := []rdf.Quad{{
			Subject: rdf.NewIRI(escaped), Predicate: rdf.NewIRI(ex + "p"), Object: rdf.NewLiteral("x", ""),
		}}
		m := build(t, graph)
		for topic := range m.Topics() {
			for _, l := range topic.SubjectIdentifiers() {
				normal, err := iri.Normalize(string(l))
				require.NoError(t, err, escaped)
				require.Equal(t, normal, string(l), escaped)
			}
		}
		var b bytes.Buffer
		_, err := xtm.Write(&b, m, xtm.WriteOptions{Version: xtm.V21})
		require.NoError(t, err, escaped)
		m, err = xtm.Read(context.Background(), &b, xtm.Options{Base: "file:///map"})
		require.NoError(t, err, escaped)
		again, _ := mapping.Graph(m, mapping.Options{})
		require.True(t, rdf.Isomorphic(graph, again), "%s became %s", escaped, text(again))

		m = tmdm.New()
		m.CreateTopicBySubjectIdentifier(tmdm.Locator(escaped))
		written, _ := mapping.Graph(m, mapping.Options{})
		var read []rdf.Quad
		err = turtle.Read(strings.NewReader(text(written)), turtle.NTriples, turtle.Options{}, func(q rdf.Quad) error {
			read = append(read, q)
			return nil
		})
		require.NoError(t, err, escaped)
		require.True(t, rdf.Isomorphic(written, read), escaped)
	}
	for _, namespace := range []string{"locator/", "iri/"} {
		for _, content := range []string{"", "<", "foo:<", "FOO:<", "foo:%7e<", "foo:a b", "foo:\x01<", "\xff<", "foo:%7E", "%7E",
			"foo:\uFFFE<", "foo:\uFFFF<"} {
			check(t, namespace, []byte(content))
		}
	}
	bytesOf := rapid.OneOf(
		rapid.SliceOfN(rapid.Byte(), 0, 12),
		rapid.Map(rapid.StringMatching(`[a-zA-Z]{1,3}:[ -~]{0,12}`), func(s string) []byte { return []byte(s) }),
	)
	testenv.Check(t, 1000, 20_000, func(t *rapid.T) {
		check(t, rapid.SampledFrom([]string{"locator/", "iri/"}).Draw(t, "namespace"), bytesOf.Draw(t, "content"))
	})
}

// A locator that looks as if it was written in digits is another one than that of the digits, after it was RDF too.
func TestLocatorsInDigitsAreKeptApart(t *testing.T) {
	const strange = "foo:<"
	digits := mapping.NS + "locator/" + hex.EncodeToString([]byte(strange))
	twice := mapping.NS + "locator/" + hex.EncodeToString([]byte(digits))
	m := tmdm.New()
	for _, l := range []string{strange, digits, twice} {
		m.CreateTopicBySubjectIdentifier(tmdm.Locator(l))
	}
	graph, losses := mapping.Graph(m, mapping.Options{})
	require.Zero(t, losses.Total())
	again := build(t, graph)
	for _, l := range []string{strange, digits, twice} {
		require.NotNil(t, again.TopicBySubjectIdentifier(tmdm.Locator(l)), "%s of %s", l, text(graph))
	}
}

// notations are those of RDF, as what writes a graph and what reads it.
var notations = map[string]struct {
	write func(io.Writer, []rdf.Quad) error
	read  func(io.Reader, func(rdf.Quad) error) error
}{
	"Turtle": {turtle.Write, func(r io.Reader, each func(rdf.Quad) error) error {
		return turtle.Read(r, turtle.Turtle, turtle.Options{}, each)
	}},
	"N-Triples": {turtle.WriteNTriples, func(r io.Reader, each func(rdf.Quad) error) error {
		return turtle.Read(r, turtle.NTriples, turtle.Options{}, each)
	}},
	"RDF/XML": {rdfxml.Write, func(r io.Reader, each func(rdf.Quad) error) error {
		return rdfxml.Read(r, rdfxml.Options{}, each)
	}},
	"JSON-LD": {jsonld.Write, func(r io.Reader, each func(rdf.Quad) error) error {
		return jsonld.Read(r, jsonld.Options{}, each)
	}},
}

// through returns a graph as it is after a document in a notation. RDF/XML refuses properties that end in no name.
func through(t require.TestingT, notation string, graph []rdf.Quad) (read []rdf.Quad) {
	var b bytes.Buffer
	err := notations[notation].write(&b, graph)
	if err != nil && strings.Contains(err.Error(), "cannot have the property") {
		return graph
	}
	require.NoError(t, err, notation)
	document := b.String()
	err = notations[notation].read(&b, func(q rdf.Quad) error {
		read = append(read, q)
		return nil
	})
	require.NoError(t, err, "%s: %s", notation, document)
	return read
}

func digits(s string) string { return hex.EncodeToString([]byte(s)) }

// Whatever a topic map has for identifiers, with those that look as if they kept an IRI or a locator apart, it is the
// same after it was RDF in any notation.
func TestMapsWithReferencesInDigitsAreKept(t *testing.T) {
	references := []string{"http://e/a", "http://e/~me", "http://e/a b", "http://E/ü", "http://e/%2F", "http://e", "http://e/../x", "http://e:80/", "foo:<", "foo:%25", "foo:\uFFFD"}
	for range 2 {
		for _, r := range references[:len(references):len(references)] {
			references = append(references, mapping.NS+"iri/"+digits(r), mapping.NS+"locator/"+digits(r))
		}
	}
	references = append(references, mapping.NS+"iri/"+digits("http://e/%7Eme"), mapping.NS+"iri/"+digits("HTTP://e"), mapping.NS+"iri/"+digits("http://e/%2f"),
		mapping.NS+"iri/", mapping.NS+"iri/zz", mapping.NS+"iri/6", mapping.NS+"iri/FF", mapping.NS+"locator/", mapping.NS+"locator/zz", mapping.NS+"locator/FOO",
		mapping.NS+"iri/"+strings.ToUpper(digits("http://e/%7Eme")), mapping.NS+"datatype/anyURI", mapping.NS+"datatype/other")
	reference := rapid.Map(rapid.SampledFrom(references), func(s string) tmdm.Locator { return tmdm.Locator(s) })
	testenv.Check(t, 500, 20_000, func(t *rapid.T) {
		m := tmdm.New()
		for range rapid.IntRange(1, 4).Draw(t, "topics") {
			topic := m.CreateTopicBySubjectIdentifier(reference.Draw(t, "identifier"))
			other := m.CreateTopicBySubjectIdentifier(reference.Draw(t, "other"))
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				_ = topic.AddSubjectIdentifier(reference.Draw(t, "more")) // unless another topic has it
			case 1:
				_ = topic.AddSubjectLocator(reference.Draw(t, "locator"))
			case 2:
				_ = tmdm.AddItemIdentifier(topic, reference.Draw(t, "item"))
			case 3:
				topic.AddName("n", other)
			case 4:
				topic.AddOccurrence("o", string(reference.Draw(t, "datatype")), other)
			case 5:
				topic.AddType(other)
			case 6:
				a := m.CreateAssociation(other)
				a.AddRole(topic, other)
				a.AddRole(other, topic)
			}
		}
		require.NoError(t, m.Normalize(context.Background()))
		graph, losses := mapping.Graph(m, mapping.Options{})
		require.Zero(t, losses.Total())
		want := canonical(t, m)
		for notation := range notations {
			require.Equal(t, want, canonical(t, build(t, through(t, notation, graph))), "%s: %s", notation, text(graph))
		}
	})
}

// IRIs that are not in normal form are kept by topic maps, and by each notation.
func TestIRIsThatAreNotInNormalFormAreKept(t *testing.T) {
	iris := []string{
		"http://e/~me", "http://e/%7Eme", "http://e/%7eme", "HTTP://e/~me", "http://E/~me", "http://e", "http://e/", "http://e:80/", "http://e/./a", "http://e/a/../a", "http://e/a",
		"http://e/%61", "http://e/ü", "http://e/%C3%BC", "http://e/%c3%bc", "http://e/u\u0308", "http://e/%20", "http://e/+", "http://e/%", "http://e/%zz", "http://e/%2F", "http://e/%2f",
		"http://e/?", "http://e/#", "urn:x:%41", "URN:x:A", "urn:X:A", "urn:x:A", "http://e/%00", "http://e/%3C", mapping.NS + "iri/zz", mapping.NS + "locator/zz",
		mapping.NS + "iri/" + digits("http://e/%7Eme"), mapping.NS + "locator/" + digits("foo:<"), "http://e/.well-known/genid/b00000000000000000000000000000000",
	}
	term := rapid.Map(rapid.SampledFrom(iris), rdf.NewIRI)
	statement := rapid.Custom(func(t *rapid.T) rdf.Quad {
		object := rapid.OneOf(term, rapid.Map(rapid.SampledFrom(iris), func(s string) rdf.Term { return rdf.NewLiteral("v", s) }))
		return rdf.Quad{Subject: term.Draw(t, "subject"), Predicate: rapid.SampledFrom([]rdf.Term{rdf.NewIRI("http://e/%70rop"), rdf.NewIRI("http://e/prop"), rdf.NewIRI(rdf.Type)}).Draw(t, "property"), Object: object.Draw(t, "object")}
	})
	testenv.Check(t, 500, 20_000, func(t *rapid.T) {
		graph := rapid.SliceOfN(statement, 1, 8).Draw(t, "graph")
		again, losses := mapping.Graph(build(t, graph), mapping.Options{})
		require.Zero(t, losses.Total())
		require.True(t, rdf.Isomorphic(graph, again), "%s, not\n%s", text(graph), text(again))
		for notation := range notations {
			again = through(t, notation, graph)
			require.True(t, rdf.Isomorphic(graph, again), "%s: %s, not\n%s", notation, text(graph), text(again))
		}
		for _, s := range iris { // the shown IRI leads back
			l := iri.ToLocator(s)
			require.Equal(t, s, iri.FromLocator(l))
			meant, err := tmdm.Named(iri.Shown(l))
			require.NoError(t, err)
			require.Contains(t, meant, tmdm.Locator(l))
		}
	})
}
