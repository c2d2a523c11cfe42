package editing_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// changePage returns the path of the page of the newest change of a topic that is called so.
func changePage(t *testing.T, n *served.Node, title string) string {
	t.Helper()
	for _, e := range n.Feed("/topicmaps/m/fragments").Entries {
		if strings.Contains(e.Titles[0], title) {
			return strings.TrimPrefix(served.DataURL(t, e), n.BaseURL) + pages.Ending
		}
	}
	require.Fail(t, "no change", title)
	return ""
}

// linkTo returns where the link with a text leads from a page.
func linkTo(t *testing.T, b *served.Browser, page, text string) string {
	t.Helper()
	a := b.Do(page, nil)
	found := regexp.MustCompile(`<a href="([^"]*)"[^>]*>` + text + `</a>`).FindSubmatch(a.Bytes)
	require.NotNil(t, found, "%s has no link %q: %s", page, text, a.Bytes)
	at, err := url.Parse(b.Node.URL(page))
	require.NoError(t, err)
	to, err := at.Parse(strings.ReplaceAll(string(found[1]), "&amp;", "&"))
	require.NoError(t, err)
	return to.RequestURI()
}

// A commit is undone from the page of one of its changes, after a page has shown the changes that this will publish.
// If that is undone, the map has the commit again.
func TestUndoingACommit(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	before := n.Current("m")
	served.Published(t, n.Put("m", served.Small("Oslo", "Christiania", "Bergen", "Bjørgvin"), "Authorization", "Bearer "+served.Token))
	after := n.Current("m")
	titles := map[string]bool{}
	for i, want := range []string{before, after} {
		page := changePage(t, n, []string{"Christiania", "Oslo"}[i])
		at := linkTo(t, b, page, "Undo the whole commit")
		f, a := b.Open(at)
		titles[string(regexp.MustCompile(`<title>.*</title>`).Find(a.Bytes))] = true
		text := served.TextOf(t, a)
		for _, name := range []string{"Oslo", "Christiania", "Bergen", "Bjørgvin"} {
			assert.Contains(t, text, name)
		}
		assert.NotEqual(t, want, n.Current("m"), "nothing is published yet")
		a = b.Send(f, "publish")
		require.Equal(t, http.StatusSeeOther, a.StatusCode, "%s", a.Bytes)
		assert.Equal(t, want, n.Current("m"))
		undone := served.TextOf(t, b.Do(changePage(t, n, []string{"Oslo", "Christiania"}[i]), nil))
		assert.Contains(t, undone, "Takes back the change of ")
		assert.Contains(t, undone, "Ada")
		_, a = b.Open(at)
		assert.Contains(t, served.TextOf(t, a), "All of this commit is taken back already")
	}
	assert.Len(t, titles, 2, "each page has a title of its own, also of commits of the same topic")
}

// Statements that have changed since a commit stay when it is undone: the page lists them, and takes back the rest if
// a person confirms.
func TestUndoingWhatHasChangedSince(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	put := func(renames ...string) {
		served.Published(t, n.Put("m", served.Small(renames...), "Authorization", "Bearer "+served.Token))
	}
	put("Oslo", "Christiania", "Bergen", "Bjørgvin")
	undo := linkTo(t, b, changePage(t, n, "Christiania"), "Undo the whole commit")
	put("Oslo", "Kristiania", "Bergen", "Bjørgvin")
	now := n.Current("m")
	a := b.Do(undo, nil)
	text := served.TextOf(t, a)
	assert.Contains(t, text, "http://psi.example.org/oslo: it has changed since")
	assert.NotContains(t, string(a.Bytes), `method="post"`)
	f, _ := b.Open(linkTo(t, b, undo, "Take back the rest"))
	assert.Equal(t, now, n.Current("m"))
	require.Equal(t, http.StatusSeeOther, b.Send(f, "publish").StatusCode)
	assert.Equal(t, n.Expected("m", served.Small("Oslo", "Kristiania")), n.Current("m"))
	assert.Contains(t, served.TextOf(t, b.Do(undo+"?force=1", nil)), "Nothing of this commit is left to be taken back")
}

// A form to undo is shown again if another person has changed the result since.
func TestUndoingSomethingElseThanWasShown(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	put := func(renames ...string) {
		served.Published(t, n.Put("m", served.Small(renames...), "Authorization", "Bearer "+served.Token))
	}
	put("Oslo", "Christiania", "Bergen", "Bjørgvin")
	f, _ := b.Open(linkTo(t, b, changePage(t, n, "Christiania"), "Undo the whole commit"))
	put("Oslo", "Christiania", "Tromsø", "Romsa")
	a := b.Send(f, "publish")
	assert.Equal(t, http.StatusPreconditionFailed, a.StatusCode)
	assert.Contains(t, served.TextOf(t, a), "it would be something else than what you were shown")
	assert.Equal(t, n.Expected("m", served.Small("Oslo", "Christiania", "Tromsø", "Romsa")), n.Current("m"), "nothing is published")
}

// A topic returns to its state before a change, or at a time, while the others stay. One that was deleted is there
// again, and one that did not exist goes.
func TestMakingATopicWhatItWas(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	served.Published(t, n.Put("m", served.Small("Oslo", "Christiania", "Bergen", "Bjørgvin"), "Authorization", "Bearer "+served.Token))
	changed := changePage(t, n, "Christiania")
	f, a := b.Open(linkTo(t, b, changed, "Make the topic what it was before"))
	assert.Contains(t, served.TextOf(t, a), "becomes what it was")
	require.Equal(t, http.StatusSeeOther, b.Send(f, "publish").StatusCode)
	assert.Equal(t, n.Expected("m", served.Small("Bergen", "Bjørgvin")), n.Current("m"))

	f, _ = b.Open(served.TopicPath("m", served.Oslo) + "/delete.html")
	require.Equal(t, http.StatusSeeOther, b.Send(f, "publish").StatusCode)
	deleted := changePage(t, n, "Oslo")
	f, _ = b.Open(linkTo(t, b, deleted, "Make the topic what it was before"))
	require.Equal(t, http.StatusSeeOther, b.Send(f, "publish").StatusCode)
	assert.Equal(t, n.Expected("m", served.Small("Bergen", "Bjørgvin")), n.Current("m"))

	compared := served.TopicPath("m", served.Oslo) + "/compare.html"
	f, a = b.Open(linkTo(t, b, compared, "Make it again what it was"))
	assert.Contains(t, served.TextOf(t, a), "Oslo")
	require.Equal(t, http.StatusSeeOther, b.Send(f, "publish").StatusCode)
	assert.NotContains(t, n.Current("m"), "Oslo", "before its last change it was not there")
}

// Forms that take something back are for those who may write, and for maps that are written here.
func TestTakingBackNeedsTheRight(t *testing.T) {
	t.Parallel()
	n, _ := served.Editor(t, served.Small())
	page := changePage(t, n, "Oslo")
	stranger := n.Browser()
	for _, path := range []string{strings.TrimSuffix(page, pages.Ending) + "/undo.html", served.TopicPath("m", served.Oslo) + "/restore.html?at=2026-01-01"} {
		a := stranger.Do(path, nil)
		assert.NotEqual(t, http.StatusOK, a.StatusCode, path)
		a = stranger.Do(path, url.Values{"do": {"publish"}})
		assert.NotEqual(t, http.StatusSeeOther, a.StatusCode, path)
	}
	text := string(stranger.Do(page, nil).Bytes)
	assert.NotContains(t, text, "/undo")
	assert.NotContains(t, text, "/restore")
}

// The page that shows the changes before they are published has 64 kB at most, and states the number of further ones.
// All of it is published.
func TestPlansAreSmallPages(t *testing.T) {
	t.Parallel()
	doc := func(value string) []byte {
		var b strings.Builder
		b.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
		for i := range 45 {
			fmt.Fprintf(&b, `<topic id="t%d"><subjectIdentifier href="http://x/%[1]d"/><name><value>Topic %[1]d</value></name>`, i)
			for j := range 20 {
				fmt.Fprintf(&b, `<name><value>%s %d of %d, %s</value></name>`, value, j, i, strings.Repeat("long ", 30))
			}
			b.WriteString(`</topic>`)
		}
		return []byte(b.String() + `</topicMap>`)
	}
	n, b := served.Editor(t, doc("was"))
	before := n.Current("m")
	served.Published(t, n.Put("m", doc("is"), "Authorization", "Bearer "+served.Token))
	f, a := b.Open(linkTo(t, b, changePage(t, n, "Topic"), "Undo the whole commit"))
	assert.LessOrEqual(t, len(a.Bytes), 64<<10)
	text := served.TextOf(t, a)
	assert.Regexp(t, `And \d+ more statements?\.`, text)
	assert.Regexp(t, `And \d+ more topics?\.`, text)
	require.Equal(t, http.StatusSeeOther, b.Send(f, "publish").StatusCode)
	assert.Equal(t, before, n.Current("m"))
}

// To take back a commit of a whole map is asked and shown like that of a few topics: the page lists the first ones and
// counts the others.
func TestUndoingAWholeMap(t *testing.T) {
	t.Parallel()
	testenv.OnlyWithAll(t, "real maps are large")
	n, b := served.Editor(t, served.Small(), func(c *server.Config) { c.Lenient = true })
	n.PutSettings("big", "{}", "Authorization", "Bearer "+served.Token)
	begin := time.Now()
	a := n.Put("big", testenv.SharedFile(t, "data/mondial.xtm.gz"), "Authorization", "Bearer "+served.Token)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	undo := strings.TrimPrefix(served.DataURL(t, n.Feed("/topicmaps/big/fragments").Entries[0]), n.BaseURL) + "/undo.html"
	put := time.Since(begin)
	begin = time.Now()
	a = b.Do(undo, nil)
	assert.Less(t, time.Since(begin), 20*put, "it grows with the map, and not with the square of that")
	require.Equal(t, http.StatusOK, a.StatusCode)
	assert.LessOrEqual(t, len(a.Bytes), 64<<10)
	assert.Regexp(t, `And [5-6],\d\d\d more topics\.`, served.TextOf(t, a))
}
