package e2e_test

import (
	"encoding/xml"
	"flag"
	"fmt"
	"io"
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
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/browser"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

var updateGolden = flag.Bool("update", false, "write what pages are for screen readers into testdata")

// A person in a real browser finds their way from the address of the server to a topic, and back.
func TestBrowserWalk(t *testing.T) {
	testenv.SkipUnderRace(t) // the browser takes the time
	b := browser.Start(t)
	s := startServer(t, server.Config{Lenient: true})
	importMap(t, s, "gcl", realMap(t, "GCL-2-1.xtm"))
	importMap(t, s, "mondial", realMap(t, "mondial.xtm.gz"))

	follower := newClient(t)
	_, err := follower.Subscribe(t.Context(), s.BaseURL+"/topicmaps/mondial", client.SubscribeOptions{})
	require.NoError(t, err)
	_, err = follower.Sync(t.Context(), "mondial")
	require.NoError(t, err)

	b.Visit(s.BaseURL)
	assert.Equal(t, s.BaseURL+"/topicmaps.html", b.URL())
	b.Follow("mondial")
	b.Follow("Continent")
	assert.Contains(t, b.Text(), "Instances")
	b.Fill("Find a topic", "alban")
	require.Equal(t, http.StatusOK, b.Press("Find"))
	b.Follow("Albania")
	text := b.Text()
	for _, said := range []string{"Country", "Government", "emerging democracy", "Borders with", "Greece", "Around it", "History"} {
		assert.Contains(t, text, said)
	}
	b.Follow("Greece")
	assert.Equal(t, "Greece", b.Title())
	assert.Contains(t, b.Text(), "Albania", "what borders is bordered")

	// They correct it, and whoever follows the map has the correction.
	b.Follow("Edit this topic")
	b.Fill("Name", "Hellas")
	b.Fill("Note: why", "as it is called there")
	require.Equal(t, http.StatusOK, b.Press("Show what will be published"))
	assert.Regexp(t, `(?s)Hellas.*Greece`, b.Text())
	assert.NotContains(t, string(fetched(t, s.BaseURL+"/topicmaps/mondial/fragments")), "Hellas", "nothing is published yet")
	b.Press("Publish")
	assert.Equal(t, "Hellas", b.Title())
	assert.Contains(t, b.Text(), "as it is called there")
	assert.Contains(t, string(fetched(t, s.BaseURL+"/topicmaps/mondial/fragments")), "Hellas")
	_, err = follower.Sync(t.Context(), "mondial")
	require.NoError(t, err)
	copied, _, err := follower.merged.Map(t.Context(), false)
	require.NoError(t, err)
	xtm := string(writeXTM(t, copied, s.BaseURL))
	assert.Contains(t, xtm, "Hellas")
	assert.NotContains(t, xtm, "<value>Greece</value>")
	verdict, err := follower.Verify(t.Context(), "mondial", true)
	require.NoError(t, err)
	assert.True(t, verdict.Equal)

	b.Follow("mondial")
	b.Follow("Topic maps")
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
	b.Follow("Topic maps")
	assert.Empty(t, b.Complaints())
}

// fetched returns what programs get at an address.
func fetched(t *testing.T, url string) []byte {
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, url)
	return body
}

// browserPages are pages of all kinds: their names, and their addresses.
func browserPages(t *testing.T, s *server.Server) map[string]string {
	importMap(t, s, "libraries", maps.Libraries)
	changed := strings.ReplaceAll(string(maps.Libraries), "<baseNameString>", "<baseNameString>New ")
	put(t, s, "libraries", []byte(changed))
	of := s.BaseURL + "/topicmaps"
	pages := map[string]string{
		"overview": of + ".html", "map": of + "/libraries.html", "types": of + "/libraries/types.html", "changes": of + "/libraries/fragments.html",
		"snapshots": of + "/libraries/snapshots.html", "error": of + "/nope.html",
		"search": of + "/libraries/search.html?q=new+lib", "nothing-found": of + "/libraries/search.html?q=zzz",
	}
	return pages
}

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

// All pages keep to WCAG 2.2 AA, in a narrow and a wide window, light and dark, and are not wider than the window.
func TestBrowserAccessibility(t *testing.T) {
	testenv.SkipUnderRace(t)
	axe := browser.Axe(t)
	b := browser.Start(t)
	s := startServer(t, server.Config{})
	pages := browserPages(t, s)
	deeper(b, pages)
	b.Visit(pages["map"])
	browser.Eval[bool](b, `document.body.append(document.createElement("img"), document.createElement("input")) === undefined`)
	require.Len(t, b.Violations(axe), 4, "what is wrong is found")
	for _, url := range pages {
		b.Open(url)
		b.Audit(axe)
	}
	assert.Empty(t, b.Complaints())
}

// All that can be clicked is reached by the keyboard, in the order in which it is read, and shows that it is.
func TestBrowserKeyboard(t *testing.T) {
	testenv.SkipUnderRace(t)
	b := browser.Start(t)
	s := startServer(t, server.Config{})
	pages := browserPages(t, s)
	deeper(b, pages)
	for name, url := range pages {
		b.Open(url)
		all := browser.Eval[int](b, `document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']").length`)
		require.Positive(t, all, name)
		last := -1
		for range min(all, 40) {
			b.Keys("\t")
			at := browser.Eval[[]int](b, `(() => {
				const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")], e = document.activeElement
				const seen = [e, ...e.children].some(x => getComputedStyle(x).outlineStyle !== "none" || getComputedStyle(x).strokeWidth === "3px")
				return [all.indexOf(e), seen ? 1 : 0]
			})()`)
			require.Equal(t, last+1, at[0], "%s: the focus jumps", name)
			require.Equal(t, 1, at[1], "%s: the focus on element %d is not seen", name, at[0])
			last = at[0]
		}
	}
	b.Visit(pages["map"])
	b.Keys("\t\r") // to the content
	assert.Equal(t, "#content", browser.Eval[string](b, "location.hash"))
}

// Nothing that a map says runs, or makes a page wider than the window.
func TestBrowserHostile(t *testing.T) {
	testenv.SkipUnderRace(t)
	b := browser.Start(t)
	s := startServer(t, server.Config{})
	values := map[string]string{
		"markup":  `<script>document.title = "run"</script><img src=x onerror="document.title='run'"></title></svg><svg onload="document.title='run'">`,
		"wide":    strings.Repeat("W", 1_000_000),
		"lines":   strings.Repeat("\n", 1000),
		"bidi":    "\u202e\u2067 gnihsihp \u202d",
		"arabic":  "خريطة المواضيع",
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
	doc.WriteString(`</topicMap>`)
	importMap(t, s, "hostile", []byte(doc.String()))
	put(t, s, "hostile", []byte(strings.ReplaceAll(doc.String(), "</value>", " changed</value>")))
	of := s.BaseURL + "/topicmaps/hostile"
	pages := []string{of + ".html", of + "/types.html", of + "/fragments.html"}
	for name := range values {
		pages = append(pages, of+"/topics/"+fragment.Key(fragment.Ref("http://x/"+name))+".html")
	}
	for _, width := range []int64{360, 1000} {
		b.View(width, false)
		for _, url := range pages {
			b.Visit(url)
			assert.LessOrEqual(t, browser.Eval[int64](b, "document.documentElement.scrollWidth"), width, "%s is wider than the window", url)
			assert.NotEqual(t, "run", browser.Eval[string](b, "document.title"), url)
			assert.Zero(t, browser.Eval[int](b, `document.querySelectorAll("script, img, [onload], a[href^='javascript']").length`), url)
			assert.Less(t, browser.Eval[int64](b, "document.documentElement.scrollHeight"), int64(60_000), "%s is too long", url)
		}
	}
	assert.Empty(t, b.Complaints())
}

var unstable = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?|127\.0\.0\.1:\d+|[0-9a-f]{12,}|\d+ bytes`)

// What pages are for screen readers is known: a change of it is seen, and looked at, before it is published.
func TestBrowserTrees(t *testing.T) {
	testenv.SkipUnderRace(t)
	b := browser.Start(t)
	s := startServer(t, server.Config{})
	pages := browserPages(t, s)
	deeper(b, pages)
	for name, url := range pages {
		b.Open(url)
		tree := unstable.ReplaceAllString(b.Tree(), "…")
		golden := filepath.Join("testdata", "trees", name+".txt")
		if *updateGolden {
			require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
			require.NoError(t, os.WriteFile(golden, []byte(tree), 0o644))
			continue
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), tree, "%s: if it is as it should be, run the test with -update", name)
	}
}
