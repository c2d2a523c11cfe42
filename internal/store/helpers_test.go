package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

var errClosed = kv.ErrClosed

func cloned(r row) row { return row{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)} }

const sp = storetest.SP

// testBatch is the number of entries that one commit of the tests prunes, or republishes.
const testBatch = 200

func testOptions(dir string) Options {
	return Options{Dir: dir, Logger: slog.New(slog.DiscardHandler), Badger: badger.Small, Batch: testBatch, Indexes: indexes}
}

// indexes are the indexes of stores in tests.
var indexes = []txn.Index{storetest.Index}

// tester is the part of a test that helpers need: *rapid.T has it too.
type tester interface {
	require.TestingT
	Helper()
	Context() context.Context
}

// openDB opens the database in a folder until the test ends.
func openDB(t testing.TB, dir string) *DB {
	o := testOptions(dir)
	o.Badger = engineOf(t)
	return openWith(t, o)
}

// engineOf is how the engines of a test are set: with small buffers, but for benchmarks.
func engineOf(t testing.TB) badger.Settings {
	if _, benchmark := t.(*testing.B); benchmark {
		return badger.Settings{}
	}
	return badger.Small
}

func openWith(t testing.TB, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// openAt opens a database whose clock sets the times of entries.
func openAt(t testing.TB, now func() time.Time) *DB {
	t.Helper()
	o := testOptions(t.TempDir())
	o.Now = now
	return openWith(t, o)
}

// set changes settings of a collection.
func set(t tester, db *DB, name string, change func(*Settings)) {
	t.Helper()
	_, err := db.ChangeSettings(t.Context(), name, func(s *Settings) error { change(s); return nil })
	require.NoError(t, err)
}

// openTuned opens a database as Open does, with other settings of its engine.
func openTuned(dir string, log *slog.Logger, s badger.Settings) (*DB, error) {
	db, err := Open(context.Background(), Options{Dir: dir, Logger: log, Badger: s, Batch: testBatch})
	if err == nil {
		db.run.Store(0) // entries of any process can be compared
	}
	return db, err
}

// openUnsynced opens a database whose commits do not wait for the disk.
func openUnsynced(t testing.TB, dir string) *DB {
	t.Helper()
	settings := engineOf(t)
	settings.Unsynced = true
	db, err := openTuned(dir, testOptions("").Logger, settings)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// reopen closes a database and opens it again.
func reopen(t testing.TB, db *DB) *DB {
	t.Helper()
	require.NoError(t, db.Close())
	return openDB(t, db.Dir())
}

// tick is a clock that moves one second at each look.
func tick() func() time.Time {
	var mu sync.Mutex
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
}

var (
	ref      = storetest.Ref
	named    = storetest.Named
	reifying = storetest.Reifying
	all      = storetest.Everything
)

// mapOf returns a map with n named topics, and the topic that types their names.
func mapOf(t tester, n int) *merge.Memory {
	t.Helper()
	m := &merge.Memory{}
	require.NoError(t, m.PutTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{tmdm.PSIDefaultNameType}}}))
	for i := range n {
		require.NoError(t, m.PutTopic(named(ref(i), "first")))
	}
	return m
}

// heavy returns a map of so many bytes that loading half of it takes more than a
// transaction.
func heavy(t testing.TB) *merge.Memory {
	t.Helper()
	m := mapOf(t, 0)
	for i := range 80 {
		require.NoError(t, m.PutTopic(named(ref(i), strings.Repeat("words ", 20_000))))
	}
	return m
}

// collection creates a collection of n named topics, and the one of their names.
func collection(t testing.TB, db *DB, name string, n int) *Collection {
	t.Helper()
	return collectionOf(t, db, name, mapOf(t, n))
}

func collectionOf(t testing.TB, db *DB, name string, src fragment.Source) *Collection {
	t.Helper()
	c, err := db.CreateCollection(t.Context(), Collection{Name: name, SP: sp, Settings: Settings{DocumentSize: 100}}, src, nil)
	require.NoError(t, err)
	return c
}

// rename is the change that gives the topics from..to-1 a name.
func rename(from, to int, name string) *fragment.Change {
	c := &fragment.Change{}
	for i := from; i < to; i++ {
		c.PutTopics = append(c.PutTopics, named(ref(i), name))
		c.Entries = append(c.Entries, fragment.Entry{TopicSI: ref(i), Topic: ref(i), Title: name})
		c.Updated++
	}
	return c
}

func publish(t tester, db *DB, name string, change *fragment.Change) *Collection {
	t.Helper()
	c, err := db.Publish(t.Context(), name, func(Collection, merge.State) (*fragment.Change, error) { return change, nil })
	require.NoError(t, err)
	return c
}

// publishMap publishes a version of a map.
func publishMap(t testing.TB, db *DB, name string, next *fragment.Map) *Collection {
	t.Helper()
	c, err := db.Publish(t.Context(), name, func(_ Collection, prior merge.State) (*fragment.Change, error) {
		return fragment.Diff(t.Context(), prior, next)
	})
	require.NoError(t, err)
	return c
}

// view calls f with the current state of a collection.
func view(t tester, db *DB, name string, f func(*View)) {
	t.Helper()
	require.NoError(t, db.View(t.Context(), name, func(v *View) error { f(v); return nil }))
}

// entries returns the log of a view.
func entries(t tester, v *View) []Entry {
	t.Helper()
	var all []Entry
	for e, err := range v.Entries(1) {
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

// recordsOf lists the records and answers of a collection.
func recordsOf(t testing.TB, db *DB, name string) (s string) {
	t.Helper()
	view(t, db, name, func(v *View) { s = all(t, v.Source().(merge.State)) })
	return s
}

// unzippers are used again: a new one makes tables of tens of kilobytes.
var unzippers = sync.Pool{New: func() any { return new(gzip.Reader) }}

func gunzip(w io.Writer, data []byte) error {
	z := unzippers.Get().(*gzip.Reader)
	defer unzippers.Put(z)
	err := z.Reset(bytes.NewReader(data))
	if err == nil {
		_, err = io.Copy(w, z)
	}
	return err
}

// unzip returns unpacked gzip data.
func unzip(t tester, data []byte) string {
	t.Helper()
	var plain strings.Builder
	require.NoError(t, gunzip(&plain, data))
	return plain.String()
}

// countWrites counts the rows that the engine of a database is given from now on, and calls f with
// the number at each.
func countWrites(db *DB, f func(n int)) *int {
	e := &countingEngine{Engine: db.rows.Engine, f: f}
	db.rows.Engine = e
	return &e.n
}

type countingEngine struct {
	kv.Engine
	n int
	f func(n int)
}

func (e *countingEngine) Bulk(ctx context.Context) (kv.Writer, error) {
	w, err := e.Engine.Bulk(ctx)
	return &countingWriter{w, e}, err
}

func (e *countingEngine) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	w, err := e.Engine.Begin(ctx, since)
	return &countingWriter{w, e}, err
}

type countingWriter struct {
	kv.Writer
	engine *countingEngine
}

func (w *countingWriter) Put(key, value []byte) error {
	w.engine.n++
	w.engine.f(w.engine.n)
	return w.Writer.Put(key, value)
}

// rowAt returns the value of a key.
func rowAt(t testing.TB, db *DB, key []byte) (value []byte) {
	t.Helper()
	require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) (err error) { value, err = tx.Get(key); return err }))
	return value
}

// recordRows are the tables whose number of rows is fixed: the number of nodes of a state digest depends on hashes.
const recordRows = keys.RecordTables + "rqhd"

// rows counts the rows of tables, by the letters of the tables.
func rows(t tester, db *DB, tables string) int {
	t.Helper()
	n := 0
	require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
		for r, err := range inTables(tx, withBlocks(tables)) {
			require.NoError(t, err)
			n += countsFor(r)
		}
		return nil
	}))
	return n
}

// withBlocks adds to tables that of the first entries, if that of the others is among them.
func withBlocks(tables string) string { return strings.ReplaceAll(tables, "e", "eE") }

// countsFor returns the number of rows that one counts for: that of its entries.
func countsFor(r row) int {
	if keys.Table(r.Key) != keys.TableFirst {
		return 1
	}
	count, n := binary.Uvarint(r.Value)
	if count&1 == 0 {
		return int(count >> 1)
	}
	there := 0
	for _, b := range r.Value[n : n+(int(count>>1)+7)/8] {
		there += bits.OnesCount8(b)
	}
	return there
}

// inTables iterates over the rows of some tables, in all keyspaces.
func inTables(tx *txn.Tx, tables string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for r, err := range tx.Scan(nil, nil) {
			if (err != nil || strings.IndexByte(tables, keys.Table(r.Key)) >= 0) && !yield(r, err) {
				return
			}
		}
	}
}

// committed returns the number of the present state, which each commit raises.
func committed(t testing.TB, db *DB) uint64 {
	t.Helper()
	v, err := db.rows.Engine.Version(t.Context())
	require.NoError(t, err)
	return v.Number
}

// inParts reports whether the one commit that f makes is written in parts.
func inParts(t testing.TB, db *DB, f func()) bool {
	t.Helper()
	before, engine := committed(t, db), db.rows.Engine.(*badger.Engine)
	through := engine.InParts()
	f()
	require.Equal(t, before+1, committed(t, db), "there is one commit")
	return engine.InParts() > through
}

func mustDiff(t testing.TB, prior fragment.Source, next *fragment.Map) *fragment.Change {
	t.Helper()
	change, err := fragment.Diff(t.Context(), prior, next)
	require.NoError(t, err)
	return change
}

func topicsOf(t testing.TB, src fragment.Source) []*fragment.Topic {
	t.Helper()
	var list []*fragment.Topic
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		list = append(list, topic)
	}
	return list
}

// subscribe adds a subscription whose source has a state.
func subscribe(t testing.TB, db *DB, name string, src fragment.Source) {
	t.Helper()
	require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: name, SP: sp}))
	require.NoError(t, db.StageSource(t.Context(), name, fragment.Records(src), Mark{}, nil))
	require.NoError(t, db.UpdateSubscription(t.Context(), name, switchOver))
}

// switchOver makes the staged state visible.
func switchOver(s *Subscription) { s.State, s.Staging = s.Staging, nil }

// versions are the versions of a map that are published repeatedly, one after the other. They are in files, so that
// each process has the same.
type versions struct {
	maps    []*fragment.Map
	entries [][]Entry // entries[0] by creating the first; entries[i], entries[len] by publishing the i-th after the one before
}

// bulk is the number of additional topics in every third version: publishing them outgrows a transaction of the small
// databases of crash tests.
const bulk = 120

// writeVersions makes n versions by random edits.
func writeVersions(t *testing.T, folder string, n int, seed uint64) {
	editor := storetest.NewEditor(t, seed)
	var prior merge.Memory
	for i := range n {
		next := editor.Version(&prior)
		if i%3 == 2 {
			for k := range bulk {
				topic := next.TopicMap().CreateTopicBySubjectIdentifier(ref(k))
				topic.AddName(fmt.Sprintf("bulk of version %d", i), nil)
			}
		}
		state, err := fragment.NameTopics(t.Context(), next.TopicMap(), sp, &prior)
		require.NoError(t, err)
		prior = merge.Memory{}
		require.NoError(t, prior.Load(state))
		var doc bytes.Buffer
		require.NoError(t, fragment.WriteSnapshot(&doc, &prior, fragment.Form{Version: xtm.V21, SP: sp}))
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%03d.xtm", i)), doc.Bytes(), 0o600))
	}
}

func readVersions(folder string) (*versions, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.xtm"))
	if err != nil || len(files) < 2 {
		return nil, fmt.Errorf("%d versions in %s, %v", len(files), folder, err)
	}
	h := &versions{}
	for _, name := range files {
		doc, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := fragment.ReadSnapshot(context.Background(), bytes.NewReader(doc), xtm.Options{Base: sp})
		if err != nil {
			return nil, err
		}
		h.maps = append(h.maps, m)
	}
	var prior fragment.Source = &merge.Memory{}
	for i := range len(h.maps) + 1 {
		next := h.maps[i%len(h.maps)]
		change, err := fragment.Diff(context.Background(), prior, next)
		if err != nil {
			return nil, err
		}
		var published []Entry
		for _, e := range change.Entries {
			entry := Entry{TopicSI: e.TopicSI, Title: e.Title, Deleted: e.Deleted}
			if e.Topic != e.TopicSI {
				entry.Topic = e.Topic
			}
			published = append(published, entry)
		}
		if len(published) == 0 {
			return nil, fmt.Errorf("version %d changes nothing", i)
		}
		h.entries, prior = append(h.entries, published), next
	}
	return h, nil
}

// after returns the number of versions published when the head of the log is at a sequence, and the log until then. A
// head that no number of versions has is an error.
func (h *versions) after(head uint64) (published int, log []Entry, err error) {
	for i := 0; ; i++ {
		if uint64(len(log)) == head {
			return i, log, nil
		}
		if uint64(len(log)) > head {
			return 0, nil, fmt.Errorf("the head %d is between two versions", head)
		}
		at := i
		if i > len(h.maps) {
			at = (i-1)%len(h.maps) + 1
		}
		log = append(log, h.entries[at]...)
	}
}

// version returns the map when a number of versions are published.
func (h *versions) version(published int) *fragment.Map { return h.maps[(published-1)%len(h.maps)] }

// fragments returns the fragments of entries of a view, from a sequence on.
func fragments(v *View, from uint64) ([]*fragment.Fragment, error) {
	var list []*fragment.Fragment
	for e, err := range v.Entries(from) {
		if err != nil {
			return nil, err
		}
		var doc bytes.Buffer
		if err := v.WriteFragment(&doc, &e, xtm.V21); err != nil {
			return nil, err
		}
		f, err := fragment.Read(context.Background(), &doc, xtm.Options{Base: tmdm.Locator(v.SP)}, e.TopicSI)
		if err != nil {
			return nil, err
		}
		f.Deleted = e.Deleted
		list = append(list, f)
	}
	return list, nil
}
