package layout

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/titles"
)

// UI is the query parameter for the language of pages, and Lang the one for the language of their content. Pages keep
// both in their links to other pages and so need no cookie.
const (
	UI   = "ui"
	Lang = "lang"
)

// LanguageOf returns the language of a page: that of ?ui=, or the one that the reader prefers.
func LanguageOf(r *http.Request) *texts.Language {
	tag := ""
	if strings.Contains(r.URL.RawQuery, UI+"=") {
		tag = r.URL.Query().Get(UI)
	}
	accepted := r.Header.Values("Accept-Language")
	if tag == "" && len(accepted) == 0 {
		return texts.English
	}
	return texts.For(tag, titles.Accepted(strings.Join(accepted, ",")))
}

// Choice leads to a page in another language.
type Choice struct {
	*texts.Language
	URL  string
	Here bool // it is in this language
}

// Switch returns links from a page to itself in each language. It returns none for the answer to a form.
func Switch(r *http.Request) (all []Choice) {
	if r.Method == http.MethodPost {
		return nil
	}
	here, rest := LanguageOf(r), "?"
	if r.URL.RawQuery != "" {
		query := r.URL.Query()
		if query.Del(UI); len(query) > 0 {
			rest += query.Encode() + "&"
		}
	}
	for _, l := range texts.Languages() {
		all = append(all, Choice{l, rest + UI + "=" + l.Tag, l == here})
	}
	return all
}

// Keeps reports whether a request may have parameters that links keep.
func Keeps(r *http.Request) bool {
	return strings.Contains(r.URL.RawQuery, UI+"=") || strings.Contains(r.URL.RawQuery, Lang+"=")
}

// kept returns the parameters of a request that links keep.
func kept(r *http.Request) url.Values {
	if !Keeps(r) {
		return nil
	}
	keep, query := url.Values{}, r.URL.Query()
	for _, name := range []string{UI, Lang} {
		if value := query.Get(name); value != "" {
			keep.Set(name, value)
		}
	}
	return keep
}

// ToPage returns the address of a page with the parameters of a request that links keep.
func ToPage(r *http.Request, address string) string {
	keep := kept(r)
	at, err := url.Parse(address)
	if len(keep) == 0 || err != nil {
		return address
	}
	query := at.Query()
	for name := range keep {
		if !query.Has(name) {
			query.Set(name, keep.Get(name))
		}
	}
	at.RawQuery = query.Encode()
	return at.String()
}

// leads matches links, and forms with the method GET. No text content matches it, because quotes and angle brackets are
// escaped there.
var leads = regexp.MustCompile(`<form [^>]*method="get"[^>]*>| (?:href|action)="[^"#]*`)

// Keep has the links and forms of a page keep the parameters that a request has. own begins the addresses of pages.
func Keep(r *http.Request, page []byte, own string) []byte {
	keep := kept(r)
	if len(keep) == 0 {
		return page
	}
	return leads.ReplaceAllFunc(page, func(found []byte) []byte {
		if bytes.HasPrefix(found, []byte("<form")) {
			found = slices.Clip(found) // an append must not overwrite the rest of the page
			for _, name := range slices.Sorted(maps.Keys(keep)) {
				found = fmt.Appendf(found, texts.HiddenField, name, html.EscapeString(keep.Get(name)))
			}
			return found
		}
		attribute, address, _ := strings.Cut(string(found), `"`)
		address = html.UnescapeString(address)
		path, _, _ := strings.Cut(address, "?")
		_, rest, absolute := strings.Cut(path, "://")
		isPage := strings.HasSuffix(path, ".html") || path == "" && address != ""
		if !isPage || absolute && (rest == "" || !strings.HasPrefix(address, own+"/")) {
			return found
		}
		return []byte(attribute + `"` + html.EscapeString(ToPage(r, address)))
	})
}
