package layout

import (
	"html/template"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// Errors are sentences, but what must stay as it is does: names of maps, identifiers, addresses.
func TestErrorsAreSentences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "",
		"no topic is called so":        "No topic is called so.",
		"Go back.":                     "Go back.",
		"egov shows no such hierarchy": "egov shows no such hierarchy.",
		"egov: the server answers 404": "egov: the server answers 404.",
		"?page=0 cannot be: write 1":   "?page=0 cannot be: write 1.",
		"it is at http://x/y":          "It is at http://x/y",
		"what is long…":                "What is long…",
		"http://x/y":                   "http://x/y",
	} {
		assert.Equal(t, want, Sentence(text, "egov"))
	}
}

// A link equals the output of html/template for the same values: nothing of it ends an element or an attribute, and a
// value that is no address of a page leads nowhere.
func TestLinksAreWhatATemplateMakes(t *testing.T) {
	t.Parallel()
	made := template.Must(template.New("").Parse(`{{if .URL}}<a href="{{.URL}}"{{with .Whole}} title="{{.}}"{{end}}>{{end}}{{with .Notation}}<span class="notation">{{.}}</span> {{end}}{{if .Deprecated}}<s>{{end}}<bdi{{with .Lang}} lang="{{.}}" dir="ltr"{{end}}>{{.Title}}</bdi>{{if .Deprecated}}</s> <small>(old)</small>{{end}}{{if .URL}}</a>{{end}}`))
	for _, l := range []Link{
		{Title: "Oslo"},
		{Title: `<b>"O'slo" & co</b>` + "\x00", Whole: `"><script>`, URL: "http://h/m/topics/x.html?a=b&c=d%20e", Lang: `en"`, Notation: "<N1>"},
		{Title: "Oslo", URL: "?page=2", Deprecated: true},
		{Title: "Oslo", URL: "../x.html#a:b", Lang: "de"},
		{Title: "Oslo", URL: "https://elsewhere/:x"},
	} {
		var want strings.Builder
		require.NoError(t, made.Execute(&want, l))
		assert.Equal(t, want.String(), string(l.Linked("old")))
	}
	for _, url := range []string{"javascript:alert(1)", "data:text/html,x", "JAVASCRIPT:alert(1)", " javascript:alert(1)"} {
		assert.Equal(t, "<bdi>x</bdi>", string(Link{Title: "x", URL: url}.Linked("old")))
	}
}
