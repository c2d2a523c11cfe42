package pages_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/webpage"
	examples "github.com/tmshare/tmshare/testdata/xtm"
)

// searched returns the answer to a search as JSON.
func searched(n *served.Node, url string) (found pages.Search) {
	n.T.Helper()
	a := n.MustGet(url)
	require.Equal(n.T, "application/json", a.Header.Get("Content-Type"))
	require.NoError(n.T, json.Unmarshal(a.Bytes, &found))
	return found
}

func titles(found pages.Search) (all []string) {
	for _, r := range found.Results {
		all = append(all, r.Title)
	}
	return all
}

// namedMap is a map of topics with one name each.
func namedMap(names ...string) []byte {
	var b strings.Builder
	b.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
	for i, name := range names {
		fmt.Fprintf(&b, `<topic id="t%d"><subjectIdentifier href="http://x/t/%d"/><name><value>`, i, i)
		_ = xml.EscapeText(&b, []byte(name))
		b.WriteString(`</value></name></topic>`)
	}
	return []byte(b.String() + `</topicMap>`)
}

// A topic is found from the page of the map, by its names in any scope, and by its identifiers.
func TestTopicsAreFoundByName(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("lib", examples.Libraries)
	const identifier = "https://psi.egov.example.org/authority/fjordstad-public-library" // beside the TopicSI
	const topicSI = "https://psi.libraries.example.org/library/fjordstad"

	a := n.MustGet("/topicmaps/lib.html")
	home := webpage.Read(t, n.URL("/topicmaps/lib.html"), a.Header, a.Bytes)
	require.Contains(t, home.Links, n.URL("/topicmaps/lib/opensearch.xml"))
	form := home.Forms[0]
	require.Equal(t, "GET", form.Method)
	require.Contains(t, form.Fields, "q")
	for _, words := range []string{"fjordstad public library", "FJORDSTÄD", "folkebibliotek", "libr fjord"} {
		page := n.Page(form.Action + "?q=" + url.QueryEscape(words))
		assert.Equal(t, "Topics found for “"+words+"”", page.Title)
		assert.Contains(t, page.Text, "Fjordstad Public Library", words)
	}
	page := n.Page(form.Action + "?q=folkebibliotek")
	assert.Contains(t, page.Text, "also called")
	assert.Contains(t, page.Text, "Fjordstad folkebibliotek")
	assert.Contains(t, n.Page(form.Action+"?q=nothing+is+called+so").Text, "No topic is found")
	assert.Contains(t, n.Page(form.Action).Text, "Write the name of a topic")

	found := searched(n, "/topicmaps/lib/search?q=folkebibliotek")
	require.NotEmpty(t, found.Results)
	at := slices.IndexFunc(found.Results, func(r pages.Result) bool { return r.TopicSI == topicSI })
	require.GreaterOrEqual(t, at, 0)
	r := found.Results[at]
	assert.Equal(t, "Fjordstad Public Library", r.Title)
	assert.Equal(t, "name", r.Match.Kind)
	assert.Equal(t, "Fjordstad folkebibliotek", r.Match.Value)
	require.Len(t, r.Match.Scope, 1)
	assert.Equal(t, "https://psi.egov.example.org/language/nb", r.Match.Scope[0].TopicSI)
	require.NotEmpty(t, r.Types)
	n.MustGet(r.URL)

	for _, given := range []string{identifier, "  " + topicSI + " "} {
		a := n.Get("/topicmaps/lib/search.html?q=" + url.QueryEscape(given))
		require.Equal(t, http.StatusSeeOther, a.StatusCode)
		assert.Equal(t, "Fjordstad Public Library", n.Page(a.Header.Get("Location")).Title)
		assert.Equal(t, topicSI, searched(n, "/topicmaps/lib/search?q="+url.QueryEscape(given)).Results[0].TopicSI)
	}
	under := searched(n, "/topicmaps/lib/search?q="+url.QueryEscape("https://psi.egov.example.org/authority/f"))
	assert.Contains(t, titles(under), "Fjordstad Public Library")
	assert.Equal(t, "identifier", under.Results[0].Match.Kind)

	// A topic that is gone has a page, too.
	require.Equal(t, http.StatusOK, n.Delete("lib", topicSI).StatusCode)
	assert.Len(t, searched(n, "/topicmaps/lib/search?q=folkebibliotek").Results, len(found.Results)-1)
	a = n.Get("/topicmaps/lib/search.html?q=" + url.QueryEscape(topicSI))
	require.Equal(t, http.StatusSeeOther, a.StatusCode)
	n.Page(a.Header.Get("Location"))
}

// Programs get JSON, browsers are led to the page.
func TestSearchesHaveAPage(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", namedMap("Oslo", "Bergen"))
	a := n.Get("/topicmaps/m/search?q=oslo", firefox...)
	require.Equal(t, http.StatusSeeOther, a.StatusCode)
	assert.Equal(t, n.URL("/topicmaps/m/search.html?q=oslo"), a.Header.Get("Location"))
	for path, problem := range map[string]string{
		"/topicmaps/m/search": "?q=WORDS", "/topicmaps/m/search?q=+": "?q=WORDS", "/topicmaps/m/search?q=a&limit=x": "?limit=", "/topicmaps/m/search?q=a&limit=0": "?limit=",
		"/topicmaps/m/search?q=a&after=nonsense": "search again", "/topicmaps/m/search.html?q=a&after=nonsense": "search again",
	} {
		a := n.Get(path)
		assert.Equal(t, http.StatusBadRequest, a.StatusCode, path)
		assert.Contains(t, string(a.Bytes), problem, path)
	}

	// An answer is that of a state of the map.
	for _, path := range []string{"/topicmaps/m/search?q=oslo", "/topicmaps/m/search.html?q=oslo", "/topicmaps/m/opensearch.xml"} {
		tag := n.MustGet(path).Header.Get("ETag")
		require.NotEmpty(t, tag)
		assert.Equal(t, http.StatusNotModified, n.Get(path, "If-None-Match", tag).StatusCode, path)
	}
	tag := n.MustGet("/topicmaps/m/search?q=tromso").Header.Get("ETag")
	n.MustPut("m", namedMap("Oslo", "Tromsø"))
	assert.Equal(t, []string{"Tromsø"}, titles(searched(n, "/topicmaps/m/search?q=tromso")))
	assert.Equal(t, http.StatusOK, n.Get("/topicmaps/m/search?q=tromso", "If-None-Match", tag).StatusCode)
	assert.Empty(t, searched(n, "/topicmaps/m/search?q=bergen").Results)
}

// An OpenSearch description shows how to search (OpenSearch 1.1).
func TestSearchIsDescribed(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", namedMap("Oslo"))
	n.MustSet("m", `{"title":"A <long> title of a map & more"}`)
	a := n.MustGet("/topicmaps/m/opensearch.xml")
	assert.Equal(t, "application/opensearchdescription+xml", a.Header.Get("Content-Type"))
	var d struct {
		XMLName     xml.Name `xml:"http://a9.com/-/spec/opensearch/1.1/ OpenSearchDescription"`
		ShortName   string
		Description string
		URLs        []struct {
			Type     string `xml:"type,attr"`
			Template string `xml:"template,attr"`
		} `xml:"Url"`
	}
	require.NoError(t, xml.Unmarshal(a.Bytes, &d))
	assert.Equal(t, "A <long> title …", d.ShortName)
	assert.Equal(t, "Topics of A <long> title of a map & more", d.Description)
	for i, path := range []string{"/topicmaps/m/search.html?q=oslo", "/topicmaps/m/search?q=oslo&limit="} {
		to := strings.NewReplacer("{searchTerms}", "oslo", "{count?}", "", "&startIndex={startIndex?}", "").Replace(d.URLs[i].Template)
		assert.Equal(t, n.URL(path), to)
	}
	assert.Len(t, searched(n, "/topicmaps/m/search?q=oslo&limit=").Results, 1, "an optional parameter may be empty")
}

// The results have several pages. Each topic is on one of them.
func TestFoundTopicsArePaged(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	var names []string
	for i := range 230 {
		names = append(names, fmt.Sprintf("Name %d of many", i))
	}
	n.Publish("m", namedMap(names...))
	for _, query := range []string{"many", "many nam", "http://x/t/"} {
		seen := map[string]bool{}
		path := n.URL("/topicmaps/m/search.html?q=" + url.QueryEscape(query))
		for range 20 {
			page := n.Page(path)
			path = ""
			for _, l := range page.Links {
				if strings.Contains(l, "/topics/") && strings.HasSuffix(l, ".html") {
					assert.False(t, seen[l], "%s is found twice", l)
					seen[l] = true
				}
				if strings.Contains(l, "after=") && !strings.Contains(l, "ui=") && !strings.Contains(l, "#") {
					path = l
				}
			}
			if path == "" {
				break
			}
		}
		assert.Len(t, seen, 230, query)
		found := searched(n, "/topicmaps/m/search?limit=1000&q="+url.QueryEscape(query))
		require.Len(t, found.Results, 100)
		rest := searched(n, found.Next)
		require.Len(t, rest.Results, 100)
		require.NotEqual(t, found.Results[0], rest.Results[0])
		require.Len(t, searched(n, rest.Next).Results, 30)
	}
}

// Names may be anything, and as long as they like.
func TestHostileNamesAreFound(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", namedMap(
		"findme <script>alert(1)</script>", `findme "><img src=x onerror=alert(1)>`, "findme \u202E evil", "findme "+strings.Repeat("x", 1<<20), "findme javascript:alert(1)",
	))
	for _, query := range []string{"findme", `<script>alert(1)</script>`, `"><img src=x>`, "javascript:alert(1)", "\x00\xff\u202E", strings.Repeat("findme ", 500)} {
		a := n.MustGet("/topicmaps/m/search.html?q=" + url.QueryEscape(query))
		assert.Less(t, len(a.Bytes), 20_000)
		assert.NotContains(t, string(a.Bytes), "<script>")
		assert.NotContains(t, string(a.Bytes), "<img")
		n.Page("/topicmaps/m/search.html?q=" + url.QueryEscape(query))
		assert.Less(t, len(n.MustGet("/topicmaps/m/search?q="+url.QueryEscape(query)+"x").Bytes), 20_000)
	}
	found := searched(n, "/topicmaps/m/search?q=findme+xxxx")
	require.NotEmpty(t, found.Results)
	assert.Equal(t, 1<<20+7, found.Results[0].Match.Cut)
}

// A search costs as much for a topic of which many words begin as asked for as for a topic with one such word. Themes
// count once.
func TestASearchCostsWhatTheTopicsCost(t *testing.T) {
	n := served.Start(t)
	n.Publish("m", []byte(testhostile.ThemedNames(300, 50)))
	for _, form := range []string{"search", "search.html"} {
		var took [2]uint64
		for i, query := range []string{"n1000", "n1"} {
			n.Ask("/topicmaps/m/" + form + "?q=" + query + "&limit=3")
			took[i] = served.Allocates(func() { require.Equal(t, http.StatusOK, n.Ask("/topicmaps/m/"+form+"?q="+query+"&limit=4").Status) })
		}
		assert.Less(t, took[1], 4*took[0], form)
	}
}

// A search whose time is over reports it, shows the results until then, and its next pages have the rest.
func TestASearchThatIsEndedSaysSo(t *testing.T) {
	shown, site := pages.Extension()
	n := served.Start(t, func(c *server.Config) { c.Parts = extension.Parts([]extension.Extension{shown}) })
	site().SearchWithin = 1
	var names, got []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("Oslo %02d", i))
	}
	n.Publish("m", namedMap(names...))
	for next := n.URL("/topicmaps/m/search?q=oslo"); next != ""; {
		found := searched(n, next)
		if found.Next != "" {
			assert.Contains(t, found.Ended, "The search was ended after 1ns")
			page := n.MustGet(strings.Replace(next, "/search?", "/search.html?", 1))
			assert.Contains(t, string(page.Bytes), found.Ended)
		}
		got, next = append(got, titles(found)...), found.Next
	}
	assert.ElementsMatch(t, names, got)
	site().SearchWithin = 0
	assert.Empty(t, searched(n, "/topicmaps/m/search?q=oslo+0").Ended)
}

// A topic that is found has five of its types, and a sign where it has others.
func TestTypesOfWhatIsFound(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`
	for _, topic := range []struct {
		name  string
		types int
	}{{"five", 5}, {"six", 6}} {
		doc += `<topic id="` + topic.name + `">`
		for i := range topic.types {
			doc += fmt.Sprintf(`<instanceOf><topicRef href="#kind%d"/></instanceOf>`, i)
		}
		doc += `<name><value>` + topic.name + `</value></name></topic>`
	}
	for i := range 6 {
		doc += fmt.Sprintf(`<topic id="kind%[1]d"><name><value>kind %[1]d</value></name></topic>`, i)
	}
	n.Publish("m", []byte(doc+`</topicMap>`))
	for query, more := range map[string]bool{"five": false, "six": true} {
		_, text, _ := strings.Cut(string(n.MustGet("/topicmaps/m/search.html?q="+query).Bytes), `<ol class="hits">`)
		assert.Equal(t, 5, strings.Count(text, ">kind "), query)
		assert.Equal(t, more, strings.Contains(text, "…"), query)
	}
}
