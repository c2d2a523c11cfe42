//go:build !race

package e2e_test

import (
	"encoding/xml"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/browser"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

var updateGolden = flag.Bool("update", false, "write what pages are for screen readers into testdata")

// Pages in a real browser. All tests share one, whose start takes a second. The race detector would make them slow, and
// cannot find races there.
func TestBrowser(t *testing.T) {
	b := browser.Start(t)
	for name, test := range map[string]func(*testing.T, *browser.Browser){
		"walk": walkThroughMaps, "vocabulary": walkThroughAVocabulary, "pages": pagesOfAllKinds, "hostile": hostileMap, "editing": editingByKeyboard, "mishaps": mishapsOfEditors, "rejecting": rejectingOnANode, "proposing": proposalsWhileOneTypes,
	} {
		t.Run(name, func(t *testing.T) { test(t, b.Person(t)) })
	}
}

// A person navigates from the address of the server to a topic, sees its history, and corrects it. Followers of the map
// get the correction.
func walkThroughMaps(t *testing.T, b *browser.Browser) {
	s := startServer(t, server.Config{Lenient: true})
	for _, w := range []struct {
		name, file, typ, words, found string
		says                          []string
		neighbour, back               string // texts of a link, and of the link back
		label, old, now               string // of the name that is corrected
	}{
		{"mondial", "mondial.xtm.gz", "Continent", "alban", "Albania",
			[]string{"Country", "Government", "emerging democracy", "Borders with", "Around it", "History"}, "Greece", "Albania", "Name", "Greece", "Hellas"},
		{"gcl", "GCL-2-1.xtm", "Concept", "lib arch", "Libraries and archives",
			[]string{"Concept", "Broader/Narrower", "Narrower concept", "In scheme", "Around it", "History"}, "Education and skills", "Libraries and archives", "Name", "Education and skills", "Learning and skills"},
	} {
		importMap(t, s, w.name, realMap(t, w.file))
		follower := newClient(t)
		_, err := follower.Subscribe(t.Context(), s.BaseURL+"/topicmaps/"+w.name, client.SubscribeOptions{})
		require.NoError(t, err)
		_, err = follower.Sync(t.Context(), w.name)
		require.NoError(t, err)

		b.Visit(s.BaseURL)
		assert.Equal(t, s.BaseURL+"/topicmaps.html", b.URL())
		b.Follow(w.name)
		b.Follow(w.typ)
		assert.Contains(t, b.Text(), "Instances")
		b.Fill("Find a topic", w.words)
		require.Equal(t, http.StatusOK, b.Press("Find"))
		b.Follow(w.found)
		for _, text := range append(w.says, w.neighbour) {
			assert.Contains(t, b.Text(), text)
		}
		b.Follow(w.neighbour)
		assert.Equal(t, w.neighbour, b.Title())
		assert.Contains(t, b.Text(), w.back)

		b.Follow(browser.Eval[string](b, `document.querySelector("li > a > time").textContent`)) // the newest change in its history
		assert.Regexp(t, `(?s)What\s+added.*New:.*`+w.old, b.Text())
		b.Follow("The topic as it was then")
		assert.Contains(t, b.Text(), "shown here")
		b.Follow("As it is now")

		b.Follow("Edit this topic")
		b.Fill(w.label, w.now)
		b.Fill("Note: why", "as it is called there")
		require.Equal(t, http.StatusOK, b.Press("Show what will be published"))
		assert.Regexp(t, "(?s)"+w.now+".*"+w.old, b.Text())
		feed := s.BaseURL + "/topicmaps/" + w.name + "/fragments"
		assert.NotContains(t, string(fetched(t, feed)), w.now, "nothing is published yet")
		b.Press("Publish")
		assert.Equal(t, w.now, b.Title())
		assert.Contains(t, b.Text(), "as it is called there")

		assert.Contains(t, string(fetched(t, feed)), w.now)
		b.Visit(feed) // the page of the feed, which leads to the entry
		b.Follow(browser.Eval[string](b, `document.querySelector("tbody time").textContent`))
		assert.Regexp(t, "(?s)as it is called there.*was.*“"+w.old+"”.*is.*“"+w.now+"”", b.Text())
		_, err = follower.Sync(t.Context(), w.name)
		require.NoError(t, err)
		copied, _, err := follower.merged.Map(t.Context(), false)
		require.NoError(t, err)
		xtm := string(writeXTM(t, copied, s.BaseURL))
		assert.Contains(t, xtm, w.now)
		assert.NotContains(t, xtm, "<value>"+w.old+"</value>")
		verdict, err := follower.Verify(t.Context(), w.name, true)
		require.NoError(t, err)
		assert.True(t, verdict.Equal)
	}
	b.Follow("gcl")
	b.Follow("Hierarchy of concepts")
	assert.Regexp(t, `(?s)Culture and creativity\s.*Libraries and archives\s.*Visual arts`, b.Text(), "the narrower ones")
	b.Audit(browser.Axe(t))
	b.Follow("gcl")
	b.Follow("Types")
	assert.Equal(t, "Types", b.Title())

	// Addresses that programs have are pages in a browser, and so are errors.
	for _, path := range []string{"/topicmaps", "/topicmaps/gcl", "/topicmaps/gcl/fragments", "/topicmaps/gcl/snapshots", "/topicmaps/gcl/history"} {
		b.Visit(s.BaseURL + path)
		assert.Regexp(t, `\.html(\?|$)`, b.URL())
	}
	assert.Equal(t, http.StatusNotFound, b.Open(s.BaseURL+"/topicmaps/nope"))
	assert.Equal(t, "Not Found", b.Title())
	b.Follow("all topic maps")
	assert.Empty(t, b.Complaints())
}

// browserPages are pages of all kinds: their names, and their addresses.
func browserPages(t *testing.T, s *server.Server) map[string]string {
	importMap(t, s, "libraries", maps.Libraries)
	changed := strings.ReplaceAll(string(maps.Libraries), "<baseNameString>", "<baseNameString>New ")
	put(t, s, "libraries", []byte(changed))
	base := s.BaseURL + "/topicmaps"
	pages := map[string]string{
		"overview": base + ".html", "map": base + "/libraries.html", "types": base + "/libraries/types.html", "changes": base + "/libraries/fragments.html",
		"snapshots": base + "/libraries/snapshots.html", "error": base + "/nope.html",
		"search": base + "/libraries/search.html?q=new+lib", "nothing-found": base + "/libraries/search.html?q=zzz",
	}
	importMap(t, s, "rocks", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`))
	putTurtle(t, s, "rocks", []byte(rocks))
	pages["vocabulary"] = base + "/rocks.html"
	pages["concept"] = base + "/rocks/topics/" + fragment.Key("http://x/basalt") + ".html"
	return pages
}

// rocks is a vocabulary, with a concept that is no longer to be used.
const rocks = `@prefix : <http://x/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
:rock a skos:Concept ; skos:prefLabel "rock"@en ; skos:narrower :igneous . :igneous a skos:Concept ; skos:prefLabel "igneous rock"@en, "Magmatit"@de .
:basalt a skos:Concept ; skos:broader :igneous ; skos:prefLabel "basalt"@en, "Basalt"@de ; skos:altLabel "trap"@en ; skos:definition "A dark rock."@en .
:gabbro a skos:Concept ; skos:broader :igneous ; skos:prefLabel "gabbro"@en . :pillow a skos:Concept ; skos:broader :basalt ; skos:prefLabel "pillow lava"@en .
:norite a skos:Concept ; skos:broader :igneous ; skos:prefLabel "norite"@en ; owl:deprecated true .
`

// deeper adds pages that others lead to.
func deeper(b *browser.Browser, pages map[string]string) {
	b.Visit(pages["types"])
	b.Follow(browser.Eval[string](b, `document.querySelector("main .tree a").textContent`))
	pages["type"] = b.URL()
	b.Follow(browser.Eval[string](b, `[...document.querySelectorAll("h2")].find(e => e.textContent === "Instances").nextElementSibling.querySelector("a").textContent`))
	pages["topic"] = b.URL()
	pages["edit"] = strings.TrimSuffix(b.URL(), ".html") + "/edit.html"
	b.Visit(pages["changes"])
	b.Follow(browser.Eval[string](b, `document.querySelector("tbody a").textContent.trim()`))
	pages["change"] = b.URL()
	b.Follow("The topic as it was then")
	pages["past"] = b.URL()
}

// All pages keep to WCAG 2.2 AA, are not wider than the window, and can be used by the keyboard alone. What they are
// for screen readers is known: a change of it is seen, and looked at, before it is published.
func pagesOfAllKinds(t *testing.T, b *browser.Browser) {
	axe := browser.Axe(t)
	s := startServer(t, server.Config{})
	pages := browserPages(t, s)
	deeper(b, pages)
	b.Visit(pages["map"])
	if axe != "" {
		browser.Eval[bool](b, `document.body.append(document.createElement("img"), document.createElement("input")) === undefined`)
		require.Len(t, b.Violations(axe), 4, "what is wrong is found")
	}
	for name, url := range pages {
		b.Open(url)
		b.View(1000, false)
		isAsItWas(t, name, b.Tree())
		reachesAll(t, b, name)
		b.Audit(axe)
	}
	for _, name := range []string{"overview", "map", "topic", "edit", "change"} {
		b.Open(pages[name])
		b.Follow("Deutsch")
		assert.Equal(t, "de", browser.Eval[string](b, "document.documentElement.lang"), name)
		b.Audit(axe)
	}
	b.Visit(pages["concept"])
	const stands = `(() => { const at = s => document.querySelector(s).getBoundingClientRect(); return [at("main").bottom <= at(".stands").top, at("main").left > at(".stands").left] })()`
	assert.Equal(t, []bool{false, true}, browser.Eval[[]bool](b, stands), "where it stands is beside the article")
	b.View(390, false)
	assert.Equal(t, []bool{true, false}, browser.Eval[[]bool](b, stands), "and below it where there is no room")
	assert.LessOrEqual(t, browser.Eval[int](b, "document.documentElement.scrollWidth"), 390)
	b.View(1000, false)
	assert.Contains(t, b.Text(), "norite (deprecated)")
	browser.Eval[bool](b, `document.querySelector(".stands .tree summary").click() === undefined`)
	assert.NotContains(t, b.Text(), "norite (deprecated)", "branches fold")
	b.Follow("igneous rock")
	assert.Equal(t, "igneous rock", b.Title())
	b.Visit(pages["map"])
	b.Keys("\t\r") // to the content
	assert.Equal(t, "#content", browser.Eval[string](b, "location.hash"))
	assert.Empty(t, b.Complaints())
}

// reachesAll presses the tabulator: all that can be clicked is reached, in the order in which it is read, and shows
// that it is.
func reachesAll(t *testing.T, b *browser.Browser, name string) {
	const all = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter(e => e.checkVisibility())`
	n := browser.Eval[int](b, all+".length")
	require.Positive(t, n, name)
	for last := -1; last+1 < min(n, 40); {
		b.Keys("\t")
		focus := browser.Eval[struct {
			At    int
			Parts bool // it takes the tabulator several times: a time has a field for the day, the month and so on
			Seen  bool
		}](b, `(() => {
			const e = document.activeElement
			const seen = [e, ...e.children].some(x => getComputedStyle(x).outlineStyle !== "none" || getComputedStyle(x).strokeWidth === "3px")
			return {At: `+all+`.indexOf(e), Parts: e.type === "datetime-local", Seen: seen}
		})()`)
		require.True(t, focus.Seen, "%s: the focus on element %d is not seen", name, focus.At)
		if focus.Parts && focus.At == last {
			continue
		}
		require.Equal(t, last+1, focus.At, "%s: the focus jumps", name)
		last = focus.At
	}
}

// No content of a map is executed, or makes a page wider than the window.
func hostileMap(t *testing.T, b *browser.Browser) {
	s := startServer(t, server.Config{})
	values := map[string]string{
		"markup":  `<script>document.title = "run"</script><img src=x onerror="document.title='run'"></title></svg><svg onload="document.title='run'">`,
		"wide":    strings.Repeat("W", 1_000_000),
		"lines":   strings.Repeat("\n", 1000),
		"bidi":    "\u202e\u2067 gnihsihp \u202d",
		"arabic":  "خريطة المواضيع",
		"turning": "1 \u202e23 abc",
		"closing": "\u2069\u202c 4 خ 5\u202e6",
		"hangul":  strings.Repeat("토픽맵", 500),
		"combine": "Z" + strings.Repeat("\u0335\u0301", 500),
		"quotes":  `"'--><![CDATA[{{.}}`,
	}
	var doc strings.Builder
	doc.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
	for name, value := range values {
		var text strings.Builder
		require.NoError(t, xml.EscapeText(&text, []byte(value)))
		fmt.Fprintf(&doc, `<topic id="%[1]s"><subjectIdentifier href="http://x/%[1]s"/><subjectLocator href="javascript:document.title='run'//%[1]s"/>
			<instanceOf><topicRef href="#%[1]s"/></instanceOf><name><scope><topicRef href="#%[1]s"/></scope><value>%[2]s</value></name>
			<occurrence><type><topicRef href="#%[1]s"/></type><resourceData>%[2]s</resourceData></occurrence>
			<occurrence><type><topicRef href="#%[1]s"/></type><resourceRef href="javascript:document.title='run'"/></occurrence></topic>
			<association><type><topicRef href="#%[1]s"/></type><role><type><topicRef href="#%[1]s"/></type><topicRef href="#%[1]s"/></role>
			<role><type><topicRef href="#%[1]s"/></type><topicRef href="#markup"/></role></association>`, name, text.String())
	}
	doc.WriteString(`<topic id="names"><subjectIdentifier href="http://x/names"/>`)
	for i := range 10_000 {
		fmt.Fprintf(&doc, "<name><value>%d \u202e&lt;b&gt;</value></name>", i)
	}
	doc.WriteString(`</topic></topicMap>`)
	values["names"] = ""
	importMap(t, s, "hostile", []byte(doc.String()))
	put(t, s, "hostile", []byte(strings.ReplaceAll(doc.String(), "</value>", " changed</value>")))
	base := s.BaseURL + "/topicmaps/hostile"
	pages := []string{base + ".html", base + "/types.html", base + "/fragments.html", base + "/search.html?q=%3Cscript", base + "/search.html?q=%E2%80%AE"}
	for name := range values {
		topic := base + "/topics/" + fragment.Key(fragment.Ref("http://x/"+name))
		pages = append(pages, topic+".html", topic+"/edit.html")
	}
	for _, width := range []int64{360, 1000} {
		b.View(width, false)
		for _, url := range pages {
			b.Visit(url)
			assert.LessOrEqual(t, browser.Eval[int64](b, "document.documentElement.scrollWidth"), width, "%s is wider than the window", url)
			assert.NotEqual(t, "run", browser.Eval[string](b, "document.title"), url)
			assert.LessOrEqual(t, browser.Eval[int](b, `Math.max(0, ...[...document.querySelectorAll("dl")].map(l => new Set([...l.querySelectorAll("dd")].map(e => e.offsetLeft)).size))`), 1,
				"%s: values of one list stand below each other", url)
			assert.Empty(t, browser.Eval[[]string](b, turnedTexts), "%s: texts stand in another order than they are read", url)
			assert.Zero(t, browser.Eval[int](b, `document.querySelectorAll("script:not([src*='/pages/script-']), img, [onload], a[href^='javascript']").length`), url)
			assert.Less(t, browser.Eval[int64](b, "document.documentElement.scrollHeight"), int64(60_000), "%s is too long", url)
		}
	}
	assert.Empty(t, b.Complaints())
}

// turnedTexts returns texts that are not left of the next one on a line, because text of the map has turned them.
const turnedTexts = `(() => {
	const units = [], turned = []
	const block = e => { while (getComputedStyle(e).display.startsWith("inline")) e = e.parentElement; return e }
	const add = (of, parts) => {
		const rects = [...parts].filter(r => r.width > 0)
		if (rects.length === 0 || rects.some(r => Math.abs(r.bottom - rects[0].bottom) > 8)) return // it has several lines
		units.push({block: block(of.parentElement), bottom: rects[0].bottom, left: Math.min(...rects.map(r => r.left)), right: Math.max(...rects.map(r => r.right)), text: of.textContent})
	}
	const walk = e => {
		for (const c of e.childNodes) {
			if (c.nodeType === 3 && c.data.trim()) {
				const range = document.createRange()
				range.selectNodeContents(c)
				add(c, range.getClientRects())
			} else if (c.nodeType === 1 && c.checkVisibility() && !c.matches(".unseen, .skip, svg, select")) {
				c.matches("bdi, input, textarea, button") ? add(c, c.getClientRects()) : walk(c)
			}
		}
	}
	walk(document.body)
	units.forEach((u, i) => {
		const next = units[i+1]
		if (next && next.block === u.block && getComputedStyle(u.block).direction === "ltr" && Math.abs(u.bottom - next.bottom) < 8 && u.right > next.left + 1)
			turned.push(u.text.slice(0, 50) + " | " + next.text.slice(0, 50))
	})
	return turned
})()`

var unstable = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z)?|127\.0\.0\.1:\d+|[0-9a-f]{12,}|[\d,]+ bytes`)

// isAsItWas compares the accessibility tree of a page with the one that is known.
func isAsItWas(t *testing.T, name, tree string) {
	tree = unstable.ReplaceAllString(tree, "…")
	golden := filepath.Join("testdata", "trees", name+".txt")
	if *updateGolden {
		require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(tree), 0o644))
		return
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), tree, "%s: if it is as it should be, run the test with -update", name)
}
