package pages_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/webpage"
)

// isGerman holds a page to be German, and to lead to German ones alone.
func isGerman(t *testing.T, n *served.Node, at string, a served.Answer) webpage.Page {
	t.Helper()
	p := webpage.Read(t, at, a.Header, a.Bytes)
	assert.Contains(t, string(a.Bytes), `<html lang="de">`, at)
	assert.Empty(t, webpage.EnglishInGerman(t, a.Bytes), at)
	for _, l := range p.Links {
		if path, query, _ := strings.Cut(l, "?"); strings.HasPrefix(l, n.BaseURL) && strings.HasSuffix(path, pages.Ending) {
			assert.Regexp(t, `(^|&)ui=(de|en)\b`, query, "%s leads to %s", at, l)
		}
	}
	for _, f := range p.Forms {
		if f.Method == http.MethodGet {
			assert.Equal(t, "de", f.Fields.Get("ui"), "%s leads to %s", at, f.Action)
		} else {
			assert.Contains(t, f.Action, "ui=de", at)
		}
	}
	return p
}

// All pages of all kinds are German for who has chosen that, and so are those that they lead to.
func TestAllPagesAreInTheLanguageThatIsChosen(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	write := []string{"Authorization", "Bearer " + served.Token}
	n.Put("m", served.Small("Oslo", "Christiania"), write...)
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}", write...).StatusCode)
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(thesaurus), append(write, "Content-Type", "text/turtle")...).StatusCode)
	kinds := walkInGerman(t, n, b, "/topicmaps.html?ui=de", 12)
	for _, kind := range []string{"/topicmaps.html…", "/topicmaps/m.html…", "/topicmaps/m/topics/….html…", "/topicmaps/m/topics/…/edit.html…",
		"/topicmaps/m/topics/…/delete.html…", "/topicmaps/m/fragments/….html…", "/topicmaps/m/fragments/…/undo.html…", "/topicmaps/m/topics/…/restore.html…",
		"/topicmaps/m/topics/…/compare.html…", "/topicmaps/m/compare.html…", "/topicmaps/m/index.html…", "/topicmaps/m/api.html…", "/topicmaps/m/types.html…",
		"/topicmaps/voc/hierarchies/….html…", "/topicmaps/voc/topics/new.html…", "/topicmaps/m/snapshots.html…", "/sign-in.html…"} {
		assert.Positive(t, kinds[kind], "%s of %v", kind, kinds)
	}
}

func walkInGerman(t *testing.T, n *served.Node, b *served.Browser, first string, most int) map[string]int {
	kinds := map[string]int{}
	seen, todo := map[string]bool{}, []string{n.URL(first)}
	kind := regexp.MustCompile(`[a-z2-7]{26}|[0-9a-f-]{36}|\?.*`)
	for len(todo) > 0 {
		at, _, _ := strings.Cut(todo[0], "#")
		path, query, _ := strings.Cut(at, "?")
		todo = todo[1:]
		kindOf := kind.ReplaceAllString(strings.TrimPrefix(at, n.BaseURL), "…")
		if seen[at] || !strings.HasPrefix(at, n.BaseURL) || !strings.HasSuffix(path, pages.Ending) ||
			strings.Contains(query, "ui=en") || kinds[kindOf] == most {
			continue
		}
		seen[at] = true
		kinds[kindOf]++
		a := b.Do(strings.TrimPrefix(at, n.BaseURL), nil)
		require.Equal(t, http.StatusOK, a.StatusCode, at)
		todo = append(todo, isGerman(t, n, at, a).Links...)
	}
	return kinds
}

// The language of a page is that of ?ui=, or the best one of the browser. Caches and conditions distinguish both. The
// statements of maps are in the language of ?lang= all the same.
func TestTheLanguageOfAPageIsApartFromThatOfItsContent(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(thesaurus), "Content-Type", "text/turtle").StatusCode)
	dog := served.TopicPath("voc", "http://example.org/dog") + pages.Ending
	for i, c := range []struct{ query, accept, says, called string }{
		{"", "", "Around it", "dog"},
		{"", "fi", "Around it", "koira"},
		{"", "de, fi;q=0.5", "Umgebung", "koira"},
		{"", "de-AT", "Umgebung", "dog"},
		{"", "sv, de;q=0.9, en;q=0.8", "Umgebung", "dog"},
		{"", "en, de;q=0.9", "Around it", "dog"},
		{"?ui=de", "en", "Umgebung", "dog"},
		{"?ui=en&lang=fi", "de", "Around it", "koira"},
		{"?lang=en&ui=de", "fi", "Umgebung", "dog"},
		{"?ui=tlh", "de", "Umgebung", "dog"},
		{"?lang=de", "", "Around it", "dog"},
	} {
		a := n.MustGet(dog+c.query, "Accept-Language", c.accept)
		text := served.TextOf(t, a)
		assert.Contains(t, text, c.says, i)
		assert.Regexp(t, `<h1[^>]*>`+c.called, string(a.Bytes), i)
		assert.Contains(t, a.Header.Get("Vary"), "Accept-Language")
	}
	for _, path := range []string{"/topicmaps.html", "/topicmaps/voc.html", "/topicmaps/voc/snapshots.html", dog} {
		english, german := n.MustGet(path, "Accept-Language", "en"), n.MustGet(path, "Accept-Language", "de")
		tags := []string{english.Header.Get("ETag"), german.Header.Get("ETag"), n.MustGet(path + "?ui=de").Header.Get("ETag")}
		assert.NotEqual(t, tags[0], tags[1], path)
		assert.NotEqual(t, tags[0], tags[2], path)
		assert.Equal(t, http.StatusOK, n.Get(path, "Accept-Language", "de", "If-None-Match", tags[0]).StatusCode, path)
		assert.Equal(t, http.StatusNotModified, n.Get(path, "Accept-Language", "de", "If-None-Match", tags[1]).StatusCode, path)
		assert.Contains(t, german.Header.Get("Vary"), "Accept-Language", path)
	}
}

// Numbers and times are written as in the language, and elements of times have what programs read.
func TestNumbersAndTimesAreWrittenAsInTheLanguage(t *testing.T) {
	t.Parallel()
	clock := served.NewClock()
	n := served.StartOn(t, store.Options{Dir: t.TempDir(), Now: clock.Now})
	clock.Set(time.Date(2026, 3, 27, 12, 5, 0, 0, time.UTC))
	n.Publish("m", served.Cities(1234, "City"))
	for language, want := range map[string][]string{
		"en": {"Topics1,235", `<time datetime="2026-03-27T12:05:00Z">2026-03-27 12:05:00 UTC</time>`},
		"de": {"Themen1.235", `<time datetime="2026-03-27T12:05:00Z">27. März 2026, 12:05:00 UTC</time>`},
	} {
		a := n.MustGet("/topicmaps/m.html", "Accept-Language", language)
		assert.Contains(t, served.TextOf(t, a), want[0])
		assert.Contains(t, string(a.Bytes), want[1])
	}
}

// The choice of a person stays: on the way to sign in and back, and after a form is sent.
func TestALanguageThatIsChosenStays(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	topic := served.TopicPath("m", served.Oslo)
	stranger := n.Browser()
	to := stranger.Do(topic+"/edit.html?ui=de", nil)
	require.Equal(t, http.StatusSeeOther, to.StatusCode)
	assert.Contains(t, to.Header.Get("Location"), "ui=de")
	assert.Contains(t, served.TextOf(t, stranger.Do(to.Header.Get("Location"), nil)), "Anmelden")
	form, a := b.Open(topic + "/edit.html?ui=de")
	assert.Contains(t, served.TextOf(t, a), "Zeigen, was veröffentlicht wird")
	a = b.Send(form.Set(form.Row(t, "name", "value", "Oslo")+"value", "Christiania"), "preview")
	require.Equal(t, http.StatusOK, a.StatusCode)
	assert.Contains(t, served.TextOf(t, a), "Was veröffentlicht wird")
	assert.NotContains(t, string(a.Bytes), `hreflang="en"`, "the fields of a sent form are not asked for again")
	a = b.Send(served.FormOf(t, form.At, a), "publish")
	require.Equal(t, http.StatusSeeOther, a.StatusCode)
	assert.Contains(t, a.Header.Get("Location"), "ui=de")
}

// Errors are pages in the language of the reader. Messages for programs, too, are marked to be English.
func TestErrorsInGerman(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	for path, title := range map[string]string{
		"/topicmaps/nope.html?ui=de": "Nicht gefunden", "/topicmaps/m/topics/aaaaaaaaaaaaaaaaaaaaaaaaaa.html?ui=de": "Nicht gefunden",
		"/topicmaps/m/fragments.html?before=x&ui=de": "Fehlerhafte Anfrage",
	} {
		a := n.Get(path, chromium...)
		assert.Contains(t, string(a.Bytes), ">"+title+"</h1>", path)
		assert.Contains(t, string(a.Bytes), `<p dir="auto" lang="en">`, path)
		assert.Empty(t, webpage.EnglishInGerman(t, a.Bytes), path)
	}
}
