package bench_test

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/xml/scan"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// countElements reads a document to its end, looks at all text and attributes, and returns
// how many elements there are.
func countElements(b *testing.B, s *scan.Scanner) (elements int64) {
	size := 0
	for {
		kind, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		switch kind {
		case scan.StartElement:
			elements++
			for _, a := range s.Attrs() {
				size += len(a.Value)
			}
		case scan.Text:
			size += len(s.Text())
		}
	}
	if size == 0 {
		b.Fatal("neither text nor attributes")
	}
	return elements
}

// benchmarkTokenize splits the file into tokens. B/op, all that is allocated
// for it, does not grow with the file.
func (c *corpus) benchmarkTokenize(b *testing.B) {
	b.ReportAllocs()
	d := bestOf(b, func() {
		f := c.open(b)
		defer f.Close()
		c.sameElements(b, countElements(b, scan.NewScanner(f, scan.Options{})))
	})
	rate(b, c.size/1e6, "MB", d)
	c.compare(b, d)
}

// benchmarkLoad reads the file into a map.
func (c *corpus) benchmarkLoad(b *testing.B) {
	var tm *tmdm.TopicMap
	d := bestOf(b, func() { tm = c.read(b) })
	require.Equal(b, c.topics, count(tm.Topics()))
	c.load = d
	rate(b, c.size/1e6, "MB", d)
	rate(b, float64(c.topics), "topics", d)
	c.compare(b, d)
}

// benchmarkHeap measures what a map takes in memory when it has been loaded, and
// nothing but it is left.
func (c *corpus) benchmarkHeap(b *testing.B) {
	var taken float64
	for b.Loop() {
		before := heap()
		tm := c.read(b)
		taken = heap() - before
		require.Equal(b, c.topics, count(tm.Topics())) // it is still there
	}
	b.ReportMetric(0, "ns/op")
	each := taken / float64(c.topics)
	b.ReportMetric(each, "heap-B/topic")
	ratio(b, taken, c.size, "size-of-file")
	if c.ontopia > 0 {
		ratio(b, each, c.ontopia, "heap-of-Ontopia")
	}
}

// heap returns the bytes that are in use.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what the first has only found to be garbage in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func count[T any](seq func(func(T) bool)) (n int) {
	for range seq {
		n++
	}
	return n
}

// BenchmarkSmallDocument splits a fragment into tokens, with a scanner that is
// used again for each document, as a client does that applies many.
func BenchmarkSmallDocument(b *testing.B) {
	document := smallFragment(b)
	const many = 2000
	expected := rawTokens(b, bytes.NewReader(document))
	rawToken := best(rounds(), func() {
		for range many {
			rawTokens(b, bytes.NewReader(document))
		}
	})
	s := scan.NewScanner(bytes.NewReader(nil), scan.Options{})
	again := func() {
		s.Reset(bytes.NewReader(document), "")
		if n := countElements(b, s); n != expected {
			b.Fatalf("%d elements, not %d", n, expected)
		}
	}
	d := bestOf(b, func() {
		for range many {
			again()
		}
	})
	b.ReportMetric(testing.AllocsPerRun(100, again), "allocs/document")
	b.ReportMetric(float64(d.Nanoseconds())/many, "cpu-ns/document")
	b.ReportMetric(float64(len(document)), "B/document")
	ratio(b, rawToken.Seconds(), d.Seconds(), "speed-of-RawToken")
}

// smallFragment returns the fragment of an example map whose size is nearest to
// 1 KB.
func smallFragment(b *testing.B) []byte {
	const sp = "http://example.org/egov/"
	tm, err := xtm.Read(b.Context(), bytes.NewReader(maps.EGov), xtm.Options{Base: sp})
	require.NoError(b, err)
	m, err := fragment.NameTopics(b.Context(), tm, sp, nil)
	require.NoError(b, err)
	var all [][]byte
	for _, ref := range refs(b, m) {
		var out bytes.Buffer
		require.NoError(b, fragment.Write(&out, m, ref, fragment.Form{Version: xtm.V21, SP: sp, OmitInstances: true}))
		all = append(all, out.Bytes())
	}
	distance := func(document []byte) int { return max(len(document)-1024, 1024-len(document)) }
	return slices.MinFunc(all, func(x, y []byte) int { return distance(x) - distance(y) })
}
