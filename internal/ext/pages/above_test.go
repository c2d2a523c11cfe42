package pages_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The page of a concept leads to the broader ones, from the top, whichever of two concepts states it. A circle ends it.
func TestThePathToAConceptHasTheBroaderOnes(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(`@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix : <http://example.org/> .
:rock a skos:Concept ; skos:prefLabel "rock"@en, "Gestein"@de ; skos:narrower :igneous .
:dark a skos:Concept ; skos:prefLabel "dark things"@en .
:igneous a skos:Concept ; skos:prefLabel "igneous rock"@en .
:basalt a skos:Concept ; skos:broader :igneous, :dark ; skos:prefLabel "basalt"@en .
:gabbro a skos:Concept ; skos:broader :igneous ; skos:prefLabel "gabbro"@en .
:old a skos:Concept ; skos:prefLabel "old"@en ; skos:narrower :under ; <http://www.w3.org/2002/07/owl#deprecated> true . :older a skos:Concept ; skos:prefLabel "older"@en ; skos:narrower :old ; <http://purl.org/dc/terms/isReplacedBy> :rock .
:under a skos:Concept ; skos:prefLabel "under"@en .
:a a skos:Concept ; skos:broader :b . :b a skos:Concept ; skos:broader :a .
:thing skos:broader :rock .`), "Content-Type", "text/turtle").StatusCode)
	path := func(local, language string) (all []string) {
		at := served.TopicPath("voc", "http://example.org/"+local) + pages.Ending
		_, text, _ := strings.Cut(string(n.MustGet(at, "Accept-Language", language).Bytes), `<nav class="path"`)
		text, _, _ = strings.Cut(text, "</nav>")
		for _, called := range regexp.MustCompile(`<bdi[^>]*>([^<]*)</bdi>`).FindAllStringSubmatch(text, -1) {
			all = append(all, called[1])
		}
		return all
	}
	assert.Equal(t, []string{"voc", "rock", "igneous rock"}, path("gabbro", "en"))
	assert.Equal(t, []string{"voc", "Gestein", "igneous rock"}, path("gabbro", "de"))
	assert.Equal(t, []string{"voc", "dark things"}, path("basalt", "en"), "the first of several")
	assert.Equal(t, []string{"voc"}, path("rock", "en"))
	assert.Equal(t, []string{"voc", "b (example.org)"}, path("a", "en"))
	assert.Equal(t, []string{"voc"}, path("thing", "en"), "no concept")
	assert.Equal(t, []string{"voc", "older", "old"}, path("under", "en"))
	_, at, _ := strings.Cut(string(n.MustGet(served.TopicPath("voc", "http://example.org/under")+pages.Ending).Bytes), `<nav class="path"`)
	at, _, _ = strings.Cut(at, "</nav>")
	assert.Equal(t, 2, strings.Count(at, "(deprecated)"), "by themselves, and by what replaces them")
}
