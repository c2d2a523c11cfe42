package destination

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/anyhost"
)

// exampleSource is http://example.com and http://www.example.com with documents of the
// specification, by the numbers of its examples.
type exampleSource struct {
	t       *testing.T
	pages   map[string]string
	headers map[string]http.Header
	reports []string
	*anyhost.Server
}

func (e *exampleSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, ok := e.pages[r.URL.Path]
	for name, values := range e.headers[r.URL.Path] {
		w.Header()[name] = values
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(page))
}

func rsExample(t *testing.T, number string) string {
	all, err := filepath.Glob("../../../../feeds/resourcesync/testdata/example-" + number + ".*")
	require.NoError(t, err)
	require.Len(t, all, 1)
	b, err := os.ReadFile(all[0])
	require.NoError(t, err)
	return string(b)
}

// newExamples serves documents: pairs of a path and the number of an example, or a document.
func newExamples(t *testing.T, pairs ...string) *exampleSource {
	e := &exampleSource{t: t, pages: map[string]string{}, headers: map[string]http.Header{}}
	for i := 0; i < len(pairs); i += 2 {
		if len(pairs[i+1]) == 2 {
			e.pages[pairs[i]] = rsExample(t, pairs[i+1])
		} else {
			e.pages[pairs[i]] = pairs[i+1]
		}
	}
	e.Server = anyhost.Serve(t, e)
	return e
}

func (e *exampleSource) try(ref string, mark follow.Mark) (*follow.Delta, error) {
	f := e.Fetcher()
	f.Hosts = []string{"example.com", "www.example.com"}
	s := &Source{Fetcher: f, Report: func(line string) { e.reports = append(e.reports, line) }}
	return s.Delta(e.t.Context(), ref, follow.Look{Mark: mark}, nil)
}

func (e *exampleSource) news(ref string, mark follow.Mark) *follow.Delta {
	e.t.Helper()
	n, err := e.try(ref, mark)
	require.NoError(e.t, err)
	return n
}

func rsTime(t *testing.T, s string) time.Time {
	parsed, err := time.Parse(time.RFC3339, s)
	require.NoError(t, err)
	return parsed
}

// recordsOf returns what news say of records, by time.
func recordsOf(n *follow.Delta) []follow.Record {
	var all []follow.Record
	for r, err := range n.Records(context.Background()) {
		if err != nil {
			panic(err)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b follow.Record) int { return a.Updated.Compare(b.Updated) })
	return all
}

// lines returns what news say of records, a line for each, by time and by id.
func lines(n *follow.Delta) []string {
	var lines []string
	for _, r := range recordsOf(n) {
		line := strings.TrimPrefix(r.ID, "http://example.com/")
		if !r.Updated.IsZero() {
			line += " " + r.Updated.Format("01-02T15")
		}
		if r.Deleted {
			line += " deleted"
		}
		for _, p := range r.Representations {
			if p.URL != r.ID {
				line += " from " + p.URL
			}
		}
		if n := len(r.Representations); n > 0 {
			f := r.Representations[n-1]
			for _, h := range f.Fixity.Hashes {
				line += " " + h.Algorithm
			}
			if f.Type != "" {
				line += " " + f.Type
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// Every list of the specification is read as the text around it describes.
func TestSpecificationsLists(t *testing.T) {
	const list = "http://example.com/dataset1/list.xml"
	for _, c := range []struct {
		number string
		at     string // up to when all is known
		want   []string
	}{
		{"01", "2013-01-03T09:00:00Z", []string{"res1", "res2"}},
		{"02", "2013-01-03T09:00:00Z", []string{"res1 01-02T13 md5", "res2 01-02T14 from http://mirror.example.com/res2 md5"}},
		{"14", "2013-01-03T09:00:00Z", []string{"res1 01-02T13 md5 text/html", "res2 01-02T14 md5 sha-256 application/pdf"}},
		{"16", "2013-01-03T09:00:00Z", []string{"res3 01-02T13 md5 application/pdf", "res4 01-02T14 md5 image/png"}},
	} {
		e := newExamples(t, "/dataset1/list.xml", c.number)
		n := e.news(list, follow.Mark{})
		require.Equal(t, c.want, lines(n), c.number)
		require.True(t, n.Whole)
		require.Equal(t, rsTime(t, c.at), n.Mark.Updated, c.number)
	}
}

// Changes: of each resource the last one, from where a Destination left off.
func TestSpecificationsChangeLists(t *testing.T) {
	for _, c := range []struct {
		number, mark string
		want         []string
	}{
		{"03", "2013-01-02T00:00:00Z", []string{"res2.pdf 01-02T13", "res3.tiff 01-02T18 deleted"}},
		{"03", "2013-01-02T15:00:00Z", []string{"res3.tiff 01-02T18 deleted"}},
		{"19", "2013-01-03T00:00:00Z", []string{"res1.html 01-03T11", "res3.tiff 01-03T18 deleted", "res2.pdf 01-03T21"}},
		{"19", "2013-01-03T21:30:00Z", nil},
		{"21", "2013-01-02T00:00:00Z", []string{"res9.pdf 01-02T13", "res5.tiff 01-02T19 deleted", "res7.html 01-02T20"}},
		{"24", "2013-01-03T00:00:00Z", []string{"res1 01-03T18 from http://mirror1.example.com/res1 from http://mirror2.example.com/res1 md5 text/html"}},
		{"25", "2013-01-03T11:00:00Z", []string{"res1 01-03T18"}},
		{"26", "2013-01-03T00:00:00Z", []string{"res1.html 01-03T18 md5"}},
		{"27", "2013-01-03T00:00:00Z", []string{"res4 01-03T17 sha-256 application/json", "res5-full.tiff 01-03T18 sha-256 image/tiff"}},
		{"28", "2013-01-03T00:00:00Z", []string{"res2.pdf 01-03T18 md5 application/pdf", "res2_dublin-core_metadata.xml 01-03T19 application/xml"}},
		{"29", "2013-01-03T00:00:00Z", []string{"res1 01-03T18 md5 text/html"}},
		{"30", "2013-01-03T00:00:00Z", []string{"res1 01-03T07 md5 text/html"}},
		{"31", "2013-01-03T00:00:00Z", []string{"http://original.example.com/res1.html 01-03T07 md5 text/html"}},
		{"32", "2013-01-03T11:00:00Z", []string{"http://aggregator1.example.com/res1.html 01-03T20 md5 text/html"}},
		{"33", "2013-01-03T12:00:00Z", []string{"http://aggregator2.example.com/res1.html 01-04T09 md5 text/html"}},
	} {
		e := newExamples(t, "/dataset1/capabilitylist.xml", "13", "/dataset1/changelist.xml", c.number)
		mark := follow.Mark{Feed: "http://example.com/dataset1/capabilitylist.xml", Updated: rsTime(t, c.mark)}
		n := e.news(mark.Feed, mark)
		require.Equal(t, c.want, lines(n), c.number)
		require.False(t, n.Whole)
		require.Empty(t, n.Reason)
	}
	// The mark is before the list: there is nothing but to begin again.
	e := newExamples(t, "/dataset1/capabilitylist.xml", "13", "/dataset1/changelist.xml", "19", "/dataset1/resourcelist.xml", "14")
	n := e.news("http://example.com/dataset1/capabilitylist.xml", follow.Mark{Feed: "http://example.com/dataset1/capabilitylist.xml", Updated: rsTime(t, "2013-01-01T00:00:00Z")})
	require.True(t, n.Whole)
	require.Equal(t, "the Change Lists do not reach back to the last round", n.Reason)
}

// The index has three lists, and those that span the mark or are later are read.
func TestSpecificationsChangeListIndex(t *testing.T) {
	feed := "http://example.com/dataset1/capabilitylist.xml"
	e := newExamples(t, "/dataset1/capabilitylist.xml", "13", "/dataset1/changelist.xml", "20", "/20130102-changelist.xml", "21", "/20130103-changelist.xml", "19")
	n := e.news(feed, follow.Mark{Feed: feed, Updated: rsTime(t, "2013-01-02T14:00:00Z")})
	require.Equal(t, []string{"res5.tiff 01-02T19 deleted", "res7.html 01-02T20", "res1.html 01-03T11", "res3.tiff 01-03T18 deleted", "res2.pdf 01-03T21"}, lines(n))
	require.Equal(t, follow.Mark{Feed: feed, Updated: rsTime(t, "2013-01-03T21:00:00Z"), At: []string{"http://example.com/res2.pdf"}}, n.Mark)
	n = e.news(feed, n.Mark)
	require.Equal(t, 3, n.Documents, "the Capability List, the index and the open list")
	require.Equal(t, []string{"res2.pdf 01-03T21"}, lines(n))
	require.False(t, recordsOf(n)[0].Anew, "it has been seen")
	// A closed list is followed up by its index (§12.1).
	e.pages["/dataset1/capabilitylist.xml"] = strings.Replace(e.pages["/dataset1/capabilitylist.xml"], "http://example.com/dataset1/changelist.xml", "http://example.com/20130102-changelist.xml", 1)
	n = e.news(feed, follow.Mark{Feed: feed, Updated: rsTime(t, "2013-01-02T14:00:00Z")})
	require.Len(t, recordsOf(n), 5)
}

// The lists of an index together are all that there is, as of when the first was begun.
func TestSpecificationsResourceListIndex(t *testing.T) {
	e := newExamples(t, "/dataset1/resourcelist-index.xml", "15", "/resourcelist1.xml", "16", "/resourcelist2.xml", "14", "/resourcelist3.xml", "01")
	n := e.news("http://example.com/dataset1/resourcelist-index.xml", follow.Mark{})
	require.Equal(t, []string{"res1 01-02T13 md5 text/html", "res3 01-02T13 md5 application/pdf", "res2 01-02T14 md5 sha-256 application/pdf", "res4 01-02T14 md5 image/png"}, lines(n))
	require.Equal(t, rsTime(t, "2013-01-03T09:00:00Z"), n.Mark.Updated)
	// One list leads to the index, as the whole set is needed.
	e.pages["/dataset1/resourcelist-index.xml"] = strings.Replace(e.pages["/dataset1/resourcelist-index.xml"], `rel="up"`, `rel="none"`, 1)
	e.pages["/resourcelist1.xml"] = strings.Replace(e.pages["/resourcelist1.xml"], `rel="up"`, `rel="none"`, 1)
	require.Len(t, recordsOf(e.news("http://example.com/resourcelist1.xml", follow.Mark{})), 4)
	// A part that is missing is no deletion.
	delete(e.pages, "/resourcelist3.xml")
	_, err := e.try("http://example.com/dataset1/resourcelist-index.xml", follow.Mark{})
	require.ErrorContains(t, err, "404")
	e = newExamples(t, "/list.xml", "08", "/resourcelist-part1.xml", "01", "/resourcelist-part2.xml", "16")
	require.Len(t, recordsOf(e.news("http://example.com/list.xml", follow.Mark{})), 4)
}

// A Source is found from wherever one begins.
func TestSpecificationsDiscovery(t *testing.T) {
	e := newExamples(t, "/.well-known/resourcesync", "07", "/page", "09", "/robots.txt", "11", "/dataset1/capabilitylist.xml", "13",
		"/dataset1/resourcelist.xml", "14", "/dataset1/changelist.xml", "19", "/dataset1/resourcedump.xml", "17", "/dataset1/changedump.xml", "22", "/manifest.xml", "18",
		"/walkthrough.xml", "06", "/resource", "anything", "/elsewhere", "<html><body>nothing here</body></html>", "/resourcesync_description.xml", "12")
	e.headers["/resource"] = http.Header{"Link": {strings.TrimPrefix(strings.ReplaceAll(strings.Join(strings.Fields(linkOf(rsExample(t, "10"))), " "), "Link: ", ""), " ")}}
	for ref, want := range map[string]string{
		"http://example.com/.well-known/resourcesync":     "http://example.com/dataset1/capabilitylist.xml",
		"http://example.com/":                             "http://example.com/dataset1/capabilitylist.xml",
		"http://example.com/page":                         "http://www.example.com/dataset1/capabilitylist.xml",
		"http://example.com/resource":                     "http://www.example.com/dataset1/capabilitylist.xml",
		"http://example.com/dataset1/resourcelist.xml":    "http://example.com/dataset1/capabilitylist.xml",
		"http://example.com/dataset1/changelist.xml":      "http://example.com/dataset1/capabilitylist.xml",
		"http://example.com/dataset1/resourcedump.xml":    "http://example.com/dataset1/capabilitylist.xml",
		"http://example.com/dataset1/changedump.xml":      "http://example.com/dataset1/capabilitylist.xml",
		"http://example.com/manifest.xml":                 "http://example.com/dataset1/capabilitylist.xml",
		"http://example.com/walkthrough.xml":              "http://example.com/walkthrough.xml",
		"http://example.com/dataset1/capabilitylist.xml":  "http://example.com/dataset1/capabilitylist.xml",
		"http://www.example.com/dataset1/changelist.xml?": "http://example.com/dataset1/capabilitylist.xml",
	} {
		require.Equal(t, want, e.news(ref, follow.Mark{}).Mark.Feed, ref)
	}
	_, err := e.try("http://example.com/elsewhere", follow.Mark{})
	var choice *follow.ChoiceError
	require.ErrorAs(t, err, &choice, "nothing leads from there to the set")
	require.Equal(t, []follow.Offer{{URL: "http://example.com/dataset1/capabilitylist.xml"}}, choice.Collections)
	e.pages["/dataset1"] = e.pages["/elsewhere"]
	require.Equal(t, "http://example.com/dataset1/capabilitylist.xml", e.news("http://example.com/dataset1", follow.Mark{}).Mark.Feed, "it lies below that")
	delete(e.pages, "/.well-known/resourcesync")
	require.Equal(t, "http://example.com/dataset1/capabilitylist.xml", e.news("http://example.com/", follow.Mark{}).Mark.Feed, "by robots.txt")
	// A plain Sitemap beside it is passed over.
	e.pages["/robots.txt"] += "\nSitemap: http://example.com/plain.xml\n"
	e.pages["/plain.xml"] = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://example.com/page</loc></url></urlset>`
	require.Equal(t, "http://example.com/dataset1/capabilitylist.xml", e.news("http://example.com/", follow.Mark{}).Mark.Feed)
	// Two sets of resources: the user chooses.
	e.pages["/robots.txt"] += "\nSitemap: http://example.com/dataset2/resourcelist.xml\n"
	e.pages["/dataset2/resourcelist.xml"] = strings.ReplaceAll(e.pages["/dataset1/resourcelist.xml"], "dataset1", "dataset2")
	_, err = e.try("http://example.com/", follow.Mark{})
	require.ErrorAs(t, err, &choice)
	require.Equal(t, []follow.Offer{{URL: "http://example.com/dataset1/capabilitylist.xml"}, {URL: "http://example.com/dataset2/capabilitylist.xml"}}, choice.Collections)
	_, err = e.try("http://example.com/resourcesync_description.xml", follow.Mark{})
	require.ErrorAs(t, err, &choice)
	require.Len(t, choice.Collections, 3)
	e.pages = map[string]string{}
	_, err = e.try("http://example.com/", follow.Mark{})
	require.ErrorContains(t, err, "there is no Source Description at http://example.com/.well-known/resourcesync, nor a Sitemap in http://example.com/robots.txt")
	require.NotContains(t, err.Error(), "404")
}

// linkOf returns the field Link of an HTTP header.
func linkOf(header string) string {
	_, link, _ := strings.Cut(header, "Link:")
	link, _, _ = strings.Cut(link, "\n...")
	return link
}

// The contents of a Resource Dump, and its manifests (Examples 4, 5, 17 and 18), are read without a Resource List.
func TestSpecificationsResourceDump(t *testing.T) {
	e := newExamples(t, "/dump.xml", "17", "/resourcedump_manifest-part1.xml", "18", "/resourcedump_manifest-part2.xml", "05", "/resourcedump_manifest-part3.xml", "05")
	e.pages["/dump.xml"] = strings.Replace(e.pages["/dump.xml"], `rel="up"`, `rel="none"`, 1)
	n := e.news("http://example.com/dump.xml", follow.Mark{})
	require.Equal(t, []string{"res1 01-03T03 md5", "res2 01-03T04 md5"}, lines(n), "the last statement")
	require.Equal(t, rsTime(t, "2013-01-03T09:00:00Z"), n.Mark.Updated)
	e = newExamples(t, "/dump.xml", "04")
	_, err := e.try("http://example.com/dump.xml", follow.Mark{})
	require.ErrorContains(t, err, "packages are not to be fetched")
}

// Example 23: the manifest of the change dump of Example 22 has content for two changes of one
// resource; the last one counts.
func TestSpecificationsChangeDump(t *testing.T) {
	p, err := readListing(strings.NewReader(rsExample(t, "23")), &fetch.Answer{URL: "http://example.com/m.xml"}, resourcesync.Limits{})
	require.NoError(t, err)
	m := manifestOf(p)
	l := &look{Source: &Source{}}
	lists, err := readListing(strings.NewReader(rsExample(t, "21")), &fetch.Answer{URL: "http://example.com/l.xml"}, resourcesync.Limits{})
	require.NoError(t, err)
	var paths []string
	for n := range lists.items {
		r := l.record(&lists.items[n])
		if r.Deleted || slices.ContainsFunc(lists.items[n+1:], func(later resourcesync.Item) bool { return later.Loc == r.ID }) {
			continue
		}
		i := m.find(&r, time.Time{})
		require.NotNil(t, i, r.ID)
		paths = append(paths, i.Path)
	}
	require.Equal(t, []string{"/changes/res9.pdf", "/changes/res7-v2.html"}, paths)
	d, err := readListing(strings.NewReader(rsExample(t, "22")), &fetch.Answer{URL: "http://example.com/d.xml"}, resourcesync.Limits{})
	require.NoError(t, err)
	change := rsTime(t, "2013-01-02T20:00:00Z")
	require.Equal(t, []bool{false, true, false}, []bool{mayHave(&d.items[0], change), mayHave(&d.items[1], change), mayHave(&d.items[2], change)})
}

// A Sitemap that is packed without a header for it is read as well; a bomb is refused.
func TestPackedSitemap(t *testing.T) {
	testenv.SkipUnderRace(t)
	e := newExamples(t, "/list.xml.gz", gzipped(t, rsExample(t, "01")), "/bomb.xml.gz", gzipped(t, rsExample(t, "01")+strings.Repeat(" ", 200<<20)), "/half.xml.gz", gzipped(t, rsExample(t, "01"))[:100])
	require.Equal(t, []string{"res1", "res2"}, lines(e.news("http://example.com/list.xml.gz", follow.Mark{})))
	_, err := e.try("http://example.com/bomb.xml.gz", follow.Mark{})
	require.ErrorContains(t, err, "exceeds Limits.MaxBytes")
	_, err = e.try("http://example.com/half.xml.gz", follow.Mark{})
	require.ErrorContains(t, err, "unexpected EOF")
}

func gzipped(t *testing.T, content string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}
