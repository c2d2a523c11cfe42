package mapping_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
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
