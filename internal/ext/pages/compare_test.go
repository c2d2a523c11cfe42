package pages_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// Any two states of a map are compared, and any two of a topic. A statement that has changed in value only is shown
// with its earlier value.
func TestComparing(t *testing.T) {
	t.Parallel()
	clock := served.NewClock()
	n := served.StartOn(t, store.Options{Dir: t.TempDir(), Now: clock.Now})
	at := func() string { return url.QueryEscape(clock.Now().UTC().Format(time.RFC3339)) }
	n.Publish("m", served.Small())
	clock.Advance(time.Hour)
	first := at()
	clock.Advance(time.Hour)
	n.MustPut("m", served.Small("Oslo", "Christiania"))
	clock.Advance(time.Hour)
	second := at()
	clock.Advance(time.Hour)
	n.MustPut("m", served.Small("Oslo", "Kristiania", "Bergen", "Bjørgvin"))
	clock.Advance(time.Hour)
	text := func(path string) string { return strings.Join(strings.Fields(n.Page(path).Text), " ") }

	last := text("/topicmaps/m/compare.html")
	assert.Contains(t, last, "name was “Christiania” is “Kristiania”")
	assert.Contains(t, last, "name was “Bergen” is “Bjørgvin”")
	assert.Less(t, strings.Index(last, "Bjørgvin changed"), strings.Index(last, "Kristiania changed"), "in the order of who reads")
	whole := text("/topicmaps/m/compare.html?from=" + first)
	assert.Contains(t, whole, "name was “Oslo” is “Kristiania”")
	assert.Contains(t, whole, "3 changes of topics in the log")
	one := text("/topicmaps/m/compare.html?from=" + first + "&to=" + second)
	assert.Contains(t, one, "name was “Oslo” is “Christiania”")
	assert.NotContains(t, one, "Bjørgvin")
	assert.Equal(t, one, text("/topicmaps/m/compare.html?from="+second+"&to="+first), "the older one comes first")
	assert.Contains(t, text("/topicmaps/m/compare.html?from="+first+"&to="+first), "Nothing differs.")

	oslo := served.TopicPath("m", served.Oslo) + "/compare.html"
	assert.Contains(t, text(oslo), "name was “Christiania” is “Kristiania”")
	assert.Contains(t, text(oslo+"?from="+first), "name was “Oslo” is “Kristiania”")
	assert.NotContains(t, text(oslo+"?from="+first), "Bjørgvin")
	assert.Contains(t, text(served.TopicPath("m", served.PSI+"norway")+"/compare.html?from="+first), "Nothing differs.")
	for _, bad := range []string{"?from=yesterday", "?to=2999-01-01", "?from=1999-01-01"} {
		assert.NotEqual(t, http.StatusOK, n.Get(oslo+bad).StatusCode, bad)
		assert.NotEqual(t, http.StatusInternalServerError, n.Get(oslo+bad).StatusCode, bad)
	}
	assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps/m/topics/"+strings.Repeat("a", 26)+"/compare.html").StatusCode)
}

// A comparison of more topics than a page has goes on with another one, until each topic that differs was on one.
func TestComparingManyTopics(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Cities(50, "old"))
	n.MustPut("m", served.Cities(50, "new"))
	path, found := "/topicmaps/m/compare.html", map[string]bool{}
	pages := 0
	for next := regexp.MustCompile(`<a href="([^"]+)" rel="next">`); path != ""; pages++ {
		require.Less(t, pages, 5)
		a := n.MustGet(path)
		for _, title := range regexp.MustCompile(`<h2><a href="([^"?]+)`).FindAllStringSubmatch(string(a.Bytes), -1) {
			assert.False(t, found[title[1]], "twice: %s", title[1])
			found[title[1]] = true
		}
		path = ""
		if more := next.FindSubmatch(a.Bytes); more != nil {
			path = "/topicmaps/m/compare.html" + strings.ReplaceAll(string(more[1]), "&amp;", "&")
		}
	}
	assert.Equal(t, 3, pages)
	assert.Len(t, found, 50)
}

// The last state of an empty map can be compared, too.
func TestComparingAnEmptyMap(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.TopicMap())
	assert.Contains(t, n.Page("/topicmaps/m/compare.html").Text, "Nothing differs.")
}

// A comparison with too many changes for a page is not sorted for one: the page states that at once.
func TestComparingWholeMaps(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Cities(20_001, "city"))
	assert.Contains(t, n.Page("/topicmaps/m/compare.html").Text, "too much for a page")
	n.Publish("small", served.Cities(30, "city"))
	a := n.MustGet("/topicmaps/small/compare.html")
	assert.NotContains(t, string(a.Bytes), "too much for a page")
	assert.Less(t, len(a.Bytes), 64<<10)
}

// A page that compares is not long, however much its topics say: the topics that it has no room for have pages of their
// own, and one topic shows what fits.
func TestAComparisonIsNotLong(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := served.Start(t)
	doc := func(version string) []byte {
		var parts []string
		for i := range 60 {
			var notes []string
			for j := range 12 + 50*(i%2) {
				notes = append(notes, served.Note(fmt.Sprint(served.PSI, "type-with-a-long-name-", j), strings.Repeat(version+" ", 200)))
			}
			parts = append(parts, served.Topic(fmt.Sprint("t", i), fmt.Sprint("Topic ", i, ".", version), notes...))
		}
		return served.TopicMap(parts...)
	}
	n.Publish("m", doc("first"))
	n.MustPut("m", doc("second"))
	pages, topics := 0, map[string]int{}
	for path := "/topicmaps/m/compare.html"; path != ""; pages++ {
		a := n.MustGet(path)
		assert.LessOrEqual(t, len(a.Bytes), 64<<10)
		for _, topic := range regexp.MustCompile(`<h2><a [^>]*><bdi>(Topic [0-9]+)`).FindAllStringSubmatch(string(a.Bytes), -1) {
			topics[topic[1]]++
		}
		path = ""
		if next := regexp.MustCompile(`<a href="([^"]*)" rel="next">`).FindStringSubmatch(string(a.Bytes)); next != nil {
			path = "/topicmaps/m/compare.html" + html.UnescapeString(next[1])
		}
	}
	assert.Len(t, topics, 60)
	for topic, times := range topics {
		assert.Equal(t, 1, times, topic)
	}
	assert.Less(t, pages, 61)
	one := n.MustGet(served.TopicPath("m", served.PSI+"t1") + "/compare.html")
	assert.LessOrEqual(t, len(one.Bytes), 64<<10)
	assert.Regexp(t, `And \d+ more statements`, string(one.Bytes))
}

// Comparisons use the names of the pages of topics: the role of another topic for this one, the type of a name or an
// occurrence, and themes.
func TestComparisonsAreInWords(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	const doc = skosPrefixes + `@prefix dcterms: <http://purl.org/dc/terms/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . :anna rdfs:label "Anna" .
:books skos:prefLabel "Early printed books"@en . :inc skos:prefLabel "Incunabula"@en, "%s"@de%s . :blocks skos:prefLabel "Block books"@en .
:Print a owl:Class ; rdfs:label "Print"@en . :Woodcut a owl:Class ; rdfs:label "Woodcut"@en%s .
`
	publishTurtle(t, n, "m", fmt.Sprintf(doc, "Wiegendrucke", "", ""))
	require.Equal(t, http.StatusOK, n.Put("m", fmt.Appendf(nil, doc, "Inkunabeln", ` ; skos:broader :books ; skos:narrower :blocks ; skos:scopeNote "Until 1500."@en ; dcterms:creator :anna ; dcterms:issued "1998-01-01"^^xsd:date`,
		" ; rdfs:subClassOf :Print . :books skos:narrower :inc"), "Content-Type", "text/turtle").StatusCode)
	says := func(local, language string) string {
		at := "/topicmaps/m/topics/" + fragment.Key(fragment.Ref("http://x/"+local)) + "/compare.html?ui=" + language
		return strings.Join(strings.Fields(served.TextOf(t, n.MustGet(at, "Accept-Language", language))), " ")
	}
	inc := says("inc", "en")
	for _, text := range []string{"Changed: preferred label: was “Wiegendrucke” is “Inkunabeln” (German)", "New: Broader: Early printed books", "New: Narrower: Block books",
		"New: creator: Anna", "New: scope note: “Until 1500.” (English)", "New: issued: “1998-01-01” (xsd:date)"} {
		assert.Contains(t, inc, text)
	}
	assert.Equal(t, 1, strings.Count(inc, "Early printed books"), "what two statements say is there once")
	for _, raw := range []string{"of type", "subject", "object", "occurrence", "in scope"} {
		assert.NotContains(t, inc, raw)
	}
	assert.Contains(t, says("books", "en"), "New: Narrower: Incunabula")
	assert.Contains(t, says("anna", "en"), "New: is creator of: Incunabula")
	assert.Contains(t, says("Print", "en"), "New: Subtypes: Woodcut")
	assert.Contains(t, says("inc", "de"), "Unterbegriffe: Block books")
	whole := served.TextOf(t, n.MustGet("/topicmaps/m/compare.html", "Accept-Language", "en"))
	assert.Contains(t, whole, "Broader: Early printed books")
}
