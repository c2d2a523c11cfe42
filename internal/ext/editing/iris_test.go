package editing_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// kept has parts that people never see, with the text around them.
var kept = regexp.MustCompile(".{0,80}" + regexp.QuoteMeta(iri.Own) + "iri/6.{0,80}")

// hidden are fields of forms that people do not see.
var hidden = regexp.MustCompile(`<input type="hidden"[^>]*>`)

// IRIs that are not in normal form are shown and named as they stand: on each page that links lead to, and in forms.
func TestIRIsAreShownAndNamedAsTheyStand(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	token := []string{"Authorization", "Bearer " + served.Token}
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}", token...).StatusCode)
	put := func(turtle string) {
		a := n.Put("voc", []byte("@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <http://e/> .\n"+turtle),
			append(token, "Content-Type", "text/turtle")...)
		require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	}
	const first = `<http://e/%7Eme> a <http://e/%43lass> ; <http://e/%70rop> <http://e/%6Fther> ; <http://e/%74ext> "x", "5"^^<http://e/%64atatype> .
		<http://e/~me> rdfs:label "plain" . :plain rdfs:label "normal" . <http://e/%43lass> rdfs:subClassOf <HTTP://e/Super> .`
	put(first + `<http://e/%67one> rdfs:label "gone" .`)
	put(first)
	self := served.TopicPath("voc", iri.ToLocator("http://e/%7Eme"))
	for given, to := range map[string]string{
		"http://e/%7Eme": iri.ToLocator("http://e/%7Eme"), "http://e/~me": "http://e/~me", "http://e/%70lain": "http://e/plain",
		"http://e/%67one": iri.ToLocator("http://e/%67one"), iri.ToLocator("http://e/%7Eme"): iri.ToLocator("http://e/%7Eme"),
	} {
		for _, path := range []string{"/topicmaps/voc/topics.html?si=", "/topicmaps/voc/history.html?si=", "/topicmaps/voc/search.html?q="} {
			page := b.Do(path+url.QueryEscape(given), nil)
			assert.Equal(t, n.URL(served.TopicPath("voc", to))+".html", page.Header.Get("Location"), "%s%s", path, given)
		}
	}
	link := regexp.MustCompile(`href="(?:` + regexp.QuoteMeta(n.BaseURL) + `)?(/topicmaps/voc[^"#]*\.html(?:\?[^"#]*)?)"`)
	queue, seen := []string{"/topicmaps/voc.html", "/topicmaps/voc/search.html?q=http://e/"}, 0
	for ; seen < len(queue) && seen < 200; seen++ {
		a := b.Do(queue[seen], nil)
		if a.StatusCode != http.StatusOK {
			continue
		}
		page := hidden.ReplaceAllString(string(a.Bytes), "")
		assert.Empty(t, kept.FindAllString(page, 3), queue[seen])
		for _, found := range link.FindAllStringSubmatch(string(a.Bytes), -1) {
			if to := strings.ReplaceAll(found[1], "&amp;", "&"); !slices.Contains(queue, to) {
				queue = append(queue, to)
			}
		}
	}
	assert.Contains(t, queue, self+".html")
	assert.Contains(t, queue, self+"/edit.html")
	assert.Contains(t, served.TextOf(t, b.Do(self+".html", nil)), "http://e/%7Eme")

	before := string(n.MustGet("/topicmaps/voc/snapshots/current.nt").Bytes)
	f, _ := b.Open(self + "/edit.html")
	name := f.Row(t, "name", "value", "")
	as := f.Row(t, "association", "type", "")
	b.Publish(f.Set(name+"value", "me", as+"type", "http://e/%70rop", as+"role", "http://www.w3.org/1999/02/22-rdf-syntax-ns#subject",
		as+"other-0-type", "http://www.w3.org/1999/02/22-rdf-syntax-ns#object", as+"other-0-player", "http://e/%43lass"))
	after := string(n.MustGet("/topicmaps/voc/snapshots/current.nt").Bytes)
	assert.Contains(t, after, "<http://e/%7Eme> <http://e/%70rop> <http://e/%43lass> .\n", "the named IRI is used")
	for line := range strings.Lines(before) {
		assert.Contains(t, after, line, "statements that a form does not change stay")
	}
	assert.Equal(t, strings.Count(before, "\n")+3, strings.Count(after, "\n"), "%s", after)
}
