package merge_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// BenchmarkApply applies the fragment of every topic of a map to a state that
// has them already, which is the costlier case, and compares that with reading
// the fragments. Each fragment takes back and says again what it says.
func BenchmarkApply(b *testing.B) {
	const n = 2_000
	state := crowdState(b, n)
	var documents [][]byte
	var refs []fragment.Ref
	for t, err := range state.Topics() {
		require.NoError(b, err)
		var doc bytes.Buffer
		require.NoError(b, fragment.Write(&doc, state, t.TopicSI(), fragment.Form{Version: xtm.V21, SP: sp, OmitInstances: true}))
		documents, refs = append(documents, doc.Bytes()), append(refs, t.TopicSI())
	}
	var fragments []*fragment.Fragment
	reading := time.Hour
	for range 5 {
		fragments = fragments[:0]
		start := testenv.CPUTime()
		for i := range documents {
			f, err := fragment.Read(b.Context(), bytes.NewReader(documents[i]), xtm.Options{Base: sp}, refs[i])
			require.NoError(b, err)
			f.Deleted = false
			fragments = append(fragments, f)
		}
		reading = min(reading, testenv.CPUTime()-start)
	}
	b.ReportAllocs()
	start := testenv.CPUTime()
	for b.Loop() {
		for _, f := range fragments {
			if err := merge.Apply(state, f); err != nil {
				b.Fatal(err)
			}
		}
	}
	each := (testenv.CPUTime() - start) / time.Duration(b.N)
	b.ReportMetric(float64(len(fragments))/each.Seconds(), "fragments/cpu-s")
	b.ReportMetric(each.Seconds()/reading.Seconds(), "×reading")
}

// BenchmarkHub shows that an instance costs the same whatever the size of its
// class, and that a new version costs in proportion to the map.
func BenchmarkHub(b *testing.B) {
	for _, n := range []int{1_000, 20_000} {
		state := crowdState(b, n)
		f := fragmentOf(b, state, instance(7))
		b.Run(fmt.Sprintf("Apply/%d", n), func(b *testing.B) {
			for b.Loop() {
				if err := merge.Apply(state, f); err != nil {
					b.Fatal(err)
				}
			}
		})
		next, err := fragment.NameTopics(b.Context(), crowd(n), sp, state)
		require.NoError(b, err)
		b.Run(fmt.Sprintf("Diff/%d", n), func(b *testing.B) {
			for b.Loop() {
				if change, err := fragment.Diff(b.Context(), state, next); err != nil || !change.Empty() {
					b.Fatal(err, change.Entries)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N*n)*1e9, "ns/instance")
		})
		b.Run(fmt.Sprintf("Join/%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := merge.Join(b.Context(), merge.Part{SP: sp, Source: state}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N*n)*1e9, "ns/instance")
		})
	}
}
