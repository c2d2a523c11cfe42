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

// Short returns what people read for an IRI in a language, and the tag of another language that this is in.
func Short(in *texts.Language, iri string) (short, lang string) {
	short, lang = words.ShortIn(in.Tag, iri)
	if short == words.Unnamed {
		short = in.Say(words.Unnamed)
	}
	return Cut(short), lang
}

// Longest is how many bytes of a text are shown.
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

// closed returns a page of which no text turns what stands behind it (see [titles.Closed]).
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

// Sentence makes a sentence of what an error says. The name of a map at its beginning, and an address at its end, stay
// as they are.
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
