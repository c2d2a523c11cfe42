// Package otherformat tells what a document is that is given where a topic map in XTM is expected.
package otherformat

import (
	"bytes"
	"regexp"
)

// other is a format of documents that are given where XTM is expected.
type other struct {
	name   string
	remedy string
	starts *regexp.Regexp // what documents begin with, comments of one line passed over; nil if not told by that
	root   string         // name of the root element; "" if it is not XML
}

const (
	convertFirst = "convert it to XTM first, with Wandora or Ontopia for example"
	nameFormat   = "say so by the ending of its name (.ttl, .nt, .rdf, .jsonld), by --from or by its media type"
	mapItself    = "give the address or the file of the map itself"
)

// others are looked through in this order.
var others = []other{
	{name: "RDF/XML", remedy: nameFormat, root: "RDF"},
	{name: "an HTML page", remedy: mapItself, root: "html", starts: regexp.MustCompile(`^(?i)<!doctype html\b`)},
	{name: "an Atom feed", remedy: `give the address or the file of a map, or follow the feed with "tmshare-client subscribe"`, root: "feed"},
	{name: "JSON-LD", remedy: nameFormat, starts: regexp.MustCompile(`^(\[\s*)?\{\s*"@(context|id|graph|type)"`)},
	{name: "JSON", remedy: convertFirst, starts: regexp.MustCompile(`^(\{\s*["}]|\[\s*(["{\[\]]|-?[0-9]))`)},
	{name: "Turtle", remedy: nameFormat, starts: regexp.MustCompile(`^(@(prefix|base)\s|(?i)(prefix\s+[\w.-]*:|base)\s*<|<[a-z][a-z0-9+.-]*://)`)},
	{name: "LTM", remedy: convertFirst, starts: regexp.MustCompile(`^(@"|#(VERSION|TOPICMAP|PREFIX|BASEURI|INCLUDE|MERGEMAP)\b|\[[^\s\]]+(\s*[:=]|\s*\]))`)},
	{name: "CTM", remedy: convertFirst, starts: regexp.MustCompile(`^%(encoding|version|prefix|include|mergemap)\b`)},
	{name: "a ZIP archive", remedy: "unpack it first", starts: regexp.MustCompile(`^PK\x03\x04`)},
	{name: "CSV", remedy: convertFirst, starts: regexp.MustCompile(`^[^<,;\t\r\n]*([,;\t])[^<\r\n]*(\r?\n|$)`)},
}

// Explain begins reason with what a document that is no topic map looks like, if that can be told. It
// takes the name of the root element, or what the document begins with where that was not found.
func Explain(reason, root string, start []byte) string {
	start = withoutComments(start[:min(len(start), 4<<10)])
	for _, o := range others {
		if root != "" && o.root == root || root == "" && o.starts != nil && o.starts.Match(start) {
			return "this looks like " + o.name + ", not XTM: " + o.remedy + " (" + reason + ")"
		}
	}
	return reason
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
