// Package otherformat detects the format of a document that is not in the expected one.
package otherformat

import (
	"bytes"
	"cmp"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Kinds of documents that are read beside maps. A document given in place of one is no map to convert.
const (
	Feed    = "an Atom feed"
	Sitemap = "a Sitemap"
)

const page = "an HTML page"

// other is a format of documents that are given where another is expected.
type other struct {
	name   string
	remedy string         // "": it may be read
	starts *regexp.Regexp // the beginning of documents, after comments of one line; nil if not used
	root   string         // name of the root element; "" if it is not XML
	not    []string       // the formats that are expected whose own documents may begin so, too
}

const (
	convertFirst = "convert it to XTM first, with Wandora or Ontopia for example"
	mapItself    = "give the address or the file of the map itself"
)

// The notations of RDF whose documents are no XML. A few characters, which distinguish other formats, do not
// distinguish these.
var (
	lines   = []string{"N-Triples", "N-Quads"}
	turtles = []string{"Turtle", "TriG"}
	texts   = slices.Concat(lines, turtles, []string{"JSON-LD"})
)

// others are looked through in this order.
var others = []other{
	{name: "CXTM", remedy: "that form is for comparing maps only; give the map that it was made of", starts: cxtm},
	{name: "XTM", root: "topicMap", not: []string{"XTM"}},
	{name: "RDF/XML", root: "RDF", not: []string{"RDF/XML"}},
	{name: page, remedy: mapItself, root: "html", starts: regexp.MustCompile(`^(?i)<!doctype html\b`)},
	{name: Feed, remedy: `give the address or the file of a map, or follow the feed with "tmshare-client subscribe"`,
		root: "feed", not: []string{Feed}},
	{name: "JSON-LD", starts: regexp.MustCompile(`^(\[\s*)?\{\s*"@(context|id|graph|type)"`),
		not: []string{"JSON-LD"}},
	{name: "JSON", remedy: convertFirst, starts: regexp.MustCompile(`^(\{\s*["}]|\[\s*(["{\[\]]|-?[0-9]))`), not: texts},
	{name: "Turtle", starts: regexp.MustCompile(`^(@(prefix|base)\s|(?i)(prefix\s+[\w.-]*:|base)\s*<)`),
		not: turtles},
	{name: "Turtle", starts: regexp.MustCompile(`^<[a-z][a-z0-9+.-]*://`),
		not: slices.Concat(lines, turtles)},
	{name: "LTM", remedy: convertFirst,
		starts: regexp.MustCompile(`^(@"|#(VERSION|TOPICMAP|PREFIX|BASEURI|INCLUDE|MERGEMAP)\b|\[[^\s\]]+(\s*[:=]|\s*\]))`),
		not:    texts},
	{name: "CTM", remedy: convertFirst, starts: regexp.MustCompile(`^%(encoding|version|prefix|include|mergemap)\b`)},
	{name: "a ZIP archive", remedy: "unpack it first", starts: regexp.MustCompile(`^PK\x03\x04`)},
	{name: "gzip", remedy: "unpack it first", starts: regexp.MustCompile(`^\x1F\x8B`)},
	{name: "CSV", remedy: convertFirst, starts: regexp.MustCompile(`^[^<,;\t\r\n]*([,;\t])[^<\r\n]*(\r?\n|$)`),
		not: slices.Concat(texts, []string{Feed, Sitemap})},
}

// cxtm matches the beginning of a document in canonical form (ISO 13250-4), which alone has numbered topics.
var cxtm = regexp.MustCompile(
	`^<topicMap( (number|reifier)="[0-9]*")*>\s*(<itemIdentifiers>|<(topic|association) number="[0-9]+")`)

// startSize is the number of bytes of a document that are inspected.
const startSize = 4 << 10

// Start returns the beginning of a document, and a reader of the whole.
func Start(r io.Reader) (start []byte, whole io.Reader) {
	start = make([]byte, startSize)
	n, err := io.ReadFull(r, start)
	start = start[:n]
	switch err {
	case nil:
		return start, io.MultiReader(bytes.NewReader(start), r)
	case io.EOF, io.ErrUnexpectedEOF:
		return start, bytes.NewReader(start)
	}
	return start, io.MultiReader(bytes.NewReader(start), failed{err})
}

type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// Explain returns reason, why a document is not in the expected format, preceded by the detected format, if any. It
// takes the name of the root element, or the beginning of the document if that was not found. readAs returns how to
// read a document in another format; it may be nil.
func Explain(expected, reason, root string, start []byte, readAs func(format string) string) string {
	start = withoutComments(bytes.TrimPrefix(start[:min(len(start), startSize)], []byte("\xEF\xBB\xBF")))
	if root == "" {
		root = rootOf(start)
	}
	for _, o := range others {
		if slices.Contains(o.not, expected) {
			continue
		}
		if root != "" && strings.EqualFold(o.root, root) || o.starts != nil && o.starts.Match(start) {
			return "this looks like " + o.name + ", not " + expected + ": " + o.remedyFor(expected, readAs) +
				" (" + reason + ")"
		}
	}
	return reason
}

// remedyFor returns the remedy if another format is expected.
func (o *other) remedyFor(expected string, readAs func(string) string) string {
	switch feed := expected == Feed || expected == Sitemap; {
	case feed && o.name == page:
		return "open the address in a browser to see what the server says"
	case feed:
		return "give the address of " + expected
	case o.remedy == "" && readAs != nil:
		return readAs(o.name)
	}
	return cmp.Or(o.remedy, "read it as "+o.name)
}

// IsCXTM reports whether a document that begins so is in canonical form. Without a namespace, it might be taken for
// XTM.
func IsCXTM(start []byte) bool { return cxtm.Match(start) }

// rootTag is the beginning of an XML document up to the name of its root element, without the prefix of that.
var rootTag = regexp.MustCompile(
	`(?s)^(?:\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>)*<(?:[\w.-]+:)?([\w.-]+)[\s/>]`)

func rootOf(start []byte) string {
	if found := rootTag.FindSubmatch(start); found != nil {
		return string(found[1])
	}
	return ""
}

// withoutComments returns a text from the first line on that is not a comment of Turtle or CTM.
func withoutComments(text []byte) []byte {
	for {
		text = bytes.TrimLeft(text, " \t\r\n")
		if !bytes.HasPrefix(text, []byte("# ")) && !bytes.HasPrefix(text, []byte("##")) {
			return text
		}
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
}
