package pages_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/webpage"
	terms "github.com/tmshare/tmshare/internal/words"
)

// metalsOf is a map of concepts, each of a type with labels and texts of SKOS: "kind=value@language", where a language
// may be.
func metalsOf(concepts ...[]string) []byte {
	var b strings.Builder
	b.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
	ref := func(element, si string) string {
		return "<" + element + `><subjectIdentifierRef href="` + si + `"/></` + element + ">"
	}
	for i, c := range concepts {
		fmt.Fprintf(&b, `<topic id="c%d"><subjectIdentifier href="http://x/c/%d"/>%s`, i, i, ref("instanceOf", "http://x/"+c[0]))
		for _, s := range c[1:] {
			kind, rest, _ := strings.Cut(s, "=")
			value, tag, _ := strings.Cut(rest, "@")
			element, text := "occurrence", "resourceData"
			if strings.HasSuffix(kind, "Label") {
				element, text = "name", "value"
			}
			b.WriteString("<" + element + ">" + ref("type", "http://www.w3.org/2004/02/skos/core#"+kind))
			if tag != "" {
				b.WriteString(ref("scope", terms.LanguageNamespace+tag))
			}
			b.WriteString("<" + text + ">" + value + "</" + text + "></" + element + ">")
		}
		b.WriteString("</topic>")
	}
	return []byte(b.String() + "</topicMap>")
}

var metals = metalsOf(
	[]string{"Metal", "prefLabel=Iron@en", "prefLabel=Eisen@de", "altLabel=Ferrum@la", "notation=26.1", "definition=A metal that rusts in wet air, and much more of it that nobody reads@en"},
	[]string{"Metal", "prefLabel=Steel@en", "hiddenLabel=Stele@en", "notation=26.1.1", "scopeNote=Made of iron and carbon@en"},
	[]string{"Ore", "prefLabel=Iron ore@en", "prefLabel=Eisenerz@de", "notation=12"},
)

// A hit shows the label that fits, and how; the page marks it.
func TestWhatFitsIsShown(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", metals)
	for _, each := range []struct{ query, title, kind, label, language, marked, shown string }{
		{"iron", "Iron", "name", "preferred", "en", "<mark>Iron</mark>", ""},
		{"eisenerz", "Iron ore", "name", "preferred", "de", "<mark>Eisenerz</mark>", "also called: Eisenerz German"},
		{"ferr", "Iron", "name", "alternative", "la", "<mark>Ferr</mark>um", "also called: Ferr um Latin"},
		{"stele", "Steel", "name", "hidden", "en", "<mark>Stele</mark>", "also found as: Stele English"},
		{"26.1", "Iron", "notation", "", "", "", "26.1"},
		{"26.1.1", "Steel", "notation", "", "", "", "26.1.1"},
		{"rusts", "Iron", "definition", "", "en", "that <mark>rusts</mark> in", "definition: A metal that rusts"},
		{"carbon", "Steel", "note", "", "en", "<mark>carbon</mark>", "Made of iron and carbon English scope note"},
	} {
		found := searched(n, "/topicmaps/m/search?lang=en&q="+url.QueryEscape(each.query))
		require.NotEmpty(t, found.Results, each.query)
		r := found.Results[0]
		assert.Equal(t, []string{each.title, each.kind, each.label, each.language}, []string{r.Title, r.Match.Kind, r.Match.Label, r.Match.Language}, each.query)
		a := n.MustGet("/topicmaps/m/search.html?lang=en&q=" + url.QueryEscape(each.query))
		assert.Contains(t, string(a.Bytes), each.marked, each.query)
		assert.Contains(t, strings.Join(strings.Fields(shown(a)), " "), each.shown, each.query)
	}
	assert.Equal(t, []string{"Iron", "Steel"}, titles(searched(n, "/topicmaps/m/search?lang=en&q=26.1")), "notations by their beginnings")
	assert.Equal(t, []string{"Iron", "Iron ore", "Steel"}, titles(searched(n, "/topicmaps/m/search?lang=en&q=iron")), "notes come last")
}

// Results are counted by type and by language, and narrowed to one of them by links.
func TestSearchesAreNarrowed(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", metals)
	all := searched(n, "/topicmaps/m/search?lang=en&q=iron")
	assert.Equal(t, 3, all.TotalResults)
	assert.False(t, all.AtLeast)
	assert.Equal(t, []int{1, 20}, []int{all.StartIndex, all.ItemsPerPage})
	counts := func(facets []pages.Facet) (text string) {
		for _, f := range facets {
			text += fmt.Sprintf("%s %d;", f.Value, f.Count)
		}
		return text
	}
	assert.Equal(t, "http://x/Metal 2;http://x/Ore 1;", counts(all.Facets.Types))
	assert.Equal(t, "en 3;", counts(all.Facets.Languages))
	assert.Equal(t, "English", all.Facets.Languages[0].Title)

	for query, want := range map[string][]string{
		"q=eisen&in=de": {"Iron", "Iron ore"}, "q=eisen&in=en": nil, "q=eisen&type=http://x/Ore": {"Iron ore"}, "q=iron&type=http://x/Metal&in=en": {"Iron", "Steel"},
		"q=eisen&type=http://x/Nothing": nil, "q=26.1&in=": {"Iron", "Steel"}, "q=26.1&in=en": nil, "q=http://x/c&type=http://x/Ore": {"Iron ore"},
	} {
		found := searched(n, "/topicmaps/m/search?lang=en&"+query)
		assert.Equal(t, want, titles(found), query)
		assert.Equal(t, len(want), found.TotalResults, query)
	}

	page := n.Page("/topicmaps/m/search.html?lang=en&q=iron")
	to := ""
	for _, l := range page.Links {
		if strings.Contains(l, "type=http%3A%2F%2Fx%2FOre") {
			to = l
		}
	}
	require.NotEmpty(t, to, "links narrow the results")
	page = n.Page(to)
	assert.Contains(t, page.Text, "Iron ore")
	assert.NotContains(t, page.Text, "Steel")
	assert.Contains(t, page.Links, n.URL("/topicmaps/m/search.html?lang=en&q=iron"), "and back to all")
	a := n.Get("/topicmaps/m/search.html?q=iron&in=de")
	assert.Contains(t, string(a.Bytes), "No topic of this type or in this language is found")
}

// Words that no topic has are taken for others that are like them.
func TestDidYouMean(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", metals)
	n.Publish("other", namedMap("Eisenberg"))
	assert.Equal(t, []string{"Steel"}, searched(n, "/topicmaps/m/search?q=stell").DidYouMean)
	assert.Empty(t, searched(n, "/topicmaps/m/search?q=quark").DidYouMean)
	assert.Equal(t, []string{"Eisenberg"}, searched(n, "/search?q=eisenbreg").DidYouMean)
	for _, path := range []string{"/topicmaps/m/search.html?q=iron+orr", "/search.html?q=iron+orr"} {
		page := n.Page(path)
		assert.Contains(t, page.Text, "Did you mean")
		to := ""
		for _, l := range page.Links {
			if strings.HasSuffix(l, "q=Iron+ore") {
				to = l
			}
		}
		require.NotEmpty(t, to, path)
		assert.Contains(t, n.Page(to).Text, "Iron ore")
	}
}

// All maps that one may read are searched together, and what fits best comes first.
func TestAllMapsAreSearched(t *testing.T) {
	t.Parallel()
	n := served.Guarded(t)
	n.Publish("a", namedMap("Oslo harbour", "Bergen"))
	n.Publish("b", namedMap("Oslo", "Gamle Oslo"))
	where := func(found pages.Search) (all []string) {
		for _, r := range found.Results {
			all = append(all, r.Collection+": "+r.Title)
		}
		return all
	}
	found := searched(n, "/search?q=oslo")
	assert.Equal(t, []string{"b: Oslo", "open: Oslo", "a: Oslo harbour", "b: Gamle Oslo"}, where(found))
	assert.Equal(t, 4, found.TotalResults)
	assert.Empty(t, found.Collection)
	assert.Equal(t, []pages.Facet{{Value: "b", Title: "b", Count: 2}, {Value: "a", Title: "a", Count: 1}, {Value: "open", Title: "open", Count: 1}}, found.Facets.Collections)
	for _, r := range found.Results {
		n.MustGet(r.URL)
	}

	var paged []string
	for next := n.URL("/search?q=oslo&limit=1"); next != ""; {
		some := searched(n, next)
		paged, next = append(paged, where(some)...), some.Next
	}
	assert.Equal(t, where(found), paged, "page by page")

	// Restricted topics are found by persons with the right to read them, and no cache has them for others.
	var secret pages.Search
	a := n.MustGet("/search?q=hidden", "Authorization", "Bearer "+served.ReadToken)
	require.NoError(t, json.Unmarshal(a.Bytes, &secret))
	assert.Equal(t, []string{"secret: Hidden place"}, where(secret))
	assert.Contains(t, a.Header.Get("Cache-Control"), "private")
	assert.Empty(t, searched(n, "/search?q=hidden").Results)
	assert.NotContains(t, string(n.MustGet("/search.html?q=hidden").Bytes), "secret")

	// Browsers are led to the page, which names the maps, and leads to their own searches.
	a = n.Get("/search?q=oslo", firefox...)
	require.Equal(t, http.StatusSeeOther, a.StatusCode)
	page := n.Page(a.Header.Get("Location"))
	assert.Contains(t, page.Text, "Gamle Oslo")
	assert.Contains(t, page.Links, n.URL("/topicmaps/b/search.html?q=oslo"))
	assert.Contains(t, page.Links, n.URL("/topicmaps/b.html"))
	a = n.MustGet("/topicmaps.html")
	assert.Equal(t, n.URL("/search.html"), webpage.Read(t, n.URL("/topicmaps.html"), a.Header, a.Bytes).Forms[0].Action)
}

// The field for words stays on pages with errors, with the words.
func TestErrorsKeepTheSearch(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", metals)
	for path, action := range map[string]string{
		"/topicmaps/m/search.html?q=iron&after=nonsense": "/topicmaps/m/search.html", "/topicmaps/m/search.html?q=iron&limit=0": "/topicmaps/m/search.html",
		"/topicmaps/m/topics/aaaaaaaaaaaaaaaaaaaaaaaaaa.html": "/topicmaps/m/search.html", "/topicmaps/none.html": "/search.html", "/search.html?q=iron&limit=0": "/search.html",
	} {
		a := n.Get(path, firefox...)
		require.GreaterOrEqual(t, a.StatusCode, 400, path)
		page := webpage.Read(t, n.URL(path), a.Header, a.Bytes)
		require.NotEmpty(t, page.Forms, path)
		assert.Equal(t, n.URL(action), page.Forms[0].Action, path)
		if strings.Contains(path, "q=iron") {
			assert.Contains(t, string(a.Bytes), `value="iron"`, path)
		}
	}
}

// OpenSearch descriptions of a map and of all have templates for pages, JSON and suggestions, which lead to these.
func TestSearchesAreDescribed(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", metals)
	for _, path := range []string{"/topicmaps/m", ""} {
		page := n.Page(path + map[bool]string{true: "/topicmaps.html", false: ".html"}[path == ""])
		assert.Contains(t, page.Links, n.URL(path+"/opensearch.xml"))
		var d struct {
			URLs []struct {
				Type     string `xml:"type,attr"`
				Offset   int    `xml:"indexOffset,attr"`
				Template string `xml:"template,attr"`
			} `xml:"Url"`
		}
		require.NoError(t, xml.Unmarshal(n.MustGet(path+"/opensearch.xml").Bytes, &d))
		kinds := map[string]string{}
		for _, u := range d.URLs {
			kinds[u.Type] = strings.NewReplacer("{searchTerms}", "iron", "{count?}", "1", "{startIndex?}", "2").Replace(u.Template)
		}
		assert.Equal(t, 1, d.URLs[1].Offset)
		found := searched(n, kinds["application/json"])
		assert.Equal(t, []string{"Iron ore"}, titles(found), "one, from the second on")
		assert.Equal(t, []int{2, 1, 3}, []int{found.StartIndex, found.ItemsPerPage, found.TotalResults})
		assert.Equal(t, []string{"Steel"}, titles(searched(n, found.Next)))
		assert.Contains(t, n.Page(kinds["text/html"]).Text, "Iron ore")
		a := n.MustGet(kinds["application/x-suggestions+json"])
		assert.Equal(t, "application/x-suggestions+json", a.MediaType())
		var answer []any
		require.NoError(t, json.Unmarshal(a.Bytes, &answer))
		require.Len(t, answer, 4)
		assert.Equal(t, []any{"iron", []any{"Iron", "Iron ore", "Steel"}}, answer[:2])
	}
	assert.Equal(t, http.StatusBadRequest, n.Get("/search?q=iron&startIndex=1001").StatusCode)
}
