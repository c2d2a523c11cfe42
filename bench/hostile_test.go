package bench_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testhostile"
)

var hostileSize = flag.Int("hostile", 1, "BenchmarkHostile sends documents this many times as large")

// BenchmarkHostile has tmshare-server, the program itself, publish documents of an
// attacker, each in a process of its own, and reports the most anonymous memory that it
// has ever in use (RssAnon), and how much that is of what it is with a harmless document
// of the same size. It prints the table of docs/security.md.
func BenchmarkHostile(b *testing.B) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		fmt.Println("NOT CHECKED: no memory of the server: there is no /proc to read it from")
		b.SkipNow()
	}
	program := build(b, "tmshare-server")
	n := func(size int) int {
		if testing.Short() {
			size /= 8
		}
		return size * *hostileSize
	}
	empty := testhostile.Head21 + testhostile.Foot
	for _, c := range []struct {
		name      string
		method    string
		documents []string // one after the other
	}{
		{"xml:base of 1 MB, 20,000 references", "PUT", []string{testhostile.Amplifying["base of references, XTM 2.1"](1<<20, n(20_000))}},
		{"xml:base of 8 KB, 20,000 references", "PUT", []string{testhostile.Amplifying["base of references, XTM 1.0"](8000, n(20_000))}},
		{"namespace of 8 KB in 20,000 elements", "PUT", []string{testhostile.Amplifying["namespace of embedded XML"](8000, n(20_000))}},
		{"200 themes of 5 KB, 5,000 variants", "PUT", []string{testhostile.Scope(200, 5000, n(5000))}},
		{"name of 10,000 variants of 199 themes", "PUT", []string{testhostile.Scope(199, 5, n(10_000))}},
		{"association with 100,000 roles", "PUT", []string{testhostile.Association(n(100_000))}},
		{"association with 1,000 roles", "PUT", []string{testhostile.Association(1000)}},
		{"topic with 40,000 identifiers", "PUT", []string{testhostile.Identifiers(n(40_000), "name")}},
		{"the same, posted", "POST", []string{testhostile.Identifiers(n(40_000), "name")}},
		{"hub of 5,000 topics, then emptied", "PUT", []string{testhostile.Hub(n(5000)), empty}},
		{"names of 1 MB", "PUT", []string{testhostile.Names(n(64<<20), 1<<20)}},
		{"topics of 17 bytes", "PUT", []string{testhostile.Topics(n(100_000))}},
		{"list of 1,000,000 in Turtle", "PUT", []string{testhostile.Dense["list.ttl"](n(1_000_000))}},
		{"list of 500,000 in JSON-LD", "PUT", []string{testhostile.Dense["list.jsonld"](n(500_000))}},
		{"3,900 contexts among 4,000 terms", "PUT", []string{testhostile.Contexts(n(4000), n(3900))}},
	} {
		b.Run(strings.ReplaceAll(c.name, " ", "-"), func(b *testing.B) {
			size := 0
			for _, d := range c.documents {
				size += len(d)
			}
			var hostile, harmless float64
			var status int
			for b.Loop() {
				hostile, status = publishingPeak(b, program, c.method, c.documents)
				harmless, _ = publishingPeak(b, program, "PUT", []string{testhostile.Names(size, 1000)})
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(hostile/1e6, "RssAnon-MB")
			ratio(b, hostile, harmless, "harmless-of-the-same-size")
			fmt.Printf("| %s | %.1f MB | %d | %.0f MB | %.0f MB |\n", c.name, float64(size)/1e6, status, hostile/1e6, harmless/1e6)
		})
	}
}

// publishingPeak sends documents to a server of its own, one after the other, and returns
// its peak and what it has answered last.
func publishingPeak(b *testing.B, program, method string, documents []string) (peak float64, status int) {
	folder := b.TempDir()
	first := filepath.Join(folder, "first.xtm")
	require.NoError(b, os.WriteFile(first, []byte(testhostile.Head21+`<topic id="t"/>`+testhostile.Foot), 0o600))
	n := runServer(b, program, filepath.Join(folder, "data"), "--map", collection+"="+first, "--sp", collection+"=http://example.org/")
	defer n.stop()
	peak = n.peakDuring(func() {
		for _, d := range documents {
			at := n.url + "/topicmaps/" + collection
			if method == "POST" {
				at += "/topics"
			}
			r, err := http.NewRequest(method, at, bytes.NewReader([]byte(d)))
			require.NoError(b, err)
			r.Header.Set("TMShare-Max-Delete", "all")
			r.Header.Set("Content-Type", typeOf(d))
			a, err := n.http.Do(r)
			require.NoError(b, err)
			_, err = io.Copy(io.Discard, a.Body)
			require.NoError(b, err)
			require.NoError(b, a.Body.Close())
			status = a.StatusCode
		}
	})
	return peak, status
}

// typeOf returns the type of a hostile document by its first character.
func typeOf(document string) string {
	switch {
	case strings.HasPrefix(document, "{"):
		return "application/ld+json"
	case strings.HasPrefix(document, "<http"):
		return "text/turtle"
	}
	return "application/x-tm+xml"
}
