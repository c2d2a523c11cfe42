package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// tally counts what is written to it.
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

// benchmarkExport writes the map as XTM. Its speed is in bytes of what it writes,
// that of loading in bytes of what was read.
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

// benchmarkFragments writes a fragment for each topic. Naming the topics, which
// comes before it once for the whole map, is a benchmark of its own.
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
