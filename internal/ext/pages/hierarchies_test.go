package pages_test

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// A map leads to the hierarchies that it marks as Ontopia does, and to those of SKOS: trees of broader and narrower
// concepts.
func TestHierarchies(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	for name, by := range map[string]struct{ typ, above, below, marks string }{
		"ontopia": {"http://x/tree", "http://x/broad", "http://x/narrow", `
			<topic id="m1"><subjectIdentifier href="http://x/tree"/><instanceOf><topicRef href="#m2"/></instanceOf><name><value>Broader/Narrower</value></name></topic>
			<topic id="m2"><subjectIdentifier href="http://www.techquila.com/psi/hierarchy/#hierarchical-relation-type"/></topic>
			<topic id="m3"><subjectIdentifier href="http://x/broad"/><instanceOf><topicRef href="#m4"/></instanceOf></topic>
			<topic id="m4"><subjectIdentifier href="http://www.techquila.com/psi/hierarchy/#superordinate-role-type"/></topic>
			<topic id="m5"><subjectIdentifier href="http://x/narrow"/><instanceOf><topicRef href="#m6"/></instanceOf></topic>
			<topic id="m6"><subjectIdentifier href="http://www.techquila.com/psi/hierarchy/#subordinate-role-type"/></topic>`},
		"skos": {"http://www.w3.org/2004/02/skos/core#broader", "http://www.w3.org/1999/02/22-rdf-syntax-ns#object", "http://www.w3.org/1999/02/22-rdf-syntax-ns#subject", ""},
	} {
		doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + by.marks
		for _, concept := range []string{"Arts", "Music", "Opera", "Dance", "Sport", "Alone"} {
			doc += fmt.Sprintf(`<topic id="%[1]s"><subjectIdentifier href="http://x/c/%[1]s"/><name><value>%[1]s</value></name></topic>`, concept)
		}
		for _, pair := range [][2]string{{"Arts", "Music"}, {"Music", "Opera"}, {"Arts", "Dance"}, {"Sport", "Dance"}, {"Arts", "Music"}} {
			doc += fmt.Sprintf(`<association><type><subjectIdentifierRef href=%q/></type><role><type><subjectIdentifierRef href=%q/></type><topicRef href="#%s"/></role>
				<role><type><subjectIdentifierRef href=%q/></type><topicRef href="#%s"/></role></association>`, by.typ, by.below, pair[1], by.above, pair[0])
		}
		doc += `<association><type><subjectIdentifierRef href="` + by.typ + `"/></type><role><type><topicRef href="#Arts"/></type><topicRef href="#Alone"/></role></association></topicMap>`
		n.Publish(name, []byte(doc))
		at := n.URL("/topicmaps/" + name + "/hierarchies/" + fragment.Key(fragment.Ref(by.typ)) + pages.Ending)
		require.Contains(t, n.Page("/topicmaps/"+name+".html").Links, at)
		assert.Equal(t, []string{"Arts", " Dance", " Music", "  Opera", "Sport", " Dance"}, lists(t, bytes.NewReader(n.MustGet(strings.TrimPrefix(at, n.BaseURL)).Bytes)), name)
		n.Page(at)
		assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps/"+name+"/hierarchies/"+fragment.Key("http://x/c/Arts")+pages.Ending).StatusCode)
	}
	n.Publish("none", served.Small())
	assert.NotContains(t, string(n.MustGet("/topicmaps/none.html").Bytes), "/hierarchies/")
}

// Concepts have one tree, whichever concept has the statement about its place: each edge is there once, and so is a
// top concept that is above nothing. A type that is marked twice gives no second tree.
func TestConceptsHaveOneTree(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	const labels = `:a skos:prefLabel "Arts" . :m skos:prefLabel "Music" . :o skos:prefLabel "Opera" . :d skos:prefLabel "Dance" . :s skos:prefLabel "Sport" . :t skos:prefLabel "Theme" .
`
	const marks = `@prefix h: <http://www.techquila.com/psi/hierarchy/#> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
skos:broader a h:hierarchical-relation-type . rdf:object a h:superordinate-role-type . rdf:subject a h:subordinate-role-type .
`
	for name, statements := range map[string]string{
		"broader":  ":m skos:broader :a . :o skos:broader :m . :d skos:broader :a . :t skos:hasTopConcept :a, :s .",
		"narrower": ":a skos:narrower :m, :d . :m skos:narrower :o . :a skos:topConceptOf :t . :s skos:topConceptOf :t .",
		"both":     ":a skos:narrower :m, :d . :m skos:broader :a . :o skos:broader :m . :t skos:hasTopConcept :a, :s . :a skos:topConceptOf :t .",
		"marked":   marks + ":a skos:narrower :m . :m skos:broader :a . :o skos:broader :m . :d skos:broader :a . :t skos:hasTopConcept :s .",
	} {
		publishTurtle(t, n, name, skosPrefixes+labels+statements)
		var trees []string
		for _, l := range n.Page("/topicmaps/" + name + ".html").Links {
			if strings.Contains(l, "/hierarchies/") && !slices.Contains(trees, l) { // it stands at the top, too
				trees = append(trees, l)
			}
		}
		require.Len(t, trees, 1, name)
		assert.Equal(t, []string{"Arts", " Dance", " Music", "  Opera", "Sport"}, lists(t, bytes.NewReader(n.MustGet(trees[0]).Bytes)), name)
		for _, property := range []string{"broader", "narrower", "hasTopConcept", "topConceptOf"} {
			if strings.Contains(statements, "skos:"+property) {
				at := "/topicmaps/" + name + "/hierarchies/" + fragment.Key(fragment.Ref("http://www.w3.org/2004/02/skos/core#"+property)) + pages.Ending
				assert.Equal(t, shown(n.MustGet(trees[0])), shown(n.MustGet(at)), property)
			}
		}
	}
	publishTurtle(t, n, "tops", skosPrefixes+labels+":t skos:hasTopConcept :a .")
	assert.Contains(t, n.Page("/topicmaps/tops.html").Text, "Hierarchy of concepts")
}

// Trees of any size are on pages of 64 kB at most, which lead to all of them: many topics at the top, many below one,
// and many levels.
func TestPagesOfTreesAreSmallAndLeadToAll(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := forTurtle(t)
	concepts, classes := bytes.NewBufferString(skosPrefixes), bytes.NewBufferString(skosPrefixes)
	const all = 3000
	for i := range all {
		above := i - 1 // 25 levels
		switch {
		case i < 250:
			above = -1
		case i < 500:
			above = 7
		case i >= 525:
			above = 250 + i%260
		}
		fmt.Fprintf(concepts, "<http://x/c/%d> a skos:Concept ; skos:prefLabel \"A concept of some length, number %[1]d\"@en ; skos:topConceptOf :scheme .\n", i)
		fmt.Fprintf(classes, "<http://x/c/%d> a owl:Class ; rdfs:label \"A class of some length, number %[1]d\"@en .\n", i)
		if above >= 0 {
			fmt.Fprintf(concepts, "<http://x/c/%d> skos:broader <http://x/c/%d> .\n", i, above)
			fmt.Fprintf(classes, "<http://x/c/%d> rdfs:subClassOf <http://x/c/%d> .\n", i, above)
		}
	}
	publishTurtle(t, n, "concepts", concepts.String())
	publishTurtle(t, n, "classes", classes.String())
	assert.Len(t, wholeTree(t, n, "/topicmaps/concepts/hierarchies/"+fragment.Key("http://www.w3.org/2004/02/skos/core#broader")+pages.Ending), all)
	assert.Len(t, wholeTree(t, n, "/topicmaps/classes/types.html"), all+1, "and what classes are")
}

// The topics below another one are there whatever their number, and their number is right, in the first state that is
// read and in later ones.
func TestATreeHasAllThatIsBelow(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	const all = 1500
	doc := bytes.NewBufferString(skosPrefixes + ":top skos:prefLabel \"Top\" .\n")
	for i := range all {
		fmt.Fprintf(doc, ":c%d skos:prefLabel \"C %[1]d\" ; skos:broader :top .\n", i)
	}
	publishTurtle(t, n, "m", doc.String())
	at := "/topicmaps/m/hierarchies/" + fragment.Key("http://www.w3.org/2004/02/skos/core#broader") + pages.Ending
	assert.Contains(t, lineOf(n, at), "1,500 below")
	assert.Len(t, wholeTree(t, n, at), all+1)
	publishTurtle(t, n, "m", doc.String()+":more skos:prefLabel \"More\" ; skos:broader :top .\n")
	assert.Contains(t, lineOf(n, at), "1,501 below")
	assert.Len(t, wholeTree(t, n, at), all+2)
}

// wholeTree returns the topics of all pages of a tree.
func wholeTree(t *testing.T, n *served.Node, path string) map[string]bool {
	t.Helper()
	all, seen := map[string]bool{}, map[string]bool{}
	for todo := []string{path}; len(todo) > 0; {
		at := todo[0]
		if todo = todo[1:]; seen[at] {
			continue
		}
		seen[at] = true
		a := n.MustGet(at, "Accept-Language", "en")
		assert.LessOrEqual(t, len(a.Bytes), 64<<10, at)
		_, main, _ := strings.Cut(string(a.Bytes), "<main")
		main, _, _ = strings.Cut(main, "</main>")
		for _, found := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(main, -1) {
			switch to := html.UnescapeString(found[1]); {
			case strings.Contains(to, "/topics/"):
				all[to] = true
			case strings.Contains(to, "below=") || strings.Contains(to, "page="):
				if strings.HasPrefix(to, "?") {
					to = path + to
				}
				todo = append(todo, strings.TrimPrefix(to, n.BaseURL))
			}
		}
	}
	return all
}
