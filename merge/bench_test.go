package merge_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// BenchmarkApply applies the fragment of every topic of a map to a state that has them already, which is the costlier
// case, relative to reading the fragments. Each fragment removes and adds its content again.
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

// crowds returns two sources with the same content: n topics with a name and a class, each related to the next.
func crowds(t testing.TB, n int, claims bool) (parts []merge.Part) {
	for i := range 2 {
		var m merge.Memory
		require.NoError(t, m.PutTopic(&fragment.Topic{Identity: identity(hub)}))
		for k := range n {
			require.NoError(t, m.PutTopic(&fragment.Topic{
				Identity: identity(instance(k)),
				Names:    []fragment.Name{{Value: fmt.Sprint("instance ", k), Type: tmdm.PSIDefaultNameType}},
			}))
			for _, a := range []*fragment.Association{
				{Type: tmdm.PSITypeInstance, Roles: []fragment.Role{{Type: tmdm.PSIInstance, Player: instance(k)}, {Type: tmdm.PSIType, Player: hub}}},
				{Type: x, Roles: []fragment.Role{{Type: x, Player: instance(k)}, {Type: x, Player: instance((k + 1) % n)}}},
			} {
				a.Canonical()
				require.NoError(t, m.PutAssociation(a))
			}
		}
		parts = append(parts, merge.Part{SP: fmt.Sprintf("http://%d.example.org/", i), Source: &m, Claims: claims})
	}
	return parts
}

// heldWhile is a writer that measures, a few times, how much more memory is
// alive than at the beginning.
type heldWhile struct {
	written, next int
	before, most  uint64
}

func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (w *heldWhile) Write(b []byte) (int, error) {
	if w.written += len(b); w.written >= w.next {
		w.next = w.written * 2
		if now := live(); now > w.before {
			w.most = max(w.most, now-w.before)
		}
	}
	return len(b), nil
}

// The merged map is written in less memory than a fraction of it takes.
func TestTheViewIsWrittenAsAStream(t *testing.T) {
	parts := crowds(t, 5_000, false)
	w := &heldWhile{next: 1 << 18, before: live()}
	require.NoError(t, fragment.WriteSnapshot(w, merge.NewView(t.Context(), parts...), fragment.Form{Version: xtm.V21, SP: sp}))
	before := live()
	tm, _, err := merge.Join(t.Context(), parts...)
	require.NoError(t, err)
	whole := live() - before
	runtime.KeepAlive(tm)
	runtime.KeepAlive(parts)
	t.Logf("the stream held %d KB, the map holds %d KB", w.most>>10, whole>>10)
	require.Greater(t, w.written, 1<<20)
	require.Less(t, w.most, whole/3)
}

// BenchmarkView compares the writing of a view of two sources with that of the map that Join makes of them. It also
// compares the loading of a view into a state with Join.
func BenchmarkView(b *testing.B) {
	const n = 10_000
	for _, claims := range []bool{false, true} {
		parts := crowds(b, n, claims)
		write := func(w io.Writer) {
			require.NoError(b, fragment.WriteSnapshot(w, merge.NewView(b.Context(), parts...), fragment.Form{Version: xtm.V21, SP: sp}))
		}
		least := func(f func()) (t time.Duration) {
			t = time.Hour
			for range 3 {
				start := testenv.CPUTime()
				f()
				t = min(t, testenv.CPUTime()-start)
			}
			return t
		}
		joining := least(func() {
			_, _, err := merge.Join(b.Context(), parts...)
			require.NoError(b, err)
		})
		joiningAndWriting := least(func() {
			tm, _, err := merge.Join(b.Context(), parts...)
			require.NoError(b, err)
			_, err = xtm.Write(io.Discard, tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(sp)})
			require.NoError(b, err)
		})
		apart := least(func() {
			for _, p := range parts {
				require.NoError(b, fragment.WriteSnapshot(io.Discard, p.Source, fragment.Form{Version: xtm.V21, SP: sp}))
			}
		})
		b.Run(fmt.Sprintf("Write/claims=%v", claims), func(b *testing.B) {
			start := testenv.CPUTime()
			for b.Loop() {
				write(io.Discard)
			}
			each := (testenv.CPUTime() - start) / time.Duration(b.N)
			b.ReportMetric(each.Seconds()/joiningAndWriting.Seconds(), "×Join+Write")
			b.ReportMetric(each.Seconds()/apart.Seconds(), "×both-sources")
			b.ReportMetric(each.Seconds()/joining.Seconds(), "×Join")
		})
	}
	view := func() *merge.View { return merge.NewView(b.Context(), crowds(b, n, false)...) }()
	b.Run("Topic", func(b *testing.B) {
		for b.Loop() {
			if topic, err := view.Topic(instance(7)); topic == nil || err != nil {
				b.Fatal(err)
			}
		}
	})
}
