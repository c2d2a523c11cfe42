package pages_test

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

const ontology = `@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
:hasPart a owl:ObjectProperty ; rdfs:label "has part" . :Wheel a owl:Class ; rdfs:label "Wheel" . :Sail a owl:Class ; rdfs:label "Sail" .
:Vehicle a owl:Class ; rdfs:label "Vehicle" ;
	rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :hasPart ; owl:someValuesFrom [ owl:unionOf ( :Wheel :Sail ) ] ] .
:parts skos:memberList ( :Wheel "a text" :Sail ) . :dog xl:prefLabel [ a xl:Label ; xl:literalForm "hound"@en ] ; :weighs [ rdf:value 30 ; :unit :kg ] .
:order :from [ :street "Kirkegata" ; :town [ :country :no ] ] .`

// opaque is the label of a blank node, which no page shows.
var opaque = regexp.MustCompile(`b[0-9a-f]{32}`)

var tags = regexp.MustCompile(`<[^>]*>`)

func shown(a served.Answer) string {
	return strings.Join(strings.Fields(tags.ReplaceAllString(string(a.Bytes), " ")), " ")
}

func vocabulary(t *testing.T) *served.Node {
	n := served.Start(t, func(c *server.Config) { c.MaxDelete = losses.All() })
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(ontology), "Content-Type", "text/turtle").StatusCode)
	return n
}

// Nodes without a name are shown by their statements, at each place of use.
func TestNodesWithoutANameAreShownWhereTheyAreUsed(t *testing.T) {
	t.Parallel()
	n := vocabulary(t)
	for about, want := range map[string]string{
		"Vehicle": "Supertypes has part some ( Wheel or Sail )",
		"parts":   "Wheel a text Sail",
		"dog":     "preferred label English hound",
		"order":   "street (example.org) Kirkegata town (example.org) country (example.org) no (example.org)",
	} {
		a := n.MustGet(served.TopicPath("voc", "http://example.org/"+about) + pages.Ending)
		assert.Contains(t, shown(a), want, about)
		assert.NotRegexp(t, opaque, string(a.Bytes), about)
	}
	a := n.MustGet(served.TopicPath("voc", "http://example.org/dog") + pages.Ending)
	assert.Contains(t, shown(a), "30 unit (example.org) kg (example.org)")
}

// No page shows the label of a node: neither those of the nodes, nor those of changes and of deleted topics.
func TestNoPageShowsTheLabelOfANode(t *testing.T) {
	t.Parallel()
	n := vocabulary(t)
	var nodes []string
	for _, si := range n.TopicSIs("voc") {
		if opaque.MatchString(string(si)) {
			nodes = append(nodes, served.TopicPath("voc", string(si))+pages.Ending)
		}
	}
	require.NotEmpty(t, nodes)
	next := strings.NewReplacer("owl:someValuesFrom", "owl:allValuesFrom", "hound", "dog", "30", "31", ":Sail )", ":Wheel )").Replace(ontology)
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(next), "Content-Type", "text/turtle").StatusCode)
	changes := n.MustGet("/topicmaps/voc/fragments" + pages.Ending)
	paths := slices.Concat(nodes, []string{"/topicmaps/voc.html", "/topicmaps/voc/types.html", "/topicmaps/voc/search.html?q=http://example.org/.well-known"})
	for _, link := range regexp.MustCompile(`href="[^"]*(/topicmaps/voc/(?:fragments|topics)/[^"?]+\.html)"`).FindAllSubmatch(changes.Bytes, -1) {
		paths = append(paths, string(link[1]))
	}
	pagesWith := map[string]bool{}
	check := func(a served.Answer, path string) {
		text := tags.ReplaceAllString(string(a.Bytes), " ")
		assert.NotRegexp(t, opaque, text, path)
		assert.NotRegexp(t, `title="[^"]*genid`, string(a.Bytes), path)
		for _, words := range []string{"has part some (Wheel or Sail)", "has part only (Wheel or Wheel)", "hound", "something without a name"} {
			pagesWith[words] = pagesWith[words] || strings.Contains(text, words)
		}
	}
	check(changes, "changes")
	for _, path := range paths {
		check(n.Get(path), path)
	}
	assert.Equal(t, map[string]bool{"has part some (Wheel or Sail)": true, "has part only (Wheel or Wheel)": true, "hound": true, "something without a name": false}, pagesWith)
	feed := n.MustGet("/topicmaps/voc/fragments", "Accept", "application/atom+xml")
	titles := regexp.MustCompile(`<title[^>]*>[^<]*</title>`).FindAll(feed.Bytes, -1)
	assert.Greater(t, len(titles), 10)
	assert.NotRegexp(t, opaque, string(bytes.Join(titles, []byte("\n"))))
}

// A datatype that adds nothing to a value is not shown: that of a text, and that of an address which is a link.
func TestDatatypesThatSayNothingAreNotShown(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(`@prefix : <http://example.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:x :a "in a language"@en ; :b "plain" ; :c "http://example.com/link"^^xsd:anyURI ; :d "urn:no:link"^^xsd:anyURI ; :e "2026-01-01"^^xsd:date .`), "Content-Type", "text/turtle").StatusCode)
	a := n.MustGet(served.TopicPath("voc", "http://example.org/x") + pages.Ending)
	assert.Contains(t, shown(a), "a (example.org) in a language ( English ) b (example.org) plain c (example.org) http://example.com/link d (example.org) urn:no:link xsd:anyURI e (example.org) 2026-01-01 xsd:date History")
}
