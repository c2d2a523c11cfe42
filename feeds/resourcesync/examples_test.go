package resourcesync

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readAll reads a document and all of its items.
func readAll(r io.Reader, uri string, limits Limits) (Document, []Item, error) {
	d, err := Read(r, uri, limits)
	if err != nil {
		return Document{}, nil, err
	}
	var items []Item
	for {
		item, err := d.Next()
		if err == io.EOF {
			return d.Document, items, nil
		}
		if err != nil {
			return d.Document, items, err
		}
		items = append(items, item)
	}
}

func readString(document string) (Document, []Item, error) {
	return readAll(strings.NewReader(document), "http://example.com/document.xml", Limits{})
}

func readExample(t testing.TB, number int) (Document, []Item) {
	file, err := os.ReadFile(fmt.Sprintf("testdata/example-%02d.xml", number))
	require.NoError(t, err)
	d, items, err := readString(string(file))
	require.NoError(t, err, "example %d", number)
	return d, items
}

// meaning writes the contents of a document on one line, without those of its items.
func meaning(d *Document) string {
	var b strings.Builder
	if d.Index {
		b.WriteString("index of ")
	}
	b.WriteString(string(d.Capability))
	writeTimes(&b, &d.Times)
	writeLinks(&b, d.Links)
	return strings.ReplaceAll(b.String(), "http://example.com/", "/")
}

func itemMeaning(i *Item) string {
	var b strings.Builder
	b.WriteString(i.Loc)
	if !i.LastMod.IsZero() {
		b.WriteString(" lastmod " + i.LastMod.Format(time.RFC3339Nano))
	}
	for _, s := range []string{string(i.Capability), string(i.Change)} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	writeTimes(&b, &i.Times)
	writeRepresentation(&b, &i.Representation)
	writeLinks(&b, i.Links)
	return strings.ReplaceAll(b.String(), "http://example.com/", "/")
}

func writeTimes(b *strings.Builder, t *Times) {
	for _, one := range []struct {
		name string
		time time.Time
	}{{"at", t.At}, {"completed", t.Completed}, {"from", t.From}, {"until", t.Until}} {
		if !one.time.IsZero() {
			b.WriteString(" " + one.name + " " + one.time.Format(time.RFC3339Nano))
		}
	}
}

func writeRepresentation(b *strings.Builder, r *Representation) {
	for _, h := range r.Hashes {
		b.WriteString(" " + h.String())
	}
	if r.Length > 0 || r.Empty {
		fmt.Fprintf(b, " %d bytes", r.Length)
	}
	if r.Type != "" {
		b.WriteString(" of " + r.Type)
	}
	if r.Path != "" {
		b.WriteString(" in " + r.Path)
	}
}

func writeLinks(b *strings.Builder, links []Link) {
	for i := range links {
		l := &links[i]
		b.WriteString("; " + l.Rel + " " + l.Href)
		if l.Pri > 0 {
			fmt.Fprintf(b, " pri %d", l.Pri)
		}
		if !l.Modified.IsZero() {
			b.WriteString(" modified " + l.Modified.Format(time.RFC3339Nano))
		}
		writeRepresentation(b, &l.Representation)
	}
}

const (
	upTo1   = "; up /dataset1/capabilitylist.xml"
	listOf3 = "changelist from 2013-01-03T00:00:00Z" + upTo1
	md5Of1  = " md5:1584abdf8ebdc9802ac0c6a7402c03b6"
	htmlOf1 = md5Of1 + " 8876 bytes of text/html"
)

// The examples of the specification are read as meant: the test checks the head of each, the number of its
// items, and some items.
var examples = []struct {
	number int
	head   string
	items  int
	some   map[int]string // by index
}{
	{1, "resourcelist at 2013-01-03T09:00:00Z", 2, map[int]string{0: "/res1", 1: "/res2"}},
	{2, "resourcelist at 2013-01-03T09:00:00Z", 2, map[int]string{
		0: "/res1 lastmod 2013-01-02T13:00:00Z" + md5Of1,
		1: "/res2 lastmod 2013-01-02T14:00:00Z md5:1e0d5cb8ef6ba40c99b14c0237be735e; duplicate http://mirror.example.com/res2"}},
	{3, "changelist from 2013-01-02T00:00:00Z until 2013-01-03T00:00:00Z", 2, map[int]string{
		0: "/res2.pdf lastmod 2013-01-02T13:00:00Z updated", 1: "/res3.tiff lastmod 2013-01-02T18:00:00Z deleted"}},
	{4, "resourcedump at 2013-01-03T09:00:00Z", 1, map[int]string{0: "/resourcedump.zip lastmod 2013-01-03T09:00:00Z"}},
	{5, "resourcedump-manifest at 2013-01-03T09:00:00Z", 2, map[int]string{0: "/res1 lastmod 2013-01-03T03:00:00Z" + md5Of1 + " in /resources/res1"}},
	{6, "capabilitylist; describedby /info_about_set1_of_resources.xml; up /resourcesync_description.xml", 3, map[int]string{
		0: "/dataset1/resourcelist.xml resourcelist", 2: "/dataset1/changelist.xml changelist"}},
	{7, "description; describedby /info-about-source.xml", 1, map[int]string{
		0: "/dataset1/capabilitylist.xml capabilitylist; describedby /info_about_set1_of_resources.xml"}},
	{8, "index of resourcelist at 2013-01-03T09:00:00Z", 2, map[int]string{1: "/resourcelist-part2.xml"}},
	{12, "description; describedby /info_about_source.xml", 3, map[int]string{
		2: "/capabilitylist3.xml capabilitylist; describedby /info_about_set3_of_resources.xml"}},
	{13, "capabilitylist; describedby /info_about_set1_of_resources.xml; up /resourcesync_description.xml", 4, map[int]string{
		3: "/dataset1/changedump.xml changedump"}},
	{14, "resourcelist at 2013-01-03T09:00:00Z completed 2013-01-03T09:01:00Z" + upTo1, 2, map[int]string{
		0: "/res1 lastmod 2013-01-02T13:00:00Z" + htmlOf1,
		1: "/res2 lastmod 2013-01-02T14:00:00Z md5:1e0d5cb8ef6ba40c99b14c0237be735e" +
			" sha-256:854f61290e2e197a11bc91063afce22e43f8ccc655237050ace766adc68dc784 14599 bytes of application/pdf"}},
	{15, "index of resourcelist at 2013-01-03T09:00:00Z completed 2013-01-03T09:10:00Z" + upTo1, 3, map[int]string{
		2: "/resourcelist3.xml at 2013-01-03T09:07:00Z"}},
	{16, "resourcelist at 2013-01-03T09:00:00Z" + upTo1 + "; index /dataset1/resourcelist-index.xml", 2, map[int]string{
		1: "/res4 lastmod 2013-01-02T14:00:00Z md5:4556abdf8ebdc9802ac0c6a7402c9881 883 bytes of image/png"}},
	{17, "resourcedump at 2013-01-03T09:00:00Z completed 2013-01-03T09:04:00Z" + upTo1, 3, map[int]string{
		1: "/resourcedump-part2.zip at 2013-01-03T09:01:00Z completed 2013-01-03T09:03:00Z 9875 bytes of application/zip" +
			"; contents /resourcedump_manifest-part2.xml of application/xml"}},
	{18, "resourcedump-manifest at 2013-01-03T09:00:00Z completed 2013-01-03T09:02:00Z" + upTo1, 2, map[int]string{
		0: "/res1 lastmod 2013-01-02T13:00:00Z" + htmlOf1 + " in /resources/res1"}},
	{19, listOf3, 4, map[int]string{
		0: "/res1.html lastmod 2013-01-03T11:00:00Z created", 3: "/res2.pdf lastmod 2013-01-03T21:00:00Z updated"}},
	{20, "index of changelist from 2013-01-01T00:00:00Z" + upTo1, 3, map[int]string{
		1: "/20130102-changelist.xml from 2013-01-02T00:00:00Z until 2013-01-03T00:00:00Z", 2: "/20130103-changelist.xml from 2013-01-03T00:00:00Z"}},
	{21, "changelist from 2013-01-02T00:00:00Z until 2013-01-03T00:00:00Z" + upTo1 + "; index /dataset1/changelist.xml", 4, map[int]string{
		2: "/res5.tiff lastmod 2013-01-02T19:00:00Z deleted"}},
	{22, "changedump from 2013-01-01T00:00:00Z" + upTo1, 3, map[int]string{
		0: "/20130101-changedump.zip lastmod 2013-01-01T23:59:59Z from 2013-01-01T00:00:00Z until 2013-01-02T00:00:00Z" +
			" 3109 bytes of application/zip; contents /20130101-changedump-manifest.xml of application/xml"}},
	{23, "changedump-manifest from 2013-01-02T00:00:00Z until 2013-01-03T00:00:00Z" + upTo1, 4, map[int]string{
		2: "/res5.tiff lastmod 2013-01-02T19:00:00Z deleted",
		3: "/res7.html lastmod 2013-01-02T20:00:00Z updated md5:0988647082c8bc51778894a48ec3b576 5426 bytes of text/html in /changes/res7-v2.html"}},
	{24, listOf3, 1, map[int]string{0: "/res1 lastmod 2013-01-03T18:00:00Z updated" + htmlOf1 +
		"; duplicate http://mirror1.example.com/res1 pri 1 modified 2013-01-03T18:00:00Z" +
		"; duplicate http://mirror2.example.com/res1 pri 2 modified 2013-01-03T18:00:00Z" +
		"; duplicate gsiftp://gridftp.example.com/res1 pri 3 modified 2013-01-03T18:00:00Z"}},
	{25, "changelist from 2013-01-03T11:00:00Z" + upTo1, 1, map[int]string{0: "/res1 lastmod 2013-01-03T18:00:00Z updated" +
		"; alternate /res1.html modified 2013-01-03T18:00:00Z of text/html" +
		"; alternate /res1.pdf modified 2013-01-03T18:00:00Z of application/pdf"}},
	{26, listOf3, 1, map[int]string{0: "/res1.html lastmod 2013-01-03T18:00:00Z updated" + md5Of1 + " 8876 bytes" +
		"; canonical /res1 modified 2013-01-03T18:00:00Z"}},
	{27, listOf3, 2, map[int]string{1: "/res5-full.tiff lastmod 2013-01-03T18:00:00Z updated" +
		" sha-256:f4OxZX_x_FO5LcGBSKHWXfwtSx-j1ncoSt3SABJtkGk 9788456778 bytes of image/tiff" +
		"; http://www.openarchives.org/rs/terms/patch /res5-diff modified 2013-01-03T18:00:00Z" +
		" sha-256:h986gT_t_87HTkjHYE76G558hY-jdfgy76t55sadJUYT 4533 bytes of application/x-tiff-diff"}},
	{28, listOf3, 2, map[int]string{1: "/res2_dublin-core_metadata.xml lastmod 2013-01-03T19:00:00Z updated of application/xml" +
		"; describes /res2.pdf modified 2013-01-03T18:00:00Z" + md5Of1 + " 8876 bytes of application/pdf" +
		"; profile http://purl.org/dc/elements/1.1/"}},
	{29, listOf3, 1, map[int]string{0: "/res1 lastmod 2013-01-03T18:00:00Z updated" + htmlOf1 +
		"; memento /20130103070000/res1 modified 2013-01-02T18:00:00Z" + htmlOf1 +
		"; timegate /timegate//res1; timemap /timemap//res1 of application/link-format"}},
	{30, listOf3, 1, map[int]string{0: "/res1 lastmod 2013-01-03T07:00:00Z updated" + htmlOf1 + "; collection /aggregation/0601007"}},
	{31, listOf3, 1, map[int]string{0: "http://original.example.com/res1.html lastmod 2013-01-03T07:00:00Z updated" + htmlOf1}},
	{32, "changelist from 2013-01-03T11:00:00Z; up http://aggregator1.example.com/dataset1/capabilitylist.xml", 1, map[int]string{
		0: "http://aggregator1.example.com/res1.html lastmod 2013-01-03T20:00:00Z updated" + htmlOf1 +
			"; via http://original.example.com/res1.html modified 2013-01-03T07:00:00Z" + htmlOf1}},
	{33, "changelist from 2013-01-03T12:00:00Z; up http://aggregator2.example.com/dataset1/capabilitylist.xml", 1, map[int]string{
		0: "http://aggregator2.example.com/res1.html lastmod 2013-01-04T09:00:00Z updated" + htmlOf1 +
			"; via http://original.example.com/res1.html modified 2013-01-03T07:00:00Z" + htmlOf1}},
}

func TestExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/example-*.xml")
	require.NoError(t, err)
	require.Len(t, examples, len(files))
	for _, e := range examples {
		d, items := readExample(t, e.number)
		assert.Equal(t, e.head, meaning(&d), "example %d", e.number)
		if assert.Len(t, items, e.items, "example %d", e.number) {
			for n, want := range e.some {
				assert.Equal(t, want, itemMeaning(&items[n]), "example %d", e.number)
			}
		}
	}
}

// The examples can be written, and mean the same then. Those that the rules of
// the text do not allow say so.
func TestExamplesWritten(t *testing.T) {
	forbidden := map[int]string{
		27: `item 1 (http://example.com/res4)/rs:md: "f4OxZX_x_DFGFDgghgdfb6rtSx-iosjf6735432nklj" is not the digest of sha-256 in hexadecimal (Z39.99 §7)`,
	}
	for _, e := range examples {
		d, items := readExample(t, e.number)
		var b bytes.Buffer
		err := writeAll(&b, d, items, Options{Version10: true})
		if rule := forbidden[e.number]; rule != "" {
			assert.EqualError(t, err, ""+rule)
			continue
		}
		require.NoError(t, err, "example %d", e.number)
		again, againItems, err := readString(b.String())
		require.NoError(t, err, "example %d", e.number)
		assert.Equal(t, d, again, "example %d", e.number)
		assert.Equal(t, items, againItems, "example %d", e.number)
	}
}

// Examples 9, 10 and 11: the three ways of discovery.
func TestExamplesOfDiscovery(t *testing.T) {
	page, err := os.Open("testdata/example-09.html")
	require.NoError(t, err)
	defer page.Close()
	found, err := DiscoverInHTML(page, "http://www.example.com/dataset1/res1")
	require.NoError(t, err)
	assert.Equal(t, []string{"http://www.example.com/dataset1/capabilitylist.xml"}, found)

	text, err := os.ReadFile("testdata/example-10.http")
	require.NoError(t, err)
	// The line that goes on in the next one is for print only.
	header := strings.ReplaceAll(string(text), ";\nrel", "; rel") + "\n"
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(header)), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"http://www.example.com/dataset1/capabilitylist.xml"},
		DiscoverInHeader(response.Header.Values("Link"), "http://www.example.com/dataset1/res1"))

	robots, err := os.Open("testdata/example-11.txt")
	require.NoError(t, err)
	defer robots.Close()
	found, err = DiscoverInRobots(robots, "http://example.com/robots.txt")
	require.NoError(t, err)
	assert.Equal(t, []string{"http://example.com/dataset1/resourcelist.xml"}, found)
}
