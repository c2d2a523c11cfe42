package layout

import (
	"net/url"
	"regexp"
	"strings"
)

// Longest is how many bytes of a text are shown.
const Longest = 2000

// Cut returns the beginning of a text that is too long to be shown.
func Cut(text string) string {
	if len(text) <= Longest {
		return text
	}
	return strings.ToValidUTF8(text[:Longest], "") + "…"
}

// notShown stands for a query of a URL, which may be a secret.
const notShown = "…"

var queries = regexp.MustCompile(`(https?://[^\s"'<>?]*)\?[^\s"'<>]*`)

// Message returns a message without the queries of the URLs in it.
func Message(text string) string { return queries.ReplaceAllString(Cut(text), "$1?"+notShown) }

// LinkTo leads to what another server has at a URL. Where the URL may have a secret, it is shown without, and leads
// nowhere.
func LinkTo(raw string) Link {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return Link{Title: Cut(raw)}
	}
	secret := u.RawQuery != "" || u.User != nil
	u.User, u.Fragment = nil, ""
	if u.RawQuery != "" {
		u.RawQuery = notShown
	}
	if secret {
		return Link{Title: Cut(u.String())}
	}
	return Link{Title: Cut(u.String()), URL: u.String()}
}
