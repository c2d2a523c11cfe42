package feeds

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/testenv"
)

// fragmentsFeed is an archive document as our server writes it.
func fragmentsFeed() *Feed {
	const base = "http://server.example/topicmaps/egov/fragments"
	return &Feed{
		ID:        "urn:uuid:60a76c80-d399-11d9-b93c-0003939e0af6",
		Title:     "eGovernment: fragments",
		Subtitle:  `Topics of "eGov" & <more>`,
		Author:    "Example Office",
		Generator: "tmshare",
		Updated:   time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC),
		Links: []Link{
			{Rel: "self", Type: MediaTypeAtom, Href: base + "/archive/7f-2"},
			{Rel: "current", Type: MediaTypeAtom, Href: base},
			{Rel: "prev-archive", Href: base + "/archive/7f-1"},
			{Rel: RelCurrentSnapshot, Type: MediaTypeXTM21, Href: "http://server.example/topicmaps/egov/snapshots/current"},
		},
		ServerSrcLocatorPrefix: "http://psi.example.org/e gov/",
		Archive:                true,
		Entries: []Entry{{
			ID:      "urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6b",
			Title:   "Straße & Ufer",
			Updated: time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC),
			Links: []Link{
				{Rel: "self", Type: MediaTypeAtom, Href: base + "/2.atom"},
				{Rel: "alternate", Type: MediaTypeXTM1, Href: base + "/2.xtm1", Length: 1234},
				{Rel: "alternate", Type: MediaTypeXTM21, Href: base + "/2.xtm21"},
				{Rel: RelTopicMapData, Type: MediaTypeXTM1, Href: base + "/2.xtm1", Length: 1234},
				{Rel: RelSDShareFragment, Type: MediaTypeXTM1, Href: base + "/2.xtm1", Length: 1234},
			},
			TopicSI: []string{"http://psi.example.org/straße und?a=1&b=2"},
			State:   StateLive,
		}, {
			ID:      "urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a",
			Title:   "Gone",
			Summary: "A topic that was deleted.",
			Author:  "Someone Else",
			Updated: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
			Links:   []Link{{Rel: "alternate", Href: base + "/1"}},
			TopicSI: []string{"http://psi.example.org/gone"},
			State:   StateDeleted,
		}},
	}
}

func encodeString(t testing.TB, f *Feed) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, f.Encode(&b))
	return b.String()
}

func TestEncodeGolden(t *testing.T) {
	want, err := os.ReadFile("testdata/encoded.golden")
	require.NoError(t, err)
	f := fragmentsFeed()
	assert.Equal(t, string(want), encodeString(t, f))
	assert.Equal(t, fragmentsFeed(), f, "encoding leaves the feed as it was")

	got, err := decodeString(string(want))
	require.NoError(t, err)
	assert.Equal(t, f, got)
}

func TestEncodeEntry(t *testing.T) {
	e := fragmentsFeed().Entries[1]
	var b bytes.Buffer
	require.NoError(t, e.Encode(&b))
	document := b.String()
	assert.True(t, strings.HasPrefix(document, `<?xml version="1.0" encoding="utf-8"?>`+"\n<entry "), document)

	// The entry means the same inside a feed.
	_, document, _ = strings.Cut(document, "?>\n")
	f, err := decodeString(inFeed(document))
	require.NoError(t, err)
	assert.Equal(t, []Entry{e}, f.Entries)

	e.Author = ""
	assertInvalid(t, e.Encode(new(bytes.Buffer)), "entry/author", "missing")
}

// Text for people survives whatever is in it.
func TestEncodeText(t *testing.T) {
	for title, want := range map[string]string{
		"  two\n\twords ":              "two words",
		"a\x00b\x1Fc\uFFFEd\xFFe":      "a\uFFFDb\uFFFDc\uFFFDd\uFFFDe",
		"<b>&amp;</b> ]]> \"'":         "<b>&amp;</b> ]]> \"'",
		"\u00a0\U0001F600\u2028\u0085": "\u00a0\U0001F600\u2028\u0085",
	} {
		f := fragmentsFeed()
		f.Title, f.Entries[0].Summary, f.Entries[0].Author, f.Generator = title, title, title, title
		got, err := decodeString(encodeString(t, f))
		require.NoError(t, err)
		assert.Equal(t, want, got.Title)
		assert.Equal(t, want, got.Entries[0].Summary)
		assert.Equal(t, want, got.Entries[0].Author)
		assert.Equal(t, want, got.Generator)
	}
}

// A link is written canonically: its relation, and spaces in its target.
func TestEncodeLink(t *testing.T) {
	f := fragmentsFeed()
	f.Links = append(f.Links, Link{Rel: "Via", Href: "http://a/b c"}, Link{Href: "http://a/"})
	document := encodeString(t, f)
	assert.Contains(t, document, `  <link rel="via" href="http://a/b%20c"/>`+"\n"+`  <link rel="alternate" href="http://a/"/>`+"\n")
}

func assertInvalid(t *testing.T, err error, element, rule string) {
	t.Helper()
	var invalid *InvalidError
	if assert.ErrorAs(t, err, &invalid) {
		assert.Equal(t, element, invalid.Element)
		assert.Contains(t, invalid.Rule, rule)
	}
}

func TestEncodeValidates(t *testing.T) {
	link := func(rel, mediaType string) Link { return Link{Rel: rel, Type: mediaType, Href: "http://a/x"} }
	for _, c := range []struct {
		change        func(f *Feed, e *Entry)
		element, rule string
	}{
		{func(f *Feed, e *Entry) { f.ID = "" }, "feed/id", "missing"},
		{func(f *Feed, e *Entry) { f.ID = "28C5DBD8-652A-4617-8C4A-C0FFC49B4475" }, "feed/id", "not absolute"},
		{func(f *Feed, e *Entry) { f.ID = "urn:x:a b" }, "feed/id", "space"},
		{func(f *Feed, e *Entry) { f.ID = "urn:x:a\n" }, "feed/id", "control character"},
		{func(f *Feed, e *Entry) { f.ID = "urn:x:\xff" }, "feed/id", "XML cannot hold"},
		{func(f *Feed, e *Entry) { f.Title = " \n" }, "feed/title", "missing"},
		{func(f *Feed, e *Entry) { f.Updated = time.Time{} }, "feed/updated", "missing"},
		{func(f *Feed, e *Entry) { f.Updated = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "feed/updated", "10000"},
		{func(f *Feed, e *Entry) { f.Updated = time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC) }, "feed/updated", "year 0"},
		{func(f *Feed, e *Entry) { f.Author = "" }, `entry 1 ("Straße & Ufer")/author`, "missing"},
		{func(f *Feed, e *Entry) { f.Author, f.Entries = "", nil }, "feed/author", "missing"},
		{func(f *Feed, e *Entry) { f.Links[0].Href = "" }, "feed/link", "missing"},
		{func(f *Feed, e *Entry) { f.Links[0].Href = "/topicmaps" }, "feed/link", "not absolute"},
		{func(f *Feed, e *Entry) { f.Links[0].Href = "http://a/\uFFFF" }, "feed/link", "XML cannot hold"},
		{func(f *Feed, e *Entry) { f.Links[0].Rel = "a b" }, "feed/link", "no link relation"},
		{func(f *Feed, e *Entry) { f.Links[0].Type = "atom" }, "feed/link", "no media type"},
		{func(f *Feed, e *Entry) { f.Links[0].Type = "text/" }, "feed/link", "no media type"},
		{func(f *Feed, e *Entry) { f.Links[0].Type = "text/xml\x00" }, "feed/link", "no media type"},
		{func(f *Feed, e *Entry) { f.Links[0].Length = -1 }, "feed/link", "negative"},
		{func(f *Feed, e *Entry) { f.Links = append(f.Links, link("Self", "")) }, "feed/link", "more than one"},
		{func(f *Feed, e *Entry) { f.Links = append(f.Links, link("", "a/b"), link("alternate", "A/B")) }, "feed/link", "more than one"},
		{func(f *Feed, e *Entry) { f.Links = append(f.Links, link("", ""), link("alternate", "")) }, "feed/link", "more than one"},
		{func(f *Feed, e *Entry) { f.ServerSrcLocatorPrefix = "topicmaps/" }, "feed/ServerSrcLocatorPrefix", "not absolute"},
		{func(f *Feed, e *Entry) { f.ServerSrcLocatorPrefix = "http://a/b" }, "feed/ServerSrcLocatorPrefix", "end in"},
		{func(f *Feed, e *Entry) { f.Complete = true }, "feed/complete", "archive"},
		{func(f *Feed, e *Entry) { f.Complete, f.Archive = true, false }, "feed/complete", "prev-archive"},
		{func(f *Feed, e *Entry) { f.Complete, f.Archive, f.Links = true, false, []Link{link("next", "")} }, "feed/complete", `"next"`},
		{func(f *Feed, e *Entry) { f.Complete, f.Archive, f.Links = true, false, []Link{link("previous", "")} }, "feed/complete", `"previous"`},
		{func(f *Feed, e *Entry) {
			f.Complete, f.Archive, f.Links = true, false, []Link{link("next-archive", "")}
		}, "feed/complete", "next-archive"},
		{func(f *Feed, e *Entry) { f.Links = f.Links[:1] }, "feed/archive", "current"},
		{func(f *Feed, e *Entry) { e.ID = "69CD5264" }, `entry 1 ("Straße & Ufer")/id`, "not absolute"},
		{func(f *Feed, e *Entry) { e.Title = "" }, `entry 1/title`, "missing"},
		{func(f *Feed, e *Entry) { e.Updated = time.Time{} }, `entry 1 ("Straße & Ufer")/updated`, "missing"},
		{func(f *Feed, e *Entry) { e.Links = e.Links[3:] }, `entry 1 ("Straße & Ufer")/link`, "alternate"},
		{func(f *Feed, e *Entry) { e.Links = append(e.Links, link("self", "")) }, `entry 1 ("Straße & Ufer")/link`, "more than one"},
		{func(f *Feed, e *Entry) { e.Links = append(e.Links, e.Links[1]) }, `entry 1 ("Straße & Ufer")/link`, "more than one"},
		{func(f *Feed, e *Entry) { e.TopicSI = append(e.TopicSI, "http://a/y") }, `entry 1 ("Straße & Ufer")/TopicSI`, "once"},
		{func(f *Feed, e *Entry) { e.TopicSI[0] = "t1" }, `entry 1 ("Straße & Ufer")/TopicSI`, "not absolute"},
		{func(f *Feed, e *Entry) { e.TopicSI[0] = "" }, `entry 1 ("Straße & Ufer")/TopicSI`, "missing"},
		{func(f *Feed, e *Entry) { e.TopicSI[0] = "http://a/\x01" }, `entry 1 ("Straße & Ufer")/TopicSI`, "XML cannot hold"},
		{func(f *Feed, e *Entry) { e.TopicSL = []string{"http://a/y"} }, `entry 1 ("Straße & Ufer")/TopicSI`, "subject identifier"},
		{func(f *Feed, e *Entry) { e.TopicII = []string{"http://a/y"} }, `entry 1 ("Straße & Ufer")/TopicSI`, "subject identifier"},
		{func(f *Feed, e *Entry) { e.State = "moved" }, `entry 1 ("Straße & Ufer")/state`, "moved"},
		{func(f *Feed, e *Entry) { e.TopicSI = nil }, `entry 1 ("Straße & Ufer")/state`, "TopicSI"},
		{func(f *Feed, e *Entry) { f.Entries[1].ID = "" }, `entry 2 ("Gone")/id`, "missing"},
	} {
		f := fragmentsFeed()
		c.change(f, &f.Entries[0])
		var b bytes.Buffer
		assertInvalid(t, f.Encode(&b), c.element, c.rule)
		assert.Zero(t, b.Len(), "nothing is written of an invalid feed")
	}

	for name, change := range map[string]func(f *Feed){
		"an author at every entry":     func(f *Feed) { f.Author, f.Entries[0].Author = "", "Someone" },
		"no entries":                   func(f *Feed) { f.Entries = nil },
		"alternates of several types":  func(f *Feed) { f.Links = append(f.Links, link("", "a/b"), link("", "a/c"), link("", "")) },
		"a complete feed":              func(f *Feed) { f.Archive, f.Complete, f.Links = false, true, f.Links[:1] },
		"an entry that is no fragment": func(f *Feed) { f.Entries[0].TopicSI, f.Entries[0].State = nil, "" },
		"a prefix that ends in #":      func(f *Feed) { f.ServerSrcLocatorPrefix = "http://a/b#" },
	} {
		f := fragmentsFeed()
		change(f)
		assert.NoError(t, f.Encode(new(bytes.Buffer)), name)
	}
}

func TestEncodeWriteError(t *testing.T) {
	cause := errors.New("disk full")
	assert.ErrorIs(t, fragmentsFeed().Encode(failingWriter{cause}), cause)
	e := fragmentsFeed().Entries[1]
	assert.ErrorIs(t, e.Encode(failingWriter{cause}), cause)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// Whatever feed can be encoded decodes to itself, and encodes to the same bytes.
func TestRoundTrip(t *testing.T) {
	testenv.Check(t, 25, 100, func(t *rapid.T) {
		f := drawFeed(t)
		var b, again bytes.Buffer
		require.NoError(t, f.Encode(&b))
		got, err := Decode(bytes.NewReader(b.Bytes()), "", Limits{})
		require.NoError(t, err, b.String())
		require.Equal(t, f, got)
		require.NoError(t, got.Encode(&again))
		require.Equal(t, b.String(), again.String())
	})
}

func drawFeed(t *rapid.T) *Feed {
	text := rapid.Map(rapid.String(), line)
	nonEmpty := func(s string) bool { return s != "" }
	title, language := text.Filter(nonEmpty), rapid.SampledFrom([]string{"", "fi", "sv-fi", "i-klingon"})
	locator := rapid.Custom(func(t *rapid.T) string {
		return normalized(rapid.SampledFrom([]string{"http://a/", "urn:x:", "HTTP://b.example/c?"}).Draw(t, "scheme") +
			rapid.StringOf(rapid.SampledFrom([]rune("ab/#?&;<>\"'%20~+7é\U0001F600"))).Draw(t, "rest"))
	}).Filter(func(s string) bool { return s == normalized(s) })
	url := rapid.Map(locator, iri.Escape)
	when := rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMicro(rapid.Int64Range(-60e15, 250e15).Draw(t, "µs")).UTC()
	}).Filter(func(at time.Time) bool { return !at.IsZero() })
	links := func(fixed ...Link) []Link {
		other := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Link {
			return Link{
				Rel:    rapid.SampledFrom([]string{"via", "next-archive", "prev-archive", "current", RelTopicMapData, RelSDShareSnapshot}).Draw(t, "rel"),
				Type:   rapid.SampledFrom([]string{"", MediaTypeXTM1, MediaTypeXTM21, `a/b; c="<&>"`}).Draw(t, "type"),
				Href:   url.Draw(t, "href"),
				Length: rapid.Int64Min(0).Draw(t, "length"),
			}
		}), 0, 4).Draw(t, "links")
		return append(fixed, other...)
	}
	f := &Feed{
		ID: url.Draw(t, "id"), Title: title.Draw(t, "title"), Subtitle: text.Draw(t, "subtitle"),
		Author: title.Draw(t, "author"), Generator: text.Draw(t, "generator"), Updated: when.Draw(t, "updated"),
		Links:   links(Link{Rel: "self", Href: url.Draw(t, "self")}, Link{Rel: "current", Href: url.Draw(t, "current")}),
		Archive: rapid.Bool().Draw(t, "archive"), Language: language.Draw(t, "language"),
	}
	another := func(around string) string { // "" where it is the same
		return strings.TrimPrefix(language.Draw(t, "another"), around)
	}
	if f.TitleLanguage = another(f.Language); f.Subtitle != "" {
		f.SubtitleLanguage = another(f.Language)
	}
	if rapid.Bool().Draw(t, "prefixed") {
		f.ServerSrcLocatorPrefix = normalized(locator.Draw(t, "prefix") + "/")
	}
	for range rapid.IntRange(0, 3).Draw(t, "entries") {
		e := Entry{
			ID: url.Draw(t, "id"), Title: title.Draw(t, "title"), Summary: text.Draw(t, "summary"),
			Author: text.Draw(t, "author"), Updated: when.Draw(t, "updated"),
			Links: links(Link{Rel: "alternate", Href: url.Draw(t, "alternate")}), Language: cmp.Or(language.Draw(t, "language"), f.Language),
		}
		if e.Summary != "" {
			e.SummaryLanguage = another(e.Language)
		}
		if rapid.Bool().Draw(t, "fragment") {
			e.TopicSI = []string{locator.Draw(t, "TopicSI")}
			e.State = rapid.SampledFrom([]State{"", StateLive, StateDeleted}).Draw(t, "state")
		}
		f.Entries = append(f.Entries, e)
	}
	return f
}

// normalized is iri.Normalize for locators that have a scheme.
func normalized(s string) string {
	n, err := iri.Normalize(s)
	if err != nil {
		panic(err)
	}
	return n
}

func largeFeed(entries int) *Feed {
	f := fragmentsFeed()
	one := f.Entries[0]
	f.Entries = nil
	for i := range entries {
		one.ID = fmt.Sprintf("urn:x:%d", i)
		f.Entries = append(f.Entries, one)
	}
	return f
}

func BenchmarkEncode(b *testing.B) {
	f := largeFeed(2000)
	b.SetBytes(int64(len(encodeString(b, f))))
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Encode(new(bytes.Buffer)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode reads a feed. x_encoding/xml is the ratio of its speed to that of encoding/xml, which only
// splits the same document into tokens, in the same run.
func BenchmarkDecode(b *testing.B) {
	const entries = 2000
	document := encodeString(b, largeFeed(entries))
	var decoding, tokens time.Duration
	b.ReportAllocs()
	for b.Loop() {
		begin := time.Now()
		if _, err := decodeString(document); err != nil {
			b.Fatal(err)
		}
		decoding += time.Since(begin)

		b.StopTimer() // allocations and ns/op are those of decoding
		begin = time.Now()
		for d := xml.NewDecoder(strings.NewReader(document)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		tokens += time.Since(begin)
		b.StartTimer()
	}
	b.SetBytes(int64(len(document)))
	b.ReportMetric(tokens.Seconds()/decoding.Seconds(), "x_encoding/xml")
	b.ReportMetric(entries*float64(b.N)/decoding.Seconds(), "entries/s")
}

// A written feed satisfies the RELAX NG schema of RFC 4287 Appendix B. It also satisfies the Schematron rules
// for constraints that the schema cannot express.
func TestEncodedDocumentsSatisfyTheSchemas(t *testing.T) {
	folder, xmllint := testenv.Shared(t, "schemas"), testenv.Command(t, "xmllint")
	lint := func(schema, file string) (string, error) {
		out, err := exec.Command(xmllint, "--noout", "--nonet", schema, filepath.Join(folder, map[string]string{
			"--relaxng": "atom.rng", "--schematron": "atom.sch",
		}[schema]), file).CombinedOutput()
		return string(out), err
	}

	feeds := map[string]*Feed{"archive": fragmentsFeed(), "large": largeFeed(200)}
	recent := fragmentsFeed()
	recent.Archive, recent.Links = false, append(recent.Links[2:], Link{Rel: "self", Href: "http://a/fragments"}, Link{Rel: "via", Href: "http://a/4"})
	recent.Openings = []string{"0b5cf0f1-52ac-4e0c-9a4f-4a3f5ddc5a11", "3d1a9d2e-7e0f-4a43-8d8f-6f7d8a3b1c20"}
	feeds["recent"] = recent
	complete := fragmentsFeed()
	complete.Archive, complete.Complete, complete.Links = false, true, complete.Links[:1]
	feeds["complete"] = complete
	empty := fragmentsFeed()
	empty.Entries = nil
	feeds["empty"] = empty
	authored := fragmentsFeed()
	authored.Author, authored.Entries[0].Author = "", "a\x00b"
	feeds["authors-at-entries"] = authored
	maps := fragmentsFeed()
	maps.Archive, maps.ServerSrcLocatorPrefix = false, ""
	for i := range maps.Entries {
		maps.Entries[i].TopicSI, maps.Entries[i].State = nil, ""
		maps.Entries[i].Links = []Link{
			{Type: MediaTypeAtom, Href: "http://a/topicmaps/ö 1?x=<&>"},
			{Rel: RelTopicMapFeed, Type: MediaTypeAtom, Href: "http://a/topicmaps/ö 1?x=<&>"},
			{Rel: RelSDShareCollectionFeed, Type: MediaTypeAtom, Href: "http://a/topicmaps/ö 1?x=<&>"},
			{Rel: RelCWACollectionFeed, Type: MediaTypeAtom, Href: "http://a/topicmaps/ö 1?x=<&>"},
		}
	}
	maps.Entries[0].Language, maps.Entries[0].SummaryLanguage = "sv-fi", "en"
	feeds["maps"] = maps
	inLanguages := fragmentsFeed()
	inLanguages.Language, inLanguages.TitleLanguage, inLanguages.SubtitleLanguage = "fi", "en", "x-own"
	feeds["languages"] = inLanguages

	documents := map[string]string{}
	for name, f := range feeds {
		documents[name] = encodeString(t, f)
	}
	var b bytes.Buffer
	require.NoError(t, fragmentsFeed().Entries[1].Encode(&b))
	documents["entry"] = b.String()

	for name, document := range documents {
		file := filepath.Join(t.TempDir(), name+".atom")
		require.NoError(t, os.WriteFile(file, []byte(document), 0o600))
		for _, schema := range []string{"--relaxng", "--schematron"} {
			out, err := lint(schema, file)
			assert.NoError(t, err, "%s %s: %s", name, schema, out)
		}
	}

	// The check itself must be able to fail.
	bad := filepath.Join(t.TempDir(), "bad.atom")
	require.NoError(t, os.WriteFile(bad, []byte(inEntry(entryBasics)), 0o600))
	for _, schema := range []string{"--relaxng", "--schematron"} {
		_, err := lint(schema, bad)
		assert.Error(t, err, schema)
	}
}
