package pages_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// standing returns the tree of the page of a topic that shows its place: the name, and the marks.
func standing(t testing.TB, n *served.Node, name, local string) (lines []string, page string) {
	a := n.MustGet(served.TopicPath(name, "http://x/"+local)+pages.Ending, "Accept-Language", "en")
	_, tree, _ := strings.Cut(string(a.Bytes), `<nav class="stands"`)
	tree, _, _ = strings.Cut(tree, "</nav>")
	root, err := html.Parse(strings.NewReader("<nav" + tree))
	require.NoError(t, err)
	var walk func(*html.Node, int)
	walk = func(node *html.Node, depth int) {
		switch {
		case node.Data == "summary":
			return
		case node.Data == "ul":
			depth++
		case node.Data == "li":
			lines = append(lines, strings.Repeat(" ", depth-1))
		case node.Data == "strong" && served.Attr(node, "aria-current") == "page":
			lines[len(lines)-1] += "*"
		case node.Type == html.TextNode && len(lines) > 0:
			lines[len(lines)-1] += strings.Trim(node.Data, "\n")
		}
		for child := range node.ChildNodes() {
			walk(child, depth)
		}
	}
	walk(root, 0)
	return lines, shown(a)
}

// The page of a concept, and of a class, shows its place: the path to it, and the topics beside it and below it, each
// once.
func TestATopicShowsWhereItStands(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	doc := skosPrefixes
	concept := func(local, statements string) {
		doc += fmt.Sprintf(":%s a skos:Concept ; skos:prefLabel %q@en %s .\n", local, local, statements)
	}
	concept("rock", "; skos:narrower :igneous")
	concept("igneous", "")
	concept("basalt", "; skos:broader :igneous ; skos:narrower :dark")
	concept("gabbro", "; skos:broader :igneous")
	concept("dark", "; skos:broader :basalt")
	concept("alone", "")
	concept("round", "; skos:broader :round")
	concept("wide", "")
	for i := range 105 {
		concept(fmt.Sprintf("part%03d", i), "; skos:broader :wide")
	}
	doc += ":Animal a owl:Class . :Dog a owl:Class ; rdfs:subClassOf :Animal . :Cat a owl:Class ; rdfs:subClassOf :Animal ; rdfs:label \"Cat\" .\n"
	publishTurtle(t, n, "voc", doc)
	for local, want := range map[string][]string{
		"basalt": {"rock", " igneous", "  *basalt", "   dark", "  gabbro"},
		"rock":   {"*rock", " igneous"},
		"dark":   {"rock", " igneous", "  basalt", "   *dark"},
		"alone":  nil, "round": nil,
		"Cat": {"Animal (x)", " *Cat", " Dog (x)"},
	} {
		lines, _ := standing(t, n, "voc", local)
		assert.Equal(t, want, lines, local)
	}
	for local, last := range map[string][]string{
		"part000": {" part099", " … and 5 more"},
		"part103": {" part099", " *part103", " … and 4 more"},
	} {
		lines, _ := standing(t, n, "voc", local)
		require.Greater(t, len(lines), 100)
		assert.Equal(t, last, lines[len(lines)-len(last):], local)
	}
	lines, _ := standing(t, n, "voc", "wide")
	assert.Equal(t, []string{" part099", " … and 5 more"}, lines[len(lines)-2:])
}

// Labels stand in one table, a language in each row: that of who reads first.
func TestLabelsStandByLanguage(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	publishTurtle(t, n, "voc", skosPrefixes+`:dog a skos:Concept ; skos:prefLabel "Hund"@de, "dog"@en, "chien"@fr ; skos:altLabel "hound"@en, "cur"@en, "Köter"@de ;
		skos:hiddenLabel "dgo"@en, "Canis" .
	:plain skos:prefLabel "plain"@en . :other rdfs:label "other"@en .`)
	publishTurtle(t, n, "resources", skosPrefixes+`@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
	:ox a skos:Concept ; skos:prefLabel "ox"@en ; xl:prefLabel [ a xl:Label ; xl:literalForm "ox"@en ], :ochse ; xl:altLabel [ xl:literalForm "bull"@en ], [ xl:literalForm "oxen"@en ; rdfs:comment "of several" ] .
	:ochse a xl:Label ; xl:literalForm "Ochse"@de .`)
	voc := "voc"
	table := func(local, language string) (rows []string) {
		root, err := html.Parse(bytes.NewReader(n.MustGet(served.TopicPath(voc, "http://x/"+local)+pages.Ending, "Accept-Language", language).Bytes))
		require.NoError(t, err)
		for node := range root.Descendants() {
			if node.Data == "tr" && node.Type == html.ElementNode {
				var cells []string
				for cell := range node.ChildNodes() {
					var b strings.Builder
					for text := range cell.Descendants() {
						if text.Type == html.TextNode {
							b.WriteString(text.Data)
						}
					}
					cells = append(cells, b.String())
				}
				rows = append(rows, strings.Join(cells, "|"))
			}
		}
		return rows
	}
	assert.Equal(t, []string{"Language|preferred label|alternative label|hidden label",
		"English|dog|cur, hound|dgo", "French|chien||", "German|Hund|Köter|", "without a language|||Canis"}, table("dog", "en"))
	assert.Equal(t, []string{"Sprache|bevorzugte Bezeichnung|alternative Bezeichnung|verborgene Bezeichnung",
		"Deutsch|Hund|Köter|", "Englisch|dog|cur, hound|dgo", "Französisch|chien||", "ohne Sprache|||Canis"}, table("dog", "de"))
	assert.Equal(t, []string{"Language|preferred label", "English|plain"}, table("plain", "en"), "only existing topics")
	assert.Empty(t, table("other", "en"))
	voc = "resources"
	assert.Equal(t, []string{"Language|preferred label|alternative label", "English|ox|bull, oxen", "German|Ochse|"}, table("ox", "en"), "labels that are resources, and a name that is one, too")
	ox := lineOf(n, served.TopicPath(voc, "http://x/ox")+pages.Ending)
	assert.Equal(t, 1, strings.Count(ox, "bull"), "one without further statements is there once")
	assert.Contains(t, ox, "of several", "and the statements of another one stay")
}

// A deprecated topic is marked by a word wherever it is listed, and leads to its replacement.
func TestWhatIsDeprecatedIsMarked(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	publishTurtle(t, n, "voc", skosPrefixes+`:top a skos:Concept ; skos:prefLabel "top"@en .
	:old a skos:Concept ; skos:prefLabel "old thing"@en ; skos:broader :top ; owl:deprecated true .
	:older a skos:Concept ; skos:prefLabel "older thing"@en ; skos:broader :top ; dct:isReplacedBy :new .
	:new a skos:Concept ; skos:prefLabel "new thing"@en ; skos:broader :top ; owl:deprecated false .`)
	const old, older = "old thing (deprecated)", "older thing (deprecated)"
	where := map[string]string{"siblings": served.TopicPath("voc", "http://x/new"), "narrower": served.TopicPath("voc", "http://x/top"),
		"instances": served.TopicPath("voc", "http://www.w3.org/2004/02/skos/core#Concept"), "search": "/topicmaps/voc/search", "all": "/search",
		"A–Z": "/topicmaps/voc/index", "hierarchy": "/topicmaps/voc/hierarchies/" + fragment.Key("http://www.w3.org/2004/02/skos/core#broader")}
	for what, path := range where {
		text := lineOf(n, path+pages.Ending+"?q=thing&in=en&letter=O")
		if what == "search" || what == "all" {
			text = lineOf(n, path+pages.Ending+"?q=thing")
		}
		assert.Contains(t, text, old, what)
		assert.Contains(t, text, older, what)
		assert.NotContains(t, text, "new thing (deprecated)", what)
	}
	text := lineOf(n, served.TopicPath("voc", "http://x/older")+pages.Ending)
	assert.Contains(t, text, "Deprecated: it is no longer to be used. It is replaced by new thing")
	assert.Contains(t, lineOf(n, served.TopicPath("voc", "http://x/old")+pages.Ending), "Deprecated: it is no longer to be used.")
	assert.Contains(t, string(n.MustGet("/topicmaps/voc/search?q=older").Bytes), `"deprecated":true`)
}
