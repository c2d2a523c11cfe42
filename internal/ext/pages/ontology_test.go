package pages_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page of an ontology begins with its classes, each below its superclasses, whether it has instances or not. A
// topic without a name is none of them.
func TestAnOntologyOpensWithItsClasses(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	const doc = skosPrefixes + `<http://x/> a owl:Ontology ; rdfs:label "Animals"@en . :eats a owl:ObjectProperty .
:Animal a owl:Class ; rdfs:label "Animal"@en . :Mammal a owl:Class ; rdfs:subClassOf :Animal, [a owl:Restriction ; owl:onProperty :eats ; owl:someValuesFrom :Animal] ; rdfs:label "Mammal"@en .
:Dog a owl:Class ; rdfs:subClassOf :Mammal ; rdfs:label "Dog"@en . :Cat a owl:Class ; rdfs:subClassOf :Mammal ; rdfs:label "Cat"@en .
:Fish a rdfs:Class ; rdfs:subClassOf :Animal ; rdfs:label "Fish"@en . :Alone a owl:Class ; rdfs:label "Alone"@en .
`
	classes := func(name, path string) []string {
		_, text, found := strings.Cut(string(n.MustGet("/topicmaps/"+name+path, "Accept-Language", "en").Bytes), "<h2>Classes</h2>")
		require.True(t, found)
		text = regexp.MustCompile(`(?s)<nav|<h2|<p>.*`).Split(text, 2)[0]
		assert.NotContains(t, text, "Restriction")
		return lists(t, bytes.NewReader([]byte(text)))
	}
	for name, more := range map[string]string{"bare": "", "used": ":rex a :Cat ."} {
		publishTurtle(t, n, name, doc+more)
		want := []string{"Alone", "Animal", " Fish", " Mammal", "  Cat", "  Dog"}
		assert.Equal(t, want, classes(name, ".html"), name)
		assert.Equal(t, want, classes(name, "/types.html"), name)
		text := lineOf(n, "/topicmaps/"+name+".html")
		assert.Less(t, strings.Index(text, "Fish"), strings.Index(text, "Types With the number"), "they come first")
		assert.Equal(t, 1, strings.Count(text, "Mammal"), name)
		assert.Contains(t, text, "ontology 1")
	}
	var large strings.Builder
	large.WriteString(skosPrefixes + ":Top a owl:Class . ")
	for i := range 20 {
		fmt.Fprintf(&large, ":Mid%02d a owl:Class ; rdfs:subClassOf :Top .\n", i)
		for j := range 20 {
			fmt.Fprintf(&large, ":Low%02d-%02d a owl:Class ; rdfs:subClassOf :Mid%02[1]d .\n", i, j)
		}
	}
	publishTurtle(t, n, "large", large.String())
	assert.Len(t, classes("large", ".html"), 21, "the upper ones, so that the page is not long")
	assert.Contains(t, lineOf(n, "/topicmaps/large.html"), "20 below")
	assert.Greater(t, len(classes("large", "/types.html")), 150)
	assert.Len(t, wholeTree(t, n, "/topicmaps/large/types.html"), 422)
}
