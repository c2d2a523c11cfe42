// Package layout is what all pages have, those of a server and those of a client's folder: the frame, the style sheet,
// the headers.
package layout

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/tmshare/tmshare/internal/ext/pages/plot"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/words"
)

// Page is what the frame needs. Whoever has links of another type gives it a struct of its own with these fields.
type Page struct {
	Title string
	Self  Link   // what the title has besides: a language, a notation
	Path  []Link // from the first page to here
	Style string // URL of the style sheet
	Of    any    // what the page is about
}

// Link leads to a page.
type Link struct {
	Title string
	URL   string
	Whole string // the locator that a shortened title stands for; "": the title is all
	Lang  string // the tag of the language of the title; "": it is not known, or that of the page

	Notation string // of a concept (SKOS): where there is one, it counts for the order, and then the title
}

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

// Policy is the content security policy of pages (W3C CSP 3): they have no scripts, and load nothing but the style
// sheet.
const Policy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// SetHeaders sets the headers of a page.
func SetHeaders(h http.Header) {
	h.Set("Content-Type", MediaType)
	h.Set("Content-Security-Policy", Policy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
}

// Parse returns the template of a page: the frame, with what files define in it.
func Parse(files ...string) *template.Template {
	frame := template.Must(template.New("layout").Funcs(funcs).Parse(texts.Layout))
	return template.Must(frame.ParseFS(texts.Pages, files...))
}

// funcs are what templates call.
var funcs = template.FuncMap{
	"opaque": func(si any) bool { return words.IsOpaque(fmt.Sprint(si)) },
	"data":   ToData,
	"number": func(i int) int { return i + 1 },
	"time":   timeOf, "at": timeOf, "count": plot.Number, "cut": Cut, "message": Message,
	"dir":     direction,
	"short":   func(iri string) string { return Cut(words.Short(iri)) },
	"seconds": plot.Seconds.Text,
	"bytes":   func(n int64) string { return plot.Bytes.Text(float64(n)) },
	"line": func(l plot.Line, title string) (template.HTML, error) {
		l.Title = title
		return l.HTML()
	},
	"bars": func(b plot.Bars, title string) (template.HTML, error) {
		b.Title = title
		return b.HTML()
	},
}

func timeOf(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

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

// StyleName changes with the style sheet, so that caches may keep it for good.
var StyleName = func() string {
	sum := sha256.Sum256(Style)
	return "style-" + hex.EncodeToString(sum[:])[:12] + ".css"
}()

// CodeField is the name of the field of forms that proves that one of our pages has made them.
const CodeField = "code"

// StyleCaching is the Cache-Control of the style sheet under its name.
const StyleCaching = "public, max-age=31536000, immutable"
