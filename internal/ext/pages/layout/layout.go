// Package layout has what the pages of a server and those of a client's folder share: the frame, the style sheet, the
// headers.
package layout

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"

	"golang.org/x/text/language"

	"github.com/tmshare/tmshare/internal/ext/pages/plot"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/words"
)

// Page holds the data of the frame. A caller with links of another type passes its own struct with these fields.
type Page struct {
	Title  string
	Self   Link   // an addition to the title: a language, a notation
	Path   []Link // from the first page to here
	Style  string // URL of the style sheet
	Script string // address of the script; "": the page has none
	Node   string // name of the server; "": the first link of the path is used
	Named  bool   // titles have it
	Of     any    // data of the page's content

	Switch []Choice
}

// Link leads to a page.
type Link struct {
	Title string
	URL   string
	Whole string // the full locator that a shortened title abbreviates; "": the title is not shortened
	Lang  string // the tag of the language of the title; "": it is not known, or that of the page

	Notation string // of a concept (SKOS): concepts are sorted by it first, then by title

	Deprecated bool // it is no longer to be used
}

// Linked returns the HTML of the link. deprecated is the word for topics that are no longer to be used. A template
// would need much more time, and some pages have 600 links.
func (l Link) Linked(deprecated string) template.HTML {
	called := l.Called(deprecated)
	if scheme, _, ok := strings.Cut(l.URL, ":"); l.URL == "" || ok && scheme != "http" && scheme != "https" &&
		!strings.ContainsAny(scheme, "/?#") {
		return called
	}
	return element("a", "href", l.URL, "title", l.Whole) + called + "</a>"
}

// Called returns the HTML of the title alone.
func (l Link) Called(deprecated string) (made template.HTML) {
	if l.Notation != "" {
		made = element("span", "class", "notation") + escaped(l.Notation) + "</span> "
	}
	dir, after := "", template.HTML("</bdi>")
	if l.Lang != "" {
		dir = direction(l.Lang)
	}
	if l.Deprecated {
		made, after = made+"<s>", after+"</s> <small>("+escaped(deprecated)+")</small>"
	}
	return made + element("bdi", "lang", l.Lang, "dir", dir) + escaped(l.Title) + after
}

// element returns the start tag of an element. Attributes without a value are left out.
func element(name string, attributes ...string) template.HTML {
	tag := "<" + name
	for i := 0; i < len(attributes); i += 2 {
		if value := attributes[i+1]; value != "" {
			tag += " " + attributes[i] + `="` + template.HTMLEscapeString(value) + `"`
		}
	}
	return template.HTML(tag + ">")
}

func escaped(text string) template.HTML { return template.HTML(template.HTMLEscapeString(text)) }

// As is the parameter by which a link of a page leads a browser to a document itself, and not to its page, and Data its
// value.
const (
	As   = "as"
	Data = "data"
)

// ToData returns the address of a document for a link that a browser follows.
func ToData(address string) string {
	separator := "?"
	if strings.Contains(address, separator) {
		separator = "&"
	}
	return address + separator + As + "=" + Data
}

// MediaType is that of pages.
const MediaType = "text/html; charset=utf-8"

// Policy is the content security policy of pages (W3C CSP 3): they have no scripts and load only the style sheet. A
// form that proposes names also loads the script, which queries the search of the same server.
const Policy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// PolicyWithScript is the one of pages with the script.
const PolicyWithScript = Policy + "; script-src 'self'; connect-src 'self'"

// SetHeaders sets the headers of a page.
func SetHeaders(h http.Header) {
	h.Set("Content-Type", MediaType)
	h.Set("Content-Security-Policy", Policy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
}

// Template is the template of a page: the frame with the definitions of the files.
type Template struct{ texts.Templates }

// Parse returns the template of a page.
func Parse(files ...string) *Template {
	return &Template{texts.Templates{Files: append([]string{"layout.html"}, files...), Funcs: funcs}}
}

// Execute writes the page in a language.
func (t *Template) Execute(w io.Writer, l *texts.Language, page any) error {
	made, err := t.In(l)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := made.Execute(&b, page); err != nil {
		return err
	}
	_, err = w.Write(closed(b.Bytes()))
	return err
}

// funcs returns the functions of templates.
func funcs(l *texts.Language) template.FuncMap {
	return template.FuncMap{
		"opaque":   func(si any) bool { return words.IsOpaque(fmt.Sprint(si)) },
		"data":     ToData,
		"shown":    iri.Shown,
		"number":   func(i int) int { return i + 1 },
		"language": func() string { return l.Tag },
		"say":      func(t texts.Text) string { return l.Say(t) },
		"word":     func(v any) string { return l.Say(texts.Text(fmt.Sprint(v))) },
		"form":     l.Form, "time": l.Time, "day": l.Day, "count": l.Count, "cut": Cut, "message": Message,
		"dir": direction,
		"short": func(iri string) string {
			short, _ := Short(l, iri)
			return short
		},
		"seconds": func(v float64) string { return plot.Seconds.Text(l, v) },
		"bytes":   func(n int64) string { return plot.Bytes.Text(l, float64(n)) },
		"line": func(line plot.Line, title string) (template.HTML, error) {
			line.Title = title
			return line.HTML(l)
		},
		"bars": func(bars plot.Bars, title string) (template.HTML, error) {
			bars.Title = title
			return bars.HTML(l)
		},
	}
}

// direction returns that in which a language is written.
func direction(tag string) string {
	script, _ := language.Make(tag).Script()
	switch script.String() {
	case "Arab", "Hebr", "Syrc", "Thaa", "Nkoo", "Adlm", "Rohg", "Mand", "Samr":
		return "rtl"
	}
	return "ltr"
}

// Style is the style sheet.
//
//go:embed style.css
var Style []byte

// Script is the script that proposes names in forms.
//
//go:embed script.js
var Script []byte

// StyleName and ScriptName contain a hash of the content, so that caches may keep the files indefinitely.
var (
	StyleName  = "style-" + digest(Style) + ".css"
	ScriptName = "script-" + digest(Script) + ".js"
)

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:12]
}

// CodeField is the name of the field of forms that proves that one of our pages has made them.
const CodeField = "code"

// StyleCaching is the Cache-Control of the style sheet under its name.
const StyleCaching = "public, max-age=31536000, immutable"
