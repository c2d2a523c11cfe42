package pages_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/words"
)

// words of a page, in one line.
func lineOf(n *served.Node, path string) string {
	return strings.Join(strings.Fields(n.Page(path).Text), " ")
}

// Topics are listed in each language by their names in it, under its letters. The language is the one of who reads,
// where topics have names in it, and can be chosen.
func TestTopicsFromAToZ(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	language := func(tag string) string {
		return `<topic id="` + tag + `"><subjectIdentifier href="` + words.LanguageNamespace + tag + `"/></topic>`
	}
	topic := func(id string, names ...string) string {
		all := ""
		for i := 0; i < len(names); i += 2 {
			scope := ""
			if names[i] != "" {
				scope = `<scope><topicRef href="#` + names[i] + `"/></scope>`
			}
			all += `<name>` + scope + `<value>` + names[i+1] + `</value></name>`
		}
		return `<topic id="` + id + `"><subjectIdentifier href="http://x/` + id + `"/><instanceOf><topicRef href="#tree"/></instanceOf>` + all + `</topic>`
	}
	n.Publish("m", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`+language("en")+language("sv")+
		topic("oak", "en", "oak", "sv", "ek")+topic("alder", "en", "alder", "sv", "Al")+topic("stream", "en", "stream", "sv", "å")+topic("x", "", "Quercus")+
		`<topic id="tree"><subjectIdentifier href="http://x/tree"/><name><scope><topicRef href="#en"/></scope><value>Apple tree</value></name></topic></topicMap>`))
	assert.Contains(t, lineOf(n, "/topicmaps/m/index.html"), "without a languageEnglishSwedish AOS alderApple tree", "the language of most names")
	assert.Contains(t, lineOf(n, "/topicmaps/m/index.html?letter=S"), "AOS stream")
	assert.Contains(t, lineOf(n, "/topicmaps/m/index.html?lang=sv"), "AEÅ Al")
	assert.Contains(t, lineOf(n, "/topicmaps/m/index.html?in=sv&letter=%C3%85"), "AEÅ å")
	assert.Contains(t, lineOf(n, "/topicmaps/m/index.html?in="), "Q Quercus")
	assert.Contains(t, lineOf(n, "/topicmaps/m/index.html?letter=Z"), "Nothing is listed here.")
	oaks := lineOf(n, "/topicmaps/m/index.html?type="+fragment.Key("http://x/tree"))
	assert.Contains(t, oaks, "Apple tree, A–Z")
	assert.Contains(t, oaks, "All topics alder", "the type is no instance of itself")
	assert.NotContains(t, oaks, "All topics alder Apple")
	assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps/m/index.html?type=nothing").StatusCode)
	n.Publish("empty", served.TopicMap())
	assert.Contains(t, lineOf(n, "/topicmaps/empty/index.html"), "No topic of this map has a name.")
}

// The pages of a letter have each of its topics once, and lead to each other.
func TestPagesOfALetter(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Cities(250, "city"))
	path, seen, visited := "/topicmaps/m/index.html?letter=C", map[string]bool{}, 0
	for path != "" {
		a := n.MustGet(path)
		visited++
		require.Less(t, visited, 10)
		assert.Contains(t, string(a.Bytes), fmt.Sprintf("Page %d of 3", visited))
		for _, topic := range regexp.MustCompile(`<li><a href="([^"]*/topics/[^"]*)"`).FindAllStringSubmatch(string(a.Bytes), -1) {
			assert.False(t, seen[topic[1]], topic[1])
			seen[topic[1]] = true
		}
		for rel, there := range map[string]bool{"prev": visited > 1, "next": visited < 3} {
			assert.Equal(t, there, strings.Contains(string(a.Bytes), `rel="`+rel+`"`), "%s of page %d", rel, visited)
		}
		path = ""
		if next := regexp.MustCompile(`<a href="([^"]+)" rel="next">`).FindSubmatch(a.Bytes); next != nil {
			path = "/topicmaps/m/index.html" + strings.ReplaceAll(string(next[1]), "&amp;", "&")
		}
	}
	assert.Equal(t, 3, visited)
	assert.GreaterOrEqual(t, len(seen), 250)
}
