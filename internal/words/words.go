// Package words has words for things that a map does not name: the terms of widely used vocabularies, and languages.
// All others with an IRI are called by their prefixed name, or by the readable part of the IRI. There is a file of
// words for each language, and the prefixes are in namespaces.txt.
package words

import (
	"cmp"
	"embed"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/tmshare/tmshare/internal/iri"
)

//go:embed en.txt de.txt
var tables embed.FS

// inLanguages are the languages with words; the first one is the fallback.
var inLanguages = [...]string{"en", "de"}

//go:embed namespaces.txt
var namespaces string

// lines returns the first word of each line of a table, and the rest of the line.
func lines(table string) func(yield func(first, rest string) bool) {
	return func(yield func(first, rest string) bool) {
		for line := range strings.Lines(table) {
			first, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
			if ok && !strings.HasPrefix(first, "#") && !yield(first, rest) {
				return
			}
		}
	}
}

// prefixes maps namespaces to their prefixes, and words has the words of prefixed names.
var (
	prefixes = sync.OnceValue(func() map[string]string {
		all := map[string]string{}
		for prefix, namespace := range lines(namespaces) {
			all[namespace] = prefix
		}
		return all
	})
	words = sync.OnceValue(func() map[string]map[string]string {
		all := map[string]map[string]string{}
		for _, tag := range inLanguages {
			table, err := tables.ReadFile(tag + ".txt")
			if err != nil {
				panic(err)
			}
			all[tag] = map[string]string{}
			for name, word := range lines(string(table)) {
				all[tag][name] = word
			}
		}
		return all
	})
)

// terms are the IRIs with a word, by the word in lower case.
var terms = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for _, in := range words() {
		for name, word := range in {
			prefix, local, _ := strings.Cut(name, ":")
			for namespace, vocabulary := range prefixes() {
				if vocabulary == prefix {
					all[strings.ToLower(word)] = append(all[strings.ToLower(word)], namespace+local)
				}
			}
		}
	}
	for word, iris := range all {
		slices.Sort(iris)
		all[word] = slices.Compact(iris)
	}
	return all
})

// languagesCalled are the tags of languages, by their names in languages with words and in themselves.
var languagesCalled = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for _, tag := range display.Supported.Tags() {
		called := []string{display.Self.Name(tag)}
		for _, in := range inLanguages {
			called = append(called, display.Tags(language.Make(in)).Name(tag))
		}
		for _, name := range called {
			known := all[strings.ToLower(name)]
			if name != "" && (known == "" || len(tag.String()) < len(known)) { // of German, not of that in Luxembourg
				all[strings.ToLower(name)] = tag.String()
			}
		}
	}
	return all
})

// LanguageCalled returns the tag of the language with a name, in a language with words, or in itself; "" if there is
// none.
func LanguageCalled(name string) string { return languagesCalled()[strings.ToLower(name)] }

// IRIs returns the terms of vocabularies that people call so.
func IRIs(word string) []string { return terms()[strings.ToLower(word)] }

// Namespaces returns the namespaces of these prefixes in the table, by prefix, for writers of RDF.
func Namespaces(chosen ...string) map[string]string {
	all := map[string]string{}
	for prefix, namespace := range lines(namespaces) {
		if all[prefix] == "" && slices.Contains(chosen, prefix) {
			all[prefix] = namespace
		}
	}
	return all
}

// Word returns the word for the subject of an IRI: a term of a widely used vocabulary, or a language. It is "" if the
// tables have none.
func Word(iri string) string {
	word, _ := WordIn(inLanguages[0], iri)
	return word
}

// WordIn returns [Word] in the language with a tag. If the word is in another language, lang is that one's tag.
func WordIn(tag, iri string) (word, lang string) { return wordOf(tag, iri, prefixed(iri)) }

func wordOf(tag, iri, prefixed string) (word, lang string) {
	if word := cmp.Or(words()[tag][prefixed], languageOf(tag, iri), licenceOf(iri)); word != "" || tag == inLanguages[0] {
		return word, ""
	}
	word, _ = wordOf(inLanguages[0], iri, prefixed)
	return word, inLanguages[0]
}

// Unnamed is returned by [Short] for an IRI without a readable part.
const Unnamed = "something without a name"

// Short returns a readable text for any IRI: its [Word], its prefixed name, or its last part with the host in brackets.
// It is not truncated, and no digest.
func Short(iri string) string {
	short, _ := ShortIn(inLanguages[0], iri)
	return short
}

// ShortIn returns [Short] in the language with a tag. If it is a word of another language, lang is that one's tag.
func ShortIn(tag, locator string) (short, lang string) {
	locator = iri.Shown(locator)
	name := prefixed(locator)
	if word, lang := wordOf(tag, locator, name); word != "" {
		return word, lang
	}
	return cmp.Or(name, unknown(locator)), ""
}

// unknown returns the text for an IRI that has neither a word nor a prefix.
func unknown(locator string) string {
	if rest, ok := strings.CutPrefix(locator, iri.Own); ok {
		kind, local, _ := strings.Cut(rest, "/")
		switch kind {
		case "language":
			return local
		case "datatype":
			return "xsd:" + local
		}
	}
	if IsOpaque(locator) {
		return Unnamed
	}
	return readable(locator)
}

// IsText reports whether a datatype is that of plain text, or of text in the language of its scope.
func IsText(datatype string) bool {
	return datatype == "http://www.w3.org/2001/XMLSchema#string" ||
		datatype == "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
}

// Titled returns an identifier and the title of its subject, for a line of a command. It omits an opaque identifier.
func Titled(locator, title string) string {
	switch {
	case IsOpaque(locator) && (title == "" || title == locator || title == Unnamed):
		return Unnamed
	case IsOpaque(locator):
		return strconv.Quote(title)
	case title == "" || iri.Shown(title) == iri.Shown(locator):
		return iri.Shown(locator)
	}
	return iri.Shown(locator) + " " + strconv.Quote(title)
}

// IsOpaque reports whether an IRI has no readable part: that of a blank node (RDF 1.1 Concepts §3.5, Replacing Blank
// Nodes with IRIs), or one that was made for a topic without identifiers.
func IsOpaque(locator string) bool {
	if local, ok := strings.CutPrefix(locator, iri.Own); ok {
		return strings.HasPrefix(local, "unidentified/") || strings.HasPrefix(local, "unnamed/")
	}
	_, local, ok := strings.Cut(locator, iri.Genid)
	return ok && local != "" && !strings.Contains(local, "/")
}

// prefixed returns the prefixed name of an IRI, "" if its namespace has no prefix.
func prefixed(iri string) string {
	end := strings.LastIndexAny(iri, "#/") + 1
	prefix, local := prefixes()[iri[:end]], iri[end:]
	if prefix == "" || local == "" || strings.ContainsFunc(local, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' && r != '.'
	}) {
		return ""
	}
	return prefix + ":" + local
}

// LanguageNamespace begins the identifiers of languages in topic maps that are made of RDF (docs/rdf.md).
const LanguageNamespace = iri.Own + "language/"

// LanguageNamespaces are the namespaces of widely used identifiers of languages. The rest is a tag (BCP 47), or a code
// of ISO 639.
var LanguageNamespaces = [...]string{
	LanguageNamespace,
	"http://www.topicmaps.org/xtm/1.0/language.xtm#",
	"http://psi.oasis-open.org/iso/639/#", "http://psi.oasis-open.org/iso/639/",
	"http://lexvo.org/id/iso639-1/", "http://lexvo.org/id/iso639-3/",
	"http://id.loc.gov/vocabulary/iso639-1/", "http://id.loc.gov/vocabulary/iso639-2/",
	"http://publications.europa.eu/resource/authority/language/",
}

// countries are namespaces whose local parts are codes of ISO 3166.
var countries = []string{"http://www.topicmaps.org/xtm/1.0/country.xtm#", "http://psi.oasis-open.org/iso/3166/#"}

// languageOf returns the name of the language or the country that an IRI is of, or "".
func languageOf(in, iri string) string {
	for _, namespace := range LanguageNamespaces {
		if tag, ok := strings.CutPrefix(iri, namespace); ok {
			parsed, err := language.Raw.Parse(tag)
			if base, _ := parsed.Base(); err != nil || parsed == language.Und || base.String() == "und" {
				return ""
			}
			return cmp.Or(words()[in]["language:"+parsed.String()], display.Tags(language.Make(in)).Name(parsed))
		}
	}
	for _, namespace := range countries {
		if code, ok := strings.CutPrefix(iri, namespace); ok {
			if region, err := language.ParseRegion(code); err == nil {
				return display.Regions(language.Make(in)).Name(region)
			}
		}
	}
	return ""
}

// licenceOf returns the name of the licence of Creative Commons that an IRI is of, or "".
func licenceOf(iri string) string {
	_, path, _ := strings.Cut(iri, "://")
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	switch {
	case len(parts) < 4 || parts[0] != "creativecommons.org":
	case parts[1] == "licenses":
		return strings.Join(append([]string{"CC", strings.ToUpper(parts[2])}, parts[3:]...), " ")
	case parts[1] == "publicdomain" && parts[2] == "zero":
		return "CC0 " + parts[3]
	}
	return ""
}

// readable returns the last part of an IRI and its host. It includes parts before if the last one is a number or short.
func readable(iri string) string {
	scheme, rest, found := strings.Cut(iri, "://")
	if !found || scheme == "" {
		return decoded(iri)
	}
	path, query, _ := strings.Cut(rest, "?")
	host := ""
	if scheme != "file" {
		end := strings.IndexAny(path+"/", "/#")
		host, path = path[:end], path[end:]
		host = strings.TrimPrefix(host[strings.LastIndex(host, "@")+1:], "www.")
	}
	path = strings.Trim(path, "/#")
	at := strings.LastIndexAny(path, "/#") + 1
	for at > 0 && saysLittle(path[at:]) {
		at = strings.LastIndexAny(path[:at-1], "/#") + 1
	}
	local := decoded(path[at:])
	if query != "" {
		local += "?" + query
	}
	switch {
	case local == "":
		return host
	case host == "":
		return local
	}
	return local + " (" + host + ")"
}

// saysLittle reports whether a part of a path is a number or a letter or two.
func saysLittle(part string) bool {
	return len(part) < 3 || !strings.ContainsFunc(part, unicode.IsLetter)
}

// decoded returns a part of an IRI with the characters that it escapes, if they can be shown.
func decoded(part string) string {
	plain, err := url.PathUnescape(part)
	if err != nil || !utf8.ValidString(plain) || strings.ContainsFunc(plain, func(r rune) bool {
		return !unicode.IsPrint(r)
	}) {
		return part
	}
	return plain
}
