package pages

import (
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/words"
)

// addressOf links to a locator if it is that of a document of the web. One that says nothing is not shown.
func addressOf(locator string) address {
	if words.IsOpaque(locator) {
		return address{}
	}
	locator = iri.Shown(locator)
	if len(locator) > layout.Longest {
		return address{Locator: layout.Cut(locator)}
	}
	if strings.HasPrefix(locator, "http://") || strings.HasPrefix(locator, "https://") {
		return address{locator, iri.Escape(locator)}
	}
	return address{Locator: locator}
}

// forField returns a time as fields have it (HTML, Local dates and times): the next whole second, at which what
// happened at the time has happened.
func forField(t time.Time) string {
	return t.UTC().Add(time.Second - 1).Format("2006-01-02T15:04:05")
}
