package feeds

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testhostile"
)

func TestDecodeTruncated(t *testing.T) {
	whole, err := os.ReadFile("testdata/sdshare/cwa-fragments.xml")
	require.NoError(t, err)
	document := strings.TrimRight(string(whole), whiteSpace)
	_, err = decodeString(document)
	require.NoError(t, err)
	for n := range len(document) {
		f, err := decodeString(document[:n])
		var syntax *SyntaxError
		if !assert.ErrorAs(t, err, &syntax, "cut after %d bytes", n) {
			break
		}
		assert.Nil(t, f)
	}
}

func TestDecodeIllFormed(t *testing.T) {
	feed := inFeed("")
	for _, c := range []struct{ document, reason string }{
		{"", "document is empty"},
		{" \n ", "before its root element"},
		{"feed", "begins with a tag"},
		{`<html><body>404</body></html>`, "root element is html"},
		{`<rss version="2.0"/>`, "root element is rss of the namespace \"\", not an Atom feed"},
		{`<entry xmlns="` + NamespaceAtom + `"/>`, "root element is entry of the namespace \"" + NamespaceAtom + "\", not an Atom feed"},
		{feed + feed, "second root"},
		{feed + `<x/>`, "second root"},
		{feed + `x`, "behind the root element"},
		{feed + `</feed>`, "end tag without a start tag"},
		{feed + `<!-- `, "ends inside a comment"},
		{`x` + feed, "begins with a tag"},
		{` <?xml version="1.0"?>` + feed, "very beginning"},
		{`<?xml version="2.0"?>` + feed, "version"},
		{`<?xml version="1.0" encoding="EBCDIC"?>` + feed, "EBCDIC"},
		{`<?xml version="1.0" encoding="UTF-16"?>` + feed, "says that it is in UTF-16"},
		{`<!DOCTYPE feed>` + feed, "document type"},
		{inFeed(`<title>a</subtitle>`), "closed by"},
		{inFeed(`<t:title>a</c:title>`), "closed by"},
		{inFeed(`<link href="a" href="b"/>`), "twice"},
		{inFeed(`<link href="a" rel="x" rel="x"/>`), "twice"},
		{inFeed(`<x xmlns:p="urn:a" xmlns:q="urn:a" p:y="1" q:y="2"/>`), "two attributes are named y"},
		{inFeed(`<x xmlns:p="urn:a" xmlns:p="urn:b"/>`), "twice"},
		{inFeed(`<x xmlns="urn:a" xmlns="urn:b"/>`), "twice"},
		{inFeed(`<p:x/>`), "not declared"},
		{inFeed(`<x p:y="1"/>`), "not declared"},
		{inFeed(`<x><y xmlns:p="urn:a"/><p:y/></x>`), "not declared"},
		{inFeed(`<x xmlns:p=""/>`), "without a namespace"},
		{inFeed(`<x xmlns:xmlns="urn:a"/>`), "cannot be declared"},
		{inFeed(`<x xmlns:p="http://www.w3.org/XML/1998/namespace"/>`), "cannot be declared"},
		{inFeed(`<:x/>`), "has a colon"},
		{inFeed(`<title>&nbsp;</title>`), "entity"},
		{inFeed(`<title>` + "\x01" + `</title>`), "character"},
		{inFeed(`<title>` + "\xff" + `</title>`), "UTF-8"},
		{inFeed(`<title>&#0;</title>`), "U+0000"},
		{inFeed(`<title a=b/>`), "attribute"},
		{inFeed(`<title a="<"/>`), "<"},
		{inFeed(`<title>]]></title>`), "]]>"},
	} {
		_, err := decodeString(c.document)
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, c.document)
		assert.Contains(t, syntax.Reason, c.reason, c.document)
		assert.Equal(t, "http://server.example/feed", syntax.URI)
	}
}

// The error for a document that is no feed names the kind of document and the remedy.
func TestDocumentsInPlaceOfFeeds(t *testing.T) {
	for document, looks := range map[string]string{
		"<!DOCTYPE html>\n<html lang=\"en\"><head><title>Sign in</title><p>Hello<br>":                          "an HTML page",
		"\xEF\xBB\xBF\r\n<!-- page --><!doctype HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\"><HTML></HTML>":       "an HTML page",
		`<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x"><html><br/></html>`: "an HTML page",
		"<html><body>404":                                                 "an HTML page",
		"<HTML><BODY>404<br></BODY>":                                      "an HTML page",
		`<html xmlns="http://www.w3.org/1999/xhtml"/>`:                    "an HTML page",
		`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`: "XTM",
		`<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>`:  "RDF/XML",
		"@prefix e: <http://e/> .":                                        "Turtle",
		`{"error": "none"}`:                                               "JSON",
		"PK\x03\x04":                                                      "a ZIP archive",
	} {
		_, err := decodeString(document)
		require.ErrorAs(t, err, new(*SyntaxError), document)
		assert.Contains(t, err.Error(), ": this looks like "+looks+", not an Atom feed: ", document)
		if looks == "an HTML page" {
			assert.Contains(t, err.Error(), "open the address in a browser to see what the server says", document)
		} else {
			assert.Contains(t, err.Error(), "give the address of an Atom feed", document)
		}
	}
	for _, document := range []string{"", "Not found, sorry", "<rss/>", "Error: no", `<!DOCTYPE feed>` + inFeed("")} {
		_, err := decodeString(document)
		require.ErrorAs(t, err, new(*SyntaxError), document)
		assert.NotContains(t, err.Error(), "looks like", document)
	}
}

func TestSyntaxErrorPosition(t *testing.T) {
	_, err := decodeString("<feed xmlns='" + NamespaceAtom + "'>\n <id>urn:x:1</id>\n  <link rel='a' rel='b'/></feed>")
	assert.EqualError(t, err, "http://server.example/feed:3:17: the attribute rel is there twice in <link>")
	_, err = decodeString("<?pi?>\n<!-- \n --> <html/>")
	assert.EqualError(t, err, "http://server.example/feed:3:6: this looks like an HTML page, not an Atom feed: open the address in a browser to see what the server says (root element is html)")
}

// Unusual documents decode if they are well-formed.
func TestDecodeUnusual(t *testing.T) {
	for _, document := range []string{
		"\uFEFF" + inFeed(""),
		"\uFEFF<?xml version='1.0' encoding='UTF-8'?>" + inFeed(""),
		"<?xml version='1.1'?>" + inFeed(""), // XML 1.0 §2.8: read as if it were 1.0
		"<?xml-stylesheet href='x'?><!-- c -->" + inFeed("") + "<!-- c --><?pi?>\n",
		inFeed(`<![CDATA[]]><x xmlns=""><y/></x>`),
		inFeed(`<x xmlns:t="urn:other"><t:y/></x><t:ServerSrcLocatorPrefix>http://a/</t:ServerSrcLocatorPrefix>`),
		inFeed(`<x a="1" t:a="2" xml:lang="en"/>`),
	} {
		f, err := decodeString(document)
		require.NoError(t, err, document)
		assert.Equal(t, "urn:x:feed", f.ID)
		assert.Equal(t, strings.Contains(document, "http://a/"), f.ServerSrcLocatorPrefix != "", document)
	}
}

func TestDecodeEntityBomb(t *testing.T) {
	bomb := `<!DOCTYPE feed [<!ENTITY a "` + strings.Repeat("x", 1000) + `"><!ENTITY b "` + strings.Repeat("&a;", 1000) + `">]>` +
		inFeed("<title>"+strings.Repeat("&b;", 1000)+"</title>")
	_, err := decodeString(bomb)
	var syntax *SyntaxError
	require.ErrorAs(t, err, &syntax)
	assert.Contains(t, syntax.Reason, "document type")
}

func TestDecodeLimits(t *testing.T) {
	entries := func(n int) string { return inFeed(strings.Repeat(`<entry>`+entryBasics+`</entry>`, n)) }
	nested := func(n int) string { // n levels with the feed's
		return inFeed(strings.Repeat("<x>", n-1) + strings.Repeat("</x>", n-1))
	}
	attribute := func(n int) string {
		return inFeed(`<link href="` + strings.Repeat("a", n-len(`<link href=""/>`)) + `"/>`)
	}
	attributes := func(n int) string {
		return inFeed(`<x` + repeat(n, func(i int) string { return fmt.Sprintf(` a%d=""`, i) }) + `/>`)
	}
	prefixes := func(n int) string { // with the six of the feed, counting the default namespace
		return inFeed(`<x` + repeat(n-6, func(i int) string { return fmt.Sprintf(` xmlns:a%d="u"`, i) }) + `/>`)
	}
	size := int64(len(attribute(1000)))

	for _, c := range []struct {
		document string
		limits   Limits
		limit    string // "" where the document is within them
	}{
		{entries(3), Limits{MaxEntries: 3}, ""},
		{entries(4), Limits{MaxEntries: 3}, "MaxEntries"},
		{testhostile.Feed(9<<10, 0), Limits{}, "MaxLocator"},
		{testhostile.Feed(5000, 100), Limits{}, ""},
		{testhostile.Feed(5000, 100), Limits{MaxGrowth: 1000}, "MaxGrowth"},
		{testhostile.Feed(100, 100), Limits{MaxGrowth: 1000}, ""},
		{nested(10), Limits{MaxDepth: 10}, ""},
		{nested(11), Limits{MaxDepth: 10}, "MaxDepth"},
		{nested(64), Limits{}, ""},
		{nested(65), Limits{}, "MaxDepth"},
		{inFeed(strings.Repeat("<x>", 1_000_000)), Limits{}, "MaxDepth"},
		{attribute(1000), Limits{MaxBytes: size}, ""},
		{attribute(1000), Limits{MaxBytes: math.MaxInt64}, ""},
		{attribute(1000), Limits{MaxBytes: size - 1}, "MaxBytes"},
		{attribute(1 << 20), Limits{MaxLocator: 2 << 20}, ""},
		{attribute(1<<20 + 1), Limits{MaxLocator: 2 << 20}, "MaxToken"},
		{attribute(1<<20 + 1), Limits{MaxLocator: 2 << 20, MaxToken: 2 << 20}, ""},
		{attribute(1<<20 + 1), Limits{MaxLocator: 2 << 20, MaxToken: math.MaxInt64, MaxBytes: math.MaxInt64}, ""},
		{attribute(8000), Limits{}, ""},
		{attribute(9000), Limits{}, "MaxLocator"},
		{inEntry(entryBasics + "<t:TopicSI>" + strings.Repeat("x", 8<<10) + "</t:TopicSI>"), Limits{}, ""},
		{inEntry(entryBasics + "<t:TopicSI>" + strings.Repeat("x", 8<<10+1) + "</t:TopicSI>"), Limits{}, "MaxLocator"},
		{inEntry(entryBasics + strings.Repeat("<link href='a'/>", 5)), Limits{MaxLinks: 5}, ""},
		{inEntry(entryBasics + strings.Repeat("<link href='a'/>", 6)), Limits{MaxLinks: 5}, "MaxLinks"},
		{inEntry(entryBasics + strings.Repeat("<t:TopicSI>x</t:TopicSI>", 6)), Limits{MaxLinks: 5}, "MaxLinks"},
		{inFeed("<title>" + strings.Repeat("&lt;", 1000) + "</title>"), Limits{MaxToken: 900}, "MaxToken"},
		{inFeed("<" + strings.Repeat("x", 5000) + "/>"), Limits{}, ""},
		{inFeed("<" + strings.Repeat("x", 5000) + "/>"), Limits{MaxToken: 4500}, "MaxToken"},
		{attributes(1000), Limits{}, ""},
		{attributes(1001), Limits{}, "MaxAttributes"},
		{attributes(51), Limits{MaxAttributes: 50}, "MaxAttributes"},
		{prefixes(50), Limits{MaxAttributes: 50}, ""},
		{prefixes(51), Limits{MaxAttributes: 50}, "MaxAttributes"},
	} {
		_, err := Decode(strings.NewReader(c.document), "http://server.example/feed", c.limits)
		if c.limit == "" {
			assert.NoError(t, err, "%+v", c.limits)
			continue
		}
		var exceeded *LimitError
		require.ErrorAs(t, err, &exceeded, "%+v", c.limits)
		assert.Equal(t, c.limit, exceeded.Limit)
		assert.ErrorContains(t, err, c.limit)
		assert.NotZero(t, exceeded.Max)
	}

	_, err := Decode(strings.NewReader(inFeed("\n <x><y>")), "http://server.example/feed", Limits{MaxDepth: 2})
	assert.EqualError(t, err, "http://server.example/feed:4:5: exceeds Limits.MaxDepth, which is 2")
	_, err = Decode(strings.NewReader(inEntry(entryBasics+"</entry>\n<entry>")), "http://server.example/feed", Limits{MaxEntries: 1})
	assert.EqualError(t, err, "http://server.example/feed:4:1: exceeds Limits.MaxEntries, which is 1")
	assert.Equal(t, Limits{MaxBytes: 32 << 20, MaxToken: 1 << 20, MaxDepth: 64, MaxAttributes: 1000, MaxEntries: 100_000, MaxLocator: 8 << 10, MaxLinks: 1000, MaxGrowth: 8 << 20}, Limits{}.withDefaults())
}

// Endless input ends at the limit, whatever it is made of.
func TestDecodeEndless(t *testing.T) {
	for _, unit := range []string{"<feed ", "a=''", "<!--", " ", "&lt;", "<x/>"} {
		_, err := Decode(io.MultiReader(strings.NewReader(`<feed xmlns="`+NamespaceAtom+`">`), &endless{unit: unit}),
			"http://server.example/feed", Limits{MaxBytes: 1 << 20})
		assert.Error(t, err, unit)
	}
}

// If an element that is expected once is repeated, the time is proportional to the number. The factor between a
// document and one sixteen times its size is 16, or 256 where time is quadratic; noise gets five attempts.
func TestDecodeTakesLinearTime(t *testing.T) {
	for name, document := range map[string]func(n int) string{
		"html": func(n int) string {
			return inFeed(`<title type="html">` + strings.Repeat("&lt;", n) + `</title>`)
		},
		"wrapped id": func(n int) string {
			return inFeed(`<entry>` + strings.Replace(entryBasics, "urn", strings.Repeat("\n x", n), 1) + `</entry>`)
		},
		"TopicSI": func(n int) string {
			return inEntry(entryBasics + repeat(n, func(i int) string { return fmt.Sprintf("<t:TopicSI>urn:x:%d</t:TopicSI>", i) }))
		},
		"links": func(n int) string {
			return inEntry(entryBasics + repeat(n, func(i int) string { return fmt.Sprintf(`<link href="urn:x:%d"/>`, i) }))
		},
		"attributes": func(n int) string {
			return inFeed(repeat(n/10, func(i int) string {
				return `<x` + repeat(100, func(j int) string { return fmt.Sprintf(` a%d-%d=""`, i, j) }) + `/>`
			}))
		},
		"namespaces": func(n int) string {
			return inFeed(repeat(n/10, func(i int) string {
				return `<x` + repeat(100, func(j int) string { return fmt.Sprintf(` xmlns:a%d-%d="u"`, i, j) }) + fmt.Sprintf(`><a%d-0:y/></x>`, i)
			}))
		},
	} {
		const n = 2000
		short, long := document(n), document(16*n)
		took := func(document string) time.Duration {
			start := testenv.CPUTime()
			f, err := Decode(strings.NewReader(document), "http://server.example/feed", Limits{MaxLinks: 1 << 30, MaxLocator: 1 << 30})
			require.NoError(t, err, name)
			for i := range f.Entries {
				f.Entries[i].Find("alternate")
			}
			return testenv.CPUTime() - start
		}
		linear := false
		for attempt := 0; attempt < 5 && !linear; attempt++ {
			least := min(took(short), took(short), took(short))
			linear = took(long) < 64*least
		}
		assert.True(t, linear, "%s: quadratic time", name)
	}
}

func repeat(n int, unit func(int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(unit(i))
	}
	return b.String()
}

type endless struct {
	unit string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.unit[e.at%len(e.unit)]
		e.at++
	}
	return len(p), nil
}

// A transfer that fails is not the document's fault, and the error states that.
func TestDecodeReadError(t *testing.T) {
	cause := errors.New("connection reset")
	document := inFeed("<title>x</title>")
	for n := range len(document) {
		r := io.MultiReader(strings.NewReader(document[:n]), iotest.ErrReader(cause))
		_, err := Decode(r, "http://server.example/feed", Limits{})
		require.ErrorIs(t, err, cause, "after %d bytes", n)
		require.EqualError(t, err, "reading http://server.example/feed: connection reset")
	}
	// Readers may give one byte at a time.
	f, err := Decode(iotest.OneByteReader(strings.NewReader(document)), "http://server.example/feed", Limits{})
	require.NoError(t, err)
	assert.Equal(t, "x", f.Title)
}
