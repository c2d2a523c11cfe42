package sparql_test

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/sparql"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// A graph of a thesaurus answers the queries of browsers of thesauri, such as Skosmos: the number of concepts, by
// language; those at the top and below others; the first letters of an index, and the labels with one; words in
// labels; the statements about a concept, and those that lead to it.
func TestBrowsersOfThesauriReadGraphs(t *testing.T) {
	testenv.OnlyWithAll(t, "it starts stores")
	habitats, err := os.ReadFile("../../../testdata/skos/habitats.ttl")
	require.NoError(t, err)
	const prefixes = "PREFIX skos: <http://www.w3.org/2004/02/skos/core#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> " +
		"PREFIX h: <https://thesaurus.example.org/habitats/> "
	inGraph := func(pattern string) string { return "{ GRAPH <" + sparql.Graph + "> { " + pattern + " } }" }
	questions := []struct{ name, query, variable, answer string }{
		{"concepts", "SELECT (COUNT(DISTINCT ?c) AS ?n) FROM <" + sparql.Graph + "> WHERE { VALUES ?class { skos:Concept skos:Collection } ?type rdfs:subClassOf* ?class . ?c a ?type }", "n", "14"},
		{"labels in a language", "SELECT (COUNT(?l) AS ?n) WHERE " + inGraph("?c a skos:Concept ; skos:prefLabel ?l BIND(LANG(?l) AS ?tag) FILTER(?tag IN ('nb'))"), "n", "14"},
		{"schemes", "SELECT ?s WHERE " + inGraph("?s a skos:ConceptScheme"), "s", "https://thesaurus.example.org/habitats"},
		{"concepts at the top", "SELECT ?l WHERE " + inGraph("?c skos:topConceptOf <https://thesaurus.example.org/habitats> ; skos:prefLabel ?l FILTER(LANGMATCHES(LANG(?l), 'de'))") + " ORDER BY ?l", "l", "Feuchtgebiet Grünland Küste Wald"},
		{"concepts below", "SELECT DISTINCT ?c WHERE " + inGraph("?c skos:broader+ h:coast OPTIONAL { ?c skos:notation ?n }") + " ORDER BY ?n", "c", "salt-marsh dune cliff"},
		{"concepts above", "SELECT ?c WHERE " + inGraph("h:salt-marsh skos:broader* ?c") + " ORDER BY STR(?c)", "c", "coast marsh salt-marsh wetland"},
		{"first letters", "SELECT DISTINCT ?letter WHERE " + inGraph("?c skos:prefLabel ?l FILTER(LANG(?l) = 'en') BIND(UCASE(SUBSTR(STR(?l), 1, 1)) AS ?letter)") + " ORDER BY ?letter", "letter", "B C D F G M P S W"},
		{"an index", "SELECT ?l WHERE " + inGraph("?c a skos:Concept ; skos:prefLabel|skos:altLabel ?l FILTER(LANG(?l) = 'en' && STRSTARTS(LCASE(STR(?l)), 'w'))") + " ORDER BY ?l", "l", "wetland woodland"},
		{"search", "SELECT DISTINCT ?c WHERE " + inGraph("VALUES ?p { skos:prefLabel skos:altLabel skos:hiddenLabel } ?c ?p ?l FILTER(CONTAINS(LCASE(STR(?l)), 'bog'))"), "c", "bog"},
		{"what leads to a concept", "SELECT DISTINCT ?s WHERE " + inGraph("?s ?p h:fen FILTER(!ISBLANK(?s) && ?p != skos:inScheme)"), "s", "bog"},
		{"a definition", "SELECT ?d WHERE " + inGraph("h:meadow skos:definition ?d"), "d", "Grassland that is mown."},
	}
	for name, start := range sparql.RealStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := start(t)
			n := served.Start(t)
			require.Equal(t, http.StatusCreated, n.PutSettings("m", `{"rdf":true}`).StatusCode)
			put := func(body []byte) {
				a := n.Put("m", body, "Content-Type", "text/turtle")
				require.Contains(t, []int{http.StatusOK, http.StatusCreated}, a.StatusCode, "%s", a.Bytes)
			}
			put(habitats)
			inStep, ask := sparql.Kept(t, n.Store.(*store.DB), target)
			inStep()
			for _, q := range questions {
				var found []string
				for _, one := range ask(prefixes+q.query, q.variable) {
					found = append(found, strings.TrimPrefix(one, "https://thesaurus.example.org/habitats/"))
				}
				require.Equal(t, q.answer, strings.Join(found, " "), q.name)
			}
			put(bytes.ReplaceAll(habitats, []byte(`"meadow"@en`), []byte(`"water meadow"@en`)))
			inStep()
			index := questions[slices.IndexFunc(questions, func(q struct{ name, query, variable, answer string }) bool { return q.name == "an index" })]
			require.Equal(t, []string{"water meadow", "wetland", "woodland"}, ask(prefixes+index.query, "l"))
		})
	}
}
