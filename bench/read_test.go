package bench_test

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/xml/scan"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// countElements reads a whole document, with all text and attributes, and returns the number of elements.
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

// benchmarkTokenize splits the file into tokens. B/op, the total of allocations, does not grow with the file.
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

// benchmarkLoad reads the file into a map. It takes less time by the clock than processor
// time, because it uses two cores.
func (c *corpus) benchmarkLoad(b *testing.B) {
	var tm *tmdm.TopicMap
	clock := never
	d := bestOf(b, func() {
		start := time.Now()
		tm = c.read(b)
		clock = min(clock, time.Since(start))
	})
	require.Equal(b, c.topics, count(tm.Topics()))
	c.load = d
	rate(b, c.size/1e6, "MB", d)
	rate(b, float64(c.topics), "topics", d)
	c.compare(b, d)
	b.ReportMetric(clock.Seconds(), "clock-s")
	if c.clockOfXmllint > 0 {
		ratio(b, clock.Seconds(), c.clockOfXmllint.Seconds(), "clock-of-xmllint")
	}
}

// benchmarkHeap measures the live memory of a loaded map.
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
	runtime.GC() // the first run does not free the garbage in pools
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

// smallFragment returns the fragment of an example map whose size is nearest to 1 KB.
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

// tally counts written bytes.
type tally float64

func (t *tally) Write(p []byte) (int, error) {
	*t += tally(len(p))
	return len(p), nil
}

var versions = []xtm.Version{xtm.V10, xtm.V21}

// benchmarkCXTM writes the map in canonical form.
func (c *corpus) benchmarkCXTM(b *testing.B) {
	tm := c.inMemory(b)
	var written tally
	d := bestOf(b, func() {
		written = 0
		require.NoError(b, cxtm.Write(&written, tm, cxtm.Options{Base: synthetic.Base}))
	})
	require.Greater(b, float64(written), c.size/2, "bytes of CXTM")
	rate(b, float64(written)/1e6, "MB", d)
	ratio(b, d.Seconds(), c.loadTime(b).Seconds(), "time-of-Load")
}

// benchmarkExport writes the map as XTM. Its speed is in bytes of output, that of loading in bytes of input.
func (c *corpus) benchmarkExport(b *testing.B) {
	tm := c.inMemory(b)
	for _, v := range versions {
		b.Run("XTM"+string(v), func(b *testing.B) {
			var written tally
			d := bestOf(b, func() {
				written = 0
				_, err := xtm.Write(&written, tm, xtm.WriteOptions{Version: v, Base: synthetic.Base})
				require.NoError(b, err)
			})
			require.Greater(b, float64(written), c.size/2, "bytes of XTM")
			rate(b, float64(written)/1e6, "MB", d)
			ratio(b, float64(written)/d.Seconds(), c.size/c.loadTime(b).Seconds(), "speed-of-Load")
			ratio(b, d.Seconds(), c.loadTime(b).Seconds(), "time-of-Load")
		})
	}
}

// benchmarkFragments writes a fragment for each topic. Naming the topics, which comes before it once for the whole map,
// is a benchmark of its own.
func (c *corpus) benchmarkFragments(b *testing.B) {
	tm := c.inMemory(b)
	m, err := fragment.NameTopics(b.Context(), tm, synthetic.Base, nil)
	require.NoError(b, err)
	b.Run("NameTopics", func(b *testing.B) {
		d := bestOf(b, func() {
			_, err := fragment.NameTopics(b.Context(), tm, synthetic.Base, nil)
			require.NoError(b, err)
		})
		rate(b, float64(c.topics), "topics", d)
		ratio(b, d.Seconds(), c.loadTime(b).Seconds(), "time-of-Load")
	})
	each := refs(b, m)
	require.Equal(b, c.topics, len(each))
	for _, v := range versions {
		b.Run("XTM"+string(v), func(b *testing.B) {
			form := fragment.Form{Version: v, SP: synthetic.Base, OmitInstances: true}
			var written tally
			d := bestOf(b, func() {
				written = 0
				for _, ref := range each {
					if err := fragment.Write(&written, m, ref, form); err != nil {
						b.Fatal(err)
					}
				}
			})
			require.Greater(b, float64(written), c.size/2, "bytes of all fragments")
			rate(b, float64(len(each)), "fragments", d)
			b.ReportMetric(float64(written)/float64(len(each)), "B/fragment")
			ratio(b, d.Seconds(), c.loadTime(b).Seconds(), "time-of-Load")
		})
	}
}

// refs returns the TopicSI of each topic.
func refs(b *testing.B, m *fragment.Map) (all []fragment.Ref) {
	for t, err := range m.Topics() {
		require.NoError(b, err)
		all = append(all, t.TopicSI())
	}
	return all
}
