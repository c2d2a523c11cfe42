package bench_test

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkServing measures the requests per second that the server answers, relative to nginx with the same bytes in
// files, and to a handler of net/http that only writes these bytes, which is the maximum for a server with net/http.
// None keeps a log of requests; wrk measures them in turn, for a second each time.
func BenchmarkServing(b *testing.B) {
	n := serve(b, importInto(b, synthesize(b, 22_500))) // its snapshot has a megabyte, gzipped
	urls := n.addresses()
	_, archive := n.do("GET", urls.archive, nil, 200, "Accept-Encoding", "gzip")
	_, recent := n.do("GET", urls.recent, nil, 200, "Accept-Encoding", "gzip")
	_, snapshot := n.do("GET", urls.snapshot, nil, 200, "Accept-Encoding", "gzip")
	_, plain := n.do("GET", urls.archive, nil, 200)
	require.Greater(b, len(snapshot), 1_000_000)

	files := map[string][]byte{
		"archive": plain, "archive.gz": archive, "recent.gz": recent, "snapshot.gz": snapshot,
		"snapshot-bytes": snapshot, // nginx serves no ranges of gzipped files as such
	}
	reference, nginx, missing := startNginx(b, files)
	if _, err := exec.LookPath("wrk"); missing == nil && err != nil {
		missing = fmt.Errorf("wrk is not installed")
	}
	if missing != nil {
		fmt.Println("NOT CHECKED: no requests per second of the server and of nginx:", missing)
		b.SkipNow()
	}
	bare := serveBare(b, files)
	for _, c := range []struct {
		name, url, file string
		known           bool // the client has it already
		headers         []string
	}{
		{"Archive", urls.archive, "archive", false, []string{"Accept-Encoding", "gzip"}},
		{"Archive/plain", urls.archive, "archive", false, nil},
		{"Recent", urls.recent, "recent", false, []string{"Accept-Encoding", "gzip"}},
		{"Snapshot", urls.snapshot, "snapshot", false, []string{"Accept-Encoding", "gzip"}},
		{"Snapshot/range", urls.snapshot, "snapshot-bytes", false, []string{"Accept-Encoding", "gzip", "Range", "bytes=300000-365535"}},
		{"Archive/304", urls.archive, "archive", true, []string{"Accept-Encoding", "gzip"}},
		{"Recent/304", urls.recent, "recent", true, []string{"Accept-Encoding", "gzip"}},
		{"Snapshot/304", urls.snapshot, "snapshot", true, []string{"Accept-Encoding", "gzip"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			file := reference + "/" + c.file
			ours, theirs := c.headers, c.headers
			status, header, body := fetch(b, c.url, ours...)
			refStatus, refHeader, refBody := fetch(b, file, theirs...)
			require.Equal(b, refStatus, status)
			require.Equal(b, refBody, body, "the same bytes")
			if c.known {
				ours = append(ours[:2:2], "If-None-Match", header.Get("ETag"))
				theirs = append(theirs[:2:2], "If-None-Match", refHeader.Get("ETag"))
				status, _, _ = fetch(b, c.url, ours...)
				refStatus, _, _ = fetch(b, file, theirs...)
				require.Equal(b, http.StatusNotModified, status)
				require.Equal(b, http.StatusNotModified, refStatus)
			}
			minimal := c.headers
			if c.known {
				minimal = append(minimal[:2:2], "If-None-Match", bareTag)
			}
			var own, ref, least load
			for b.Loop() {
				for range *seconds {
					own = own.better(wrk(b, n.cmd.Process.Pid, c.url, ours...))
					ref = ref.better(wrk(b, nginx, file, theirs...))
					least = least.better(wrk(b, bare.cmd.Process.Pid, bare.url+"/"+c.file, minimal...))
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(own.perSecond, "requests/s")
			b.ReportMetric(own.perCPUSecond, "requests/cpu-s")
			ratio(b, own.perSecond, ref.perSecond, "requests/s-of-nginx")
			ratio(b, own.perCPUSecond, ref.perCPUSecond, "requests/cpu-s-of-nginx")
			ratio(b, own.perCPUSecond, least.perCPUSecond, "requests/cpu-s-of-bare-net/http")
			ratio(b, least.perCPUSecond, ref.perCPUSecond, "requests/cpu-s-of-nginx-by-bare-net/http")
		})
	}
}

func (l load) better(m load) load {
	return load{max(l.perSecond, m.perSecond), max(l.perCPUSecond, m.perCPUSecond)}
}

// addresses are those of documents for a subscriber.
type addresses struct{ recent, archive, snapshot, fragment string }

// addresses follows the links of the feeds to a finished archive document, to the
// newest snapshot, as XTM 2.1, and to the fragment of the newest entry.
func (n *node) addresses() addresses {
	recent := n.url + "/topicmaps/" + collection + "/fragments"
	closed := n.document(recent).link(n.b, "prev-archive", "")
	snapshots := n.document(n.url + "/topicmaps/" + collection + "/snapshots")
	require.NotEmpty(n.b, snapshots.Entries)
	const xtm21 = "application/x-tm+xml;version=2.1"
	finished := n.document(closed)
	return addresses{
		recent: recent, archive: finished.link(n.b, "prev-archive", ""),
		snapshot: snapshots.Entries[0].link(n.b, "alternate", xtm21), fragment: finished.Entries[0].link(n.b, "alternate", xtm21),
	}
}

// archive returns the addresses of a finished archive document and of all those before it.
// They aren't guessed from the number: each has the run in it that wrote it last.
func (n *node) archive(at string) (all []string) {
	for found := true; found; {
		all = append(all, at)
		at, found = n.document(at).find("prev-archive", "")
	}
	return all
}

// document is the part of an Atom document that the benchmarks use.
type document struct {
	TopicSI string     `xml:"TopicSI"`
	Entries []document `xml:"entry"`
	Links   []link     `xml:"link"`
}

type link struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr"`
	Href string `xml:"href,attr"`
}

func (n *node) document(at string) (d document) {
	n.b.Helper()
	_, body := n.do("GET", at, nil, 200)
	require.NoError(n.b, xml.Unmarshal(body, &d))
	return d
}

func (d document) find(rel, media string) (href string, ok bool) {
	for _, l := range d.Links {
		if l.Rel == rel && (media == "" || l.Type == media) {
			return l.Href, true
		}
	}
	return "", false
}

// link returns the address of the link with a relation, and of a media type.
func (d document) link(b *testing.B, rel, media string) string {
	b.Helper()
	if href, ok := d.find(rel, media); ok {
		return href
	}
	b.Fatalf("no link %s of type %q among %v", rel, media, d.Links)
	return ""
}
