package bench_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// longSource is a source with many entries for a first round, in one of the protocols: of 100 present topics, and of
// removed ones, or of many versions of the 100.
type longSource struct {
	protocol string
	path     string // of the subscribed URL
	serve    func(entries int) http.Handler
}

var longSources = []longSource{
	{"tmshare", "/feed", longFeed},
	{"atom-pmh", "/feed", longRecords},
	{"resourcesync", "/capabilitylist.xml", longChanges},
}

// BenchmarkLongFeed measures the memory of the program tmshare-client in the first round of a source with many entries
// and no snapshot, relative to one with few. Few fragments are fetched: the entries need the memory.
func BenchmarkLongFeed(b *testing.B) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		fmt.Println("NOT CHECKED: no memory of the client: there is no /proc to read it from")
		b.SkipNow()
	}
	n := manyTopics()
	program := build(b, "tmshare-client")
	for _, source := range longSources {
		b.Run("Protocol="+source.protocol, func(b *testing.B) {
			var many, few float64
			for b.Loop() {
				many, few = max(many, source.follow(b, program, n)), max(few, source.follow(b, program, 100))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(n), "entries")
			b.ReportMetric(many/1e6, "peak-MB/many")
			b.ReportMetric(few/1e6, "peak-MB/100-entries")
			ratio(b, many, few, "RssAnon-of-100-entries")
		})
	}
}

// follow returns the peak of the memory of the first round of a source with so many entries.
func (s *longSource) follow(b *testing.B, program string, entries int) float64 {
	site := httptest.NewServer(s.serve(entries))
	defer site.Close()
	folder := filepath.Join(b.TempDir(), "copy")
	out, err := exec.Command(program, "subscribe", site.URL+s.path, "--protocol", s.protocol, "--as", "long", "--data", folder).CombinedOutput()
	require.NoError(b, err, "%s", out)
	cmd := exec.Command(program, "sync", "--json", "--data", folder)
	var output bytes.Buffer
	cmd.Stdout = &output
	peak, err := sampled(b, cmd)
	require.NoError(b, err, "%s", output.String())
	require.Contains(b, output.String(), `"applied": 100`)
	return peak
}

// longTopic is the fragment, and the record, of one of the 100 topics.
func longTopic(w http.ResponseWriter, number string) {
	w.Header().Set("Content-Type", "application/x-tm+xml;version=2.1")
	fmt.Fprintf(w, `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic><subjectIdentifier href="http://psi.example.org/%s"/><name><value>Topic %s</value></name></topic></topicMap>`, number, number)
}

// longFeed serves an archived feed (RFC 5005 §4) of so many entries, all live.
func longFeed(entries int) http.Handler {
	const head = `<author><name>a</name></author>`
	return longArchive(entries, head, func(w http.ResponseWriter, i int, updated string) {
		fmt.Fprintf(w, `<entry><id>urn:uuid:00000000-0000-4000-8000-%012d</id><title>Topic %d</title><updated>%s</updated><link rel="alternate" type="application/x-tm+xml;version=2.1" href="/data/%d"/><t:TopicSI>http://psi.example.org/%d</t:TopicSI><g:state>live</g:state></entry>`,
			i, i%100, updated, i%100, i%100)
	})
}

// longRecords serves an archived feed of so many records (Atom-PMH), all but 100 of which are deleted.
func longRecords(entries int) http.Handler {
	return longArchive(entries, "", func(w http.ResponseWriter, i int, updated string) {
		fmt.Fprintf(w, `<entry><id>urn:uuid:00000000-0000-4000-8000-%012d</id><title>Topic %d</title><updated>%s</updated>`, i, i, updated)
		if i < 100 {
			fmt.Fprintf(w, `<link rel="alternate" type="application/x-tm+xml;version=2.1" href="/data/%d"/><t:TopicSI>http://psi.example.org/%d</t:TopicSI></entry>`, i, i)
		} else {
			fmt.Fprint(w, `<content/></entry>`)
		}
	})
}

// longArchive serves an archived feed of so many entries, a thousand in a document, the newest first.
func longArchive(entries int, head string, entry func(w http.ResponseWriter, i int, updated string)) http.Handler {
	const perDocument = 1000
	begin := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		if strings.HasPrefix(r.URL.Path, "/data/") {
			longTopic(w, number)
			return
		}
		document := (entries - 1) / perDocument // the newest
		if r.URL.Path != "/feed" {
			document, _ = strconv.Atoi(number)
		}
		w.Header().Set("Content-Type", "application/atom+xml")
		fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:t="http://www.egovpt.org/tmshare" xmlns:g="https://github.com/tmshare/tmshare/ns/1">`,
			`<id>urn:feed</id><title>Long</title><updated>2024-01-01T00:00:00Z</updated>`, head,
			`<t:ServerSrcLocatorPrefix>http://example.org/long/</t:ServerSrcLocatorPrefix>`)
		if document > 0 {
			fmt.Fprintf(w, `<link rel="prev-archive" href="/archive/%d"/>`, document-1)
		}
		for i := min((document+1)*perDocument, entries) - 1; i >= document*perDocument; i-- {
			entry(w, i, begin.Add(time.Duration(i)*time.Second).Format(time.RFC3339))
		}
		fmt.Fprint(w, `</feed>`)
	})
}

// longChanges serves a ResourceSync Source that has so many changes since its Resource List, which is
// empty: of resources that came, and but for 100 went.
func longChanges(entries int) http.Handler {
	const perList = 10_000
	begin := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(i int) string { return begin.Add(time.Duration(i) * time.Second).Format(time.RFC3339) }
	const ns = ` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		self := "http://" + r.Host
		switch {
		case strings.HasPrefix(r.URL.Path, "/data/"):
			longTopic(w, number)
		case r.URL.Path == "/capabilitylist.xml":
			fmt.Fprintf(w, `<urlset%s><rs:md capability="capabilitylist"/><rs:ln rel="https://github.com/tmshare/tmshare/ns/1/source-locator-prefix" href="http://example.org/long/"/>`, ns)
			fmt.Fprintf(w, `<url><loc>%s/resourcelist.xml</loc><rs:md capability="resourcelist"/></url><url><loc>%[1]s/changelist.xml</loc><rs:md capability="changelist"/></url></urlset>`, self)
		case r.URL.Path == "/resourcelist.xml":
			fmt.Fprintf(w, `<urlset%s><rs:md capability="resourcelist" at="%s"/></urlset>`, ns, at(-1))
		case r.URL.Path == "/changelist.xml":
			fmt.Fprintf(w, `<sitemapindex%s><rs:md capability="changelist" from="%s"/>`, ns, at(-1))
			for first := 0; first < entries; first += perList {
				fmt.Fprintf(w, `<sitemap><loc>%s/changes/%d</loc><rs:md from="%s" until="%s"/></sitemap>`, self, first, at(first-1), at(min(first+perList, entries)-1))
			}
			fmt.Fprint(w, `</sitemapindex>`)
		default:
			first, _ := strconv.Atoi(number)
			last := min(first+perList, entries)
			fmt.Fprintf(w, `<urlset%s><rs:md capability="changelist" from="%s" until="%s"/>`, ns, at(first-1), at(last-1))
			for i := first; i < last; i++ {
				change := "deleted"
				if i < 100 {
					change = "created"
				}
				fmt.Fprintf(w, `<url><loc>%s/data/%d</loc><rs:md change="%s" datetime="%s" type="application/x-tm+xml;version=2.1"/></url>`, self, i, change, at(i))
			}
			fmt.Fprint(w, `</urlset>`)
		}
	})
}
