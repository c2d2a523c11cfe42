package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// concepts returns a map of 100 concepts, of which the first saying ones have statements.
func concepts(saying int) []byte {
	var b bytes.Buffer
	b.WriteString(strings.TrimSuffix(nothing, "/>") + `><topic><subjectIdentifier href="http://psi.example.org/concept"/></topic><topic><subjectIdentifier href="http://psi.example.org/note"/></topic>`)
	for i := range 100 {
		fmt.Fprintf(&b, `<topic><subjectIdentifier href="http://psi.example.org/c%03d"/>`, i)
		if i < saying {
			b.WriteString(`<instanceOf><subjectIdentifierRef href="http://psi.example.org/concept"/></instanceOf>`)
			fmt.Fprintf(&b, `<name><value>Concept %d</value></name>`, i)
			fmt.Fprintf(&b, `<occurrence><type><subjectIdentifierRef href="http://psi.example.org/note"/></type><resourceData>Note %d</resourceData></occurrence>`, i)
		}
		b.WriteString(`</topic>`)
	}
	b.WriteString("</topicMap>")
	return b.Bytes()
}

// A version that deletes no topic may still remove their statements.
func TestConceptsThatLoseAllAreHeldBack(t *testing.T) {
	for _, limit := range []string{"", "0", "50%", "96"} {
		n := start(t, func(c *server.Config) { require.NoError(t, c.MaxDelete.UnmarshalText([]byte(limit))) })
		n.Publish("map", concepts(100))
		before := n.State("map")
		for _, path := range []string{"map", "map/dry-run"} {
			p := problemOf(t, n.Put(path, concepts(3)), http.StatusConflict)
			assert.Contains(t, p.Detail, "this version would lose 97 of 106 topics, more than ")
			assert.Contains(t, p.Detail, "(97 without names and occurrences); nothing is changed. To publish it all the same, send it with the header TMShare-Max-Delete: 97")
			require.NotNil(t, p.HeldBack)
			assert.Equal(t, []int{106, 0, 97, 0, 97, 0}, []int{p.HeldBack.Topics, p.HeldBack.Added, p.HeldBack.Updated, p.HeldBack.Deleted, p.HeldBack.Emptied, p.HeldBack.Untyped})
			assert.Equal(t, "97", p.HeldBack.MaxDelete)
			require.Len(t, p.HeldBack.Losses, 10)
			assert.Equal(t, problems.Loss{TopicSI: "http://psi.example.org/c003", Title: "Concept 3", Lost: "emptied"}, p.HeldBack.Losses[0])
			assert.Equal(t, []int{300, 291}, []int{p.HeldBack.Statements, p.HeldBack.StatementsLost})
		}
		assert.Equal(t, before, n.State("map"))

		text := string(n.Put("map", concepts(3), "Accept", "text/plain").Bytes)
		assert.Contains(t, text, "\n  http://psi.example.org/c003 \"Concept 3\": no name and no occurrence is left\n")
		assert.Contains(t, text, "\n  … and 87 more\n")

		p := served.Published(t, n.Put("map", concepts(3), "TMShare-Max-Delete", "97"))
		assert.Equal(t, []int{0, 97, 0}, []int{p.Added, p.Updated, p.Deleted})
		n.MustPut("map", concepts(100))
	}
}

// Requests for single topics are not held back.
func TestWhatIsPostedMayLoseAll(t *testing.T) {
	n := start(t, func(c *server.Config) { require.NoError(t, c.MaxDelete.UnmarshalText([]byte("0"))) })
	n.Publish("map", concepts(100))
	one := []byte(strings.TrimSuffix(nothing, "/>") + `><topic><subjectIdentifier href="http://psi.example.org/c007"/></topic></topicMap>`)
	p := served.Published(t, n.Do(http.MethodPost, "/topicmaps/map/topics?topic=http://psi.example.org/c007", bytes.NewReader(one)))
	assert.Equal(t, 1, p.Updated)
}

// numberedTowns is a map of towns that have ids and names alone.
func numberedTowns(names []string) []byte {
	var b bytes.Buffer
	b.WriteString(strings.TrimSuffix(nothing, "/>") + ">")
	for i, name := range names {
		fmt.Fprintf(&b, `<topic id="id%d"><name><value>%s</value></name></topic>`, i, name)
	}
	b.WriteString("</topicMap>")
	return b.Bytes()
}

// A version with renumbered ids is published, and the answer reports it. If it is held back, the error does.
func TestIDsThatWereNumberedAnew(t *testing.T) {
	n := start(t)
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("Town %d", i))
	}
	n.Publish("map", numberedTowns(names))
	more := append([]string{"New town"}, names...)
	for _, path := range []string{"map/dry-run", "map"} {
		p := served.Published(t, n.Put(path, numberedTowns(more)))
		assert.Equal(t, []int{1, 40}, []int{p.Added, p.Updated})
		require.Len(t, p.Warnings, 1, path)
		assert.Equal(t, "renumbered-ids", string(p.Warnings[0].Rule))
		assert.Equal(t, []int{40, 0}, []int{p.Warnings[0].Times, p.Warnings[0].Line})
		assert.Contains(t, p.Warnings[0].Text, "40 topics have other ids in the document than before.")
	}
	edited := append([]string{}, more...)
	for i := range edited {
		edited[i] += "!"
	}
	assert.Empty(t, n.MustPut("map", numberedTowns(edited)).Warnings, "a large edit")

	p := problemOf(t, n.Put("map", bytes.ReplaceAll(numberedTowns(edited), []byte(`"id`), []byte(`"other`))), http.StatusConflict)
	assert.Equal(t, 41, p.HeldBack.Deleted)
	assert.Equal(t, 41, p.HeldBack.Renumbered)
	assert.Contains(t, p.HeldBack.Lines()[11], "41 topics have other ids in the document than before.")
}

// vocabulary returns the statements of one state of a real vocabulary.
func vocabulary(t *testing.T, state int) (all []rdf.Quad) {
	z := bytes.NewReader(testenv.SharedFile(t, fmt.Sprintf("data/voc4cat/v%02d.ttl.gz", state)))
	require.NoError(t, turtle.Read(z, turtle.Turtle, turtle.Options{URI: "http://example.org/voc"}, func(q rdf.Quad) error {
		all = append(all, q)
		return nil
	}))
	return all
}

// The versions of a real vocabulary are published without warnings. One that removes the statements of most concepts is
// held back.
func TestAVocabularyThatSaysNothingAnyMore(t *testing.T) {
	testenv.SkipUnderRace(t)
	n := start(t)
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	put := func(graph []rdf.Quad, headers ...string) served.Answer {
		var b bytes.Buffer
		require.NoError(t, turtle.Write(&b, graph))
		return n.Put("voc", b.Bytes(), append(headers, "Content-Type", "text/turtle")...)
	}
	for state := 2; state <= 7; state++ {
		assert.Empty(t, served.Published(t, put(vocabulary(t, state))).Warnings, "v%02d", state)
	}
	graph := vocabulary(t, 7)
	emptied := map[string]bool{}
	for _, q := range graph {
		if q.Predicate.Value == rdf.Type && q.Object.Value == "http://www.w3.org/2004/02/skos/core#Concept" && len(emptied) < 421 {
			emptied[q.Subject.Value] = true
		}
	}
	require.Len(t, emptied, 421)
	var left []rdf.Quad
	for _, q := range graph {
		if !emptied[q.Subject.Value] {
			left = append(left, q)
		}
	}
	before := n.State("voc")
	for _, limit := range []string{"", "0", "50%", "all"} {
		a := put(left, "TMShare-Max-Delete", limit)
		if limit == "all" {
			served.Published(t, a)
			break
		}
		p := problemOf(t, a, http.StatusConflict)
		t.Log(p.Detail)
		assert.Greater(t, p.HeldBack.Deleted+p.HeldBack.Emptied+p.HeldBack.Untyped, 420)
		assert.Less(t, p.HeldBack.Deleted, p.HeldBack.Topics/2, "the count of deleted topics would have let it pass")
		assert.Equal(t, before, n.State("voc"))
	}
}
