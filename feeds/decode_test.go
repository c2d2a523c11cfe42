package feeds

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
)

// utc parses a time that a test expects, independently of ParseTime.
func utc(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	require.NoError(t, err)
	return at.UTC()
}

func decodeString(document string) (*Feed, error) {
	return Decode(strings.NewReader(document), "http://server.example/feed", Limits{})
}

// inFeed returns a feed document with the given feed-level elements, and
// inEntry one whose only entry has them.
func inFeed(elements string) string {
	return `<feed xmlns="` + NamespaceAtom + `" xmlns:t="` + NamespaceTMShare + `" xmlns:c="` + NamespaceCWA + `"
		xmlns:cs="` + NamespaceCWA + `/" xmlns:s="` + NamespaceSDShare2012 + `" xmlns:o="` + NamespaceOwn + `">
		<id>urn:x:feed</id>` + elements + `</feed>`
}

func inEntry(elements string) string {
	return inFeed(`<entry><title>Oslo</title>` + elements + `</entry>`)
}

const entryBasics = `<id>urn:x:1</id><updated>2020-01-01T00:00:00Z</updated>`

func TestDecodePrefix(t *testing.T) {
	const entry = `<entry>` + entryBasics + `</entry>`
	for element, want := range map[string]string{
		`<t:ServerSrcLocatorPrefix>http://a/</t:ServerSrcLocatorPrefix>`:                                                                    "http://a/",
		`<t:ServerSourceLocatorPrefix>http://a/</t:ServerSourceLocatorPrefix>`:                                                              "http://a/",
		`<c:ServerSrcLocatorPrefix>http://a/</c:ServerSrcLocatorPrefix>`:                                                                    "http://a/",
		`<cs:ServerSrcLocatorPrefix>http://a/</cs:ServerSrcLocatorPrefix>`:                                                                  "http://a/",
		`<cs:ServerSourceLocatorPrefix>http://a/</cs:ServerSourceLocatorPrefix>`:                                                            "http://a/",
		`<s:ServerSrcLocatorPrefix>http://a/</s:ServerSrcLocatorPrefix>`:                                                                    "",
		`<ServerSrcLocatorPrefix>http://a/</ServerSrcLocatorPrefix>`:                                                                        "",
		`<t:serversrclocatorprefix>http://a/</t:serversrclocatorprefix>`:                                                                    "",
		`<t:ServerSrcLocatorPrefix> </t:ServerSrcLocatorPrefix>`:                                                                            "",
		entry + `<t:ServerSrcLocatorPrefix>http://a/</t:ServerSrcLocatorPrefix>`:                                                            "http://a/",
		"<t:ServerSrcLocatorPrefix>\n http://a.\r\n\t example/b%20c d/\n</t:ServerSrcLocatorPrefix>":                                        "http://a.example/b c d/",
		`<t:ServerSrcLocatorPrefix>http://a/</t:ServerSrcLocatorPrefix>` + `<c:ServerSrcLocatorPrefix>http://a/</c:ServerSrcLocatorPrefix>`: "http://a/",
		entry: "",
	} {
		f, err := decodeString(inFeed(element))
		require.NoError(t, err, element)
		assert.Equal(t, want, f.ServerSrcLocatorPrefix, element)
	}
}

func TestDecodeTopicAndState(t *testing.T) {
	for _, c := range []struct {
		elements           string
		topicSI, sl, items []string
		state              State
	}{
		{elements: ``},
		{elements: `<t:TopicSI>http://a/x</t:TopicSI>`, topicSI: []string{"http://a/x"}},
		{elements: `<c:TopicSI>http://a/x</c:TopicSI>`, topicSI: []string{"http://a/x"}},
		{elements: `<cs:TopicSI>http://a/x</cs:TopicSI>`, topicSI: []string{"http://a/x"}},
		{elements: `<s:resource>http://a/x</s:resource>`, topicSI: []string{"http://a/x"}},
		{elements: `<t:resource>http://a/x</t:resource>`},
		{elements: `<TopicSI>http://a/x</TopicSI>`},
		{elements: `<t:TopicSI>http://a/x</t:TopicSI><s:resource>http://a/x</s:resource>`, topicSI: []string{"http://a/x"}},
		{elements: `<t:TopicSI>http://a/y</t:TopicSI><t:TopicSI>http://a/x</t:TopicSI>`, topicSI: []string{"http://a/y", "http://a/x"}},
		{elements: `<t:TopicSI>HTTP://a/%7ex%20y</t:TopicSI>`, topicSI: []string{"http://a/~x y"}},
		{elements: `<t:TopicSI>http://a/x y</t:TopicSI>`, topicSI: []string{"http://a/x y"}},
		{elements: "<t:TopicSI>\n http://a/\n\t x </t:TopicSI>", topicSI: []string{"http://a/x"}},
		{elements: `<t:TopicSI>http://a/<!-- -->&#x78;<![CDATA[<]]></t:TopicSI>`, topicSI: []string{"http://a/x<"}},
		{elements: `<t:TopicSI>no iri</t:TopicSI>`, topicSI: []string{"no iri"}},
		{elements: `<t:TopicSI/>`},
		{elements: `<c:TopicSL>http://a/x</c:TopicSL><c:TopicII>http://a/y</c:TopicII>`, sl: []string{"http://a/x"}, items: []string{"http://a/y"}},
		{elements: `<o:state>live</o:state>`, state: StateLive},
		{elements: `<o:state> deleted </o:state>`, state: StateDeleted},
		{elements: `<t:state>deleted</t:state>`},
	} {
		f, err := decodeString(inEntry(entryBasics + c.elements))
		require.NoError(t, err, c.elements)
		require.Len(t, f.Entries, 1)
		e := f.Entries[0]
		assert.Equal(t, c.topicSI, e.TopicSI, c.elements)
		assert.Equal(t, c.sl, e.TopicSL, c.elements)
		assert.Equal(t, c.items, e.TopicII, c.elements)
		assert.Equal(t, c.state, e.State, c.elements)
	}
}

func TestDecodeText(t *testing.T) {
	for title, want := range map[string]string{
		`<title> a  b` + "\n" + `c </title>`:                                              "a b c",
		`<title>a&#xA0;b</title>`:                                                         "a\u00a0b",
		`<title type="text">&lt;b&gt; &amp;amp;</title>`:                                  "<b> &amp;",
		`<title type="html">&lt;b title="x"&gt;a&lt;/b&gt; &amp;lt;b&amp;gt;</title>`:     "a <b>",
		`<title type="HTML"><![CDATA[<p>x<!-- a > b -->y &copy;</p>]]></title>`:           "xy ©",
		`<title type="html">1 &lt; 2 &amp;#1;</title>`:                                    "1 < 2 \uFFFD",
		`<title type="xhtml"><div xmlns="urn:h">a <b>b</b><br/>c &lt;d></div></title>`:    "a bc <d>",
		`<title>first</title><link href="x"><title xmlns="urn:y">not this</title></link>`: "first",
		`<t:title>not ours</t:title>`:                                                     "",
	} {
		f, err := decodeString(inFeed(title))
		require.NoError(t, err, title)
		assert.Equal(t, want, f.Title, title)
	}
}

// Documents need not be in UTF-8. Columns in errors still count bytes of UTF-8.
func TestDecodeEncodings(t *testing.T) {
	for label, enc := range map[string]encoding.Encoding{
		"UTF-16":       unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
		"ISO-8859-1":   charmap.ISO8859_1,
		"windows-1252": charmap.Windows1252,
		"Shift_JIS":    japanese.ShiftJIS,
	} {
		title := "Straße"
		if enc == japanese.ShiftJIS {
			title = "東京"
		}
		document := `<?xml version="1.0" encoding="` + label + `"?>` + inFeed("<title>"+title+"</title>")
		encoded, err := enc.NewEncoder().String(document)
		require.NoError(t, err)
		require.NotEqual(t, document, encoded)
		f, err := decodeString(encoded)
		require.NoError(t, err, label)
		assert.Equal(t, title, f.Title, label)
		assert.Equal(t, "urn:x:feed", f.ID, label)
	}

	_, err := decodeString("<?xml version='1.0' encoding='ISO-8859-1'?><feed xmlns='" + NamespaceAtom + "'>\n<a\xDF>\xDF\xDF</b>")
	assert.EqualError(t, err, "http://server.example/feed:2:10: <aß> is closed by </b>")
}

func TestDecodeLinks(t *testing.T) {
	for _, c := range []struct{ attributes, rel, href string }{
		{`href="x"`, "alternate", "http://server.example/x"},
		{`rel="" href="x"`, "alternate", "http://server.example/x"},
		{`rel="Prev-Archive" href="/a/x"`, "prev-archive", "http://server.example/a/x"},
		{`rel="http://www.iana.org/assignments/relation/self" href="x"`, "self", "http://server.example/x"},
		{`rel="HTTP://www.IANA.org/assignments/relation/Self" href="x"`, "self", "http://server.example/x"},
		{`rel="http://www.iana.org/assignments/relation/" href="x"`, "http://www.iana.org/assignments/relation/", "http://server.example/x"},
		{`rel="http://www.iana.org/assignments/relation/urn:x" href="x"`, "http://www.iana.org/assignments/relation/urn:x", "http://server.example/x"},
		{`rel="http://Example.org/Rel" href="x"`, "http://Example.org/Rel", "http://server.example/x"},
		{"rel=\"http://www.egovpt.org/sdshare/\n fragment\" href=\"x\"", "http://www.egovpt.org/sdshare/fragment", "http://server.example/x"},
		{`href=""`, "alternate", "http://server.example/feed"},
		{`href="?since=1"`, "alternate", "http://server.example/feed?since=1"},
		{"href=\"http://other.example/a\n   b c&#10;d\"", "alternate", "http://other.example/abcd"},
		{`href="http://other.example/a%20b"`, "alternate", "http://other.example/a%20b"},
		{`href="x" xml:base="sub/"`, "alternate", "http://server.example/sub/x"},
		{`href="x" xml:base="https://b.example/c/"`, "alternate", "https://b.example/c/x"},
		{`href="x" base="https://b.example/c/"`, "alternate", "http://server.example/x"},
	} {
		f, err := decodeString(inFeed(`<link ` + c.attributes + `/>`))
		require.NoError(t, err, c.attributes)
		assert.Equal(t, []Link{{Rel: c.rel, Href: c.href}}, f.Links, c.attributes)
	}

	for length, want := range map[string]int64{"12": 12, " 7 ": 7, "-3": 0, "many": 0, "99999999999999999999": 0} {
		f, err := decodeString(inFeed(`<link href="x" length="` + length + `"/>`))
		require.NoError(t, err)
		assert.Equal(t, want, f.Links[0].Length, length)
	}
}

// xml:base nests: that of a link is relative to the entry's, and that to the feed's.
func TestDecodeNestedBase(t *testing.T) {
	f, err := decodeString(`<feed xmlns="` + NamespaceAtom + `" xml:base="http://a.example/1/"><id>urn:x:f</id>
		<entry xml:base="2/">` + entryBasics + `<link xml:base="3/" href="x"/><link href="y"/></entry>
		<entry>` + entryBasics + `<link href="z"/></entry><link href="w"/></feed>`)
	require.NoError(t, err)
	assert.Equal(t, "http://a.example/1/2/3/x", f.Entries[0].Links[0].Href)
	assert.Equal(t, "http://a.example/1/2/y", f.Entries[0].Links[1].Href)
	assert.Equal(t, "http://a.example/1/z", f.Entries[1].Links[0].Href)
	assert.Equal(t, "http://a.example/1/w", f.Links[0].Href)
}

func TestDecodeInvalid(t *testing.T) {
	const id, updated = `<id>urn:x:1</id>`, `<updated>2020-01-01</updated>`
	for _, c := range []struct{ document, element, rule string }{
		{`<feed/>`, "feed", "namespace"},
		{`<feed xmlns="http://purl.org/atom/ns#"/>`, "feed", "http://purl.org/atom/ns#"},
		{`<feed xmlns="` + NamespaceAtom + `"/>`, "feed/id", "missing"},
		{inFeed(`<id>urn:x:other</id>`), "feed/id", "also"},
		{inFeed(`<id><b>urn:x:feed</b></id>`), "feed/id", "child"},
		{inFeed(`<updated>yesterday</updated>`), "feed/updated", "yesterday"},
		{inFeed(`<link rel="next"/>`), "feed/link", "no href"},
		{inFeed(`<link rel="next" href="http://a/&#x7F;"/>`), "feed/link", "control character"},
		{inFeed(`<link href="x" xml:base="&#x7F;"/>`), "feed/xml:base", "control character"},
		{inFeed(`<t:ServerSrcLocatorPrefix>topicmaps/</t:ServerSrcLocatorPrefix>`), "feed/ServerSrcLocatorPrefix", "not absolute"},
		{
			inFeed(`<t:ServerSrcLocatorPrefix>http://a/</t:ServerSrcLocatorPrefix><t:ServerSourceLocatorPrefix>http://b/</t:ServerSourceLocatorPrefix>`),
			"feed/ServerSourceLocatorPrefix", "also",
		},
		{inEntry(updated), `entry 1 ("Oslo")/id`, "missing"},
		{inEntry(id), `entry 1 ("Oslo")/updated`, "missing"},
		{inEntry(id + `<updated/>`), `entry 1 ("Oslo")/updated`, "missing"},
		{inEntry(id + `<updated>13:00</updated>`), `entry 1 ("Oslo")/updated`, "13:00"},
		{inEntry(id + updated + `<updated>2020-01-02</updated>`), `entry 1 ("Oslo")/updated`, "also"},
		{inEntry(id + updated + `<link rel="x"/>`), `entry 1 ("Oslo")/link`, "no href"},
		{inEntry(id + updated + `<o:state>moved</o:state>`), `entry 1 ("Oslo")/state`, "moved"},
		{inFeed(`<entry>` + id + updated + `</entry><entry>` + id + `<title>` + strings.Repeat("long ", 100) + `</title></entry>`), "…", "missing"},
		// The title is named even where it follows the fault.
		{inFeed(`<entry><updated>?</updated>` + id + `<title>Late</title></entry>`), `entry 1 ("Late")/updated`, "?"},
		// A fault of the feed is not lost when sound entries follow.
		{inFeed(`<link rel="next"/><entry>` + id + updated + `</entry>`), "feed/link", "no href"},
	} {
		f, err := decodeString(c.document)
		assert.Nil(t, f)
		var invalid *InvalidError
		require.ErrorAs(t, err, &invalid, c.document)
		assert.Contains(t, invalid.Element, c.element, c.document)
		assert.Contains(t, invalid.Rule, c.rule, c.document)
		assert.Less(t, len(invalid.Error()), 300)
	}

	// Without a document address nothing relative can be resolved.
	_, err := Decode(strings.NewReader(inFeed(`<link href="x"/>`)), "", Limits{})
	var invalid *InvalidError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "feed/link", invalid.Element)
	_, err = Decode(strings.NewReader(inFeed(`<link href="http://a/x"/>`)), "", Limits{})
	assert.NoError(t, err)
}

func TestFormatTime(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	for want, at := range map[string]time.Time{
		"2008-07-17T14:04:42.205299Z": time.Date(2008, 7, 17, 14, 4, 42, 205299000, time.UTC),
		"2008-07-17T14:04:42.000000Z": time.Date(2008, 7, 17, 14, 4, 42, 0, time.UTC),
		"2008-07-17T14:04:42.000001Z": time.Date(2008, 7, 17, 14, 4, 42, 1999, time.UTC),
		"2007-12-31T23:30:00.500000Z": time.Date(2008, 1, 1, 0, 30, 0, 5e8, berlin),
	} {
		assert.Equal(t, want, FormatTime(at))
	}
}

func TestParseTime(t *testing.T) {
	for in, want := range map[string]string{
		"2008-12-13T18:30:02Z":                "2008-12-13T18:30:02Z",
		"2008-12-13t18:30:02z":                "2008-12-13T18:30:02Z",
		"2008-12-13T18:30:02.25+01:00":        "2008-12-13T17:30:02.25Z",
		"2008-09-26T11:13:40-01:00":           "2008-09-26T12:13:40Z",
		"2008-01-01T00:15:00+00:30":           "2007-12-31T23:45:00Z",
		"2008-12-31T20:00:00-11:30":           "2009-01-01T07:30:00Z",
		"2008-12-13T18:30:02.1Z":              "2008-12-13T18:30:02.1Z",
		"2008-12-13T18:30:02.123456789Z":      "2008-12-13T18:30:02.123456789Z",
		"2008-12-13T18:30:02.1234567899999Z":  "2008-12-13T18:30:02.123456789Z",
		"2008-12-13T18:30Z":                   "2008-12-13T18:30:00Z",
		"2008-12-13T18:30+02:00":              "2008-12-13T16:30:00Z",
		"2008-12-13T18:30:02":                 "2008-12-13T18:30:02Z",
		"2008-12-13":                          "2008-12-13T00:00:00Z",
		"2008-12-13Z":                         "2008-12-13T00:00:00Z",
		"2008-02-29T00:00:00Z":                "2008-02-29T00:00:00Z",
		"2016-12-31T23:59:60Z":                "2017-01-01T00:00:00Z",
		"2017-01-01T00:59:60+01:00":           "2017-01-01T00:00:00Z",
		"2008-12-13T18:30:02.00000000000000Z": "2008-12-13T18:30:02Z",
		"2008-12-13T18:30:02.000000999-00:00": "2008-12-13T18:30:02.000000999Z",
	} {
		got, err := ParseTime(in)
		require.NoError(t, err, in)
		assert.Equal(t, utc(t, want), got, in)
	}
	for _, in := range []string{
		"", "yesterday", "2008", "2008-12", "2008-13-01", "2008-00-01", "2009-02-29", "2008-12-00", "2008-12-32",
		"2008-12-13T", "2008-12-13T18", "2008-12-13T18Z", "2008-12-13T24:00Z", "2008-12-13T18:60Z", "2008-12-13T18:30:61Z",
		"2008-12-13T18:30:02.Z", "2008-12-13T18:30.5Z", "2008-12-13T8:30:02Z", "2008-12-13T18:30:02+1:00",
		"2008-12-13T18:30:02+0100", "2008-12-13T18:30:02+24:00", "2008-12-13T18:30:02+01:60", "2008-12-13 18:30:02Z",
		" 2008-12-13", "2008-12-13\n", "12008-12-13", "-2008-12-13", "２００８-12-13", "1229193002",
	} {
		got, err := ParseTime(in)
		assert.Error(t, err, in)
		assert.True(t, got.IsZero(), in)
	}
}

func TestFindKnowsEveryDialect(t *testing.T) {
	const cwa, v2012 = "http://www.egovpt.org/sdshare", "http://www.sdshare.org/2012/core/"
	spellings := map[Rel][]string{
		RelTopicMapFeed: {"topicmapfeed", "TopicMapFeed", cwa + "/collectionfeed", cwa + "collectionfeed", v2012 + "collectionfeed", RelSDShareCollectionFeed, RelCWACollectionFeed},
		RelFragmentFeed: {"fragmentfeed", cwa + "/fragmentsfeed", cwa + "fragmentsfeed", v2012 + "fragmentsfeed", RelSDShareFragmentsFeed, RelCWAFragmentsFeed},
		RelSnapshotFeed: {"snapshotfeed", cwa + "/snapshotsfeed", cwa + "snapshotsfeed", v2012 + "snapshotsfeed", RelSDShareSnapshotsFeed, RelCWASnapshotsFeed},
		RelTopicMapData: {
			"topicmapdata", cwa + "/fragment", cwa + "/snapshot", cwa + "fragment", cwa + "snapshot",
			v2012 + "fragment", v2012 + "snapshot", RelSDShareFragment, RelSDShareSnapshot, RelCWAFragment, RelCWASnapshot, "HTTP://WWW.sdshare.org/2012/core/Fragment",
		},
		RelCurrentSnapshot: {"https://github.com/tmshare/tmshare/ns/1/current-snapshot"},
		"self":             {"self", "Self", "http://www.iana.org/assignments/relation/self"},
		"prev-archive":     {"prev-archive", "http://www.iana.org/assignments/relation/prev-archive"},
		"alternate":        {"", "alternate"},
		"via":              {"via"},
		"":                 {"alternate"},
	}
	for rel, names := range spellings {
		for _, spelled := range names {
			links := []Link{{Rel: "unrelated", Href: "http://a/0"}, {Rel: spelled, Href: "http://a/1"}}
			want := links[1:]
			f, e := Feed{Links: links}, Entry{Links: links}
			assert.Equal(t, want, f.Find(rel), "%s as %s", rel, spelled)
			assert.Equal(t, want, e.Find(rel), "%s as %s", rel, spelled)
			l, ok := f.Link(rel)
			assert.True(t, ok)
			assert.Equal(t, want[0], l)
			l, ok = e.Link(rel)
			assert.True(t, ok)
			assert.Equal(t, want[0], l)
		}
	}
	// A string that only resembles a spelling does not count as that spelling.
	for _, other := range []string{"fragment", "fragmentsfeed", v2012 + "topicmapdata", v2012 + "/fragment", "http://www.sdshare.org/2012/corefragment", cwa + "/"} {
		e := Entry{Links: []Link{{Rel: other, Href: "http://a/1"}}}
		for rel := range spellings {
			assert.Empty(t, e.Find(rel), "%s as %s", rel, other)
			_, ok := e.Link(rel)
			assert.False(t, ok)
		}
	}
}

func TestFindReturnsALinkOnce(t *testing.T) {
	e := Entry{Links: []Link{
		{Rel: RelTopicMapData, Type: MediaTypeXTM1, Href: "http://a/1"},
		{Rel: RelSDShareFragment, Type: MediaTypeXTM1, Href: "http://a/1"},
		{Rel: RelTopicMapData, Type: MediaTypeXTM21, Href: "http://a/1"},
		{Rel: RelSDShareFragment, Type: MediaTypeXTM21, Href: "http://a/2"},
	}}
	assert.Equal(t, []Link{e.Links[0], e.Links[2], e.Links[3]}, e.Find(RelTopicMapData))
}
