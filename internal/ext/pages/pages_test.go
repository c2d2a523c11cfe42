package pages_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/webpage"
	examples "github.com/tmshare/tmshare/testdata/xtm"
)

// The requests of browsers for a page (2026), and the requests of programs.
var (
	chromium = []string{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7", "Upgrade-Insecure-Requests", "1"}
	firefox  = []string{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Sec-Fetch-Mode", "navigate"}
	java     = []string{"Accept", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"}
	crawler  = []string{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
	script   = []string{"Accept", "*/*", "Sec-Fetch-Mode", "cors"}
)

// Every page leads on, and all that pages lead to on this server is there.
func TestAllPagesAreLinked(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := served.Start(t)
	n.Publish("small", served.Small())
	if testenv.All() {
		n.Publish("lib", examples.Libraries)
		n.MustPut("lib", bytes.ReplaceAll(examples.Libraries, []byte("<baseNameString>"), []byte("<baseNameString>New: ")))
	}
	seen, todo, shown := map[string]bool{}, []string{n.URL("/topicmaps.html")}, 0
	entries, validator := 0, webpage.NewValidator(t)
	for len(todo) > 0 {
		at, _, _ := strings.Cut(todo[0], "#")
		if todo = todo[1:]; seen[at] || !strings.HasPrefix(at, n.BaseURL) || strings.Contains(at, "ui=") { // in other languages
			continue
		}
		seen[at] = true
		if path, _, _ := strings.Cut(at, "?"); !strings.HasSuffix(path, pages.Ending) {
			opensAsItSays(t, n, at)
			a := n.Get(at)
			if a.StatusCode == http.StatusSeeOther { // an identifier that was given here
				todo = append(todo, a.Header.Get("Location"))
				continue
			}
			assert.Equal(t, http.StatusOK, a.StatusCode, at)
			if a.MediaType() == feeds.MediaTypeAtom { // a reader of feeds opens the page of an entry
				feed, err := feeds.Decode(bytes.NewReader(a.Bytes), at, feeds.Limits{})
				if err != nil { // an entry alone
					continue
				}
				for i := range feed.Entries {
					if page := pageOf(&feed.Entries[i]); page != "" {
						todo, entries = append(todo, page), entries+1
					}
				}
			}
			continue
		}
		a := n.Get(at)
		if to := a.Header.Get("Location"); to != "" { // a part of a page
			todo = append(todo, to)
			continue
		}
		require.Equal(t, http.StatusOK, a.StatusCode, at)
		shown++
		validator.Add(at, a.Bytes)
		p := webpage.Read(t, at, a.Header, a.Bytes)
		assert.NotEmpty(t, p.Title)
		todo = append(todo, p.Links...)
	}
	assert.Greater(t, shown, 40)
	assert.Greater(t, entries, 20)
	for _, path := range []string{"/topicmaps", "/topicmaps/small/fragments", "/topicmaps/small/types.html"} {
		assert.True(t, seen[n.URL(path)], path)
	}
}

// opensAsItSays follows a link as a browser does: one that names a form, or asks for data, opens that, and any other one
// a page.
func opensAsItSays(t *testing.T, n *served.Node, link string) {
	t.Helper()
	u, err := url.Parse(link)
	require.NoError(t, err)
	form := path.Ext(u.Path)
	data := u.Query().Get("as") == "data" || form != "" && len(form) < 7 || strings.HasPrefix(u.Path, "/.well-known/") || path.Base(u.Path) == "ldes"
	a := n.Get(link, firefox...)
	for hops := 0; a.StatusCode == http.StatusSeeOther && hops < 5; hops++ {
		a = n.Get(a.Header.Get("Location"), firefox...)
	}
	assert.Equal(t, http.StatusOK, a.StatusCode, link)
	assert.Equal(t, data, a.MediaType() != "text/html", "%s is %s", link, a.MediaType())
}

// Browsers are led to pages, programs get the same answers as before.
func TestPagesAreForBrowsers(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("lib", examples.Libraries)
	e := n.Feed("/topicmaps/lib/fragments").Entries[0]
	topic := "/topicmaps/lib/topics/" + fragment.Key(n.TopicSIs("lib")[0])
	for _, path := range []string{"/topicmaps", "/topicmaps/lib", "/topicmaps/lib/fragments", topic, strings.TrimPrefix(served.DataURL(t, e), n.BaseURL)} {
		for _, browser := range [][]string{chromium, firefox} {
			a := n.Get(path, browser...)
			assert.Equal(t, http.StatusSeeOther, a.StatusCode, path)
			assert.Equal(t, n.URL(path)+pages.Ending, a.Header.Get("Location"))
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		}
		without := n.MustGet(path)
		assert.Contains(t, strings.Join(without.Header.Values("Vary"), ", "), "Sec-Fetch-Mode", path)
		for _, program := range [][]string{java, crawler, script} {
			a := n.MustGet(path, program...)
			assert.Equal(t, without.Header.Get("Content-Type"), a.Header.Get("Content-Type"), "%s for %s", path, program)
		}
		assert.NotContains(t, without.Header.Get("Content-Type"), "html")
		n.Page(path + pages.Ending)
	}
	for _, form := range []string{".xtm21", ".atom"} { // to which pages lead
		a := n.Get(topic+form, firefox...)
		assert.Equal(t, http.StatusOK, a.StatusCode, form)
		assert.NotContains(t, a.Header.Get("Content-Type"), "html")
	}
	assert.Equal(t, n.URL("/topicmaps.html"), n.Get("/", firefox...).Header.Get("Location"))
	require.Equal(t, http.StatusOK, n.Do(http.MethodPost, "/topicmaps/lib/snapshots", nil).StatusCode)
	for _, path := range []string{"/topicmaps", "/topicmaps/lib", "/topicmaps/lib/fragments", "/topicmaps/lib/snapshots"} {
		assert.Equal(t, n.URL(path)+pages.Ending, n.Get(path, firefox...).Header.Get("Location"))
		n.Page(path + pages.Ending)
		a := n.Get(path+pages.Ending, "Accept", "application/atom+xml, application/xml;q=0.5")
		assert.Equal(t, n.URL(path), a.Header.Get("Location"), "the address of a page is enough to subscribe")
	}
	assert.Equal(t, http.StatusMovedPermanently, n.Get("/topicmaps/lib/about").StatusCode)
}

// Identifiers that the server gives to topics lead to these.
func TestMintedIdentifiersLeadToTheirTopics(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="ü"><name><value>U</value></name></topic></topicMap>`))
	var minted string
	for _, si := range n.TopicSIs("m") {
		if strings.HasPrefix(string(si), n.BaseURL) {
			minted = string(si)
		}
	}
	require.NotEmpty(t, minted)
	a := n.Get(minted)
	require.Equal(t, http.StatusSeeOther, a.StatusCode)
	topic := a.Header.Get("Location")
	assert.Equal(t, n.URL("/topicmaps/m/topics/")+fragment.Key(fragment.Ref(minted)), topic)
	assert.Equal(t, "U", n.Page(topic+pages.Ending).Title)
	assert.Equal(t, http.StatusNotFound, n.Get(minted+"x").StatusCode)
	a = n.Get("/topicmaps/m/topics.html?si=" + url.QueryEscape(minted))
	assert.Equal(t, topic+pages.Ending, a.Header.Get("Location"))
}

// A page is one of a state of its map: it changes with that, and is not sent again before.
func TestPagesAreConditional(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	for i, path := range []string{"/topicmaps.html", "/topicmaps/m.html", "/topicmaps/m/types.html", "/topicmaps/m/fragments.html"} {
		tag := n.MustGet(path).Header.Get("Etag")
		require.NotEmpty(t, tag)
		assert.Equal(t, http.StatusNotModified, n.Get(path, "If-None-Match", tag).StatusCode, path)
		n.MustPut("m", served.Small("Oslo", "Name "+path))
		n.Publish(fmt.Sprint("other-", i), served.Small())
		assert.Equal(t, http.StatusOK, n.Get(path, "If-None-Match", tag).StatusCode, path)
	}
}

// All addresses of a restricted map need the token: pages, results of searches, pictures, forms, descriptions and
// documents.
func TestPagesOfAPrivateMap(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	n := served.Start(t, func(c *server.Config) {
		c.Tokens, c.ReadTokens = []string{"the-token-of-a-writer"}, map[string][]string{"m": {token}}
	})
	n.Publish("m", examples.Libraries)
	changed := []byte(strings.ReplaceAll(string(examples.Libraries), "Fjordstad", "Secretville"))
	require.Equal(t, http.StatusOK, n.Put("m", changed, "Authorization", "Bearer the-token-of-a-writer").StatusCode)
	topic := served.TopicPath("m", "https://psi.libraries.example.org/library/fjordstad")
	below := n.URL("/topicmaps/m")
	queue := []string{
		below + ".html", below + "/search.html?q=secretville", below + "/search?q=secretville", below + "/topics.html?si=http://x", below + "/topic/x", below + "/about",
		n.URL(topic) + "/edit.html", n.URL(topic) + "/delete.html", below + "/topics/new.html", below + "/history.html", below + "/fragments.html?before=3",
	}
	seen := map[string]bool{}
	pagesSeen, secrets := 0, 0
	for len(queue) > 0 && len(seen) < 150 {
		url := queue[0]
		queue = queue[1:]
		if seen[url] {
			continue
		}
		seen[url] = true
		for _, a := range []served.Answer{n.Get(url), n.Get(url, chromium...)} {
			assert.Contains(t, []int{http.StatusUnauthorized, http.StatusSeeOther}, a.StatusCode, url)
			assert.NotContains(t, string(a.Bytes), "Secretville", url)
			if a.StatusCode == http.StatusSeeOther {
				assert.Contains(t, a.Header.Get("Location"), "/sign-in.html?to=", url)
			}
		}
		a := n.Get(url, "Authorization", "Bearer "+token)
		if strings.Contains(string(a.Bytes), "Secretville") {
			secrets++
		}
		if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != pages.MediaType {
			continue
		}
		pagesSeen++
		for _, l := range webpage.Read(t, url, a.Header, a.Bytes).Links {
			if l, _, _ = strings.Cut(l, "#"); l == below || strings.HasPrefix(l, below+"/") || strings.HasPrefix(l, below+".") {
				queue = append(queue, l)
			}
		}
	}
	assert.Greater(t, pagesSeen, 30)
	assert.Greater(t, secrets, 10)
	assert.NotContains(t, n.Page("/topicmaps.html").Links, n.URL("/topicmaps/m.html"))
}

// No statement of a map runs, leads to a script, or makes a page large.
func TestPagesOfHostileMaps(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	var doc strings.Builder
	doc.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="t"><subjectIdentifier href="http://x/t"/><subjectIdentifier href="javascript:alert(1)"/><subjectLocator href="data:text/html,x"/>`)
	for i := range 10_000 {
		fmt.Fprintf(&doc, `<name><value>&lt;script&gt;alert(%d)&lt;/script&gt;"'&lt;/title&gt;</value></name>`, i)
	}
	fmt.Fprintf(&doc, `<occurrence><type><topicRef href="#t"/></type><resourceData>%s</resourceData></occurrence>`, strings.Repeat("long ", 200_000))
	doc.WriteString(`<occurrence><type><topicRef href="#t"/></type><resourceRef href="javascript:alert(2)"/></occurrence>`)
	doc.WriteString(`<occurrence><type><topicRef href="#t"/></type><resourceData>` + "\u202e\u2066right to left" + `</resourceData></occurrence></topic></topicMap>`)
	n.Publish("m", []byte(doc.String()))
	topic := "/topicmaps/m/topics/" + fragment.Key("http://x/t") + pages.Ending
	p := n.Page(topic)
	assert.Contains(t, p.Text, "<script>alert(", "shown as text")
	assert.Contains(t, p.Text, "1 to 100 of 10,000")
	assert.Contains(t, p.Text, "1,000,000 bytes")
	assert.Less(t, len(n.MustGet(topic).Bytes), 64<<10)
	for _, path := range []string{"/topicmaps/m.html", "/topicmaps/m/fragments.html", "/topicmaps/m/types.html"} {
		n.Page(path)
	}
}

// Each list of a topic has as many pages as it needs. They lead to each other, forwards and backwards, and have all of
// it together, each once and in order.
func TestLargeTopicsHaveSeveralPages(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	const many = 333
	var doc strings.Builder
	doc.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="of"><subjectIdentifier href="http://x/of"/></topic><topic id="hub"><subjectIdentifier href="http://x/hub"/>`)
	for i := range many {
		fmt.Fprintf(&doc, `<instanceOf><topicRef href="#t%d"/></instanceOf>`, i)
	}
	for i := range many {
		fmt.Fprintf(&doc, `<name><value>name %03d</value></name>`, i)
	}
	for i := range many {
		fmt.Fprintf(&doc, `<occurrence><type><topicRef href="#of"/></type><resourceData>occurrence %03d</resourceData></occurrence>`, i)
	}
	doc.WriteString(`</topic>`)
	for i := range many {
		fmt.Fprintf(&doc, `<topic id="t%[1]d"><name><value>type %03[1]d</value></name></topic><topic id="i%[1]d"><instanceOf><topicRef href="#hub"/></instanceOf><name><value>instance %03[1]d</value></name></topic>`, i)
		for _, kind := range []string{"one", "two"} {
			fmt.Fprintf(&doc, `<topic id="%[1]s%[2]d"><name><value>%[1]s %03[2]d</value></name></topic><topic id="%[1]s"><subjectIdentifier href="http://x/%[1]s"/></topic>`, kind, i)
			fmt.Fprintf(&doc, `<association><type><topicRef href="#%[1]s"/></type><role><type><topicRef href="#of"/></type><topicRef href="#hub"/></role><role><type><topicRef href="#of"/></type><topicRef href="#%[1]s%[2]d"/></role></association>`, kind, i)
		}
	}
	doc.WriteString(`</topicMap>`)
	n.Publish("m", []byte(doc.String()))
	hub := "/topicmaps/m/topics/" + fragment.Key("http://x/hub") + pages.Ending
	for _, kind := range []string{"type", "name", "occurrence", "instance", "one", "two"} {
		var shown []string
		title := regexp.MustCompile(`\b` + kind + ` \d{3}\b`)
		pagesShown, last := 0, ""
		for at := hub; at != ""; pagesShown++ {
			require.Less(t, pagesShown, 8)
			body := n.MustGet(at).Bytes
			body = regexp.MustCompile(`(?s)<svg.*?</svg>|<head>.*?</head>|<h1.*?</h1>`).ReplaceAll(body, nil)
			var here []string
			for _, text := range title.FindAll(body, -1) {
				here = append(here, string(text))
			}
			shown = append(shown, here...)
			links := pagerBehind(t, body, here[len(here)-1])
			assert.Equal(t, pagesShown > 0, links["first"] != "" && links["prev"] != "", kind)
			if pagesShown == 1 {
				assert.Equal(t, n.URL(hub), links["first"])
				assert.Equal(t, n.URL(hub), links["prev"])
				assert.NotContains(t, regexp.MustCompile(`(?s)<main.*</main>`).FindString(string(body)), "History", "a further page has one list alone")
			}
			if at = links["next"]; at == "" {
				assert.Equal(t, last, "last")
			} else {
				last = "last"
			}
		}
		assert.Equal(t, 7, pagesShown, kind)
		assert.Len(t, shown, many, kind)
		assert.True(t, slices.IsSorted(shown), kind)
		assert.Len(t, slices.Compact(shown), many, kind)
	}
	assert.Equal(t, http.StatusBadRequest, n.Get(hub+"?instances=nonsense").StatusCode)
	assert.Equal(t, http.StatusBadRequest, n.Get(hub+"?list=names&page=0").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.Get(hub+"?list=nonsense&page=2").StatusCode)
	assert.Contains(t, shown(n.MustGet(hub+"?list=names&page=99999999999999999999")), "301 to 333 of 333")
	assert.Contains(t, n.Page("/topicmaps/m/types.html").Text, fmt.Sprint(many))
}

// pagerBehind returns the links of the first pager behind a text, by their relations.
func pagerBehind(t *testing.T, page []byte, text string) map[string]string {
	t.Helper()
	_, behind, found := bytes.Cut(page, []byte(text))
	require.True(t, found)
	nav := regexp.MustCompile(`(?s)<nav aria-label="Pages .*?</nav>`).Find(behind)
	require.NotNil(t, nav)
	links := map[string]string{}
	for _, l := range regexp.MustCompile(`<a href="([^"]*)" rel="([a-z]+)"`).FindAllSubmatch(nav, -1) {
		links[string(l[2])] = strings.ReplaceAll(string(l[1]), "&amp;", "&")
	}
	return links
}

// Rows behind those that are put in order together have addresses of their own, and none is lost between two.
func TestTopicsWithMoreRowsThanAreSorted(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := served.Start(t)
	const many = 10_050
	var doc strings.Builder
	doc.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="hub"><subjectIdentifier href="http://x/hub"/></topic>`)
	for i := range many {
		fmt.Fprintf(&doc, `<topic id="i%d"><instanceOf><topicRef href="#hub"/></instanceOf><name><value>instance %05d</value></name></topic>`, i, i)
	}
	n.Publish("m", []byte(doc.String()+"</topicMap>"))
	hub := "/topicmaps/m/topics/" + fragment.Key("http://x/hub") + pages.Ending
	first := n.Page(hub)
	assert.Contains(t, first.Text, "1 to 100 of 10,000")
	at := slices.IndexFunc(first.Links, func(l string) bool { return strings.Contains(l, "?instances=") })
	require.Positive(t, at)
	text := shown(n.MustGet(first.Links[at]))
	assert.Len(t, regexp.MustCompile(`instance \d{5}`).FindAllString(text, -1), 50)
	assert.NotContains(t, text, "History")
	assert.NotContains(t, text, "Identifiers")
}

// A history has as many pages as it needs, that of a topic that is gone as well.
func TestHistoriesHaveSeveralPages(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	for i := range 50 {
		n.MustPut("m", served.Small("Oslo", fmt.Sprint("Oslo ", i)))
	}
	si := ""
	for _, s := range n.TopicSIs("m") {
		if strings.Contains(n.Page(served.TopicPath("m", string(s))+pages.Ending).Title, "Oslo") {
			si = string(s)
		}
	}
	for _, gone := range []bool{false, true} {
		all := 51
		if gone {
			require.Equal(t, http.StatusOK, n.Do(http.MethodDelete, "/topicmaps/m/topics?si="+url.QueryEscape(si), nil).StatusCode)
			all++
		}
		path, times, shown := served.TopicPath("m", si)+pages.Ending, 0, map[string]bool{}
		for ; path != ""; times++ {
			body := n.MustGet(path).Bytes
			for _, l := range regexp.MustCompile(`<li><a href="([^"]*/fragments/[^"]*)"`).FindAllSubmatch(body, -1) {
				shown[string(l[1])] = true
			}
			path = pagerBehind(t, body, "<h2>History")["next"]
		}
		assert.Len(t, shown, all)
		assert.Equal(t, 3, times)
	}
}

// A deleted topic has a page that states it, and its replacement.
func TestPageOfATopicThatIsGone(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Cities(3, "a"))
	var si string
	for _, s := range n.TopicSIs("m") {
		if strings.Contains(string(s), "city") {
			si = string(s)
		}
	}
	require.NotEmpty(t, si)
	require.Equal(t, http.StatusOK, n.Do(http.MethodDelete, "/topicmaps/m/topics?si="+url.QueryEscape(si), nil).StatusCode)
	p := n.Page("/topicmaps/m/topics/" + fragment.Key(fragment.Ref(si)) + pages.Ending)
	assert.Contains(t, p.Text, "any more")
	assert.Contains(t, p.Text, "deleted")
	assert.Contains(t, p.Text, "added", "the whole history")
	found := n.Get("/topicmaps/m/topics.html?si=" + url.QueryEscape(si))
	assert.Equal(t, http.StatusSeeOther, found.StatusCode, "it is found by its identifier")
	assert.Equal(t, p.Text, n.Page(found.Header.Get("Location")).Text)
}

// The page of a change shows the changed statements, and leads to the topic after it.
func TestPagesOfThePast(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	n.MustPut("m", served.Small("Oslo", "Christiania"))
	n.MustPut("m", served.Small("Oslo", "Kristiania"))
	e := n.Feed("/topicmaps/m/fragments").Entries[0]
	p := n.Page(strings.TrimPrefix(served.DataURL(t, e), n.BaseURL) + pages.Ending)
	assert.Regexp(t, `was “Christiania” is “Kristiania”`, p.Text)
	then := slices.IndexFunc(p.Links, func(l string) bool { return strings.Contains(l, "?at=") })
	require.GreaterOrEqual(t, then, 0)
	assert.Equal(t, "Kristiania", n.Page(p.Links[then]).Title)

	var before string
	now, _, _ := strings.Cut(p.Links[then], "?")
	for _, l := range n.Page(now).Links { // the change before leads to the name before
		if strings.Contains(l, "/fragments/") && strings.HasSuffix(l, pages.Ending) && !strings.HasPrefix(l, served.DataURL(t, e)) {
			before = l
			break
		}
	}
	p = n.Page(before)
	then = slices.IndexFunc(p.Links, func(l string) bool { return strings.Contains(l, "?at=") })
	past := n.Page(p.Links[then])
	assert.Equal(t, "Christiania", past.Title)
	assert.Contains(t, past.Text, "As it was at")
	assert.Contains(t, past.Links, now)
	assert.Regexp(t, `(?s)History.*changed \(as it was then\).*changed \(shown here\).*added \(as it was then\)`, past.Text, "from one time to another")
	for _, l := range past.Links {
		if strings.Contains(l, "?at=") {
			assert.Equal(t, http.StatusOK, n.Get(l).StatusCode, l)
		}
	}
	assert.Equal(t, http.StatusOK, n.Get(now+"?at="+url.QueryEscape(time.Now().UTC().Add(time.Second).Format("2006-01-02 15:04:05 UTC"))).StatusCode, "as pages show it")
	assert.Equal(t, http.StatusBadRequest, n.Get(now+"?at=yesterday").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.Get(now+"?at=2001-01-01").StatusCode)
}

// Browsers ask for an icon, which is no error.
func TestThereIsNoIcon(t *testing.T) {
	t.Parallel()
	assert.Equal(t, http.StatusNoContent, served.Start(t).Get("/favicon.ico", firefox...).StatusCode)
}
