package pages_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// thesaurus has labels that are resources alone (SKOS-XL). Those of its dog are nodes, those of its cat have IRIs.
const thesaurus = `@prefix : <http://example.org/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:animal a skos:Concept ; xl:prefLabel [ a xl:Label ; xl:literalForm "animal"@en ], [ a xl:Label ; xl:literalForm "eläin"@fi ] .
:dog a skos:Concept ; skos:broader :animal ; rdfs:label "Canis"@la ;
	xl:altLabel [ a xl:Label ; xl:literalForm "aardhound"@en ] ; xl:hiddenLabel [ a xl:Label ; xl:literalForm "aaa"@en ] ;
	xl:prefLabel [ a xl:Label ; xl:literalForm "dog"@en ; rdfs:comment "as Darwin says" ], [ a xl:Label ; xl:literalForm "koira"@fi ] .
:cat a skos:Concept ; skos:broader :animal ; xl:prefLabel :cat-en , :cat-fi . :cat-en a xl:Label ; xl:literalForm "cat"@en . :cat-fi a xl:Label ; xl:literalForm "kissa"@fi .
:stray a skos:Concept ; skos:broader :animal ; xl:altLabel [ xl:literalForm "stray"@en ] ; xl:hiddenLabel [ xl:literalForm "lost"@en ] .
:both a skos:Concept ; skos:broader :animal ; skos:prefLabel "said twice"@en ; xl:prefLabel [ xl:literalForm "by a label"@en ] .
:hidden a skos:Concept ; skos:broader :animal ; skos:definition "An animal with a secret."@en ; xl:hiddenLabel [ xl:literalForm "secret"@en ] .`

// concepts are the names that the feed has for topics of the thesaurus, by the local parts of their identifiers. The
// last entry of a topic counts.
func concepts(t *testing.T, n *served.Node) map[string]string {
	t.Helper()
	titles := map[string]string{}
	for _, e := range n.Feed("/topicmaps/voc/fragments").Entries {
		if local, ok := strings.CutPrefix(e.TopicSI[0], "http://example.org/"); ok && titles[local] == "" && !strings.HasPrefix(local, ".") {
			titles[local] = e.Titles[0]
		}
	}
	return titles
}

// Concepts whose labels are resources alone are called by the texts of these.
func TestConceptsAreCalledByLabelsThatAreResources(t *testing.T) {
	t.Parallel()
	n := served.Start(t, served.DocumentSize(200), func(c *server.Config) { c.MaxDelete = losses.All() })
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	put := func(text string) {
		require.Equal(t, http.StatusOK, n.Put("voc", []byte(text), "Content-Type", "text/turtle").StatusCode)
	}
	put(thesaurus)
	want := map[string]string{"animal": "animal", "dog": "dog", "cat": "cat", "stray": "stray", "both": "said twice",
		"hidden": "hidden (example.org)", "cat-en": "cat", "cat-fi": "kissa"}
	assert.Equal(t, want, concepts(t, n), "in the language of most labels")

	pageAt := func(local string) string { return served.TopicPath("voc", "http://example.org/"+local) + pages.Ending }
	heading := func(path, language string) string {
		text := string(n.MustGet(path, "Accept-Language", language).Bytes)
		_, text, _ = strings.Cut(text, "<h1")
		_, text, _ = strings.Cut(text, ">")
		text, _, _ = strings.Cut(text, "</h1>")
		return text
	}
	tree := n.URL("/topicmaps/voc/hierarchies/" + fragment.Key("http://www.w3.org/2004/02/skos/core#broader") + pages.Ending)
	lines := func(language string) []string {
		return lists(t, bytes.NewReader(n.MustGet(strings.TrimPrefix(tree, n.BaseURL), "Accept-Language", language).Bytes))
	}
	for language, want := range map[string]map[string]string{
		"en": {"animal": "animal", "dog": "dog", "cat": "cat", "stray": "stray", "both": "said twice", "hidden": "hidden (example.org)", "cat-fi": "kissa"},
		"fi": {"animal": "eläin", "dog": "koira", "cat": "kissa", "stray": "stray", "both": "said twice", "cat-en": "cat"},
		"la": {"dog": "Canis", "cat": "cat"},
	} {
		for local, title := range want {
			assert.Equal(t, title, heading(pageAt(local), language), "%s in %s", local, language)
		}
	}
	assert.Equal(t, []string{"animal", " cat", " dog", " hidden (example.org)", " said twice", " stray"}, lines("en"))
	assert.Equal(t, []string{"eläin", " hidden (example.org)", " kissa", " koira", " said twice", " stray"}, lines("fi"))
	dog := shown(n.MustGet(pageAt("dog"), "Accept-Language", "fi"))
	assert.Contains(t, dog, "koira", "its label")
	assert.Contains(t, dog, "as Darwin says", "and what else that says")
	assert.Contains(t, dog, "eläin")

	search := func(q, language string) (titles []string) {
		var found pages.Search
		require.NoError(t, json.Unmarshal(n.MustGet("/topicmaps/voc/search?q="+q, "Accept-Language", language).Bytes, &found))
		for _, r := range found.Results {
			titles = append(titles, r.Title)
		}
		return titles
	}
	assert.Equal(t, []string{"koira"}, search("dog", "fi"), "found by its identifier")
	for _, narrowed := range []string{"", "&in=en", "&type=http://www.w3.org/2004/02/skos/core%23Concept"} {
		assert.Equal(t, []string{"hidden (example.org)"}, search("secret"+narrowed, "fi"), "once, by its label and not by its definition: %s", narrowed)
	}

	before := n.URL(pageAt("cat"))
	put(strings.Replace(thesaurus, `"cat"@en`, `"house cat"@en`, 1))
	assert.Equal(t, "house cat", heading(pageAt("cat"), "en"), "after a change of the label alone")
	assert.Contains(t, lines("en"), " house cat")
	want["cat-en"] = "house cat"
	assert.Equal(t, want, concepts(t, n), "the entry of the concept is of its time")
	first := n.Feed("/topicmaps/voc/fragments").Entries
	at := first[len(first)-1].Updated()
	assert.Equal(t, "cat", heading(strings.TrimPrefix(before, n.BaseURL)+"?at="+at, "en"), "as it was")

	put(strings.NewReplacer(`"cat"@en`, `"house cat"@en`, `:both a`, `:new a skos:Concept ; xl:prefLabel [ xl:literalForm "newest"@en ] . :both a`,
		`:stray a skos:Concept ; skos:broader :animal ; `, `:stray `).Replace(thesaurus))
	want["new"], want["animal"] = "newest", "animal"
	assert.Equal(t, want, concepts(t, n), "entries of changes")
	put(strings.NewReplacer(`"cat"@en`, `"house cat"@en`, ":dog a skos:Concept", "[] a skos:Concept").Replace(thesaurus))
	deleted := map[string]string{}
	for _, e := range n.Feed("/topicmaps/voc/fragments").Entries {
		if e.State[0] == "deleted" {
			deleted[e.TopicSI[0]] = e.Titles[0]
		}
	}
	assert.Equal(t, "dog", deleted["http://example.org/dog"], "a concept that goes with its labels")
	assert.Equal(t, "newest", deleted["http://example.org/new"])
}

// A reader who is led from one address to another stays in the language of the first. Other parts of the query are
// kept if the other address understands them.
func TestTheLanguageOfAReaderStaysOnTheWay(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	const si = "http://example.org/dog"
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(`@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<`+si+`> a skos:Concept ; skos:prefLabel "Dog"@en, "Kelev"@iw .`), "Content-Type", "text/turtle").StatusCode)
	at := n.Feed("/topicmaps/voc/fragments").Entries[0].Updated()
	query := "si=" + url.QueryEscape(si)
	for _, path := range []string{
		"/topicmaps/voc/topics?" + query, "/topicmaps/voc/topics.html?" + query, "/topicmaps/voc/history?" + query, "/topicmaps/voc/search.html?q=" + url.QueryEscape(si),
		"/topicmaps/voc/topics?" + query + "&at=" + url.QueryEscape(at), "/topicmaps/voc/topics.html?" + query + "&at=" + url.QueryEscape(at),
		served.TopicPath("voc", si),
	} {
		for _, language := range []string{"he", "iw"} {
			to, steps := path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+"lang="+language, 0
			a := n.Get(to, firefox...)
			for ; a.StatusCode/100 == 3 && steps < 5; steps++ {
				to = a.Header.Get("Location")
				a = n.Get(to, firefox...)
			}
			require.Equal(t, http.StatusOK, a.StatusCode, path)
			assert.NotZero(t, steps, path)
			assert.Contains(t, string(a.Bytes), "Kelev</h1>", "%s led to %s", path, to)
			assert.Equal(t, strings.Contains(path, "at="), strings.Contains(to, "at="), to)
		}
	}
	assert.Contains(t, n.Get("/topicmaps/voc/topics?lang=he&claims=&"+query).Header.Get("Location"), "claims=&lang=he")
}

// A topic with labels that are resources is found by each of them, hidden ones too, and is listed by its preferred
// ones.
func TestConceptsAreFoundAndListedByTheirLabels(t *testing.T) {
	t.Parallel()
	n := served.Start(t, func(c *server.Config) { c.MaxDelete = losses.All() })
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	put := func(text string) {
		require.Equal(t, http.StatusOK, n.Put("voc", []byte(text), "Content-Type", "text/turtle").StatusCode)
	}
	put(thesaurus + ` :dog xl:altLabel [ xl:literalForm "dogs"@en ] .`)
	search := func(q string) (all []string) {
		var found pages.Search
		require.NoError(t, json.Unmarshal(n.MustGet("/topicmaps/voc/search?q="+url.QueryEscape(q), "Accept-Language", "en").Bytes, &found))
		for _, r := range found.Results {
			all = append(all, strings.TrimPrefix(r.TopicSI, "http://example.org/")+": "+r.Match.Value)
		}
		return all
	}
	for q, want := range map[string][]string{
		"koira": {"dog: koira"}, "aardhound": {"dog: aardhound"}, "aaa": {"dog: aaa"}, "kissa": {"cat: kissa"}, "secret": {"hidden: secret"},
		"DOG": {"dog: dog"}, "canis": {"dog: Canis"}, "said": {"both: said twice"}, "by label": {"both: by a label"}, "nothing": nil,
	} {
		assert.Equal(t, want, search(q), q)
	}
	list := func(query string) string { return lineOf(n, "/topicmaps/voc/index.html?"+query) }
	assert.Contains(t, list("in=fi&letter=K"), "kissakoira")
	assert.Contains(t, list("in=fi&letter=E"), "eläin")
	assert.Contains(t, list("in=en&letter=D"), "dog")
	assert.NotContains(t, list("in=en&letter=D"), "dogs", "an alternative label")
	assert.NotContains(t, list("in=en&letter=A"), "aardhound")
	assert.NotContains(t, list("in=en&letter=A"), "aaa")
	assert.Contains(t, list("in=en&letter=S"), "said twice")
	assert.NotContains(t, list("in=en&letter=B"), "by a label", "it has a name of its own")
	assert.Contains(t, n.Page("/topicmaps/voc/index.html?in=en").Links, n.URL("/topicmaps/voc/index.html?in=fi&lang=fi"), "who chooses a language reads on in it")
	put(strings.ReplaceAll(thesaurus, "koira", "hauva"))
	assert.Nil(t, search("koira"))
	assert.Equal(t, []string{"dog: hauva"}, search("hauva"))
	assert.Contains(t, list("in=fi&letter=H"), "hauva")
}
