package resourcesync

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/xml/read"
)

func writeAll(w io.Writer, d Document, items []Item, options Options) error {
	wr, err := NewWriter(w, d, options)
	if err != nil {
		return err
	}
	for i := range items {
		if err := wr.Write(&items[i]); err != nil {
			return err
		}
	}
	return wr.Close()
}

// hour is a time of the day of the tests.
func hour(n int) time.Time { return time.Date(2026, 3, 1, n, 0, 0, 0, time.UTC) }

func changeList() Document {
	return Document{Capability: ChangeList, Times: Times{From: hour(0)},
		Links: []Link{{Rel: RelUp, Href: "http://example.com/capabilitylist.xml"}}}
}

func change(uri string, change Change, at time.Time) Item {
	return Item{Loc: "http://example.com/" + uri, LastMod: at, Metadata: Metadata{Change: change}}
}

func resourceList() Document { return Document{Capability: ResourceList, Times: Times{At: hour(9)}} }

func resource(uri string) Item { return Item{Loc: "http://example.com/" + uri} }

// The one form that all known readers understand, to the letter.
func TestWrittenForm(t *testing.T) {
	oslo := time.FixedZone("", 3600)
	updated := change("a?x=1&y=2", Updated, time.Date(2026, 3, 1, 12, 0, 0, 123456789, oslo))
	updated.Hashes = []Hash{{MD5, strings.Repeat("a", 32)}, {SHA256, strings.Repeat("b", 64)}}
	updated.Length, updated.Type, updated.Encoding = 12, "application/xtm1+xml", "gzip"
	updated.Links = []Link{{Rel: RelDuplicate, Href: "http://mirror.example.com/a", Pri: 1, Modified: hour(11)}}
	deleted := change("gone", Deleted, time.Time{})
	deleted.Datetime = hour(12)
	var b bytes.Buffer
	require.NoError(t, writeAll(&b, changeList(), []Item{updated, deleted}, Options{}))
	assert.Equal(t, `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">
<rs:md capability="changelist" from="2026-03-01T00:00:00.000000Z"/>
<rs:ln rel="up" href="http://example.com/capabilitylist.xml"/>
<url><loc>http://example.com/a?x=1&amp;y=2</loc><lastmod>2026-03-01T11:00:00.123456Z</lastmod>`+
		`<rs:md change="updated" datetime="2026-03-01T11:00:00.123456Z" hash="md5:`+strings.Repeat("a", 32)+` sha-256:`+strings.Repeat("b", 64)+
		`" length="12" type="application/xtm1+xml" encoding="gzip"/>`+
		`<rs:ln rel="duplicate" href="http://mirror.example.com/a" pri="1" modified="2026-03-01T11:00:00.000000Z"/></url>
<url><loc>http://example.com/gone</loc><lastmod>2026-03-01T12:00:00.000000Z</lastmod><rs:md change="deleted" datetime="2026-03-01T12:00:00.000000Z"/></url>
</urlset>
`, b.String())

	b.Reset()
	require.NoError(t, writeAll(&b, Document{Index: true, Capability: ResourceList, Times: Times{At: hour(1), Completed: hour(2)}},
		[]Item{{Loc: "http://example.com/1.xml", Metadata: Metadata{Times: Times{At: hour(1)}}}}, Options{}))
	assert.Equal(t, `<?xml version="1.0" encoding="UTF-8"?>
<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">
<rs:md capability="resourcelist" at="2026-03-01T01:00:00.000000Z" completed="2026-03-01T02:00:00.000000Z"/>
<sitemap><loc>http://example.com/1.xml</loc><rs:md at="2026-03-01T01:00:00.000000Z"/></sitemap>
</sitemapindex>
`, b.String())
}

func TestVersion10HasNoDatetime(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeAll(&b, changeList(), []Item{change("a", Created, hour(1))}, Options{Version10: true}))
	assert.NotContains(t, b.String(), "datetime")
	assert.Contains(t, b.String(), "<lastmod>2026-03-01T01:00:00.000000Z</lastmod>")
}

func TestHeadsThatAreForbidden(t *testing.T) {
	for _, c := range []struct {
		rule string
		head Document
	}{
		{`urlset/rs:md: "" is not a capability`, Document{}},
		{`urlset/rs:md: "changes" is not a capability`, Document{Capability: "changes"}},
		{"at is missing", Document{Capability: ResourceList}},
		{"at is missing", Document{Capability: ResourceDump}},
		{"at is missing", Document{Capability: ResourceDumpManifest}},
		{"sitemapindex/rs:md: at is missing", Document{Capability: ResourceList, Index: true}},
		{"from is missing", Document{Capability: ChangeList}},
		{"from is missing", Document{Capability: ChangeDump}},
		{"from is missing", Document{Capability: ChangeDumpManifest}},
		{"from is missing", Document{Capability: ChangeDump, Index: true}},
		{"from has no meaning here", Document{Capability: ResourceList, Times: Times{At: hour(1), From: hour(1)}}},
		{"until has no meaning here", Document{Capability: ResourceDump, Times: Times{At: hour(1), Until: hour(1)}}},
		{"at has no meaning here", Document{Capability: ChangeList, Times: Times{At: hour(1), From: hour(1)}}},
		{"completed has no meaning here", Document{Capability: ChangeDump, Times: Times{From: hour(1), Completed: hour(1)}}},
		{"at has no meaning here", Document{Capability: CapabilityList, Times: Times{At: hour(1)}}},
		{"from has no meaning here", Document{Capability: Description, Times: Times{From: hour(1)}}},
		{"completed is before at", Document{Capability: ResourceList, Times: Times{At: hour(2), Completed: hour(1)}}},
		{"until is before from", Document{Capability: ChangeList, Times: Times{From: hour(2), Until: hour(1)}}},
		{"has not four digits", Document{Capability: ChangeList, Times: Times{From: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}}},
		{"there is no index", Document{Capability: CapabilityList, Index: true}},
		{"there is no index", Document{Capability: ResourceDumpManifest, Index: true, Times: Times{At: hour(1)}}},
		{`urlset/rs:ln: rel up: href "capabilitylist.xml" is not an absolute URI`, Document{Capability: Description, Links: []Link{{Rel: "up", Href: "capabilitylist.xml"}}}},
		{`"Up" is neither a registered relation nor a URI`, Document{Capability: Description, Links: []Link{{Rel: "Up", Href: "http://example.com/"}}}},
	} {
		var b bytes.Buffer
		_, err := NewWriter(&b, c.head, Options{})
		var invalid *InvalidError
		if assert.ErrorAs(t, err, &invalid, c.rule) {
			assert.ErrorContains(t, err, c.rule)
		}
		assert.Empty(t, b.Bytes())
	}
}

// Each is refused. The document goes on without it, and keeps the items before it.
func TestItemsThatAreForbidden(t *testing.T) {
	day := Times{From: hour(1), Until: hour(20)}
	dump := Document{Capability: ResourceDump, Times: Times{At: hour(1)}}
	manifest := Document{Capability: ResourceDumpManifest, Times: Times{At: hour(1)}}
	changeManifest := Document{Capability: ChangeDumpManifest, Times: day}
	changes := Document{Capability: ChangeList, Times: day}
	changeIndex := Document{Index: true, Capability: ChangeList, Times: Times{From: hour(0)}}
	capabilities := Document{Capability: CapabilityList}
	listed := func(uri string, times Times) Item {
		return Item{Loc: "http://example.com/" + uri, Metadata: Metadata{Times: times}}
	}
	withLoc := func(loc string) Item { return Item{Loc: loc} }
	withMetadata := func(m Metadata) Item { return Item{Loc: "http://example.com/x", Metadata: m} }
	withRepresentation := func(r Representation) Item { return withMetadata(Metadata{Representation: r}) }
	withLink := func(i Item, l Link) Item {
		l.Href = "http://example.com/linked"
		i.Links = []Link{l}
		return i
	}
	modified := func(uri string) Item { return Item{Loc: "http://example.com/" + uri, LastMod: hour(1)} }
	patched := func(p Representation) Item {
		i := change("x", Updated, hour(2))
		i.Path = "/x"
		return withLink(i, Link{Rel: RelPatch, Representation: p})
	}
	differing := change("x", Updated, hour(2))
	differing.Datetime = hour(3)

	for _, c := range []struct {
		rule   string
		head   Document
		before []Item
		item   Item
	}{
		{"item 1 ()/loc: is missing", resourceList(), nil, Item{}},
		{`"res1/of/1234567" is not an absolute URI`, resourceList(), nil, withLoc("res1/of/1234567")},
		{`"/res1/of/12345" is not an absolute URI`, resourceList(), nil, withLoc("/res1/of/12345")},
		{"must be escaped", resourceList(), nil, withLoc("http://example.com/ø")},
		{"must be escaped", resourceList(), nil, withLoc("http://example.com/a b")},
		{"begins no escape", resourceList(), nil, withLoc("http://example.com/%zz")},
		{"begins no escape", resourceList(), nil, withLoc("http://example.com/%2")},
		{"from 12 to 2,048", resourceList(), nil, withLoc("http://a/bc")},
		{"from 12 to 2,048", resourceList(), nil, resource(strings.Repeat("x", 2030))},
		{"item 2 (http://example.com/a)/loc: the URI is listed already", resourceList(), []Item{resource("a")}, resource("a")},
		{"the URI is listed already", manifest, []Item{{Loc: "http://example.com/a", Metadata: Metadata{Representation: Representation{Path: "/1"}}}},
			Item{Loc: "http://example.com/a", Metadata: Metadata{Representation: Representation{Path: "/2"}}}},
		{"change and datetime belong in lists of changes", resourceList(), nil, change("x", Created, hour(1))},
		{"change and datetime belong in lists of changes", resourceList(), nil, withMetadata(Metadata{Datetime: hour(1)})},
		{"change and datetime belong in lists of changes", changeIndex, nil, change("x", Created, hour(1))},
		{"change and datetime belong in lists of changes", Document{Capability: ChangeDump, Times: day}, nil, change("x", Created, hour(1))},
		{"at has no meaning here", resourceList(), nil, listed("x", Times{At: hour(1)})},
		{"from has no meaning here", changes, nil, func() Item { i := change("x", Created, hour(2)); i.From = hour(1); return i }()},
		{"at has no meaning here", manifest, nil, withMetadata(Metadata{Times: Times{At: hour(1)}, Representation: Representation{Path: "/x"}})},
		{"from has no meaning here", dump, nil, listed("x", Times{From: hour(1)})},
		{"at has no meaning here", changeIndex, nil, listed("x", Times{At: hour(1)})},
		{"completed needs at", dump, nil, listed("x", Times{Completed: hour(1)})},
		{"until needs from", changeIndex, nil, listed("x", Times{Until: hour(1)})},

		{"change is missing", changes, nil, resource("x")},
		{"change is missing", changeManifest, nil, resource("x")},
		{`"modified" is not a change`, changes, nil, change("x", "modified", hour(2))},
		{"neither lastmod nor datetime", changes, nil, change("x", Deleted, time.Time{})},
		{"lastmod and datetime differ", changes, nil, differing},
		{"before the from of the document", changes, nil, change("x", Created, hour(0))},
		{"after the until of the document", changes, nil, change("x", Created, hour(21))},
		{"before the one listed before it", changes, []Item{change("a", Created, hour(3))}, change("x", Created, hour(2))},
		{"a change of the URI at this time is listed already", changes,
			[]Item{change("x", Created, hour(2)), change("y", Created, hour(2))}, change("x", Updated, hour(2))},
		{"a change of the URI at this time is listed already", changes,
			[]Item{change("x", Created, hour(2))}, change("x", Updated, hour(2).Add(time.Nanosecond))},

		{"path is missing", manifest, nil, resource("x")},
		{"path is missing", changeManifest, nil, change("x", Updated, hour(2))},
		{"path belongs in manifests", resourceList(), nil, withRepresentation(Representation{Path: "/x"})},
		{"path belongs in manifests", dump, nil, withRepresentation(Representation{Path: "/x"})},
		{"does not begin with a slash", manifest, nil, withRepresentation(Representation{Path: "x"})},
		{"or ends with one", manifest, nil, withRepresentation(Representation{Path: "/x/"})},

		{"capability is not capabilitylist", Document{Capability: Description}, nil, resource("x")},
		{"capability is not capabilitylist", Document{Capability: Description}, nil, withMetadata(Metadata{Capability: ResourceList})},
		{"lists those only", Document{Index: true, Capability: Description}, nil, withMetadata(Metadata{Capability: CapabilityList})},
		{"none that a Capability List lists", capabilities, nil, resource("x")},
		{"none that a Capability List lists", capabilities, nil, withMetadata(Metadata{Capability: ResourceDumpManifest})},
		{"the capability is listed already", capabilities, []Item{{Loc: "http://example.com/y", Metadata: Metadata{Capability: ChangeList}}},
			withMetadata(Metadata{Capability: ChangeList})},
		{"capability belongs in Source Descriptions", resourceList(), nil, withMetadata(Metadata{Capability: ResourceList})},

		{"stands behind a list that has no until", changeIndex, []Item{listed("a", Times{From: hour(1)})}, listed("x", Times{From: hour(2)})},
		{"from is before that of the one listed before it", changeIndex, []Item{listed("a", Times{From: hour(3), Until: hour(4)})}, listed("x", Times{From: hour(2)})},
		{"from is before that of the one listed before it", Document{Capability: ChangeDump, Times: day},
			[]Item{listed("a", Times{From: hour(3), Until: hour(4)})}, listed("x", Times{From: hour(2)})},

		{`"sometimes" is not a value`, resourceList(), nil, Item{Loc: "http://example.com/x", ChangeFreq: "sometimes"}},
		{"does not occur in an index", changeIndex, nil, Item{Loc: "http://example.com/x", ChangeFreq: "daily"}},
		{"has not four digits", resourceList(), nil, Item{Loc: "http://example.com/x", LastMod: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{"in hexadecimal", resourceList(), nil, withRepresentation(Representation{Hashes: []Hash{{MD5, "abc"}}})},
		{"in hexadecimal", resourceList(), nil, withRepresentation(Representation{Hashes: []Hash{{SHA256, strings.Repeat("g", 64)}}})},
		{"is no hash", resourceList(), nil, withRepresentation(Representation{Hashes: []Hash{{"", "abc"}}})},
		{"is no hash", resourceList(), nil, withRepresentation(Representation{Hashes: []Hash{{"crc32", "a b"}}})},
		{"the length -1 makes no sense", resourceList(), nil, withRepresentation(Representation{Length: -1})},
		{"the length 1 makes no sense", resourceList(), nil, withRepresentation(Representation{Length: 1, Empty: true})},
		{`"html" is no media type`, resourceList(), nil, withRepresentation(Representation{Type: "html"})},
		{"no content coding has", resourceList(), nil, withRepresentation(Representation{Encoding: "gzip\n"})},

		{"rel contents: belongs to packages in dumps", resourceList(), nil, withLink(resource("x"), Link{Rel: RelContents})},
		{"rel duplicate: repeats what rs:md says", resourceList(), nil,
			withLink(withRepresentation(Representation{Length: 5}), Link{Rel: RelDuplicate, Representation: Representation{Length: 5}})},
		{"rel memento: needs lastmod", resourceList(), nil, withLink(resource("x"), Link{Rel: RelMemento})},
		{"rel timemap: needs lastmod", resourceList(), nil, withLink(resource("x"), Link{Rel: RelTimeMap})},
		{"rel memento: occurs more than once", resourceList(), nil, Item{Loc: "http://example.com/x", LastMod: hour(1), Links: []Link{
			{Rel: RelMemento, Href: "http://example.com/1"}, {Rel: RelMemento, Href: "http://example.com/2"}}}},
		{"a TimeGate has no representation", resourceList(), nil, withLink(modified("x"), Link{Rel: RelTimeGate, Representation: Representation{Type: "text/html"}})},
		{"patch: belongs in lists of changes", resourceList(), nil, withLink(resource("x"), Link{Rel: RelPatch, Representation: Representation{Type: "a/b"}})},
		{"patch: has no type", changes, nil, withLink(change("x", Updated, hour(2)), Link{Rel: RelPatch})},
		{"patch: has no path", changeManifest, nil, patched(Representation{Type: "a/b"})},
		{"rel via: path belongs in manifests", resourceList(), nil, withLink(resource("x"), Link{Rel: RelVia, Representation: Representation{Path: "/x"}})},
		{"pri -1 is not from 1", resourceList(), nil, withLink(resource("x"), Link{Rel: RelDuplicate, Pri: -1})},
		{"pri 1000000 is not from 1", resourceList(), nil, withLink(resource("x"), Link{Rel: RelDuplicate, Pri: 1_000_000})},
		{`"" is neither a registered relation`, resourceList(), nil, withLink(resource("x"), Link{})},
		{`"a b" is neither a registered relation`, resourceList(), nil, withLink(resource("x"), Link{Rel: "a b"})},
	} {
		var b bytes.Buffer
		w, err := NewWriter(&b, c.head, Options{})
		require.NoError(t, err, c.rule)
		for i := range c.before {
			require.NoError(t, w.Write(&c.before[i]), c.rule)
		}
		size := w.Bytes()
		err = w.Write(&c.item)
		var invalid *InvalidError
		if assert.ErrorAs(t, err, &invalid, c.rule) {
			assert.ErrorContains(t, err, c.rule)
		}
		assert.Equal(t, size, w.Bytes())
		require.NoError(t, w.Close())
		_, items, err := readString(b.String())
		require.NoError(t, err, c.rule)
		assert.Len(t, items, len(c.before), c.rule)
	}
}

// These items resemble forbidden ones, but are allowed.
func TestItemsThatAreAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		head  Document
		items []Item
	}{
		"two changes of one URI":   {changeList(), []Item{change("x", Created, hour(1)), change("x", Deleted, hour(2)), change("x", Created, hour(3))}},
		"two URIs at one time":     {changeList(), []Item{change("x", Created, hour(1)), change("y", Created, hour(1))}},
		"a list closed, one open":  {Document{Index: true, Capability: ChangeList, Times: Times{From: hour(0)}}, []Item{{Loc: "http://example.com/1", Metadata: Metadata{Times: Times{From: hour(0), Until: hour(1)}}}, {Loc: "http://example.com/2", Metadata: Metadata{Times: Times{From: hour(1)}}}}},
		"what changed before":      {changeList(), []Item{change("x", Created, hour(1)), change("y", Created, hour(2)), change("x", Updated, hour(2))}},
		"a URI as long as may be":  {resourceList(), []Item{resource(strings.Repeat("x", 2029))}},
		"URIs that differ in case": {resourceList(), []Item{resource("a"), resource("A")}},
		"a hash of another kind":   {resourceList(), []Item{{Loc: "http://example.com/x", Metadata: Metadata{Representation: Representation{Hashes: []Hash{{"crc32", "0"}}}}}}},
		"an empty file":            {resourceList(), []Item{{Loc: "http://example.com/x", Metadata: Metadata{Representation: Representation{Empty: true}}}}},
		"deletions without a path": {Document{Capability: ChangeDumpManifest, Times: Times{From: hour(0)}}, []Item{change("x", Deleted, hour(1))}},
		"index of descriptions":    {Document{Index: true, Capability: Description}, []Item{resource("1"), resource("2")}},
		"no items":                 {changeList(), nil},
	} {
		var b bytes.Buffer
		require.NoError(t, writeAll(&b, c.head, c.items, Options{}), name)
		d, items, err := readString(b.String())
		require.NoError(t, err, name)
		assert.Equal(t, c.head, d, name)
		require.Len(t, items, len(c.items), name)
		for i, item := range items {
			assert.Equal(t, c.items[i].Loc, item.Loc, name)
			assert.Equal(t, c.items[i].Representation, item.Representation, name)
		}
	}
}

// An IRI that names a resource is written as its URI (RFC 3987 §3.1).
func TestLinksAreURIs(t *testing.T) {
	for href, want := range map[string]string{
		"http://example.com/tromsø":      "http://example.com/troms%C3%B8",
		"http://example.com/%C3%B8ø?a=1": "http://example.com/%C3%B8%C3%B8?a=1",
		"urn:x-語":                        "urn:x-%E8%AA%9E",
	} {
		i := resource("x")
		i.Links = []Link{{Rel: RelDescribes, Href: href}}
		head := resourceList()
		head.Links = []Link{{Rel: "http://example.com/rel", Href: href}}
		var b bytes.Buffer
		require.NoError(t, writeAll(&b, head, []Item{i}, Options{}))
		d, items, err := readString(b.String())
		require.NoError(t, err)
		assert.Equal(t, want, d.Links[0].Href)
		assert.Equal(t, want, items[0].Links[0].Href)
	}
}

// A document ends before its limits are passed. The refused item begins the next document.
func TestDocumentsFillUp(t *testing.T) {
	testenv.SkipUnderRace(t)
	fill := func(options Options, item func(n int) Item) (b bytes.Buffer, n int) {
		w, err := NewWriter(&b, resourceList(), options)
		require.NoError(t, err)
		for ; ; n++ {
			i := item(n)
			err := w.Write(&i)
			if errors.Is(err, ErrFull) {
				break
			}
			require.NoError(t, err)
		}
		assert.Equal(t, n, w.Items())
		size := w.Bytes()
		require.NoError(t, w.Close())
		assert.Equal(t, int64(b.Len()), size)
		assert.Equal(t, size, w.Bytes(), "closing changes nothing")
		return b, n
	}
	short := func(n int) Item { return resource(fmt.Sprintf("r%09d", n)) }
	b, n := fill(Options{}, short)
	assert.Equal(t, MaxItems, n)
	assert.Less(t, b.Len(), MaxBytes)

	_, n = fill(Options{MaxItems: 7}, short)
	assert.Equal(t, 7, n)
	_, n = fill(Options{MaxItems: MaxItems + 1}, short)
	assert.Equal(t, MaxItems, n, "not more than the specification allows")

	itemSize := len("<url><loc>http://example.com/r000000000</loc></url>\n")
	b, n = fill(Options{MaxBytes: 1000}, short)
	assert.LessOrEqual(t, b.Len(), 1000)
	assert.Greater(t, b.Len()+itemSize, 1000)
	assert.Positive(t, n)

	long := strings.Repeat("x", 1900)
	b, n = fill(Options{MaxBytes: math.MaxInt64}, func(n int) Item { return resource(fmt.Sprintf("%s%09d", long, n)) })
	assert.LessOrEqual(t, b.Len(), MaxBytes)
	assert.Greater(t, b.Len()+2000, MaxBytes)
	assert.Less(t, n, MaxItems)

	w, err := NewWriter(&b, resourceList(), Options{MaxBytes: 400})
	require.NoError(t, err)
	item := resource(long)
	assert.EqualError(t, w.Write(&item), "item 1 ("+read.Clip(item.Loc)+"): is too long for any document")
	_, err = NewWriter(&b, resourceList(), Options{MaxBytes: 100})
	assert.ErrorContains(t, err, "urlset: is too long")
}

// An item costs no memory, except for its URI and for buffers.
func TestWriterKeepsNothing(t *testing.T) {
	item := change("x", Updated, hour(1))
	item.Hashes = []Hash{{MD5, strings.Repeat("a", 32)}}
	item.Links = []Link{{Rel: RelVia, Href: "http://example.com/via"}}
	w, err := NewWriter(io.Discard, changeList(), Options{})
	require.NoError(t, err)
	allocs := testing.AllocsPerRun(2000, func() {
		item.LastMod = item.LastMod.Add(time.Second)
		if err := w.Write(&item); err != nil {
			t.Fatal(err)
		}
	})
	assert.Zero(t, allocs)
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWriterReportsErrors(t *testing.T) {
	for _, after := range []int{0, 1 << 16} {
		w, err := NewWriter(&failing{after}, resourceList(), Options{})
		require.NoError(t, err)
		for n := 0; err == nil && n < 3000; n++ {
			i := resource(fmt.Sprint(n))
			err = w.Write(&i)
		}
		assert.EqualError(t, err, "disk full")
		i := resource("again")
		assert.EqualError(t, w.Write(&i), "disk full")
		assert.EqualError(t, w.Close(), "disk full")
	}
}
