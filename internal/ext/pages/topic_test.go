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

// Associations say the role of the others once, where all have the same, and with each of them elsewhere.
func TestRolesOfAssociations(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	role := func(typ, player string) string {
		return `<role><type><topicRef href="#` + typ + `"/></type><topicRef href="#` + player + `"/></role>`
	}
	doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`
	for _, name := range []string{"Oslo", "Norway", "Europe", "Bergen", "Contains", "Place", "Part", "Meeting", "Host", "Guest", "Seat"} {
		doc += `<topic id="` + name + `"><subjectIdentifier href="http://x/` + name + `"/><name><value>` + name + `</value></name></topic>`
	}
	doc += `<association><type><topicRef href="#Contains"/></type>` + role("Place", "Norway") + role("Part", "Oslo") + `</association>
		<association><type><topicRef href="#Contains"/></type>` + role("Place", "Norway") + role("Part", "Bergen") + `</association>
		<association><type><topicRef href="#Meeting"/></type>` + role("Host", "Norway") + role("Guest", "Europe") + role("Seat", "Oslo") + `</association></topicMap>`
	n.Publish("m", []byte(doc))
	text := strings.Join(strings.Fields(n.Page(served.TopicPath("m", "http://x/Norway")+pages.Ending).Text), " ")
	assert.Contains(t, text, "Contains as Place, with Part BergenOslo")
	assert.Contains(t, text, "Meeting as Host Guest: Europe; Seat: Oslo")
}

// A topic without a name is shown by the readable part of its identifier. Pointing at it shows the whole one.
func TestWhatHasNoNameIsCalledByItsIdentifier(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	si := "http://example.org/" + strings.Repeat("long/", 30) + "end"
	n.Publish("m", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="t"><subjectIdentifier href="http://x/t"/>
		<instanceOf><topicRef href="#class"/></instanceOf></topic><topic id="class"><subjectIdentifier href="`+si+`"/></topic></topicMap>`))
	for _, path := range []string{served.TopicPath("m", "http://x/t"), "/topicmaps/m", "/topicmaps/m/fragments", "/topicmaps/m/types"} {
		body := string(n.MustGet(path + pages.Ending).Bytes)
		assert.Contains(t, body, `title="`+si+`"><bdi>end (example.org)</bdi>`, path)
	}
	assert.Contains(t, n.Page(served.TopicPath("m", si)+pages.Ending).Text, si)
}

// A field for a time has a second one with the time that the page shows.
func TestFieldForATime(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	topic := served.TopicPath("m", string(n.TopicSIs("m")[0])) + pages.Ending
	path := topic
	for range 2 { // now, and as of then
		a := n.MustGet(path)
		at := regexp.MustCompile(`<input id="at" name="at" type="datetime-local" step="1" value="([^"]+)"`).FindSubmatch(a.Bytes)
		require.NotNil(t, at)
		path = topic + "?at=" + string(at[1])
		assert.Equal(t, http.StatusOK, n.Get(path).StatusCode)
	}
}

// Feeds call topics in the language of the map, and pages in that of who reads.
func TestPagesAreInTheLanguageOfWhoReads(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	language := func(tag string) string {
		return `<topic id="` + tag + `"><subjectIdentifier href="https://github.com/tmshare/tmshare/ns/1/language/` + tag + `"/></topic>`
	}
	topic := func(id, types, english, german string) string {
		return `<topic id="` + id + `"><subjectIdentifier href="http://x/` + id + `"/>` + types + `
			<name><scope><topicRef href="#en"/></scope><value>` + english + `</value></name>
			<name><scope><topicRef href="#de"/></scope><value>` + german + `</value></name></topic>`
	}
	n.Publish("m", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`+language("en")+language("de")+
		topic("oak", `<instanceOf><topicRef href="#tree"/></instanceOf>`, "oak", "Eiche")+topic("tree", "", "tree", "Baum")+`
		<topic id="tax"><subjectIdentifier href="http://x/tax"/><name><scope><topicRef href="#de"/></scope><value>Steuer</value></name></topic>
		<topic id="toll"><subjectIdentifier href="http://x/toll"/><name><scope><topicRef href="#de"/></scope><value>Maut</value></name></topic></topicMap>`))
	oak := served.TopicPath("m", "http://x/oak") + pages.Ending
	etags := map[string]bool{}
	for i, c := range []struct{ query, accept, oak, tree string }{
		{"", "", "Eiche", "Baum"}, {"", "fr, de", "Eiche", "Baum"}, {"", "en-GB,en;q=0.9", "oak", "tree"}, {"?lang=en", "de", "oak", "tree"},
	} {
		a := n.MustGet(oak+c.query, "Accept-Language", c.accept)
		assert.Contains(t, string(a.Bytes), "<title>"+c.oak+"</title>", i)
		assert.Contains(t, string(a.Bytes), ">"+c.tree+"</bdi></a>", i)
		assert.Contains(t, strings.Join(a.Header.Values("Vary"), ", "), "Accept-Language", i)
		etags[a.Header.Get("ETag")] = true
		types := string(n.MustGet("/topicmaps/m/types"+pages.Ending+c.query, "Accept-Language", c.accept).Bytes)
		assert.Contains(t, types, ">"+c.tree+"</bdi>", i)
		found := string(n.MustGet("/topicmaps/m/search?q=http://x/oak&"+strings.TrimPrefix(c.query, "?"), "Accept-Language", c.accept).Bytes)
		assert.Contains(t, found, `"title":"`+c.oak+`"`, i)
	}
	assert.Len(t, etags, 4)
	feed := string(n.MustGet("/topicmaps/m/fragments", "Accept-Language", "en").Bytes)
	assert.Contains(t, feed, ">Eiche<")
	assert.NotContains(t, feed, ">oak<")
}

// Names and texts have the language that the map gives them, and its direction, wherever they stand. A concept has its
// notation before its name.
func TestNamesAndTextsHaveTheirLanguages(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	doc := skosPrefixes + `:a skos:prefLabel "كتاب"@ar ; skos:altLabel "Kitab"@en ; skos:definition "Ein Ding zum Lesen"@de, "no language" ; skos:notation "1.10" ; skos:related :b .
:b skos:prefLabel "Heft"@de-CH ; skos:notation "1.2" . :c skos:prefLabel "ספר"@he ; skos:related :b .`
	publishTurtle(t, n, "m", doc)
	const arabic, hebrew, german = ` lang="ar" dir="rtl">كتاب<`, ` lang="he" dir="rtl">ספר<`, ` lang="de-ch" dir="ltr">Heft<`
	a := string(n.MustGet(served.TopicPath("m", "http://x/a") + pages.Ending).Bytes)
	for _, want := range []string{
		`<h1 lang="ar" dir="rtl"><span class="notation">1.10</span> كتاب</h1>`, `<bdi class="text"` + arabic, `<bdi class="text" lang="en" dir="ltr">Kitab<`,
		`<bdi class="text" lang="de" dir="ltr">Ein Ding`, `<bdi class="text">no language<`, `<span class="notation">1.2</span> <bdi` + german, `lang="de-ch">Heft</text>`,
	} {
		assert.Contains(t, a, want)
	}
	b := string(n.MustGet(served.TopicPath("m", "http://x/b") + pages.Ending).Bytes)
	assert.Contains(t, b, "<bdi"+arabic)
	assert.Contains(t, b, "<bdi"+hebrew)
	found := string(n.MustGet("/topicmaps/m/search.html?q=Kitab").Bytes)
	assert.Contains(t, found, "<bdi"+arabic)
	assert.Contains(t, found, `<bdi class="text" lang="en" dir="ltr"><mark>Kitab<`)
	publishTurtle(t, n, "m", strings.ReplaceAll(doc, "Ein Ding", "Etwas"))
	e := n.Feed("/topicmaps/m/fragments").Entries[0]
	changed := string(n.MustGet(strings.TrimPrefix(served.DataURL(t, e), n.BaseURL) + pages.Ending).Bytes)
	assert.Contains(t, changed, `<bdi class="text" lang="de" dir="ltr">Etwas zum Lesen<`)
	assert.Contains(t, changed, `<bdi class="text" lang="de" dir="ltr">Ein Ding zum Lesen<`)
}
