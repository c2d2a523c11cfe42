package layout

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
)

// Short returns a readable form of an IRI in a language, and the tag of its language if it is in another one.
func Short(in *texts.Language, iri string) (short, lang string) {
	short, lang = words.ShortIn(in.Tag, iri)
	if short == words.Unnamed {
		short = in.Say(words.Unnamed)
	}
	return Cut(short), lang
}

// Longest is the number of bytes of a text that are shown.
const Longest = 2000

// Cut returns the beginning of a text that is too long to be shown.
func Cut(text string) string {
	if len(text) <= Longest {
		return text
	}
	return strings.ToValidUTF8(text[:Longest], "") + "…"
}

// shownTexts are the texts of a page, and the attributes that are shown or read aloud. What a field has is sent as it
// is.
var shownTexts = regexp.MustCompile(`<textarea[^<]*|>[^<]+| (?:title|aria-label|placeholder|data-label)="[^"]*`)

// turning are the bidirectional control characters that begin or end something. Few pages have any.
var turning = bytes.Fields([]byte("\u202a \u202b \u202c \u202d \u202e \u2066 \u2067 \u2068 \u2069"))

// closed returns a page with the bidirectional control characters of each text closed (see [titles.Closed]).
func closed(page []byte) []byte {
	if !slices.ContainsFunc(turning, func(c []byte) bool { return bytes.Contains(page, c) }) {
		return page
	}
	return shownTexts.ReplaceAllFunc(page, func(text []byte) []byte {
		if bytes.HasPrefix(text, []byte("<textarea")) {
			return text
		}
		return []byte(titles.Closed(string(text)))
	})
}

// notShown replaces the query of a URL, which may contain a secret.
const notShown = "…"

var queries = regexp.MustCompile(`(https?://[^\s"'<>?]*)\?[^\s"'<>]*`)

// Message returns a message without the queries of the URLs in it.
func Message(text string) string { return queries.ReplaceAllString(Cut(text), "$1?"+notShown) }

// LinkTo returns a link to a URL on another server. If the URL may contain a secret, the link shows it without the
// secret and has no address.
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

// Sentence turns the text of an error into a sentence. It keeps a map's name at the beginning and an address at the end
// unchanged.
func Sentence(text, name string) string {
	first, _, _ := strings.Cut(text, " ")
	if isWord := !strings.ContainsFunc(first, func(r rune) bool { return r < 'a' || r > 'z' }); isWord && first != "" &&
		first != name {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	end, _ := utf8.DecodeLastRuneInString(text)
	if last := text[strings.LastIndexByte(text, ' ')+1:]; last == "" || strings.Contains(last, "://") ||
		strings.ContainsRune(".!?:…", end) {
		return text
	}
	return text + "."
}
