package folder

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// name returns the name of a file for a record: its title, or else the last part of its id; a hash that makes it
// unique; an extension for its format. The name is valid on all file systems. n counts from 0, for the case that
// another file has the name.
func name(id, title, mediaType string, n int) string {
	sum := sha256.Sum256([]byte(id))
	last := strings.TrimRight(id, "/#:?&=")
	known := cmp.Or(slug(title), slug(last[strings.LastIndexAny(last, "/#:?&=")+1:]))
	return numbered(strings.TrimPrefix(known+"-", "-")+hex.EncodeToString(sum[:6]), n) + endingOf(mediaType)
}

// numbered returns a name without its ending for the n-th of several files, from 0.
func numbered(stem string, n int) string {
	if n == 0 {
		return stem
	}
	return fmt.Sprintf("%s-%d", stem, n+1)
}

// slug returns a text as far as it can stand in a name: letters and digits of any script, "_" and "-".
func slug(text string) string {
	const most = 80 // bytes
	var b strings.Builder
	for _, r := range norm.NFC.String(strings.ToValidUTF8(text[:min(len(text), 10*most)], "")) {
		letter := unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || unicode.IsMark(r) && b.Len() > 0
		if b.Len()+utf8.RuneLen(r) > most {
			break
		} else if letter {
			b.WriteRune(r)
		} else if !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-_")
}

// extensions are the file extensions of media types of records. Others are XML, JSON or text by the suffix or the
// prefix of the type.
var extensions = map[string]string{
	"application/atom+xml":      ".atom",
	"application/rdf+xml":       ".rdf",
	"application/rifcs+xml":     ".rifcs.xml",
	"application/xhtml+xml":     ".html",
	"application/xtm+xml":       ".xtm",
	"application/xtm1+xml":      ".xtm",
	"application/x-tm+xml":      ".xtm",
	"application/ld+json":       ".jsonld",
	"application/json":          ".json",
	"application/xml":           ".xml",
	"application/n-triples":     ".nt",
	"application/pdf":           ".pdf",
	"application/trig":          ".trig",
	"application/x-bibtex":      ".bib",
	"application/zip":           ".zip",
	"application/marc":          ".mrc",
	"application/x-ndjson":      ".ndjson",
	"text/csv":                  ".csv",
	"text/html":                 ".html",
	"text/markdown":             ".md",
	"text/turtle":               ".ttl",
	"text/xml":                  ".xml",
	"text/tab-separated-values": ".tsv",
}

func endingOf(mediaType string) string {
	kind, _ := parseType(mediaType)
	if e, ok := extensions[kind]; ok {
		return e
	}
	switch {
	case strings.HasSuffix(kind, "+xml"):
		return ".xml"
	case strings.HasSuffix(kind, "+json"):
		return ".json"
	case strings.HasPrefix(kind, "text/"):
		return ".txt"
	}
	return ".bin"
}
