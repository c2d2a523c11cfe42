package pages_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

const skosPrefixes = `@prefix : <http://x/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dct: <http://purl.org/dc/terms/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
`

// publishTurtle makes a document the next state of a map.
func publishTurtle(t testing.TB, n *served.Node, name, doc string) {
	t.Helper()
	n.PutSettings(name, "{}")
	require.Equal(t, http.StatusOK, n.Put(name, []byte(doc), "Content-Type", "text/turtle").StatusCode)
}

func forTurtle(t testing.TB) *served.Node {
	return served.Start(t, func(c *server.Config) { c.MaxDelete = losses.All() })
}

// blocksOf returns the blocks of the page of a topic, in their order: their titles and their contents.
func blocksOf(t testing.TB, n *served.Node, name, si string) (titles []string, items map[string][]string) {
	root, err := html.Parse(bytes.NewReader(n.MustGet(served.TopicPath(name, si) + pages.Ending).Bytes))
	require.NoError(t, err)
	text := func(element *html.Node) string {
		var b strings.Builder
		for node := range element.Descendants() {
			if node.Type == html.TextNode {
				b.WriteString(node.Data)
			}
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	items = map[string][]string{}
	for node := range root.Descendants() {
		switch {
		case node.Type != html.ElementNode:
		case node.Data == "dt" && served.Attr(node.Parent, "class") == "rows":
			titles = append(titles, text(node))
		case node.Data == "li" && served.Attr(node.Parent, "class") == "many" && node.Parent.Parent.Data == "dd":
			last := titles[len(titles)-1]
			items[last] = append(items[last], text(node))
		}
	}
	return titles, items
}

// The blocks of a concept have words that are right from its point of view, whichever of two inverse properties the
// map has. If it has both, each concept is there once.
func TestRelationsAreReadFromTheConceptsPointOfView(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	for name, c := range map[string]struct{ property, inverse, here, there string }{
		"broader":  {"skos:broader", "skos:narrower", "Broader", "Narrower"},
		"distant":  {"skos:broaderTransitive", "skos:narrowerTransitive", "Broader, at any distance", "Narrower, at any distance"},
		"related":  {"skos:related", "skos:related", "Related", "Related"},
		"top":      {"skos:topConceptOf", "skos:hasTopConcept", "Top concept of", "Top concepts"},
		"scheme":   {"skos:inScheme", "", "In scheme", "Concepts in this scheme"},
		"member":   {"skos:member", "", "Members", "Member of"},
		"exact":    {"skos:exactMatch", "skos:exactMatch", "Same as (exact match)", "Same as (exact match)"},
		"close":    {"skos:closeMatch", "skos:closeMatch", "Close match", "Close match"},
		"matching": {"skos:broadMatch", "skos:narrowMatch", "Broad match", "Narrow match"},
		"alike":    {"skos:relatedMatch", "skos:relatedMatch", "Related match", "Related match"},
		"part":     {"dct:isPartOf", "dct:hasPart", "Part of", "Parts"},
		"replaces": {"dct:replaces", "dct:isReplacedBy", "Replaces", "Replaced by"},
		"version":  {"dct:isVersionOf", "dct:hasVersion", "Version of", "Versions"},
		"class":    {"rdfs:subClassOf", "", "Supertypes", "Subtypes"},
		"stated":   {":likes", ":pleases", "likes (x)", "pleases (x)"},
		"unknown":  {":teaches", "", "teaches (x)", "is teaches (x) of"},
		"mutual":   {":marries", ":marries", "marries (x)", "marries (x)"},
	} {
		prefixes := skosPrefixes + ":likes owl:inverseOf :pleases . :marries a owl:SymmetricProperty .\n"
		ways := []string{":a " + c.property + " :b ."}
		if c.inverse != "" {
			ways = append(ways, ":b "+c.inverse+" :a .", ":a "+c.property+" :b . :b "+c.inverse+" :a .")
		}
		for i, stated := range ways {
			m := fmt.Sprint(name, i)
			publishTurtle(t, n, m, prefixes+`:a skos:prefLabel "Ape" . :b skos:prefLabel "Bee" .`+stated)
			titles, items := blocksOf(t, n, m, "http://x/a")
			assert.Equal(t, []string{c.here}, titles, m)
			bee := "Bee"
			if name == "replaces" {
				bee += " (deprecated)"
			}
			assert.Equal(t, []string{bee}, items[c.here], m)
			titles, items = blocksOf(t, n, m, "http://x/b")
			assert.Equal(t, []string{c.there}, titles, m)
			assert.Equal(t, []string{"Ape"}, items[c.there], m)
		}
	}
}

// Blocks come in the order of Skosmos, and then by word. A topic that is related to itself is on both sides.
func TestOrderOfRelations(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	publishTurtle(t, n, "m", skosPrefixes+`:a skos:prefLabel "Ape" ; skos:exactMatch :b ; skos:narrowMatch :b ; skos:related :b ; :zeal :b ; :alike :b ;
		skos:narrower :a, :b ; skos:broader :c ; skos:inScheme :s ; skos:topConceptOf :s . :g skos:member :a . :b skos:prefLabel "Bee" . :k :alike :a .`)
	titles, items := blocksOf(t, n, "m", "http://x/a")
	assert.Equal(t, []string{"Broader", "Narrower", "Related", "Member of", "Top concept of", "In scheme", "Same as (exact match)",
		"Narrow match", "alike (x)", "is alike (x) of", "zeal (x)"}, titles)
	assert.Equal(t, []string{"Ape", "c (x)"}, items["Broader"])
	assert.Equal(t, []string{"Ape", "Bee"}, items["Narrower"])
}

// A topic map that is not RDF has the roles of its associations.
func TestStatedTwiceWithDifferentScopes(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	const rdf, skos = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2004/02/skos/core#"
	pair := func(property, subject, object, scope, reifier string) string {
		return fmt.Sprintf(`<association%s><type><subjectIdentifierRef href="%s%s"/></type>%s
			<role><type><subjectIdentifierRef href="%ssubject"/></type><topicRef href="#%s"/></role><role><type><subjectIdentifierRef href="%sobject"/></type><topicRef href="#%s"/></role></association>`,
			reifier, skos, property, scope, rdf, subject, rdf, object)
	}
	n.Publish("m", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
		<topic id="a"><subjectIdentifier href="http://x/a"/><name><value>Ape</value></name></topic><topic id="b"><subjectIdentifier href="http://x/b"/><name><value>Bee</value></name></topic>
		<topic id="s"><name><value>Schools</value></name></topic><topic id="r"><name><value>The note</value></name></topic>`+
		pair("broader", "a", "b", "", "")+pair("narrower", "b", "a", `<scope><topicRef href="#s"/></scope>`, "")+pair("broader", "a", "b", `<scope><topicRef href="#r"/></scope>`, ` reifier="#r"`)+`</topicMap>`))
	_, items := blocksOf(t, n, "m", "http://x/a")
	require.Len(t, items["Broader"], 1)
	assert.Contains(t, items["Broader"][0], "Bee")
	assert.Contains(t, items["Broader"][0], "(Schools)")
	assert.Contains(t, items["Broader"][0], "about this: The note")
}

// The blocks of concepts follow from the triples by the rules of SKOS for inverse and symmetric properties (SKOS
// reference, S8, S23, S25, S43 and S44), each concept once in each block.
func TestBlocksOfConceptsFollowFromTheTriples(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	inverse := map[string]string{"broader": "narrower", "narrower": "broader", "related": "related", "broadMatch": "narrowMatch",
		"narrowMatch": "broadMatch", "relatedMatch": "relatedMatch", "closeMatch": "closeMatch", "exactMatch": "exactMatch",
		"topConceptOf": "hasTopConcept", "hasTopConcept": "topConceptOf"}
	title := map[string]string{"broader": "Broader", "narrower": "Narrower", "related": "Related", "broadMatch": "Broad match",
		"narrowMatch": "Narrow match", "relatedMatch": "Related match", "closeMatch": "Close match", "exactMatch": "Same as (exact match)",
		"topConceptOf": "Top concept of", "hasTopConcept": "Top concepts"}
	properties := slices.Sorted(maps.Keys(inverse))
	concepts := []string{"a", "b", "c", "d"}
	round := 0
	testenv.Check(t, 40, 400, func(t *rapid.T) {
		round++
		name, doc := fmt.Sprint("m", round), skosPrefixes
		want := map[string]map[string]map[string]bool{}
		say := func(subject, property, object string) {
			if want[subject] == nil {
				want[subject] = map[string]map[string]bool{}
			}
			if want[subject][title[property]] == nil {
				want[subject][title[property]] = map[string]bool{}
			}
			want[subject][title[property]]["Concept "+object] = true
		}
		for _, c := range concepts {
			doc += fmt.Sprintf(":%[1]s skos:prefLabel \"Concept %[1]s\" .\n", c)
		}
		for range rapid.IntRange(1, 12).Draw(t, "triples") {
			s, p, o := rapid.SampledFrom(concepts).Draw(t, "s"), rapid.SampledFrom(properties).Draw(t, "p"), rapid.SampledFrom(concepts).Draw(t, "o")
			doc += fmt.Sprintf(":%s skos:%s :%s .\n", s, p, o)
			say(s, p, o)
			say(o, inverse[p], s)
		}
		publishTurtle(n.T, n, name, doc)
		for _, c := range concepts {
			titles, items := blocksOf(n.T, n, name, "http://x/"+c)
			if len(titles) != len(want[c]) {
				t.Fatalf("%s has the blocks %q, and not %v, for\n%s", c, titles, want[c], doc)
			}
			for block, others := range want[c] {
				if expected := slices.Sorted(maps.Keys(others)); !slices.Equal(expected, items[block]) {
					t.Fatalf("%s of %s: %q, and not %q, for\n%s", block, c, items[block], expected, doc)
				}
			}
		}
	})
}

// The tree of concepts has each edge once, whichever of two concepts states it, below each concept that is above, and the
// top concepts that are above nothing.
func TestTreesOfConceptsFollowFromTheTriples(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	concepts := []string{"a", "b", "c", "d", "e"}
	round := 0
	testenv.Check(t, 25, 250, func(t *rapid.T) {
		round++
		name, doc := fmt.Sprint("m", round), skosPrefixes
		below, isBelow, there := map[string]map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, c := range concepts {
			doc += fmt.Sprintf(":%[1]s skos:prefLabel \"Concept %[1]s\" .\n", c)
			below[c] = map[string]bool{}
		}
		for range rapid.IntRange(1, 8).Draw(t, "triples") {
			i := rapid.IntRange(0, len(concepts)-2).Draw(t, "above") // no circles
			j := rapid.IntRange(i+1, len(concepts)-1).Draw(t, "below")
			above, under := concepts[i], concepts[j]
			switch rapid.IntRange(0, 3).Draw(t, "said by") {
			case 0:
				doc += fmt.Sprintf(":%s skos:broader :%s .\n", under, above)
			case 1:
				doc += fmt.Sprintf(":%s skos:narrower :%s .\n", above, under)
			default:
				doc += fmt.Sprintf(":scheme skos:hasTopConcept :%s . :%s skos:topConceptOf :scheme .\n", above, above)
				there[above] = true
				continue
			}
			below[above][under], isBelow[under], there[above], there[under] = true, true, true, true
		}
		var want []string
		var add func(c, indent string)
		add = func(c, indent string) {
			want = append(want, indent+"Concept "+c)
			for _, under := range slices.Sorted(maps.Keys(below[c])) {
				add(under, indent+" ")
			}
		}
		for _, c := range slices.Sorted(maps.Keys(there)) {
			if !isBelow[c] {
				add(c, "")
			}
		}
		publishTurtle(n.T, n, name, doc)
		links := n.Page("/topicmaps/" + name + ".html").Links
		at := slices.IndexFunc(links, func(l string) bool { return strings.Contains(l, "/hierarchies/") })
		if at < 0 {
			t.Fatalf("no hierarchy for\n%s", doc)
		}
		if tree := lists(n.T.(*testing.T), bytes.NewReader(n.MustGet(links[at]).Bytes)); !slices.Equal(want, tree) {
			t.Fatalf("the tree is %q, and not %q, for\n%s", tree, want, doc)
		}
	})
}

// The page of a deprecated topic begins with that, and with its replacement.
func TestDeprecatedTopicsSaySo(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	publishTurtle(t, n, "voc", `@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix dct: <http://purl.org/dc/terms/> . @prefix : <http://x/> .
		:old skos:prefLabel "old"@en ; owl:deprecated true ; dct:isReplacedBy :new . :new skos:prefLabel "new"@en ; owl:deprecated false .`)
	text := func(si string) string {
		return strings.Join(strings.Fields(n.Page(served.TopicPath("voc", si)+pages.Ending).Text), " ")
	}
	assert.Regexp(t, `Deprecated: it is no longer to be used\..*Replaced by ?new`, text("http://x/old"))
	assert.NotContains(t, text("http://x/new"), "Deprecated")
}

// The definition of a topic, or else its description, stands below its title, in the language of the reader. The
// others stay among the occurrences.
func TestWhatATopicIsComesFirst(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	publishTurtle(t, n, "voc", `@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix dct: <http://purl.org/dc/terms/> . @prefix : <http://x/> .
		:dog skos:prefLabel "dog"@en, "Hund"@de ; skos:definition "A pet."@en, "Ein Haustier."@de ; dct:description "It barks."@en ; skos:broader :pet .
		:cat skos:prefLabel "cat"@en ; dct:description "It purrs."@en . :pet skos:prefLabel "pet"@en .`)
	lead := func(si, query string) string {
		page := string(n.MustGet(served.TopicPath("voc", si) + pages.Ending + query).Bytes)
		_, text, found := strings.Cut(page, `<p class="lead">`)
		if !found {
			return ""
		}
		text, _, _ = strings.Cut(text, "</p>")
		assert.Equal(t, 1, strings.Count(page, text), "it stands there once")
		return regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text, "")
	}
	assert.Equal(t, "A pet.", lead("http://x/dog", ""))
	assert.Equal(t, "Ein Haustier.", lead("http://x/dog", "?lang=de"))
	assert.Equal(t, "It purrs.", lead("http://x/cat", "?lang=de"))
	assert.Empty(t, lead("http://x/pet", ""))
	text := strings.Join(strings.Fields(n.Page(served.TopicPath("voc", "http://x/dog")+pages.Ending).Text), " ")
	assert.Regexp(t, `A pet\. .*Broader ?pet.*Names.*Occurrences.*Ein Haustier\..*It barks\..*History.*Identifiers`, text, "the most important comes first")
}

// A topic with very many kinds of associations has pages of them, which have each kind once.
func TestKindsOfAssociationsHavePages(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	var doc strings.Builder
	doc.WriteString(skosPrefixes)
	for i := range 120 {
		for j := range 3 {
			fmt.Fprintf(&doc, ":hub :property%d :object%d .\n", i, j)
		}
	}
	publishTurtle(t, n, "voc", doc.String())
	path := served.TopicPath("voc", "http://x/hub") + pages.Ending
	kinds := map[string]int{}
	numbered := regexp.MustCompile(`property\d+ \(x\)</bdi></a></dt>`)
	next, got := regexp.MustCompile(`<a href="([^"]*list=kinds[^"]*)" rel="next">`), 0
	for at := path; ; got++ {
		page := n.MustGet(at).Bytes
		assert.LessOrEqual(t, len(page), 64<<10, at)
		for _, kind := range numbered.FindAll(page, -1) {
			kinds[string(kind)]++
		}
		more := next.FindSubmatch(page)
		if more == nil {
			break
		}
		at = strings.ReplaceAll(string(more[1]), "&amp;", "&")
	}
	assert.Positive(t, got)
	assert.Len(t, kinds, 120)
	for kind, n := range kinds {
		assert.Equal(t, 1, n, kind)
	}
}
