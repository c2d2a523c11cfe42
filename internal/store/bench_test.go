package store

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Topics is how many topics the large maps of the benchmarks have.
var Topics = flag.Int("topics", 10_000, "topics of the large maps of the benchmarks")

// network returns a map of n topics, each with a name, one of the hundred
// classes and an association with the next topic.
func network(t testing.TB, n int) *merge.Memory {
	t.Helper()
	m := &merge.Memory{}
	put := func(si fragment.Ref) {
		require.NoError(t, m.PutTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{si}}}))
	}
	for _, si := range []fragment.Ref{tmdm.PSIDefaultNameType, tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance, "http://next", "http://role"} {
		put(si)
	}
	for i := range 100 {
		put(class(i))
	}
	for i := range n {
		typing := &fragment.Association{Type: tmdm.PSITypeInstance, Roles: []fragment.Role{
			{Type: tmdm.PSIType, Player: class(i % 100)}, {Type: tmdm.PSIInstance, Player: ref(i)},
		}}
		next := &fragment.Association{Type: "http://next", Roles: []fragment.Role{
			{Type: "http://role", Player: ref(i)}, {Type: "http://role", Player: ref((i + 1) % n)},
		}}
		typing.Canonical()
		next.Canonical()
		require.NoError(t, errors.Join(m.PutTopic(named(ref(i), "first")), m.PutAssociation(typing), m.PutAssociation(next)))
	}
	return m
}

func class(i int) fragment.Ref { return fragment.Ref(fmt.Sprintf("http://example.org/class/%d", i)) }

// openEither opens a database, on wish one whose commits do not wait for the
// disk, which hides what else takes time.
func openEither(b *testing.B, synced bool) *DB {
	b.Helper()
	if synced {
		return openDB(b, b.TempDir())
	}
	return openUnsynced(b, b.TempDir())
}

// Publishing one topic should cost the same in a small collection and in a large
// one: "x-smallest" is the ratio to the smallest.
func BenchmarkPublishOneTopic(b *testing.B) {
	for _, synced := range []bool{true, false} {
		smallest := 0.0
		for _, n := range []int{1_000, *Topics} {
			b.Run(fmt.Sprintf("synced=%v/topics=%d", synced, n), func(b *testing.B) {
				db := openEither(b, synced)
				collectionOf(b, db, "m", network(b, n))
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					publish(b, db, "m", rename(i%n, i%n+1, fmt.Sprint("name ", i)))
					i++
				}
				perOp := float64(b.Elapsed()) / float64(b.N)
				if smallest == 0 {
					smallest = perOp
				}
				b.ReportMetric(perOp/smallest, "x-smallest")
			})
		}
	}
}

// batches are the fragments of entries that rename the topics of a network, in
// commits as a client makes them.
func batches(b *testing.B, topics, size int) [][]*fragment.Fragment {
	b.Helper()
	var list [][]*fragment.Fragment
	for _, name := range []string{"second", "third"} {
		src := network(b, topics)
		for i := range topics {
			require.NoError(b, src.PutTopic(named(ref(i), name)))
			var doc bytes.Buffer
			require.NoError(b, fragment.Write(&doc, src, ref(i), fragment.Form{Version: xtm.V21, SP: sp}))
			f, err := fragment.Read(b.Context(), &doc, xtm.Options{Base: sp}, ref(i))
			require.NoError(b, err)
			if i%size == 0 {
				list = append(list, nil)
			}
			list[len(list)-1] = append(list[len(list)-1], f)
		}
	}
	return list
}

func applyAll(s merge.State, fragments []*fragment.Fragment) error {
	for _, f := range fragments {
		if err := merge.Apply(s, f); err != nil {
			return err
		}
	}
	return nil
}

// Applying entries is compared with writing the same rows to Badger: "x-rows" is
// how many times as long it takes.
func BenchmarkApplyEntries(b *testing.B) {
	const topics, size = 5_000, 100
	work := batches(b, topics, size)
	for _, synced := range []bool{true, false} {
		open := func(b *testing.B) *DB {
			db := openEither(b, synced)
			subscribe(b, db, "s", network(b, topics))
			return db
		}
		raw := 0.0
		b.Run(fmt.Sprintf("synced=%v/rows", synced), func(b *testing.B) {
			db := open(b)
			id := subscription(b, db, "s")
			changes := func(i int) (changes []row) {
				notKept := errors.New("not kept")
				require.ErrorIs(b, db.rows.Update(b.Context(), func(tx *txn.Tx) error {
					require.NoError(b, applyAll(records.Of(tx, id.Source(id.State)), work[i%len(work)]))
					err := tx.Changes(func(r row) error { changes = append(changes, r); return nil })
					return errors.Join(notKept, err)
				}), notKept)
				return changes
			}
			rows, i := 0, 0
			var took time.Duration
			for b.Loop() {
				todo := changes(i)
				start := time.Now()
				require.NoError(b, writeAll(db.rows.Engine, committed(b, db), todo))
				took += time.Since(start)
				rows += len(todo)
				i++
			}
			raw = float64(took) / float64(b.N)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(rows)/took.Seconds(), "rows/s")
		})
		b.Run(fmt.Sprintf("synced=%v/entries", synced), func(b *testing.B) {
			db := open(b)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, db.ApplyEntries(context.Background(), "s", func(s *Applying) error {
					s.Applied += size
					return applyAll(s, work[i%len(work)])
				}))
				i++
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "entries/s")
			if raw > 0 {
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/raw, "x-rows")
			}
		})
	}
}

// Loading a generation is compared with writing its rows to Badger in batches.
func BenchmarkLoad(b *testing.B) {
	const topics = 20_000
	src := network(b, topics)
	raw := 0.0
	b.Run("rows", func(b *testing.B) {
		from := openDB(b, b.TempDir())
		subscribe(b, from, "s", src)
		var all []row
		require.NoError(b, from.rows.View(b.Context(), func(tx *txn.Tx) error {
			for _, table := range []byte(keys.SourceTables) {
				for r, err := range tx.Scan([]byte{table}, nil) {
					require.NoError(b, err)
					all = append(all, r)
				}
			}
			return nil
		}))
		db := openDB(b, b.TempDir())
		for b.Loop() {
			require.NoError(b, writeAll(db.rows.Engine, kv.Unsettled, all))
		}
		raw = float64(b.Elapsed()) / float64(b.N)
		b.ReportMetric(float64(b.N*len(all))/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("source", func(b *testing.B) {
		db := openDB(b, b.TempDir())
		require.NoError(b, db.AddSubscription(b.Context(), Subscription{Name: "s", SP: sp}))
		generation := uint32(0)
		for b.Loop() {
			generation++
			require.NoError(b, db.load(context.Background(), keys.Source{Number: 99, Generation: generation}, fragment.Records(src), nil))
		}
		b.ReportMetric(float64(b.N*topics)/b.Elapsed().Seconds(), "topics/s")
		if raw > 0 {
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/raw, "x-rows")
		}
	})
}

// Reading one topic, its associations and its fragment should cost the same
// whatever the size of the collection.
func BenchmarkRenderOneFragment(b *testing.B) {
	smallest := 0.0
	for _, n := range []int{1_000, *Topics} {
		b.Run(fmt.Sprintf("topics=%d", n), func(b *testing.B) {
			db := openEither(b, false)
			collectionOf(b, db, "m", network(b, n))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				view(b, db, "m", func(v *View) {
					var doc bytes.Buffer
					require.NoError(b, v.RenderFragment(&doc, &Entry{TopicSI: ref(i * 7 % n)}, xtm.V21))
				})
				i++
			}
			perOp := float64(b.Elapsed()) / float64(b.N)
			if smallest == 0 {
				smallest = perOp
			}
			b.ReportMetric(perOp/smallest, "x-smallest")
		})
	}
}
