package mapping_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Each map of the conformance cases of XTM, ours and those beside the project, is the same after it was a graph, and
// after that was written in Turtle. The losses of a graph without our vocabulary are counted by kind, exactly.
func TestMapsOfTheSuitesAreKept(t *testing.T) {
	kept, plain := 0, xtm.Losses{}
	for _, folder := range []string{"../../../../testdata/xtm/", shared + "conformance/cxtm/"} {
		for _, version := range []string{"xtm1", "xtm2", "xtm21"} {
			files, err := filepath.Glob(folder + version + "/in/*.xtm")
			require.NoError(t, err)
			if len(files) == 0 {
				t.Logf("NOT CHECKED: there is no %s%s", folder, version)
			}
			for _, file := range files {
				m := readMap(t, file)
				if m == nil {
					continue
				}
				graph, losses := mapping.Graph(m, mapping.Options{})
				assert.Equal(t, xtm.Losses{Associations: withoutRoles(m)}, losses, file)
				var b bytes.Buffer
				require.NoError(t, turtle.Write(&b, graph))
				again := mapOf(t, readTurtle(t, b.Bytes(), "http://example.org/other"))
				if losses.Total() == 0 {
					assert.Equal(t, canonical(t, m), canonical(t, again), "%s:\n%s", file, show(graph))
					kept++
				}
				graph, losses = mapping.Graph(m, mapping.Options{Plain: true})
				assert.Equal(t, count(m), losses, file)
				assert.False(t, slices.ContainsFunc(graph, ofOurVocabulary), "%s:\n%s", file, show(graph))
				plain = sum(plain, losses)
			}
		}
	}
	require.Greater(t, kept, 40)
	t.Logf("%d documents; without our vocabulary they lack %+v", kept, plain)
}

func ofOurVocabulary(q rdf.Quad) bool {
	return slices.ContainsFunc([]rdf.Term{q.Subject, q.Predicate, q.Object}, func(t rdf.Term) bool {
		local, ours := strings.CutPrefix(t.Value, mapping.NS)
		return ours && t.Kind == rdf.IRI && !strings.Contains(local, "/") // not a language or a locator
	})
}

// readMap reads a document as a program would that opens nothing; nil: it needs others.
func readMap(t *testing.T, file string) *tmdm.TopicMap {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	if bytes.Contains(data, []byte("mergeMap")) {
		return nil
	}
	m, err := xtm.Read(t.Context(), bytes.NewReader(data), xtm.Options{Base: tmdm.Locator("http://example.org/" + filepath.Base(file)), Lenient: true})
	require.NoError(t, err, file)
	return m
}

func withoutRoles(m *tmdm.TopicMap) (n int) {
	for a := range m.Associations() {
		if len(a.Roles()) == 0 {
			n++
		}
	}
	return n
}

// count counts what plain RDF does not say of a map, construct by construct.
func count(m *tmdm.TopicMap) (l xtm.Losses) {
	l.Associations = withoutRoles(m)
	for c := range m.Constructs() {
		topic, isTopic := c.(*tmdm.Topic)
		if isTopic {
			identified := len(topic.SubjectIdentifiers()) > 0
			for _, locator := range topic.SubjectLocators() {
				other := m.TopicByIdentifier(locator)
				if free := other == nil || other == topic; identified || !free {
					l.SubjectLocators++
				} else {
					identified = true
				}
			}
			l.ItemIdentifiers += len(topic.ItemIdentifiers())
			if !identified && len(topic.ItemIdentifiers()) > 0 {
				l.ItemIdentifiers--
			}
			continue
		}
		if _, ok := c.(*tmdm.Variant); ok {
			l.Variants++
			continue
		}
		if a, ok := c.(*tmdm.Association); ok && len(a.Roles()) == 0 {
			continue
		}
		l.ItemIdentifiers += len(c.ItemIdentifiers())
		if c.(tmdm.Reifiable).Reifier() != nil {
			l.Reifiers++
		}
		scoped, ok := c.(tmdm.Scoped)
		if !ok {
			continue
		}
		languages, others := 0, 0
		for _, theme := range scoped.Scope().Themes() {
			if ids := theme.SubjectIdentifiers(); len(ids) == 1 && strings.HasPrefix(string(ids[0]), mapping.NS+"language/") {
				languages++
			} else {
				others++
			}
		}
		_, isAssociation := c.(*tmdm.Association)
		if others > 0 || languages > 1 || languages > 0 && isAssociation {
			l.Scopes++
		}
		if o, ok := c.(*tmdm.Occurrence); ok && o.Datatype() == tmdm.XSDAnyType {
			l.Datatypes++
		} else if ok && languages > 0 {
			if o.Datatype() == rdf.String {
				l.Datatypes++
			} else if others == 0 && languages == 1 && o.Datatype() != rdf.LangStr {
				l.Scopes++
			}
		}
		if n, ok := c.(*tmdm.TopicName); ok && !slices.Contains(n.Type().SubjectIdentifiers(), tmdm.PSIDefaultNameType) {
			l.NameTypes++
		}
	}
	return l
}

func sum(a, b xtm.Losses) xtm.Losses {
	a.NameTypes += b.NameTypes
	a.Datatypes += b.Datatypes
	a.ItemIdentifiers += b.ItemIdentifiers
	a.Variants += b.Variants
	a.Associations += b.Associations
	a.Scopes += b.Scopes
	a.Reifiers += b.Reifiers
	a.SubjectLocators += b.SubjectLocators
	return a
}

// A map of more topics than are at hand while it is read is kept, whatever names them, and wherever in the graph they
// come again.
func TestMapOfManyTopicsIsKept(t *testing.T) {
	const n = 20_000 // a quarter is more than that
	m := tmdm.New()
	topics := make([]*tmdm.Topic, n)
	for i := range topics {
		l := tmdm.Locator(fmt.Sprintf("http://example.org/%d", i))
		switch i % 4 {
		case 0:
			topics[i] = m.CreateTopicBySubjectLocator(l)
		case 1: // an IRI that is kept apart
			topics[i] = m.CreateTopicBySubjectIdentifier(l + "?<>")
		default:
			topics[i] = m.CreateTopicBySubjectIdentifier(l)
		}
	}
	near := m.CreateTopicBySubjectIdentifier("http://example.org/near")
	from, to := m.CreateTopicBySubjectIdentifier("http://example.org/from"), m.CreateTopicBySubjectIdentifier("http://example.org/to")
	for i, topic := range topics {
		if i%5 == 0 { // it has no statements, but others are near to it
			continue
		}
		topic.AddOccurrence(fmt.Sprint(i), tmdm.XSDString, near)
		a := m.CreateAssociation(near)
		a.AddRole(from, topic)
		a.AddRole(to, topics[i*37%n])
	}
	graph, losses := mapping.Graph(m, mapping.Options{})
	require.Zero(t, losses)
	again := mapOf(t, graph)
	require.True(t, canonical(t, m) == canonical(t, again))
	slices.Reverse(graph)
	again = mapOf(t, graph)
	require.True(t, canonical(t, m) == canonical(t, again))
}
