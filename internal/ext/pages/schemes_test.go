package pages_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The page of a map begins with the statements of its concept schemes and ontologies about themselves, in the
// language of the reader, and shows how to cite this state.
func TestThePageOfAMapSaysWhatTheMapIs(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	require.NotContains(t, string(n.MustGet("/topicmaps/voc.html").Bytes), "To cite")
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(`@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dct: <http://purl.org/dc/terms/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix : <http://example.org/> .
:scheme a skos:ConceptScheme ; skos:prefLabel "Rocks"@en, "Gesteine"@de ; skos:hasTopConcept :basalt ; dct:publisher "The Survey" ;
	skos:definition "All rocks."@en, "Alle Gesteine."@de ; dct:license <https://creativecommons.org/licenses/by/4.0/> .
:ontology a owl:Ontology ; owl:versionInfo "1.4" .
:gabbro skos:topConceptOf :scheme ; skos:prefLabel "gabbro"@en .
:basalt a skos:Concept ; skos:inScheme :scheme ; skos:topConceptOf :scheme ; skos:prefLabel "basalt"@en ; skos:definition "A dark rock."@en .`), "Content-Type", "text/turtle").StatusCode)
	for language, want := range map[string][]string{
		"en": {"Rocks", "All rocks.", "Top concepts basalt , gabbro", "licence", "CC BY 4.0", "publisher", "The Survey", "version", "1.4"},
		"de": {"Gesteine", "Alle Gesteine.", "Lizenz", "CC BY 4.0", "The Survey", "1.4"},
	} {
		a := n.MustGet("/topicmaps/voc.html", "Accept-Language", language)
		page := shown(a)
		for _, text := range want {
			assert.Contains(t, page, text, language)
		}
		assert.NotContains(t, page, "A dark rock.")
	}
	cited := regexp.MustCompile(`<code>([^<]*\?at=[^<]*)</code>`).FindStringSubmatch(string(n.MustGet("/topicmaps/voc.html").Bytes))
	require.NotNil(t, cited)
	at := strings.TrimPrefix(strings.ReplaceAll(cited[1], "&#43;", "+"), n.BaseURL)
	before := n.MustGet(at, "Accept", "text/turtle").Bytes
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(strings.Replace(string(before), "All rocks.", "Some rocks.", 1)), "Content-Type", "text/turtle").StatusCode)
	assert.Equal(t, before, n.MustGet(at, "Accept", "text/turtle").Bytes, "the cited state stays")
}

// The page of a scheme shows the possible actions, however many concepts it has.
func TestALargeSchemeShowsItsLicence(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	var doc strings.Builder
	doc.WriteString(skosPrefixes + `:s a skos:ConceptScheme ; skos:prefLabel "Large"@en ; dct:license <https://creativecommons.org/licenses/by/4.0/> ; dct:publisher :survey ; dct:creator :anna .
`)
	for i := range 4000 {
		fmt.Fprintf(&doc, ":c%d skos:inScheme :s .\n", i)
	}
	publishTurtle(t, n, "voc", doc.String())
	assert.Contains(t, shown(n.MustGet("/topicmaps/voc.html", "Accept-Language", "en")),
		"Large licence CC BY 4.0 publisher survey (x) creator anna (x)")
}
