package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// name returns the name of a file for a record: what people know it by, then a hash that
// makes it its own, then an ending that tells programs its format. Whatever the id or
// the type contains, it is one name of at most 80 letters, digits, ".", "_" and "-", and
// does not begin with ".". n counts from 0: there may be another file of that name.
func name(id, mediaType string, n int) string {
	sum := sha256.Sum256([]byte(id))
	parts := append(slug(id), hex.EncodeToString(sum[:6]))
	if n > 0 {
		parts = append(parts, fmt.Sprint(n+1))
	}
	return strings.Join(parts, "-") + endingOf(mediaType)
}

// slug returns the last part of an id as far as it can stand in a name; nothing where
// it cannot.
func slug(id string) []string {
	const most = 40
	id = strings.TrimRight(id, "/#:?&=")
	if i := strings.LastIndexAny(id, "/#:?&="); i >= 0 {
		id = id[i+1:]
	}
	var b strings.Builder
	for _, r := range id {
		switch {
		case b.Len() == most:
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if s := strings.Trim(b.String(), ".-_"); s != "" {
		return []string{s}
	}
	return nil
}

// extensions of media types that records come in. Others are XML, JSON or text by what
// the type ends or begins with.
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
