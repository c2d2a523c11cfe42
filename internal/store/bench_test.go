package store

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

var topics = flag.Int("topics", 0, "topics of the large maps of the benchmarks; default 10,000, with -short 1,000")

// MapSize returns the number of topics of the large maps of the benchmarks.
func MapSize() int {
	switch {
	case *topics > 0:
		return *topics
	case testing.Short():
		return 1000
	}
	return 10_000
}

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

// openEither opens a database, with synced or unsynced commits. Waiting for the disk hides the cost of other work.
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
		for _, n := range []int{MapSize() / 10, MapSize()} {
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

// Loading a generation is compared with writing its rows to Badger in batches.
func BenchmarkLoad(b *testing.B) {
	topics := 2 * MapSize()
	src := network(b, topics)
	raw := 0.0
	b.Run("rows", func(b *testing.B) {
		from := openDB(b, b.TempDir())
		subscribe(b, from, "s", src)
		var all []row
		require.NoError(b, from.rows.View(b.Context(), func(tx *txn.Tx) error {
			all = listed(b, inTables(tx, keys.SourceTables))
			return nil
		}))
		db := openDB(b, b.TempDir())
		for b.Loop() {
			require.NoError(b, writeAll(db.rows.Engine, kv.Version{}, all))
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
			require.NoError(b, db.loader().Load(context.Background(), keys.Source{Number: 99, Generation: generation}, fragment.Records(src), nil))
		}
		b.ReportMetric(float64(b.N*topics)/b.Elapsed().Seconds(), "topics/s")
		if raw > 0 {
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/raw, "x-rows")
		}
	})
}

// Reading one topic, its associations and its fragment should cost the same for any size of the collection.
func BenchmarkRenderOneFragment(b *testing.B) {
	smallest := 0.0
	for _, n := range []int{MapSize() / 10, MapSize()} {
		b.Run(fmt.Sprintf("topics=%d", n), func(b *testing.B) {
			db := openEither(b, false)
			collectionOf(b, db, "m", network(b, n))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				view(b, db, "m", func(v *View) {
					var doc bytes.Buffer
					require.NoError(b, v.WriteFragment(&doc, &Entry{Seq: v.Head, TopicSI: ref(i * 7 % n)}, xtm.V21))
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

// Recording records the reads and writes of each commit since its last replay, for benchmarks that measure the server.
type Recording struct {
	mu      sync.Mutex
	reading operations
	commits []operations
}

// operations are the keys that an update reads, each once, the prefixes whose rows it reads, and the rows that it
// writes.
type operations struct {
	keys, prefixes map[string]bool
	changes        []row
}

// Record records the commits of a database from now on.
func Record(db *DB) *Recording {
	r := &Recording{}
	r.begin()
	db.rows.Observer = r
	return r
}

func (r *Recording) begin() {
	r.reading = operations{keys: map[string]bool{}, prefixes: map[string]bool{}}
}

func (r *Recording) Got(key []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading.keys[string(key)] = true
}

func (r *Recording) Scanned(prefix []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading.prefixes[string(prefix)] = true
}

func (r *Recording) Commits(changes []row) {
	r.reading.changes = changes
	r.commits = append(r.commits, r.reading)
	r.begin()
}

// Rows returns the number of rows written by the commits.
func (r *Recording) Rows() (n int) {
	for i := range r.commits {
		n += len(r.commits[i].changes)
	}
	return n
}

// OpenRaw opens the engine of the data folder that was closed, with the settings of Open.
func OpenRaw(b *testing.B, dir string) kv.Engine {
	f, err := badger.Lock(filepath.Join(dir, datafolder.Database), false)
	require.NoError(b, err)
	e, err := f.Open(badger.Options{Logger: testOptions("").Logger})
	require.NoError(b, err)
	b.Cleanup(func() { e.Close() })
	return e
}

// Replay repeats the operations of the commits, in as many commits, and removes them from the recording.
func (r *Recording) Replay(e kv.Engine) error {
	for i := range r.commits {
		if err := r.commits[i].replay(e); err != nil {
			return err
		}
	}
	r.commits = nil
	return nil
}

func (o *operations) replay(e kv.Engine) error {
	reader, err := e.Snapshot(context.Background())
	if err != nil {
		return err
	}
	defer reader.Close()
	for key := range o.keys {
		if _, err := reader.Get([]byte(key)); err != nil {
			return err
		}
	}
	for prefix := range o.prefixes {
		for r, err := range reader.Range([]byte(prefix), nil, false) {
			if _ = cloned(r); err != nil {
				return err
			}
		}
	}
	return writeAll(e, reader.Version(), o.changes)
}

// writeAll commits changes, as one or, without a version, in bulk.
func writeAll(e kv.Engine, since kv.Version, changes []row) error {
	var w kv.Writer
	var err error
	if since.Number == 0 {
		w, err = e.Bulk(context.Background())
	} else {
		w, err = e.Begin(context.Background(), since)
	}
	if err != nil {
		return err
	}
	defer w.Cancel()
	for _, c := range changes {
		if c.Value == nil {
			err = w.Delete(c.Key)
		} else {
			err = w.Put(c.Key, c.Value)
		}
		if err != nil {
			return err
		}
	}
	return w.Commit()
}

// DigestCost measures the cost of state digests: every other round keeps none.
type DigestCost struct {
	rounds      int
	with, bare  time.Duration // processor time
	clock, idle time.Duration // of the clock, likewise
}

// Round begins a round, which ends when stop is called.
func (d *DigestCost) Round() (stop func()) {
	d.rounds++
	records.KeepDigests = d.rounds%2 == 0
	begin, used := time.Now(), testenv.CPUTime()
	return func() {
		took, used := time.Since(begin), testenv.CPUTime()-used
		if records.KeepDigests {
			d.with, d.clock = d.with+used, d.clock+took
		} else {
			d.bare, d.idle = d.bare+used, d.idle+took
		}
		records.KeepDigests = true
	}
}

// Report reports the rounds that kept digests relative to those that did not.
func (d *DigestCost) Report(b *testing.B) {
	if n := time.Duration(d.rounds); n >= 2 {
		keeping, bare := n/2, n-n/2
		b.ReportMetric(float64(d.with/keeping)/float64(d.bare/bare), "×cpu-without-digests")
		b.ReportMetric(float64(d.clock/keeping)/float64(d.idle/bare), "×time-without-digests")
	}
}
