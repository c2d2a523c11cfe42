package resourcesync

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// benchmarkItems are those of a full Change List, as a server writes it.
func benchmarkItems() []Item {
	items := make([]Item, MaxItems)
	for n := range items {
		uri := fmt.Sprintf("http://example.com/topicmaps/egov/topics/t%08d", n)
		i := Item{Loc: uri, LastMod: hour(1).Add(time.Duration(n) * time.Millisecond), Metadata: Metadata{Change: Updated, Representation: Representation{
			Hashes: []Hash{{MD5, fmt.Sprintf("%032x", n)}, {SHA256, fmt.Sprintf("%064x", n)}}, Length: int64(1000 + n), Type: "application/xtm1+xml"}}}
		i.Links = []Link{{Rel: RelCollection, Href: "http://example.com/topicmaps/egov"}}
		items[n] = i
	}
	return items
}

func fullList(tb testing.TB, items []Item) []byte {
	var b bytes.Buffer
	require.NoError(tb, writeAll(&b, changeList(), items, Options{}))
	require.Less(tb, b.Len(), MaxBytes)
	return b.Bytes()
}

// tokenize reads all tokens of a document with encoding/xml, the reference, and
// makes nothing of them.
func tokenize(document []byte) error {
	d := xml.NewDecoder(bytes.NewReader(document))
	for {
		if _, err := d.RawToken(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func report(b *testing.B, document []byte, reference time.Duration) {
	b.SetBytes(int64(len(document)))
	b.ReportMetric(reference.Seconds()/(b.Elapsed().Seconds()/float64(b.N)), "x-encoding/xml")
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/MaxItems, "ns/item")
}

func timeReference(b *testing.B, document []byte) time.Duration {
	best := time.Hour
	for range 3 {
		start := time.Now()
		require.NoError(b, tokenize(document))
		best = min(best, time.Since(start))
	}
	return best
}

// BenchmarkRead reads 50,000 changes. Its ratio is that of its speed to the speed of encoding/xml, which only
// tokenizes.
func BenchmarkRead(b *testing.B) {
	document := fullList(b, benchmarkItems())
	reference := timeReference(b, document)
	b.ReportAllocs()
	for b.Loop() {
		d, err := Read(bytes.NewReader(document), "http://example.com/", Limits{})
		require.NoError(b, err)
		n := 0
		for ; ; n++ {
			if _, err := d.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		require.Equal(b, MaxItems, n)
	}
	report(b, document, reference)
}

// BenchmarkWrite writes them, beside the same reference.
func BenchmarkWrite(b *testing.B) {
	items := benchmarkItems()
	document := fullList(b, items)
	reference := timeReference(b, document)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, writeAll(io.Discard, changeList(), items, Options{}))
	}
	report(b, document, reference)
}

// BenchmarkPackage packs and unpacks 2,000 resources of 2 KB.
func BenchmarkPackage(b *testing.B) {
	text := strings.Repeat("<topic><name>Oslo</name></topic>\n", 60)
	var content []string
	for n := range 2000 {
		content = append(content, fmt.Sprintf("http://example.com/%d", n), text+fmt.Sprint(n))
	}
	b.ReportAllocs()
	for b.Loop() {
		zipped, _ := pack(b, dumpManifest(), content...)
		p, err := openBytes(zipped, PackageLimits{})
		require.NoError(b, err)
		_, unpacked, err := unpack(p)
		require.NoError(b, err)
		require.Len(b, unpacked, 2000)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/2000, "ns/resource")
}
