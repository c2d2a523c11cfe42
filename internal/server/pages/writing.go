package pages

import (
	"strconv"
	"strings"
	"time"

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
	_, rest, found := strings.Cut(locator, "://")
	if !found {
		rest = locator
	}
	if len(rest) <= 60 {
		return rest
	}
	return strings.ToValidUTF8(rest[:20], "") + "…" + strings.ToValidUTF8(rest[len(rest)-38:], "")
}

// forField returns a time as fields have it (HTML, Local dates and times): the next whole second, at which what happened at the time has happened.
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
