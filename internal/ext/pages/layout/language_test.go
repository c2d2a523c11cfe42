package layout

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Links and forms that lead to pages keep the choice of a request, and the rest of the page stays as it is.
func TestKeepsWhatIsChosen(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", `/topicmaps.html?ui=de&lang="%3E%3Cscript%3E`, nil)
	const page = `<a href="#content">x</a><form action="http://h/m/search.html" method="get" role="search">
<label for="q">Find</label> <input id="q" name="q" maxlength="1000"></form><a href="http://h/m.html?a=b&amp;c=d#e">&lt;form method="get"&gt;</a>
<a href="?page=2">2</a><a href="http://h/m.xtm">data</a><a href="https://elsewhere/m.html">other</a><form action="http://h/m.html" method="post"></form>
<a href="?ui=en" lang="en">English</a><a href="../x.html">up</a>`
	const lang = `lang=%22%3E%3Cscript%3E`
	const want = `<a href="#content">x</a><form action="http://h/m/search.html" method="get" role="search"><input type="hidden" name="lang" value="&#34;&gt;&lt;script&gt;"><input type="hidden" name="ui" value="de">
<label for="q">Find</label> <input id="q" name="q" maxlength="1000"></form><a href="http://h/m.html?a=b&amp;c=d&amp;` + lang + `&amp;ui=de#e">&lt;form method="get"&gt;</a>
<a href="?` + lang + `&amp;page=2&amp;ui=de">2</a><a href="http://h/m.xtm">data</a><a href="https://elsewhere/m.html">other</a><form action="http://h/m.html?` + lang + `&amp;ui=de" method="post"></form>
<a href="?` + lang + `&amp;ui=en" lang="en">English</a><a href="../x.html?` + lang + `&amp;ui=de">up</a>`
	assert.Equal(t, want, string(Keep(r, []byte(page), "http://h")))
	r = httptest.NewRequest("GET", "/topicmaps.html?page=2", nil)
	assert.Equal(t, page, string(Keep(r, []byte(page), "http://h")))
}
