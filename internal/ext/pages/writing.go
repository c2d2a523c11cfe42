package pages

import (
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
)

// addressOf links to a locator if it is that of a document of the web.
func addressOf(locator string) address {
	if len(locator) > longest {
		return address{Locator: valueOf(locator).Text}
	}
	if strings.HasPrefix(locator, "http://") || strings.HasPrefix(locator, "https://") {
		return address{locator, iri.Escape(locator)}
	}
	return address{Locator: locator}
}

// identifier normalises what a person has written for a subject identifier.
func identifier(text string) fragment.Ref {
	if normal, err := iri.Normalize(strings.TrimSpace(text)); err == nil {
		return fragment.Ref(normal)
	}
	return fragment.Ref(text)
}

// short returns the telling part of a locator.
func short(locator string) string {
	for _, known := range wellKnown {
		if name, ok := strings.CutPrefix(locator, known.namespace); ok && name != "" && len(name) <= 40 {
			return known.prefix + name
		}
	}
	_, rest, found := strings.Cut(locator, "://")
	if !found {
		rest = locator
	}
	if len(rest) <= 60 {
		return rest
	}
	return strings.ToValidUTF8(rest[:20], "") + "…" + strings.ToValidUTF8(rest[len(rest)-38:], "")
}

// wellKnown are namespaces of what pages often show, with the prefix that stands for each: datatypes, and the languages
// of texts in RDF (docs/rdf.md), which are known by their tags alone.
var wellKnown = []struct{ namespace, prefix string }{
	{feeds.NamespaceOwn + "/language/", ""}, {"http://www.w3.org/2001/XMLSchema#", "xsd:"}, {"http://www.w3.org/1999/02/22-rdf-syntax-ns#", "rdf:"},
}

// forField returns a time as fields have it (HTML, Local dates and times): the next whole second, at which what
// happened at the time has happened.
func forField(t time.Time) string {
	return t.UTC().Add(time.Second - 1).Format("2006-01-02T15:04:05")
}

// count returns a number that people can read.
func count(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func timeOf(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
