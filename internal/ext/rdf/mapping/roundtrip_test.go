package mapping_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/rdfxml"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	_ "github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/w3c"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

const shared = "../../../../../shared/"

func mapOf(t testing.TB, quads []rdf.Quad, o ...mapping.Options) *tmdm.TopicMap {
	t.Helper()
	b := mapping.NewBuilder("http://example.org/map/", 0, append(o, mapping.Options{})[0])
	for _, q := range quads {
		require.NoError(t, b.Add(q))
	}
	m, err := b.Map(t.Context())
	require.NoError(t, err)
	return m
}

func readTurtle(t *testing.T, data []byte, base string) (all []rdf.Quad) {
	t.Helper()
	require.NoError(t, turtle.Read(bytes.NewReader(data), turtle.Turtle, turtle.Options{URI: base}, func(q rdf.Quad) error {
		all = append(all, q)
		return nil
	}))
	return all
}

// served returns the statements of the records of a map, as servers make them.
func served(t require.TestingT, m *tmdm.TopicMap) (all []rdf.Quad) {
	src, err := fragment.NewMap(m, "http://example.org/map/")
	require.NoError(t, err)
	require.NoError(t, mapping.NewRecords("http://example.org/map/", func(q rdf.Quad) error {
		all = append(all, q)
		return nil
	}).All(fragment.Records(src)))
	return all
}

// keeps checks that a graph is the same after it was a topic map, and after that was written as XTM 2.1.
func keeps(t *testing.T, name string, graph []rdf.Quad, throughXTM bool) {
	t.Helper()
	for i := range graph {
		graph[i].Graph = rdf.Term{}
	}
	m := mapOf(t, graph)
	again, losses := mapping.Graph(m, mapping.Options{})
	assert.Zero(t, losses.Total(), "%s: %+v", name, losses)
	assert.True(t, rdf.Isomorphic(graph, again), "%s:\n%v, not\n%v", name, show(again), show(graph))
	again = served(t, m)
	assert.True(t, rdf.Isomorphic(graph, again), "%s, statement by statement:\n%v, not\n%v", name, show(again), show(graph))
	var b bytes.Buffer
	losses, err := xtm.Write(&b, m, xtm.WriteOptions{Version: xtm.V21})
	if !throughXTM {
		assert.ErrorContains(t, err, "XML cannot carry the character", name)
		return
	}
	require.NoError(t, err, name)
	assert.Zero(t, losses.Total(), name)
	m, err = xtm.Read(t.Context(), &b, xtm.Options{Base: "http://example.org/map"})
	require.NoError(t, err, name)
	for topic := range m.Topics() {
		for _, l := range topic.ItemIdentifiers() { // XTM gives each topic one
			tmdm.RemoveItemIdentifier(topic, l)
		}
	}
	again, losses = mapping.Graph(m, mapping.Options{})
	assert.Zero(t, losses.Total(), "%s: %+v", name, losses)
	assert.True(t, rdf.Isomorphic(graph, again), "%s, through XTM:\n%v, not\n%v", name, show(again), show(graph))
}

func show(graph []rdf.Quad) string {
	if len(graph) > 30 {
		return fmt.Sprint(len(graph), " statements")
	}
	var b bytes.Buffer
	if err := turtle.WriteNTriples(&b, graph); err != nil {
		return err.Error()
	}
	return b.String()
}

// Every graph of the W3C's suites that is to be understood is the same after it was a topic map.
func TestGraphsOfTheSuitesAreKept(t *testing.T) {
	kept, refused := 0, 0
	for name, notation := range map[string]turtle.Notation{"rdf-turtle": turtle.Turtle, "rdf-trig": turtle.TriG, "rdf-n-triples": turtle.NTriples, "rdf-n-quads": turtle.NQuads, "rdf-xml": 0} {
		s := w3c.Open(t, shared+"conformance/w3c-rdf11.tar.gz", name)
		for _, c := range s.Cases {
			if c.Negative() {
				continue
			}
			var graph []rdf.Quad
			each := func(q rdf.Quad) error {
				graph = append(graph, q)
				return nil
			}
			var err error
			if name == "rdf-xml" {
				err = rdfxml.Read(bytes.NewReader(s.File(c.Action)), rdfxml.Options{URI: c.Base}, each)
			} else {
				err = turtle.Read(bytes.NewReader(s.File(c.Action)), notation, turtle.Options{URI: c.Base}, each)
			}
			require.NoError(t, err, c.Name)
			controls := hasControls(graph)
			keeps(t, c.Name, graph, !controls)
			if kept++; controls {
				refused++
			}
		}
	}
	require.Greater(t, kept, 600)
	t.Logf("graphs of %d cases are kept, also as XTM 2.1 but for %d, which have characters that XML cannot carry", kept, refused)
}

// hasControls reports whether a literal has characters that XML cannot carry.
func hasControls(graph []rdf.Quad) bool {
	for _, q := range graph {
		for _, r := range q.Object.Value {
			if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
				return true
			}
		}
	}
	return false
}

func state(t *testing.T, n int) []byte {
	t.Helper()
	f, err := os.Open(fmt.Sprintf(shared+"data/voc4cat/v%02d.ttl.gz", n))
	if os.IsNotExist(err) {
		t.Skip("NOT CHECKED: the states of voc4cat are missing.")
	}
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(z)
	require.NoError(t, err)
	return data
}

// Every state of a real vocabulary is kept, also by its Turtle.
func TestVocabularyIsKept(t *testing.T) {
	for n := 2; n <= 7; n++ {
		graph := readTurtle(t, state(t, n), "http://example.org/voc4cat")
		require.Greater(t, len(graph), 1000)
		keeps(t, fmt.Sprint("v", n), graph, true)
		written, _ := mapping.Graph(mapOf(t, graph), mapping.Options{})
		var b bytes.Buffer
		require.NoError(t, turtle.Write(&b, written))
		assert.True(t, rdf.Isomorphic(graph, readTurtle(t, b.Bytes(), "http://example.org/other")))
	}
}

// Concepts of a real vocabulary are called by their preferred labels, in English where they have one.
func TestConceptsAreCalledByTheirPreferredLabels(t *testing.T) {
	const skos = "http://www.w3.org/2004/02/skos/core#"
	for n := 2; n <= 7; n++ {
		graph := readTurtle(t, state(t, n), "http://example.org/voc4cat")
		labels, concepts := map[string]map[string]string{}, 0
		for _, q := range graph {
			if q.Predicate.Value == skos+"prefLabel" {
				if labels[q.Subject.Value] == nil {
					labels[q.Subject.Value] = map[string]string{}
				}
				labels[q.Subject.Value][q.Object.Language] = q.Object.Value
			}
		}
		m := mapOf(t, graph)
		for topic := range m.TopicBySubjectIdentifier(skos + "Concept").Instances() {
			byLanguage := labels[string(topic.SubjectIdentifiers()[0])]
			want, english := byLanguage["en"]
			for _, label := range byLanguage {
				if !english {
					want = max(want, label)
				}
			}
			if concepts++; want != "" {
				assert.Equal(t, want, topic.DisplayName("en").Value())
			}
		}
		require.Greater(t, concepts, 100)
	}
}

// A topic map that RDF can carry as a whole is the same after it was a graph.
func TestTopicMapsAreKept(t *testing.T) {
	m, err := xtm.Read(t.Context(), bytes.NewReader([]byte(example)), xtm.Options{Base: "http://example.org/map"})
	require.NoError(t, err)
	graph, losses := mapping.Graph(m, mapping.Options{})
	require.Zero(t, losses.Total(), "%+v", losses)
	assert.Equal(t, canonical(t, m), canonical(t, mapOf(t, graph)))
}

func canonical(t require.TestingT, m *tmdm.TopicMap) string {
	var b bytes.Buffer
	require.NoError(t, cxtm.Write(&b, m, cxtm.Options{Base: "http://example.org/map"}))
	return b.String()
}

const example = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
  <topic id="puccini"><subjectIdentifier href="http://psi.example.org/puccini"/><subjectIdentifier href="http://psi.example.org/giacomo"/>
    <instanceOf><subjectIdentifierRef href="http://psi.example.org/composer"/></instanceOf>
    <name><value>Puccini</value></name>
    <name><scope><subjectIdentifierRef href="https://github.com/tmshare/tmshare/ns/1/language/it"/></scope><value>Giacomo Puccini</value></name>
    <name><type><subjectIdentifierRef href="http://psi.example.org/nickname"/></type><value>Il Maestro</value></name>
    <occurrence><type><subjectIdentifierRef href="http://psi.example.org/born"/></type><resourceData datatype="http://www.w3.org/2001/XMLSchema#date">1858-12-22</resourceData></occurrence>
    <occurrence><type><subjectIdentifierRef href="http://psi.example.org/page"/></type><resourceRef href="http://example.org/puccini.html"/></occurrence>
  </topic>
  <topic id="lonely"><itemIdentity href="http://example.org/lonely"/></topic>
  <topic id="file"><subjectLocator href="http://example.org/tosca.pdf"/></topic>
  <topic id="composer"><subjectIdentifier href="http://psi.example.org/composer"/></topic>
  <topic id="person"><subjectIdentifier href="http://psi.example.org/person"/></topic>
  <association><type><subjectIdentifierRef href="http://psi.topicmaps.org/iso13250/model/supertype-subtype"/></type>
    <role><type><subjectIdentifierRef href="http://psi.topicmaps.org/iso13250/model/supertype"/></type><topicRef href="#person"/></role>
    <role><type><subjectIdentifierRef href="http://psi.topicmaps.org/iso13250/model/subtype"/></type><topicRef href="#composer"/></role>
  </association>
  <association><type><subjectIdentifierRef href="http://psi.example.org/composed-by"/></type>
    <role><type><subjectIdentifierRef href="http://psi.example.org/work"/></type><topicRef href="#file"/></role>
    <role><type><subjectIdentifierRef href="http://psi.example.org/composer"/></type><topicRef href="#puccini"/></role>
  </association>
</topicMap>`
