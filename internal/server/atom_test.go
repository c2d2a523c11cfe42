package server_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"mime"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/xml/scan"
)

// The names of the protocol are spelled out here once more, as the tests are to
// notice when those of the package change.
const (
	sdshare   = "http://www.sdshare.org/2012/core/"
	cwa       = "http://www.egovpt.org/sdshare"
	own       = "https://github.com/tmshare/tmshare/ns/1"
	atomType  = "application/atom+xml"
	xtm1Type  = "application/xtm1+xml"
	xtm21Type = "application/x-tm+xml;version=2.1"
)

// document is an Atom document, or an entry of one, as it goes over the wire.
type document struct {
	XMLName  xml.Name
	IDs      []string  `xml:"http://www.w3.org/2005/Atom id"`
	Titles   []string  `xml:"http://www.w3.org/2005/Atom title"`
	Summary  []string  `xml:"http://www.w3.org/2005/Atom summary"`
	Updates  []string  `xml:"http://www.w3.org/2005/Atom updated"`
	Authors  []string  `xml:"http://www.w3.org/2005/Atom author>name"`
	Links    []link    `xml:"http://www.w3.org/2005/Atom link"`
	Prefixes []string  `xml:"http://www.egovpt.org/tmshare ServerSrcLocatorPrefix"`
	TopicSI  []string  `xml:"http://www.egovpt.org/tmshare TopicSI"`
	Resource []string  `xml:"http://www.sdshare.org/2012/core/ resource"`
	State    []string  `xml:"https://github.com/tmshare/tmshare/ns/1 state"`
	Content  []content `xml:"http://www.w3.org/2005/Atom content"`

	Archive  []struct{} `xml:"http://purl.org/syndication/history/1.0 archive"`
	Complete []struct{} `xml:"http://purl.org/syndication/history/1.0 complete"`

	Entries []document `xml:"http://www.w3.org/2005/Atom entry"`

	raw string
}

// content is an atom:content.
type content struct {
	Attributes []xml.Attr `xml:",any,attr"`
	Inside     string     `xml:",innerxml"`
}

type link struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr"`
	Href string `xml:"href,attr"`
}

func (d *document) id() string      { return d.IDs[0] }
func (d *document) updated() string { return d.Updates[0] }

// links returns the targets of the links with a relation.
func (d *document) links(rel string) []string {
	var hrefs []string
	for _, l := range d.Links {
		if l.Rel == rel {
			hrefs = append(hrefs, l.Href)
		}
	}
	return hrefs
}

// link returns the one link with a relation, or "".
func (d *document) link(t testing.TB, rel string) string {
	t.Helper()
	all := d.links(rel)
	if len(all) == 0 {
		return ""
	}
	require.Len(t, all, 1, "links with rel %s", rel)
	return all[0]
}

// typed returns the targets of the links with a relation by media type.
func (d *document) typed(t testing.TB, rel string) map[string]string {
	t.Helper()
	byType := map[string]string{}
	for _, l := range d.Links {
		if l.Rel == rel {
			require.NotContains(t, byType, l.Type, "links with rel %s", rel)
			byType[l.Type] = l.Href
		}
	}
	return byType
}

// feed gets a feed document and checks what holds for each.
func (n *node) feed(url string, headers ...string) *document {
	n.t.Helper()
	a := n.mustGet(url, headers...)
	d := parseAtom(n.t, a)
	require.Equal(n.t, "feed", d.XMLName.Local, url)
	_, err := feeds.Decode(bytes.NewReader(a.body), url, feeds.Limits{})
	require.NoError(n.t, err, url)
	return d
}

// entry gets an entry document and checks what holds for each.
func (n *node) entry(url string) *document {
	n.t.Helper()
	d := parseAtom(n.t, n.mustGet(url))
	require.Equal(n.t, "entry", d.XMLName.Local, url)
	require.Len(n.t, d.Authors, 1, "an entry document has an author of its own")
	return d
}

var (
	timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)
	idForm   = regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// parseAtom reads an Atom document and checks the rules that hold for all: what
// RFC 4287 and the protocol want of each feed and each entry.
func parseAtom(t testing.TB, a answer) *document {
	t.Helper()
	require.Equal(t, atomType, a.Header.Get("Content-Type"))
	d := &document{raw: string(a.body)}
	require.NoError(t, xml.Unmarshal(a.body, d))
	require.Equal(t, "http://www.w3.org/2005/Atom", d.XMLName.Space)
	if d.XMLName.Local == "feed" {
		assert.Len(t, d.Authors, 1, "authors of the feed")
		assertEntriesAreLast(t, d.raw)
	}
	checkCommon(t, d)
	for i := range d.Entries {
		checkCommon(t, &d.Entries[i])
		assert.Empty(t, d.Entries[i].Prefixes, "the prefix is the feed's")
	}
	return d
}

func checkCommon(t testing.TB, d *document) {
	t.Helper()
	require.Len(t, d.IDs, 1)
	assert.Regexp(t, idForm, d.id())
	require.Len(t, d.Updates, 1)
	assert.Regexp(t, timeForm, d.updated())
	require.Len(t, d.Titles, 1)
	assert.NotEmpty(t, strings.TrimSpace(d.Titles[0]))
	assert.NotEmpty(t, d.link(t, "self"), "self link of %s", d.Titles[0])
	d.typed(t, "alternate") // one for each type
	for _, l := range d.Links {
		assert.NotEmpty(t, l.Type, l.Href)
		assert.False(t, strings.HasSuffix(l.Href, "/"), "%s ends in a slash", l.Href)
	}
	if d.XMLName.Local == "entry" {
		assert.NotEqual(t, len(d.links("alternate")) > 0, len(d.Content) > 0, "alternate links of %s, or content (of deletion entries)", d.Titles[0])
	}
}

// assertEntriesAreLast checks that nothing of the feed follows its first entry.
func assertEntriesAreLast(t testing.TB, raw string) {
	t.Helper()
	seen := false
	for s := scan.NewScanner(strings.NewReader(raw), scan.Options{}); ; {
		kind, err := s.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		if kind == scan.StartElement && s.Depth() == 2 {
			entry := s.Name().Local == "entry"
			assert.False(t, seen && !entry, "<%s> follows an entry", s.Name().Local)
			seen = seen || entry
		}
	}
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return v
}

func ids(entries []document) []string {
	all := make([]string, len(entries))
	for i := range entries {
		all[i] = entries[i].id()
	}
	return all
}

// sameType reports whether two media types are the same, parameters included.
func sameType(a, b string) bool {
	x, p, err1 := mime.ParseMediaType(a)
	y, q, err2 := mime.ParseMediaType(b)
	return err1 == nil && err2 == nil && mime.FormatMediaType(x, p) == mime.FormatMediaType(y, q)
}

// history walks a fragments feed from its recent document back to the first one,
// and returns all entries, the newest first, and the documents.
func (n *node) history(url string) (entries []document, documents []*document) {
	n.t.Helper()
	seen := map[string]bool{}
	for url != "" {
		require.False(n.t, seen[url], "the feed leads in a circle: %s", url)
		seen[url] = true
		d := n.feed(url)
		entries = append(entries, d.Entries...)
		documents = append(documents, d)
		url = d.link(n.t, "prev-archive")
	}
	return entries, documents
}
