package pages_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The page of a map shows the changes of each commit, its author and its reason, and links to them. A person with the
// right to write finds the form that undoes it.
func TestTheMapTellsOfItsCommits(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small(), served.DocumentSize(2))
	put := func(doc []byte, note string) {
		served.Published(t, n.Put("m", doc, "Authorization", "Bearer "+served.Token, "TMShare-Note", note))
	}
	put(served.Small("Oslo", "Christiania"), "An old name")
	put(served.TopicMap(served.Topic("oslo", "Oslo")), "All but one gone")
	text := strings.Join(strings.Fields(n.Page("/topicmaps/m.html").Text), " ")
	assert.Regexp(t, `\d:\d\d: 1 changed, 8 deleted by Ada: All but one gone what has changed.*\d:\d\d: 1 changed \(Christiania\) by Ada: An old name what has changed.*\d:\d\d: 10 added what has changed`, text)
	assert.NotContains(t, text, "undo")
	looks := regexp.MustCompile(`<a href="([^"]*)">what has changed</a>`).FindAllStringSubmatch(string(n.MustGet("/topicmaps/m.html").Bytes), -1)
	require.Len(t, looks, 3)
	for i, says := range []string{"9 changes", "1 change ", "10 changes"} {
		to := strings.ReplaceAll(looks[i][1], "&amp;", "&")
		text := n.Page(strings.TrimPrefix(to, n.BaseURL)).Text
		assert.Contains(t, text, says)
		assert.Equal(t, i != 1, strings.Contains(text, "Bergen "), "a deleted topic keeps its name")
	}
	assert.Contains(t, string(b.Do("/topicmaps/m.html", nil).Bytes), "undo</a>")
}

// The page of a map shows in which languages its topics have names, and leads to those that lack one.
func TestTheMapTellsOfItsLanguages(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(`@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix : <http://e/> .
		:dog skos:prefLabel "dog"@en, "Hund"@de . :cat skos:prefLabel "cat"@en . :cow skos:prefLabel "cow"@en .`), "Content-Type", "text/turtle").StatusCode)
	german := served.TextOf(t, n.Get("/topicmaps/voc/fragments.html", "Accept-Language", "de"))
	english := served.TextOf(t, n.Get("/topicmaps/voc/fragments.html", "Accept-Language", "en"))
	assert.Contains(t, german, "Hund", "changes call topics in the language of who reads")
	assert.Contains(t, english, "dog")
	assert.NotContains(t, english, "Hund")
	page := n.Page("/topicmaps/voc.html")
	text := strings.Join(strings.Fields(page.Text), " ")
	assert.Contains(t, text, "German12 fewer")
	assert.Contains(t, text, "English3")
	without := regexp.MustCompile(`<a href="([^"]*)">2 fewer</a>`).FindStringSubmatch(string(n.MustGet("/topicmaps/voc.html").Bytes))
	require.NotNil(t, without)
	list := lineOf(n, strings.TrimPrefix(strings.ReplaceAll(without[1], "&amp;", "&"), n.BaseURL))
	assert.Contains(t, list, "Only what has no name in this language: German. All topics catcow")
}

// Commits stand under the months in which they were made, the newest first. A first publication adds all of its topics,
// however many.
func TestCommitsStandByMonth(t *testing.T) {
	t.Parallel()
	clock := served.NewClock()
	n := served.StartOn(t, store.Options{Dir: t.TempDir(), Now: clock.Now})
	n.Publish("m", served.Cities(600, "first"))
	clock.Set(time.Date(2026, 2, 3, 14, 5, 6, 0, time.UTC))
	n.MustPut("m", served.Cities(600, "second"))
	clock.Set(time.Date(2026, 2, 28, 23, 59, 0, 0, time.UTC))
	n.MustPut("m", served.Cities(601, "second"))
	text := func(language string) string {
		return strings.Join(strings.Fields(served.TextOf(t, n.MustGet("/topicmaps/m.html", "Accept-Language", language))), " ")
	}
	assert.Regexp(t, `February 2026 28 Feb, 23:59: 1 added \(second\) what has changed · undo3 Feb, 14:05: 600 changes of topics what has changed · undo January 2026 2 Jan, 03:04: 601 added what has changed`, text("en"))
	assert.Regexp(t, `Februar 2026 28. Feb, 23:59: 1 hinzugefügt .*3. Feb, 14:05: 600 Änderungen von Themen .*Januar 2026 2. Jan, 03:04: 601 hinzugefügt`, text("de"))
}

// Changes are narrowed to those of a kind, on every page of them.
func TestChangesAreNarrowedToAKind(t *testing.T) {
	t.Parallel()
	n := served.Start(t, func(c *server.Config) { c.MaxDelete = losses.All() })
	n.Publish("m", served.Cities(150, "first"))
	n.MustPut("m", served.Cities(150, "second"))
	n.MustPut("m", served.Cities(145, "second"))
	walk := func(path string) (kinds map[string]int, pages int) {
		kinds = map[string]int{}
		for path != "" {
			a := n.MustGet(path)
			for _, kind := range regexp.MustCompile(`data-label="What">([^<]*)<`).FindAllStringSubmatch(string(a.Bytes), -1) {
				kinds[kind[1]]++
			}
			pages++
			path = ""
			if older := regexp.MustCompile(`<a href="([^"]*)" rel="next">`).FindStringSubmatch(string(a.Bytes)); older != nil {
				path = "/topicmaps/m/fragments.html" + html.UnescapeString(older[1])
			}
		}
		return kinds, pages
	}
	ofKind := func(name string) string { return "/topicmaps/m/fragments.html?kind=" + name }
	all, _ := walk("/topicmaps/m/fragments.html")
	assert.Equal(t, map[string]int{"added": 151, "changed": 150, "deleted": 5}, all)
	for kind, want := range map[string][2]int{"added": {151, 2}, "changed": {150, 2}, "deleted": {5, 1}} {
		kinds, pages := walk(ofKind(kind))
		assert.Equal(t, map[string]int{kind: want[0]}, kinds)
		assert.Equal(t, want[1], pages, kind)
	}
	page := n.Page(ofKind("added"))
	for _, to := range []string{"/topicmaps/m/fragments.html", ofKind("changed"), ofKind("deleted")} {
		assert.Contains(t, page.Links, n.URL(to))
	}
	assert.NotContains(t, page.Text, "Newest changes", "these are the newest")
	older := n.Page(ofKind("added") + "&before=200")
	assert.Contains(t, older.Links, n.URL(ofKind("added")), "back to the newest of this kind")
	assert.Equal(t, http.StatusBadRequest, n.Get(ofKind("nothing")).StatusCode)
	n.Publish("quiet", served.Small())
	assert.Contains(t, lineOf(n, "/topicmaps/quiet/fragments.html?kind=deleted"), "No change is of this kind.")
}
