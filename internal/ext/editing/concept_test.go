package editing_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testkit/served"
)

// A narrower concept is added from the page of a concept: with its types, its scheme, and a label in the language of the
// map. Its Turtle has the form that SKOS demands.
func TestAddingANarrowerConcept(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	token := []string{"Authorization", "Bearer " + served.Token}
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}", token...).StatusCode)
	a := n.Put("voc", []byte(`@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix : <http://e/> .
		:animals a skos:ConceptScheme ; skos:prefLabel "Animals"@en . :dog a skos:Concept ; skos:prefLabel "dog"@en, "Hund"@de ; skos:inScheme :animals .`), append(token, "Content-Type", "text/turtle")...)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	f, _ := b.Open(linkTo(t, b, served.TopicPath("voc", "http://e/dog")+".html", "Add a narrower concept"))
	assert.Equal(t, "en", f.Fields.Get("name-0-language"))
	assert.Equal(t, "dog", f.Fields.Get("association-0-other-0-player"))
	b.Publish(f.Set("name-0-value", "poodle", "identifier", "http://e/poodle"))
	turtle := string(n.MustGet("/topicmaps/voc/snapshots/current.nt").Bytes)
	for _, triple := range []string{
		`<http://e/poodle> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2004/02/skos/core#Concept> .`,
		`<http://e/poodle> <http://www.w3.org/2004/02/skos/core#prefLabel> "poodle"@en .`,
		`<http://e/poodle> <http://www.w3.org/2004/02/skos/core#broader> <http://e/dog> .`,
		`<http://e/poodle> <http://www.w3.org/2004/02/skos/core#inScheme> <http://e/animals> .`,
	} {
		assert.Contains(t, turtle, triple)
	}
	assert.Equal(t, 4, strings.Count(turtle, "<http://e/poodle> "))
	f, _ = b.Open(served.TopicPath("voc", "http://e/poodle") + "/edit.html") // the words of the page are enough
	as, name := f.Row(t, "association", "type", ""), f.Row(t, "name", "value", "")
	b.Publish(f.Set(as+"type", "Related", as+"other-0-player", "Animals", name+"value", "Pudel", name+"language", "Deutsch", name+"type", "preferred label"))
	turtle = string(n.MustGet("/topicmaps/voc/snapshots/current.nt").Bytes)
	assert.Contains(t, turtle, `<http://e/poodle> <http://www.w3.org/2004/02/skos/core#related> <http://e/animals> .`)
	assert.Contains(t, turtle, `<http://e/poodle> <http://www.w3.org/2004/02/skos/core#prefLabel> "Pudel"@de .`)
	preview, _ := b.Open(served.TopicPath("voc", "http://e/dog") + "/edit.html")
	text := served.TextOf(t, b.Do(preview.At, preview.Set(preview.Row(t, "name", "value", "")+"value", "doggy", "do", "preview").Fields, "Accept-Language", "de"))
	assert.Contains(t, text, "Hund", "in the language of who reads")
	assert.Equal(t, http.StatusNotFound, b.Do("/topicmaps/voc/topics/new.html?under=nothing", nil).StatusCode)
	assert.NotContains(t, string(b.Do(served.TopicPath("voc", "http://e/animals")+".html", nil).Bytes), "Add a narrower concept")
}
