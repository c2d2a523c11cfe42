package pages_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The page of a map tells of each commit what it has changed, who made it and why, and leads to all of that. Who may
// write finds the form that undoes it.
func TestTheMapTellsOfItsCommits(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small(), served.DocumentSize(2))
	put := func(doc []byte, note string) {
		served.Published(t, n.Put("m", doc, "Authorization", "Bearer "+served.Token, "TMShare-Note", note))
	}
	put(served.Small("Oslo", "Christiania"), "An old name")
	put(served.TopicMap(served.Topic("oslo", "Oslo")), "All but one gone")
	text := strings.Join(strings.Fields(n.Page("/topicmaps/m.html").Text), " ")
	assert.Regexp(t, `UTC: 1 changed, 8 deleted by Ada: All but one gone what has changed.*UTC: 1 changed \(Christiania\) by Ada: An old name what has changed.*UTC: 10 added what has changed`, text)
	assert.NotContains(t, text, "undo")
	looks := regexp.MustCompile(`<a href="([^"]*)">what has changed</a>`).FindAllStringSubmatch(string(n.MustGet("/topicmaps/m.html").Bytes), -1)
	require.Len(t, looks, 3)
	for i, says := range []string{"9 changes", "1 change ", "10 changes"} {
		to := strings.ReplaceAll(looks[i][1], "&amp;", "&")
		text := n.Page(strings.TrimPrefix(to, n.BaseURL)).Text
		assert.Contains(t, text, says)
		assert.Equal(t, i != 1, strings.Contains(text, "Bergen "), "what is gone is called what it was called")
	}
	assert.Contains(t, string(b.Do("/topicmaps/m.html", nil).Bytes), "undo</a>")
}

// The page of a map says in which languages its topics have names, and leads to those that lack one.
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
