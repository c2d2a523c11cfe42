package pages

import (
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/words"
)

// addressOf returns a link to a locator if it is an HTTP URL; an empty address for opaque identifiers.
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

// forField formats a time for a field (HTML, Local dates and times), rounded up to a whole second, so that the state at
// that time includes the change.
func forField(t time.Time) string {
	return t.UTC().Add(time.Second - 1).Format("2006-01-02T15:04:05")
}
