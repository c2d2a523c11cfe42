package pages_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
	bidi "github.com/tmshare/tmshare/internal/titles"
	examples "github.com/tmshare/tmshare/testdata/xtm"
)

// Errors are pages for people, and stay as before for programs.
func TestErrorsArePagesForBrowsers(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	for path, status := range map[string]int{
		"/topicmaps/nope": 404, "/topicmaps/nope.html": 404, "/nothing/here": 404, "/topicmaps/m/topics.html?si=http://x/none": 404,
		"/topicmaps/m/fragments.html?before=x": 400, "/topicmaps/m/snapshots/current.xtm21?at=2001-01-01": 404,
	} {
		a := n.Get(path, chromium...)
		if a.StatusCode == http.StatusSeeOther {
			a = n.Get(a.Header.Get("Location"), chromium...)
		}
		require.Equal(t, status, a.StatusCode, path)
		require.Equal(t, pages.MediaType, a.Header.Get("Content-Type"), path)
		assert.Equal(t, pages.Policy, a.Header.Get("Content-Security-Policy"))
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		assert.Contains(t, string(a.Bytes), a.Header.Get("X-Request-Id"))
		assert.NotContains(t, string(a.Bytes), "not found:", "the title has it")
		assert.Equal(t, "application/problem+json", n.Get(path).Header.Get("Content-Type"))
		assert.Contains(t, n.Get(path, crawler...).Header.Get("Content-Type"), "text/plain")
	}
	a := n.Get("/topicmaps/%3Cscript%3Ealert(1)%3C%2Fscript%3E.html", firefox...)
	assert.NotContains(t, string(a.Bytes), "<script>")
}

// A page that does not exist gives a sentence, with links that help to find it: those of the map for its readers.
func TestWhatIsNotThereLeadsOn(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	for path, says := range map[string]string{
		"/topicmaps/m/topics/aaaaaaaaaaaaaaaaaaaaaaaaaa.html":              "There is no topic with the key aaaaaaaaaaaaaaaaaaaaaaaaaa in m.",
		"/topicmaps/m/compare.html?from=2001-01-01":                        "There is no state of m at 2001-01-01T00:00:00",
		"/topicmaps/m/topics.html?si=http://x/none":                        "No topic of m has the subject identifier http://x/none",
		"/topicmaps/m/hierarchies/aaaaaaaaaaaaaaaaaaaaaaaaaa.html":         "m shows no such hierarchy: the page of the map lists those that it has.",
		"/topicmaps/m/fragments/4b7cbbd8-7f0c-4f3e-8f3e-000000000000.html": "There is no ",
	} {
		a := n.Get(path, chromium...)
		require.Equal(t, http.StatusNotFound, a.StatusCode, path)
		text := shown(a)
		assert.Contains(t, text, says, path)
		assert.NotContains(t, text, "tmshare-", "no commands")
		for _, at := range []string{`<a href="` + n.URL("/topicmaps/m/search.html") + `">Search in m</a>`, `<a href="` + n.URL("/topicmaps/m.html") + `">its front page</a>`, `<input id="q"`} {
			assert.Contains(t, string(a.Bytes), at, path)
		}
	}
	a := n.Get("/topicmaps/nope.html", chromium...)
	assert.NotContains(t, string(a.Bytes), "Search in")
}

// A table of changes has a column for authors and notes where there is one of them.
func TestColumnsWithoutContentAreNotShown(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	assert.NotContains(t, string(n.MustGet("/topicmaps/m/fragments.html").Bytes), `<th scope="col">By</th>`)
	require.Equal(t, http.StatusOK, n.Put("m", served.Small("Oslo", "Kristiania"), "TMShare-Note", "as it was").StatusCode)
	assert.Contains(t, shown(n.MustGet("/topicmaps/m/fragments.html")), "By")
	assert.Contains(t, string(n.MustGet("/topicmaps/m/fragments.html").Bytes), `<th scope="col">By</th>`)
}

// Pages call the server by its name, in their headers and titles, and so does the feed of all maps. Without one it is
// called by its host, which titles do not have.
func TestTheServerHasAName(t *testing.T) {
	t.Parallel()
	title := regexp.MustCompile(`<title>(.*)</title>`)
	for name, want := range map[string]string{"": "", " Fjordstad vocabularies\t": "Fjordstad vocabularies"} {
		n := served.Start(t, func(c *server.Config) { c.Name = name })
		n.Publish("m", served.Small())
		for path, own := range map[string]string{"/topicmaps.html": "Topic maps", "/topicmaps/m.html": "m", served.TopicPath("m", served.Oslo) + ".html": "Oslo"} {
			page := string(n.MustGet(path).Bytes)
			if want != "" {
				own += " · " + want
			}
			assert.Equal(t, own, title.FindStringSubmatch(page)[1])
			header, _, _ := strings.Cut(page, "</header>")
			assert.Regexp(t, `class="home"[^>]*><bdi>`+cmp.Or(want, n.Address)+"</bdi>", header)
		}
		assert.Contains(t, string(n.MustGet("/topicmaps").Bytes), "Topic Maps managed by "+cmp.Or(want, n.Address))
		assert.Contains(t, string(n.MustGet("/opensearch.xml").Bytes), cmp.Or(want, n.Address))
	}
	for _, wrong := range []string{"two\nlines", strings.Repeat("x", 201)} {
		c := server.Config{Store: served.Start(t).Store, BaseURL: "http://x", Name: wrong}
		assert.ErrorContains(t, c.Validate(), "--name")
	}
}

// No text of a page turns the text after it, whatever bidirectional control characters a map has: in names, values,
// notes, titles, attributes.
func TestControlCharactersEndWithTheirText(t *testing.T) {
	t.Parallel()
	const turns, ends = "a\u202eb\u2067c", "a\u2069b\u202cc" // what begins something, what ends something
	n, b := served.Editor(t, served.Small("Oslo", turns, "Bergen", ends, "Norway", turns+ends, "Note", ends+turns))
	served.Published(t, n.Put("m", served.Small("Oslo", turns+"2", "Bergen", ends+"2", "City", turns), "Authorization", "Bearer "+served.Token,
		"TMShare-Note", turns))
	n.Settings("m", func(s *store.Settings) { s.Title, s.Summary = turns, ends+turns })
	change := regexp.MustCompile(`/topicmaps/m/fragments/[^"]*\.html`).FindString(string(n.MustGet("/topicmaps/m/fragments.html").Bytes))
	oslo, found := served.TopicPath("m", served.Oslo), 0
	for _, path := range []string{"/topicmaps.html", "/topicmaps/m.html", "/topicmaps/m/types.html", "/topicmaps/m/fragments.html", change, "/topicmaps/m/compare.html",
		"/topicmaps/m/index.html", "/topicmaps/m/search.html?q=b", "/topicmaps/m/search.html?q=" + url.QueryEscape(turns), oslo + ".html", oslo + "/edit.html", oslo + "/compare.html",
		served.TopicPath("m", served.PSI+"norway") + ".html", oslo + "/delete.html", "/topicmaps/m/nope.html"} {
		a := b.Do(path, nil)
		root, err := html.Parse(bytes.NewReader(a.Bytes))
		require.NoError(t, err)
		for node := range root.Descendants() {
			texts := []string{node.Data}
			if node.Parent != nil && node.Parent.Data == "textarea" {
				texts = nil // the value of a field is sent as it is, and turns nothing
			}
			for _, attribute := range node.Attr {
				if attribute.Key != "value" {
					texts = append(texts, attribute.Val)
				}
			}
			for _, text := range texts {
				if bidi.Closed(text) != text {
					t.Errorf("%s: %+q turns the text after it", path, text)
				}
				if strings.Contains(text, "\u202e") {
					found++
				}
			}
		}
	}
	assert.Greater(t, found, 30)
}

// The feed of SDShare 2012, and its further pages, lead browsers to the changes that it lists, and to no others.
func TestChangesSinceATimeInABrowser(t *testing.T) {
	t.Parallel()
	c := served.NewClock()
	n := served.StartOn(t, store.Options{Dir: t.TempDir(), Now: c.Now}, served.DocumentSize(2), func(cfg *server.Config) { cfg.Now = c.Now })
	_, times := served.PublishVersions(n, c, 110)
	changes := func(p served.Page) int { return strings.Count(strings.Join(p.Links, " "), "/topics/") }
	since := func(i int) string { return "?since=" + times[i].Format(time.RFC3339) }
	led := func(path string) served.Page {
		a := n.Get(path, firefox...)
		for a.StatusCode == http.StatusSeeOther {
			path = a.Header.Get("Location")
			a = n.Get(path, firefox...)
		}
		return n.Page(path)
	}
	for _, address := range []string{"/topicmaps/m/fragments", "/topicmaps/m/history"} {
		p := led(address + since(108))
		assert.Equal(t, 2, changes(p), address)
		assert.Contains(t, p.Text, "Changes since "+times[108].Format("2006-01-02 15:04:05 UTC"))
	}
	assert.Contains(t, led("/topicmaps/m/fragments?since="+times[109].Add(time.Second).Format(time.RFC3339)).Text, "Nothing has changed since then.")

	p := led("/topicmaps/m/fragments" + since(5))
	assert.Equal(t, 100, changes(p))
	i := slices.IndexFunc(p.Links, func(l string) bool { return strings.Contains(l, "before=") })
	require.GreaterOrEqual(t, i, 0)
	p = n.Page(p.Links[i])
	assert.Equal(t, 5, changes(p), "the filter holds for older entries")
	assert.NotContains(t, p.Text, "Older changes")

	n.Publish("large", served.Cities(10, "new"))
	next, ok := n.Decoded("/topicmaps/large/fragments?since=2020-01-01").Link("next")
	require.True(t, ok)
	assert.Equal(t, changes(n.Page("/topicmaps/large/fragments.html"))-2, changes(led(next.Href)), "behind the two of the first page")
	for _, wrong := range []string{"?since=yesterday", "?page=x"} {
		assert.Equal(t, http.StatusBadRequest, n.Get("/topicmaps/m/fragments.html"+wrong, firefox...).StatusCode)
	}
	at := url.QueryEscape(times[3].Format(time.RFC3339))
	to := n.Get("/topicmaps/m/topics?si="+url.QueryEscape(served.PSI+"city-0")+"&at="+at, firefox...).Header.Get("Location")
	to = n.Get(to, firefox...).Header.Get("Location")
	assert.Contains(t, to, ".html?at="+at)
}

// Numbers may be as large as a person types them: a number above the count means all.
func TestNumbersInQueries(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	for _, path := range []string{"/search?q=Oslo&limit=", "/history?limit=", "/history?before=", "/fragments.html?before="} {
		for _, large := range []string{"1", "99999999999", "99999999999999999999999999"} {
			assert.Equal(t, http.StatusOK, n.Get("/topicmaps/m"+path+large).StatusCode, path+large)
		}
		for _, wrong := range []string{"0", "-1", "1.5", "many"} {
			a := n.Get("/topicmaps/m" + path + wrong)
			assert.Equal(t, http.StatusBadRequest, a.StatusCode, path+wrong)
			assert.Contains(t, string(a.Bytes), "="+wrong+" cannot be: write a whole number above 0")
		}
	}
}

// hierarchyOf is a map with classes, subtypes of them, and a circle.
func hierarchyOf(pairs ...[2]string) []byte {
	var b bytes.Buffer
	b.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
	seen := map[string]bool{}
	for _, pair := range pairs {
		for _, name := range pair {
			if !seen[name] {
				fmt.Fprintf(&b, `<topic id="%[1]s"><subjectIdentifier href="http://x/%[1]s"/><name><value>%[1]s</value></name></topic>`, name)
				fmt.Fprintf(&b, `<topic id="one-%[1]s"><instanceOf><topicRef href="#%[1]s"/></instanceOf></topic>`, name)
			}
			seen[name] = true
		}
		fmt.Fprintf(&b, `<association><type><subjectIdentifierRef href="http://psi.topicmaps.org/iso13250/model/supertype-subtype"/></type>
			<role><type><subjectIdentifierRef href="http://psi.topicmaps.org/iso13250/model/supertype"/></type><topicRef href="#%s"/></role>
			<role><type><subjectIdentifierRef href="http://psi.topicmaps.org/iso13250/model/subtype"/></type><topicRef href="#%s"/></role></association>`, pair[0], pair[1])
	}
	b.WriteString(`</topicMap>`)
	return b.Bytes()
}

// lists returns the texts of the links of a page by how many lists they are in.
func lists(t *testing.T, page io.Reader) (all []string) {
	root, err := html.Parse(page)
	require.NoError(t, err)
	var walk func(*html.Node, int)
	walk = func(node *html.Node, depth int) {
		if node.Type == html.ElementNode && node.Data == "ul" {
			depth++
		}
		if node.Type == html.ElementNode && node.Data == "bdi" && depth > 0 {
			all = append(all, strings.Repeat(" ", depth-1)+node.FirstChild.Data)
		}
		for child := range node.ChildNodes() {
			walk(child, depth)
		}
	}
	walk(root, 0)
	return all
}

// Types are below their supertypes: below each that they have, and once where a circle leads back to them.
func TestTypesAreATree(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", hierarchyOf([2]string{"Work", "Opera"}, [2]string{"Work", "Play"}, [2]string{"Staged", "Opera"}, [2]string{"Opera", "Buffa"}))
	shown := lists(t, bytes.NewReader(n.MustGet("/topicmaps/m/types.html").Bytes))
	assert.Equal(t, []string{"Staged", " Opera", "  Buffa", "Work", " Opera", "  Buffa", " Play"}, shown)

	n.Publish("circle", hierarchyOf([2]string{"A", "B"}, [2]string{"B", "C"}, [2]string{"C", "A"}))
	shown = lists(t, bytes.NewReader(n.MustGet("/topicmaps/circle/types.html").Bytes))
	assert.Equal(t, []string{"A", " B", "  C"}, shown)

	var deep [][2]string
	for i := range 300 {
		deep = append(deep, [2]string{fmt.Sprint("d", i), fmt.Sprint("d", i+1)})
	}
	n.Publish("deep", hierarchyOf(deep...))
	a := n.MustGet("/topicmaps/deep/types.html")
	assert.Contains(t, string(a.Bytes), ">1 below<")
	n.Page("/topicmaps/deep/types.html")

	n.Publish("flat", served.Small())
	n.Page("/topicmaps/flat/types.html")
}

// A map in which types have many supertypes at many levels has more lines than memory: the page has some of them.
func TestTreeOfTypesIsBounded(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	var pairs [][2]string
	for level := range 12 {
		for a := range 8 {
			for b := range 8 {
				pairs = append(pairs, [2]string{fmt.Sprint("t", level, "-", a), fmt.Sprint("t", level+1, "-", b)})
			}
		}
	}
	n.Publish("m", hierarchyOf(pairs...))
	a := n.MustGet("/topicmaps/m/types.html")
	assert.Contains(t, string(a.Bytes), ">8 below<")
	assert.Less(t, len(a.Bytes), 64<<10)
}

// The picture of a topic leads to all that it shows, and a statement to the topic that is about it.
func TestPictureAndReifiers(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("lib", examples.Libraries)
	shown := 0
	for _, si := range n.TopicSIs("lib") {
		a := n.MustGet("/topicmaps/lib/topics/" + fragment.Key(si) + pages.Ending)
		if !bytes.Contains(a.Bytes, []byte("<svg")) {
			continue
		}
		shown++
		picture := string(a.Bytes[bytes.Index(a.Bytes, []byte("<svg")):bytes.Index(a.Bytes, []byte("</svg>"))])
		assert.Contains(t, picture, `<a href="`+n.BaseURL)
		assert.Less(t, strings.Count(picture, "<a "), 17)
	}
	assert.Greater(t, shown, 3)

	n.Publish("m", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
		<topic id="a"><subjectIdentifier href="http://x/a"/><name reifier="#r"><value>A &lt;b&gt; name that is far too long for a box</value></name>
		<occurrence reifier="#r2"><type><topicRef href="#a"/></type><resourceData>v</resourceData></occurrence></topic>
		<topic id="r"><subjectIdentifier href="http://x/r"/><name><value>The naming</value></name></topic>
		<topic id="r2"><subjectIdentifier href="http://x/r2"/><name><value>The saying</value></name></topic>
		<topic id="r3"><subjectIdentifier href="http://x/r3"/><name><value>The tie</value></name></topic>
		<association reifier="#r3"><type><topicRef href="#a"/></type><role><type><topicRef href="#a"/></type><topicRef href="#a"/></role><role><type><topicRef href="#a"/></type><topicRef href="#r"/></role></association>
		</topicMap>`))
	p := n.Page("/topicmaps/m/topics/" + fragment.Key("http://x/a") + pages.Ending)
	for _, title := range []string{"The naming", "The saying", "The tie"} {
		assert.Contains(t, p.Text, "about this: "+title)
	}
	assert.Contains(t, p.Text, "A <b> name that is far t…")
	const a = "A <b> name that is far too long for a box"
	for id, says := range map[string]string{"r": "Name: " + a + " of " + a, "r2": "Occurrence: v of " + a + " " + a, "r3": "Association: " + a + " (" + a + ": " + a + "; " + a + ": The naming)"} {
		p := n.Page("/topicmaps/m/topics/" + fragment.Key(fragment.Ref("http://x/"+id)) + pages.Ending)
		assert.Contains(t, strings.Join(strings.Fields(p.Text), " "), "What it is about "+says)
		assert.Contains(t, p.Links, n.URL("/topicmaps/m/topics/"+fragment.Key("http://x/a")+pages.Ending))
	}
}

// Every address of a history leads a browser to a page.
func TestPagesOfArchiveDocumentsAndHistories(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Cities(250, "a"))
	archived := ""
	for _, l := range n.Feed("/topicmaps/m/fragments").Links {
		if l.Rel == "prev-archive" {
			archived = l.Href
		}
	}
	require.NotEmpty(t, archived)
	follow := func(path string) served.Page {
		t.Helper()
		for range 4 {
			a := n.Get(path, chromium...)
			if a.StatusCode != http.StatusSeeOther {
				require.Equal(t, http.StatusOK, a.StatusCode, path)
				return n.Page(path)
			}
			path = a.Header.Get("Location")
		}
		t.Fatal("led on and on")
		return served.Page{}
	}
	assert.Equal(t, "Changes", follow(archived).Title)
	assert.Equal(t, "Changes", follow("/topicmaps/m/history").Title)
	assert.Equal(t, "Changes", follow("/topicmaps/m/history?before=7").Title)
	si := n.TopicSIs("m")[0]
	assert.Contains(t, follow("/topicmaps/m/history?si="+url.QueryEscape(string(si))).Text, "History")
}

// The page of a map shows the number of changes since its first publication, and the number of topics.
func TestPlotsOfAMap(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Cities(20, "a"))
	assert.NotContains(t, string(n.MustGet("/topicmaps/m.html").Bytes), "<svg", "nothing has changed yet")
	for i := range 5 {
		n.MustPut("m", served.Cities(20, fmt.Sprint("b", i)))
	}
	before := n.Page("/topicmaps/m.html")
	assert.Contains(t, before.Text, "Changes over time")
	assert.Contains(t, before.Text, "greatest 100")
	require.Equal(t, http.StatusCreated, n.Do(http.MethodPost, "/topicmaps/m/snapshots", nil).StatusCode)
	after := n.Page("/topicmaps/m.html")
	assert.NotEqual(t, before.Text, after.Text, "a snapshot is shown, although the state is the same")
	require.Equal(t, http.StatusOK, n.Do(http.MethodPost, "/topicmaps/m/gc", nil).StatusCode)
	n.Page("/topicmaps/m.html")
}

// Languages and datatypes are shown as people know them; the title of each is the whole IRI.
func TestLanguagesAndDatatypesAreCalledAsPeopleDo(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	const language, xsd = "https://github.com/tmshare/tmshare/ns/1/language/de-ch", "http://www.w3.org/2001/XMLSchema#"
	n.Publish("m", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="de"><subjectIdentifier href="`+language+`"/></topic>
<topic id="made"><subjectIdentifier href="http://x/made"/></topic><topic id="a"><subjectIdentifier href="http://x/a"/>
<name><scope><topicRef href="#de"/></scope><value>Zürich</value></name>
<occurrence><type><topicRef href="#made"/></type><resourceData datatype="`+xsd+`date">2020-01-01</resourceData></occurrence>
<occurrence><type><topicRef href="#made"/></type><resourceData datatype="http://x/types#code">7</resourceData></occurrence></topic></topicMap>`))
	page := string(n.MustGet("/topicmaps/m/topics/" + fragment.Key("http://x/a") + pages.Ending).Bytes)
	assert.Contains(t, page, `title="`+language+`"><bdi>Swiss High German</bdi>`)
	assert.Contains(t, page, `<small title="`+xsd+`date">xsd:date</small>`)
	assert.Contains(t, page, `<small title="http://x/types#code">code (x)</small>`)
}
