package pages_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// assertInOrder asserts that a page has texts one behind the other.
func assertInOrder(t *testing.T, a served.Answer, texts ...string) {
	t.Helper()
	page, at := string(a.Bytes), 0
	page = page[strings.Index(page, "<main"):]
	for _, text := range texts {
		found := strings.Index(page[at:], "<bdi>"+text+"</bdi>")
		if !assert.GreaterOrEqual(t, found, 0, "%s is not behind the texts before it in %q", text, texts) {
			return
		}
		at += found
	}
}

// Lists are in the order of who reads: numbers by value, letters as the language of the reader has them.
func TestListsAreInTheOrderOfTheReader(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`
	topic := func(id, name, more string) {
		doc += fmt.Sprintf(`<topic id="%s"><subjectIdentifier href="http://x/%s"/>%s<name><value>%s</value></name></topic>`, id, id, more, name)
	}
	topic("class", "Class", "")
	is := `<instanceOf><topicRef href="#class"/></instanceOf>`
	for i, name := range []string{"Zoo", "Ähre", "Chapter 10", "chapter 2", "apple", "Ångström"} {
		topic(fmt.Sprintf("t%d", i), name, is)
	}
	n.Publish("m", []byte(doc+`</topicMap>`))
	path := served.TopicPath("m", "http://x/class") + pages.Ending
	usual := n.MustGet(path)
	assertInOrder(t, usual, "Ähre", "Ångström", "apple", "chapter 2", "Chapter 10", "Zoo")
	assert.Contains(t, usual.Header.Get("Vary"), "Accept-Language")
	swedish := n.MustGet(path, "Accept-Language", "sv-SE,en;q=0.5", "If-None-Match", usual.Header.Get("ETag")) // another page
	assertInOrder(t, swedish, "apple", "chapter 2", "Chapter 10", "Zoo", "Ångström", "Ähre")
}

// Concepts with a notation are in the order of that: before others, and by the numbers in it.
func TestConceptsAreInTheOrderOfTheirNotations(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	doc := "@prefix : <http://x/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n:top a skos:Concept ; skos:prefLabel \"Top\" .\n"
	for name, notation := range map[string]string{"apple": "1.10", "Berry": "1.9", "cherry": "", "date": "1.9.1"} {
		doc += fmt.Sprintf(":%s a skos:Concept ; skos:prefLabel %q ; skos:broader :top .\n", name, name)
		if notation != "" {
			doc += fmt.Sprintf(":%s skos:notation %q .\n", name, notation)
		}
	}
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(doc), "Content-Type", "text/turtle").StatusCode)
	for _, path := range []string{served.TopicPath("voc", "http://x/top"), "/topicmaps/voc/hierarchies/" + fragment.Key("http://www.w3.org/2004/02/skos/core#broader")} {
		assertInOrder(t, n.MustGet(path+pages.Ending), "Berry", "date", "apple", "cherry")
	}
}
