package client

import (
	"fmt"
	"mime"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/formats"
)

// linkChoice chooses links.
type linkChoice struct {
	Format  *formats.Format  // the only accepted one; nil: the best one
	Formats formats.Registry // those of the program
}

// acceptXTM is the Accept header for XTM, in the order of preference.
const acceptXTM = feeds.MediaTypeXTM21 + ", " + feeds.MediaTypeXTM1 +
	";q=0.8, text/xtm1+xml;q=0.8, application/x-tm+xml;q=0.7, application/xml;q=0.5, text/xml;q=0.5"

// Accept returns the Accept header for XTM.
func (c linkChoice) Accept() string {
	switch c.Format {
	case formats.XTM10:
		return "application/xtm1+xml, text/xtm1+xml;q=0.9, application/x-tm+xml;version=1.0;q=0.9, application/xml;q=0.5, " +
			"text/xml;q=0.5"
	case formats.XTM21:
		return "application/x-tm+xml;version=2.1, application/x-tm+xml;q=0.8, application/xml;q=0.5, text/xml;q=0.5"
	}
	return acceptXTM
}

// AcceptFor returns the Accept header for the data of a link, by the type that the link states. If it states none, XTM
// is accepted as usual, and RDF, too.
func (c linkChoice) AcceptFor(mediaType string) string {
	first, quality := mediaType, ";q=0.8"
	switch {
	case mediaType == "":
		first, quality = c.Accept(), ";q=0.3"
	case c.exchanged(mediaType) == nil:
		return c.Accept()
	}
	all := []string{first}
	for _, f := range c.Formats.Exchanged() {
		if f.MediaType() != first {
			all = append(all, f.MediaType()+quality)
		}
	}
	return strings.Join(all, ", ")
}

// Data chooses the link to the data of an entry: to RDF if that was requested, or if no link is to XTM.
func (c linkChoice) Data(e *feeds.Entry) (feeds.Link, bool) {
	all := append(e.Find(feeds.RelTopicMapData), e.Find("alternate")...)
	best, ok := c.Best(all)
	if c.Format == nil && ok && rankType(best.Type) > rankUnknown {
		return best, true
	}
	for _, f := range c.Formats.Exchanged() { // the best first
		for _, l := range all {
			if c.exchanged(l.Type) == f && (c.Format == nil || c.Format == f) {
				return l, true
			}
		}
	}
	return best, ok
}

// exchanged returns the format of a media type, among those that servers offer besides XTM.
func (c linkChoice) exchanged(mediaType string) *formats.Format {
	base, _, _ := mime.ParseMediaType(mediaType)
	for _, f := range c.Formats.Exchanged() {
		if f.MediaType() == base {
			return f
		}
	}
	return nil
}

// None returns the error for an entry without a link to data.
func (c linkChoice) None(feed, id, title string) error {
	if c.Format != nil {
		return fmt.Errorf(
			"%s: the entry %s (%q) has no link to data in %s, which is asked for alone: subscribe without --format", feed, id,
			title, c.Format)
	}
	if len(c.Formats) == 0 {
		const missing = "%s: the entry %s (%q) has no link to data in XTM; other data need an extension that this " +
			"program has not"
		return fmt.Errorf(missing, feed, id, title)
	}
	return fmt.Errorf("%s: the entry %s (%q) has no link to data in XTM or RDF; tell the owner of the server",
		feed, id, title)
}

// Exchanged reports whether only a format other than XTM was requested. Data in it may lack parts.
func (c linkChoice) Exchanged() bool { return c.Format != nil && c.Format.Exchange != nil }

// FormatOf returns the format of a document if it is not XTM; nil: it is XTM. For a generic media type, the link to the
// document decides.
func (c linkChoice) FormatOf(contentType, linkType string) *formats.Format {
	switch base, _, _ := mime.ParseMediaType(contentType); base {
	case "", "text/plain", "application/octet-stream", "application/xml", "text/xml":
		contentType = linkType
	}
	if f := c.Formats.ToRead(contentType); f.Exchange != nil {
		return f
	}
	return nil
}

// Snapshot is Data for a snapshot. If only RDF was requested, it refuses XTM, because fragments with less content would
// replace its topics one by one.
func (c linkChoice) Snapshot(feed string, e *feeds.Entry) (feeds.Link, error) {
	l, ok := c.Data(e)
	switch {
	case !ok:
		return l, c.None(feed, e.ID, e.Title)
	case c.Exchanged() && c.Formats.ToRead(l.Type) != c.Format:
		return l, fmt.Errorf(
			"%s: the source is not offered in %s, which is asked for alone: subscribe without --format, or have its owner "+
				"offer it in RDF "+
				"(\"tmshare-server collections set NAME --rdf\")", feed, c.Format)
	}
	return l, nil
}

// Best chooses the preferred link to XTM: XTM 2.1, which loses nothing, then XTM 1.0, then unknown types. If XTM 1.0
// was requested, the order differs.
func (c linkChoice) Best(links []feeds.Link) (best feeds.Link, ok bool) {
	rank := 0
	for _, l := range links {
		if r := c.Rank(l.Type); r > rank {
			best, rank = l, r
		}
	}
	return best, rank > 0
}

// Rank is rankType with the requested format first.
func (c linkChoice) Rank(mediaType string) int {
	r := rankType(mediaType)
	if c.Format == formats.XTM10 && (r == rankXTM1 || r == rankXTM1Own) {
		r += 10
	}
	return r
}

// The ranks of types that may be XTM, and of XTM 1.0.
const (
	rankUnknown = 1 // the type is unknown or generic
	rankXTM1Own = 3 // in its own media type
	rankXTM1    = 4 // in that of XTM 2
)

// rankType returns the rank of a media type; 0 is unusable. Because servers of all generations exist, "" and generic
// types may be XTM.
func rankType(mediaType string) int {
	base, params, err := mime.ParseMediaType(mediaType)
	if mediaType == "" {
		return rankUnknown
	}
	if err != nil {
		return 0
	}
	switch base {
	case "application/x-tm+xml":
		switch params["version"] {
		case "2.1":
			return 6
		case "2.0":
			return 5
		}
		return rankXTM1
	case "application/xtm1+xml", "text/xtm1+xml", "application/xtm+xml":
		return rankXTM1Own
	case "application/xml", "text/xml":
		return 2
	}
	return 0
}

// Other reports whether a media type is of another format than the only requested one.
func (c linkChoice) Other(mediaType string) bool {
	switch r := rankType(mediaType); c.Format {
	case formats.XTM10:
		return r > rankXTM1
	case formats.XTM21:
		return r == rankXTM1 || r == rankXTM1Own
	}
	return false
}
