package patch

import (
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/xtm"
)

type discard int

func (d *discard) Write(p []byte) (int, error) { *d += discard(len(p)); return len(p), nil }

// BenchmarkMake makes the patch of a fragment of some 200 KiB that has gained an occurrence, and
// packs the same bytes by gzip, at its fastest: what is done to each fragment that is stored.
// The ratio is that of the speeds, of processor time.
//
//	go test ./internal/xml/patch -run xxx -bench Make
func BenchmarkMake(b *testing.B) {
	for _, version := range []xtm.Version{xtm.V10, xtm.V21} {
		b.Run(string(version), func(b *testing.B) {
			n := map[xtm.Version]int{xtm.V10: 900, xtm.V21: 1050}[version]
			before, after := []byte(hub(b, version, n, -1)), []byte(hub(b, version, n, n/2))
			b.SetBytes(int64(len(after)))
			var ours, packing float64
			size := 0
			for b.Loop() {
				begin := testenv.CPUTime()
				patch, err := Make(before, after)
				ours += (testenv.CPUTime() - begin).Seconds()
				require.NoError(b, err)
				size = len(patch)

				begin = testenv.CPUTime()
				var to discard
				z, err := gzip.NewWriterLevel(&to, gzip.BestSpeed)
				require.NoError(b, err)
				_, err = z.Write(after)
				require.NoError(b, err)
				require.NoError(b, z.Close())
				packing += (testenv.CPUTime() - begin).Seconds()
			}
			b.ReportMetric(float64(len(after)), "B-fragment")
			b.ReportMetric(float64(size), "B-patch")
			b.ReportMetric(packing/ours, "ratio")
		})
	}
}
