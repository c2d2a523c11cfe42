package resourcesync

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const rootStart = `<urlset xmlns="` + NamespaceSitemap + `" xmlns:rs="` + NamespaceRS + `">`

func inList(inner string) string {
	return rootStart + `<rs:md capability="changelist" from="2013-01-01"/>` + inner + `</urlset>`
}

func oneItem(t *testing.T, document string) Item {
	_, items, err := readString(document)
	require.NoError(t, err, document)
	require.Len(t, items, 1, document)
	return items[0]
}

// Sources differ in details. All of these documents mean the same as the first.
func TestReaderTakesWhatSourcesSend(t *testing.T) {
	want := Item{
		Loc: "http://example.com/a/b", LastMod: time.Date(2013, 1, 2, 13, 0, 0, 0, time.UTC),
		Metadata: Metadata{Change: Updated, Representation: Representation{
			Hashes: []Hash{{MD5, "1584abdf8ebdc9802ac0c6a7402c03b6"}}, Length: 5, Type: "text/html", Path: "/x"}},
		Links: []Link{{Rel: RelDuplicate, Href: "http://example.com/mirror", Pri: 2}},
	}
	const (
		loc  = `<loc>http://example.com/a/b</loc>`
		mod  = `<lastmod>2013-01-02T13:00:00Z</lastmod>`
		md   = `<rs:md change="updated" hash="md5:1584abdf8ebdc9802ac0c6a7402c03b6" length="5" type="text/html" path="/x"/>`
		ln   = `<rs:ln rel="duplicate" href="http://example.com/mirror" pri="2"/>`
		item = `<url>` + loc + mod + md + ln + `</url>`
	)
	base := "http://example.com/document.xml"
	for name, document := range map[string]string{
		"as it should be":    inList(item),
		"in another order":   inList(`<url>` + ln + md + mod + loc + `</url>`),
		"white space":        inList("\n<url>\n\t<loc>\n  http://example.com/a/b\n </loc>" + strings.Replace(mod, ">2", "> 2", 1) + md + ln + "</url>"),
		"wrapped":            inList(strings.Replace(item, "com/a", "com/\n    a", 1)),
		"relative":           inList(strings.NewReplacer("http://example.com/mirror", "mirror", "http://example.com/a/b", "/a/b").Replace(item)),
		"relative to itself": inList(strings.Replace(item, "http://example.com/a/b", "a/b", 1)),
		"hashes in capitals": inList(strings.Replace(item, "md5:1584abdf8ebdc9802ac0c6a7402c03b6", "MD5:1584ABDF8EBDC9802AC0C6A7402C03B6", 1)),
		"CDATA":              inList(strings.Replace(item, "http://example.com/a/b", "<![CDATA[http://example.com/a/b]]>", 1)),
		"prefixes": `<?xml version="1.0"?><s:urlset xmlns:s="` + NamespaceSitemap + `" xmlns="` + NamespaceRS + `"><md capability="changelist" from="2013-01-01"/>` +
			`<s:url><s:loc>http://example.com/a/b</s:loc><s:lastmod>2013-01-02T13:00:00Z</s:lastmod>` + strings.ReplaceAll(md+ln, "rs:", "") + `</s:url></s:urlset>`,
		"attributes with a prefix": inList(strings.ReplaceAll(strings.Replace(item, `change=`, `rs:change=`, 1), ` pri=`, ` rs:pri=`)),
		"no namespace":             strings.ReplaceAll(inList(item), ` xmlns="`+NamespaceSitemap+`"`, ""),
		"slash and https":          strings.Replace(strings.Replace(inList(item), NamespaceSitemap, "https://www.sitemaps.org/schemas/sitemap/0.9/", 1), NamespaceRS, strings.TrimSuffix(NamespaceRS, "/"), 1),
		"head behind the items":    rootStart + item + `<rs:md capability="changelist" from="2013-01-01"/></urlset>`,
		"two rs:md":                inList(strings.Replace(item, md, `<rs:md change="updated" length="5" path="/x"/><rs:md hash="md5:1584abdf8ebdc9802ac0c6a7402c03b6" type="text/html"/>`, 1)),
		"elements unknown":         inList(`<x:y xmlns:x="urn:x"><url><loc>no</loc></url></x:y>` + strings.Replace(item, "<loc>", `<priority>0.5</priority><image:image xmlns:image="urn:i"><image:loc>no</image:loc></image:image><loc>`, 1)),
		"attributes unknown":       inList(strings.Replace(item, ` path="/x"/>`, ` path="/x" xmlns:x="urn:x" x:change="deleted" foo="bar"/>`, 1)),
		"links that lead nowhere":  inList(strings.Replace(item, "<rs:ln", `<rs:ln rel="up"/><rs:ln href="x"/><rs:ln rel="a" href="http://%00&#9;&#x7F;"/><rs:ln`, 1)),
		"capitals":                 inList(strings.NewReplacer("updated", " Updated ", `"duplicate"`, `"Duplicate"`).Replace(item)),
		"UTF-16":                   "\xFE\xFF" + utf16(inList(item)),
		"zone-less":                inList(strings.Replace(item, "13:00:00Z", "13:00:00", 1)),
		"another offset":           inList(strings.Replace(item, "13:00:00Z", "14:30:00+01:30", 1)),
		"comments and PIs":         `<?xml version="1.0"?><?xml-stylesheet href="x"?><!-- x -->` + inList("<!-- x -->"+item) + "<!-- x -->\n",
	} {
		d, items, err := readAll(strings.NewReader(document), base, Limits{})
		if !assert.NoError(t, err, name) {
			continue
		}
		assert.Equal(t, ChangeList, d.Capability, name)
		assert.Equal(t, time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC), d.From, name)
		assert.Equal(t, []Item{want}, items, name)
	}
}

func utf16(s string) string {
	var b strings.Builder
	for _, c := range s {
		b.WriteByte(byte(c >> 8))
		b.WriteByte(byte(c))
	}
	return b.String()
}

// Values that differ between dialects are kept apart.
func TestReaderKeepsWhatItDoesNotKnow(t *testing.T) {
	i := oneItem(t, inList(`<url><loc>HTTP://example.com/%7ea/</loc><rs:md change="moved" length="0" encoding="gzip"
		hash="SHA-256:f4OxZX_x  crc32:0A sha1:AB nothing" datetime="2013-01-02T13:00:00.123456789+01:00"/></url>`))
	assert.Equal(t, "HTTP://example.com/%7ea/", i.Loc, "resources are compared by their URIs as they stand")
	assert.Equal(t, Change("moved"), i.Change)
	assert.True(t, i.Empty)
	assert.Equal(t, "gzip", i.Encoding)
	assert.Equal(t, []Hash{{SHA256, "f4OxZX_x"}, {"crc32", "0a"}, {"sha-1", "ab"}, {"", "nothing"}}, i.Hashes)
	assert.True(t, i.LastMod.IsZero())
	assert.Equal(t, time.Date(2013, 1, 2, 12, 0, 0, 123456789, time.UTC), i.ChangeTime())

	i = oneItem(t, inList(`<url><loc>a</loc><lastmod>2013-01-02</lastmod><rs:md change="deleted"/></url>`))
	assert.Equal(t, time.Date(2013, 1, 2, 0, 0, 0, 0, time.UTC), i.ChangeTime(), "without a datetime")
	assert.Equal(t, time.Date(2013, 1, 3, 12, 0, 0, 0, time.UTC), i.ChangedBy(), "a day covers all of it, in every zone")
	assert.False(t, i.Empty)

	d, items, err := readString(`<urlset xmlns="` + NamespaceSitemap + `"><url><loc>a</loc></url><url><loc>b</loc></url></urlset>`)
	require.NoError(t, err)
	assert.Empty(t, d.Capability, "a plain Sitemap")
	require.Len(t, items, 2)
	assert.Equal(t, "http://example.com/a", items[0].Loc)

	d, _, err = readString(`<sitemapindex xmlns="` + NamespaceSitemap + `" xmlns:rs="` + NamespaceRS + `"><sitemap><loc>a</loc></sitemap>` +
		`<rs:ln rel="up" href="/up"/><rs:md capability="resourcelist-archive"/><sitemap><loc>b</loc></sitemap><rs:ln rel="index" href="/index"/></sitemapindex>`)
	require.NoError(t, err)
	assert.Equal(t, Capability("resourcelist-archive"), d.Capability)
	assert.True(t, d.Index)
	require.Len(t, d.Links, 2, "links behind items too")
	assert.Equal(t, "http://example.com/index", d.Links[1].Href)
}

// Links are asked for by relation, and come in the order of their priorities.
func TestFind(t *testing.T) {
	i := oneItem(t, inList(`<url><loc>a</loc><rs:ln rel="duplicate" href="none"/><rs:ln rel="duplicate" href="second" pri="2"/><rs:ln rel="via" href="via" pri="1"/>
		<rs:ln rel="duplicate" href="bad" pri="0"/><rs:ln rel="duplicate" href="first" pri="1"/><rs:ln rel="duplicate" href="last" pri="999999"/></url>`))
	var order []string
	for _, l := range i.Find(RelDuplicate) {
		order = append(order, strings.TrimPrefix(l.Href, "http://example.com/"))
	}
	assert.Equal(t, []string{"first", "second", "none", "bad", "last"}, order)
	l, ok := i.Link(RelVia)
	assert.True(t, ok)
	assert.Equal(t, "http://example.com/via", l.Href)
	_, ok = i.Link(RelMemento)
	assert.False(t, ok)
	d := changeList()
	l, ok = d.Link(RelUp)
	assert.True(t, ok)
	assert.Equal(t, d.Links[0], l)
	assert.Empty(t, d.Find(RelIndex))
}

func TestReaderRefuses(t *testing.T) {
	for _, c := range []struct {
		document     string
		line, column int
		message      string
	}{
		{inList("\n<url></url>"), 2, 6, "item 1/loc: is missing"},
		{inList("<url><loc> </loc></url>"), 0, 0, "item 1/loc: is missing"},
		{inList("<url><loc>a</loc></url>\n <url><loc>a&#x7F;</loc></url>"), 2, 0, "item 2/loc: \"http"},
		{inList("<url><loc>a</loc>\n<lastmod>yesterday</lastmod></url>"), 2, 19, `item 1/lastmod: "yesterday" is not a W3C Datetime`},
		{inList(`<url><loc>a</loc><rs:md datetime="1"/></url>`), 1, 0, `item 1/rs:md/@datetime: "1" is not`},
		{inList(`<url><loc>a</loc><rs:ln rel="via" href="a" modified="1"/></url>`), 1, 0, `item 1/rs:ln/@modified: "1" is not`},
		{inList(`<url><loc>a</loc><rs:md length="-1"/></url>`), 1, 0, `item 1/rs:md/@length: "-1" is no length`},
		{inList(`<url><loc>a</loc><rs:md length="9223372036854775808"/></url>`), 1, 0, "is no length"},
		{rootStart + "\n" + `<rs:md capability="changelist" from="now"/></urlset>`, 2, 1, `document.xml:2:1: rs:md/@from: "now" is not`},
		{rootStart + `<rs:md until="now"/></urlset>`, 1, 0, "rs:md/@until"},
		{rootStart + `<rs:md at="now"/></urlset>`, 1, 0, "rs:md/@at"},
		{rootStart + `<rs:md completed="now"/></urlset>`, 1, 0, "rs:md/@completed"},
	} {
		_, _, err := readString(c.document)
		var invalid *InvalidError
		if assert.ErrorAs(t, err, &invalid, c.document) {
			assert.ErrorContains(t, err, c.message)
			assert.Equal(t, "http://example.com/document.xml", invalid.URI)
			if c.line > 0 {
				assert.Equal(t, c.line, invalid.Line, c.document)
			}
			if c.column > 0 {
				assert.Equal(t, c.column, invalid.Column, c.document)
			}
		}
	}
	for _, c := range []struct{ document, reason string }{
		{"", "document is empty"},
		{"<html/>", "this looks like an HTML page, not a Sitemap: open the address in a browser"},
		{"<!DOCTYPE html><p>a<br>", "this looks like an HTML page, not a Sitemap: open the address in a browser"},
		{`<feed xmlns="http://www.w3.org/2005/Atom"/>`, "this looks like an Atom feed, not a Sitemap: give the address of a Sitemap"},
		{`<urlset xmlns="urn:x"/>`, "not a Sitemap"},
		{`<md xmlns="` + NamespaceRS + `"/>`, "root element is md"},
		{inList("") + inList(""), "second root"},
		{inList("") + "x", "behind the root element"},
		{inList("<url><loc>a</url>"), "closed by"},
		{inList("<url><loc>&nbsp;</loc></url>"), "nbsp"},
		{`<!DOCTYPE urlset>` + inList(""), "document type"},
		{`<!DOCTYPE urlset [<!ENTITY a "b">]>` + inList("<url><loc>&a;</loc></url>"), "document type"},
		{inList("<url><loc>\x00</loc></url>"), "U+0000"},
	} {
		_, _, err := readString(c.document)
		var syntax *SyntaxError
		if assert.ErrorAs(t, err, &syntax, c.document) {
			assert.ErrorContains(t, err, c.reason)
			assert.Positive(t, syntax.Line)
			assert.Positive(t, syntax.Column)
			assert.Equal(t, "http://example.com/document.xml", syntax.URI)
		}
	}
}

// A document that is cut off anywhere is never taken for a whole one.
func TestReaderTruncated(t *testing.T) {
	file, err := os.ReadFile("testdata/example-23.xml")
	require.NoError(t, err)
	document := strings.TrimSpace(string(file))
	_, _, err = readString(document)
	require.NoError(t, err)
	for n := range len(document) {
		_, _, err := readString(document[:n])
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, "cut after %d bytes", n)
	}
}

func TestReaderLimits(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, 10) }
	for _, c := range []struct {
		limit    string
		limits   Limits
		document string
	}{
		{"MaxBytes", Limits{MaxBytes: 500}, inList(many("<url><loc>http://example.com/a</loc></url>"))},
		{"MaxToken", Limits{MaxToken: 200}, inList("<url><loc>" + strings.Repeat("a", 300) + "</loc></url>")},
		{"MaxDepth", Limits{MaxDepth: 5}, inList(many("<x>") + many("</x>"))},
		{"MaxAttributes", Limits{MaxAttributes: 5}, inList(`<x a="" b="" c="" d="" e="" f=""/>`)},
		{"MaxItems", Limits{MaxItems: 9}, inList(many("<url><loc>a</loc></url>"))},
		{"MaxItems", Limits{MaxItems: 9}, rootStart + many("<url><loc>a</loc></url>") + "</urlset>"},
		{"MaxLinks", Limits{MaxLinks: 9}, inList("<url><loc>a</loc>" + many(`<rs:ln rel="via" href="a"/>`) + "</url>")},
		{"MaxLinks", Limits{MaxLinks: 9}, inList(many(`<rs:ln rel="up" href="a"/>`))},
	} {
		_, _, err := readAll(strings.NewReader(c.document), "http://example.com/", Limits{})
		assert.NoError(t, err, c.limit)
		_, _, err = readAll(strings.NewReader(c.document), "http://example.com/", c.limits)
		var limit *LimitError
		if assert.ErrorAs(t, err, &limit, c.limit) {
			assert.Equal(t, c.limit, limit.Limit)
			assert.Positive(t, limit.Line)
			assert.ErrorContains(t, err, "exceeds Limits."+c.limit)
		}
	}
}

// Errors are final, and those of the network are passed on.
func TestReaderErrorsAreFinal(t *testing.T) {
	broken := errors.New("connection reset")
	document := inList("<url><loc>a</loc></url><url><loc>b</loc></url>")
	d, err := Read(io.MultiReader(strings.NewReader(document[:len(document)-12]), iotest.ErrReader(broken)), "http://example.com/", Limits{})
	require.NoError(t, err)
	_, err = d.Next()
	require.NoError(t, err)
	for range 2 {
		_, err = d.Next()
		assert.ErrorIs(t, err, broken)
		assert.EqualError(t, err, "reading http://example.com/: connection reset")
	}
	d, err = Read(strings.NewReader(document), "http://example.com/", Limits{})
	require.NoError(t, err)
	for range 2 {
		_, err = d.Next()
		require.NoError(t, err)
	}
	for range 2 {
		_, err = d.Next()
		assert.Equal(t, io.EOF, err)
	}
}

// Reading needs no more memory for more items.
func TestReaderKeepsNothing(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(rootStart + `<rs:md capability="changelist" from="2013-01-01"/>`)
	for range 3000 {
		b.WriteString(`<url><loc>http://example.com/a</loc><lastmod>2013-01-02T13:00:00Z</lastmod><rs:md change="updated" type="text/html"/></url>`)
	}
	d, err := Read(&b, "http://example.com/", Limits{})
	require.NoError(t, err)
	allocs := testing.AllocsPerRun(2000, func() {
		if _, err := d.Next(); err != nil {
			t.Fatal(err)
		}
	})
	assert.LessOrEqual(t, allocs, 2.0, "the item and its URI")
}

func TestTimes(t *testing.T) {
	for s, want := range map[string]string{
		"2013":                             "2013-01-01T00:00:00Z",
		"2013-02":                          "2013-02-01T00:00:00Z",
		"2013-02-03":                       "2013-02-03T00:00:00Z",
		"2013-02-03T04:05Z":                "2013-02-03T04:05:00Z",
		"2013-02-03T04:05":                 "2013-02-03T04:05:00Z",
		"2013-02-03 04:05:06":              "2013-02-03T04:05:06Z",
		"2013-02-03t04:05:06z":             "2013-02-03T04:05:06Z",
		"2013-02-03T04:05:06.7Z":           "2013-02-03T04:05:06.7Z",
		"2013-02-03T04:05:06.123456":       "2013-02-03T04:05:06.123456Z",
		"2013-02-03T04:05:06.1234567899Z":  "2013-02-03T04:05:06.123456789Z",
		"2013-02-03T04:05:06+01:30":        "2013-02-03T02:35:06Z",
		"2013-02-03T04:05:06-0130":         "2013-02-03T05:35:06Z",
		"2013-02-03T04:05:06+01":           "2013-02-03T03:05:06Z",
		"2013-02-03T00:05:06.5+01:00":      "2013-02-02T23:05:06.5Z",
		"2016-12-31T23:59:60Z":             "2017-01-01T00:00:00Z",
		"2012-02-29":                       "2012-02-29T00:00:00Z",
		"2013-02-03T04:05:06.000000+00:00": "2013-02-03T04:05:06Z",
	} {
		got, _, ok := parseTime([]byte(s))
		if assert.True(t, ok, s) {
			assert.Equal(t, want, got.Format(time.RFC3339Nano), s)
			assert.Equal(t, time.UTC, got.Location())
		}
	}
	for _, s := range []string{
		"", "x", "13", "2013-", "2013-1", "2013-13", "2013-00-01", "2013-02-30", "2013-02-29", "2013-02-00", "2013-02-03T", "2013-02-03T04",
		"2013-02-03T24:00:00Z", "2013-02-03T04:60Z", "2013-02-03T04:05:61Z", "2013-02-03T04:05:06.Z", "2013-02-03T04:05:06+1", "2013-02-03T04:05:06+24:00",
		"2013-02-03T04:05:06+01:60", "2013-02-03T04:05:06ZZ", "2013-02-03T04:05:06Z ", "+2013-02-03", "2013-02-03T04:05:06+01:3", "20130203",
		"2013-02-03T04-05", "2013-02-03T04:05:06 01:30", "２013-02-03",
	} {
		_, _, ok := parseTime([]byte(s))
		assert.False(t, ok, s)
	}
	for s, want := range map[string]string{ // in the last of all zones a day ends twelve hours later
		"2012":                   "2013-01-01T12:00:00Z",
		"2012-02":                "2012-03-01T12:00:00Z",
		"2012-02-28":             "2012-02-29T12:00:00Z",
		"2013-02-03T04:05+01:00": "2013-02-03T03:06:00Z",
		"2013-02-03T04:05:06Z":   "2013-02-03T04:05:06Z",
		"2013-02-03T04:05:06.7Z": "2013-02-03T04:05:06.7Z",
	} {
		_, got, ok := parseTime([]byte(s))
		assert.True(t, ok, s)
		assert.Equal(t, want, got.Format(time.RFC3339Nano), "%s ends then", s)
	}
	assert.Equal(t, "2013-02-03T02:35:06.123456Z", FormatTime(time.Date(2013, 2, 3, 4, 5, 6, 123456789, time.FixedZone("", 5400))))
	assert.Equal(t, "0001-12-31T23:59:59.000001Z", FormatTime(time.Date(1, 12, 31, 23, 59, 59, 1999, time.UTC)))
}
