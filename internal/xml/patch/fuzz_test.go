package patch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/xtm"
)

// FuzzApply applies anything to anything: it ends, and the result is not longer than both.
func FuzzApply(f *testing.F) {
	const patch = `<p:patch xmlns:p="urn:ietf:rfc:7351">`
	f.Add("<m><a/> <b>\n<c/></b></m>", patch+`<p:add sel="/*/*[2]"><x/></p:add><p:remove sel="/*/*[1]" ws="after"/></p:patch>`)
	f.Add("<m xmlns='urn:m'><a/></m>", `<p:patch xmlns:p="urn:ietf:rfc:7351" xmlns="urn:m"><p:replace sel="/*/*[1]"><a>2</a></p:replace></p:patch>`)
	f.Add("<m><a/></m>", patch+`<p:add sel="/*/*[1]" pos="before"><!-- --></p:add></p:patch>`)
	f.Add("<!DOCTYPE m><m/>", `<`)
	f.Fuzz(func(t *testing.T, before, patch string) {
		got, err := Apply([]byte(before), []byte(patch))
		if err == nil {
			require.LessOrEqual(t, len(got), len(before)+len(patch))
		}
	})
}

// FuzzMakeApply makes patches of documents that are made of numbers, and of anything.
func FuzzMakeApply(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 200, 6}, []byte{1, 3, 2, 200, 4}, "<m><a/></m>", "<m> <a/></m>")
	f.Add([]byte{9, 250, 9, 1, 1, 2, 251, 8, 0, 0}, []byte{9, 250, 9, 1, 0, 2, 251, 8, 0}, "<m/>", "<m/>\n")
	f.Fuzz(func(t *testing.T, a, b []byte, c, d string) {
		leads(t, generated(a), generated(b))
		if patch, err := Make([]byte(c), []byte(d)); err == nil {
			if got, err := Apply([]byte(c), patch); err == nil { // it may be no XML
				require.Equal(t, d, string(got))
			}
		}
	})
}

// generated makes a document: numbers are elements, large ones begin and end elements that
// have others in them.
func generated(numbers []byte) string {
	var b strings.Builder
	b.WriteString("<m xmlns='urn:m' xmlns:x='urn:x'>")
	depth := 0
	for _, n := range numbers {
		switch {
		case n >= 250 && depth < 10:
			fmt.Fprintf(&b, "<in>%s", strings.Repeat("<a/>", int(n-250)*20))
			depth++
		case n >= 240 && depth > 0:
			b.WriteString("</in>")
			depth--
		case n >= 235:
			fmt.Fprintf(&b, "<x:text a='/>'>some <i>text</i> %d</x:text>", n)
		default:
			fmt.Fprintf(&b, "<e n='%d'/>", n%16)
		}
		b.WriteString([]string{"", "\n", " ", "\n"}[n%4])
	}
	b.WriteString(strings.Repeat("</in>", depth) + "</m>")
	return b.String()
}

type discard int

func (d *discard) Write(p []byte) (int, error) { *d += discard(len(p)); return len(p), nil }

// BenchmarkMake makes the patch of a fragment of some 200 KiB that has gained an occurrence, and
// packs the same bytes by gzip, at its fastest. Each stored fragment is packed so. The ratio is that of the
// speeds, of processor time.
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
			b.ReportMetric(packing/ours, "×speed-of-gzip")
		})
	}
}
