package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
)

// mayGo are the tables with rows whose loss or change cannot be detected by other rows, with the reasons.
var mayGo = map[byte]string{
	keys.TableSnapshot:  "another one is taken",
	keys.TableHeld:      "a record that is not known is fetched again",
	keys.TableExtension: "the store knows nothing of it",
	keys.TableVia:       "it says for people by which entries a change came",
	keys.TableConsumer:  "nothing follows from what was decided outside of the store",
}

// mayDiffer are the tables of which the loss of a row is detected, but not each change, with the reasons.
var mayDiffer = map[byte]string{
	keys.TableLog:    "nothing follows from a title, a note, or the run; what the leaf of a signed log has is found",
	keys.TableBefore: "nothing follows from a text that a record had; what names or joins is found",

	keys.TableCollection:   "nothing follows from what was decided; what is no JSON, or has a field of another name, is found",
	keys.TableSubscription: "nothing follows from what was decided; what is no JSON, or has a field of another name, is found",
}

// manyTables returns a database with rows in most tables: of a log that was loaded and of one that is signed, of a
// source that remembers.
func manyTables(t *testing.T) (*DB, kv.Engine) {
	engine := memory.New()
	db := openWith(t, Options{Dir: t.TempDir(), Engine: engine, Logger: testOptions("").Logger, Indexes: indexes})
	state, hub := reifiedState(t), named(ref(20), "hub")
	hub.SubjectIdentifiers = append(hub.SubjectIdentifiers, "http://example.org/other")
	hub.SubjectLocators = []fragment.Ref{"http://example.org/locator"}
	require.NoError(t, state.PutTopic(hub))
	_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp, Settings: Settings{DocumentSize: 4, Sign: "/key"}}, state, nil)
	require.NoError(t, err)
	for i := range 4 {
		publish(t, db, "m", rename(4, 6, fmt.Sprint("version ", i)))
	}
	subscribe(t, db, "s", state)
	_, err = db.CreateCollection(t.Context(), Collection{Name: "d", SP: "http://example.org/d/", DerivedFrom: []string{"s"}}, &merge.Memory{}, nil)
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, db.ApplyEntries(t.Context(), "s", func(a *Applying) error {
			topic := named(ref(4), fmt.Sprint("version ", i))
			topic.SubjectIdentifiers = append(topic.SubjectIdentifiers, fragment.Ref(fmt.Sprint("http://example.org/is/", i)))
			return errors.Join(a.PutTopic(topic), a.Hold(Held{ID: fmt.Sprint("record ", i), TopicSI: ref(i)}))
		}))
	}
	takeSnapshot(t, db, "m", 2)
	require.Empty(t, checked(t, db, false))
	return db, engine
}

// nameTables are the tables of objects with names.
var nameTables = []byte{keys.TableCollection, keys.TableSubscription, keys.TableInput}

// Each lost row, and each changed bit of a row, is found, or the test has the reason why not.
func TestEachLostRowIsFound(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	db, engine := manyTables(t)
	write := func(r row, value []byte) {
		w, err := engine.Bulk(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.Delete(r.Key))
		if value != nil {
			require.NoError(t, w.Put(r.Key, value))
		}
		require.NoError(t, w.Commit())
	}
	var mark []byte // of a collection without publications
	view(t, db, "d", func(v *View) { mark = v.SourceKey().Changed(0, 0) })
	all, names, seen := stored(t, engine), declaredTables(t), map[byte]int{}
	for i, r := range all {
		table := keys.Table(r.Key)
		seen[table]++
		if mayGo[table] != "" || keys.SourceOf(r.Key).Number < keys.FirstNumber && !slices.Contains(nameTables, table) || bytes.Equal(r.Key, mark) {
			continue
		}
		write(r, nil)
		if len(checked(t, db, false)) == 0 {
			t.Errorf("lost: %s %q = %q", names[table], r.Key, r.Value)
		}
		if len(r.Value) > 0 {
			other := bytes.Clone(r.Value)
			other[i%len(other)] ^= 1 << (i % 7)
			write(r, other)
			var found []Finding
			err := db.Check(t.Context(), false, func(f Finding) { found = append(found, f) }, func(string) {})
			if err != nil || len(found) == 0 && mayDiffer[table] == "" {
				t.Errorf("changed: %s %q = %q: %v", names[table], r.Key, other, err)
			}
		}
		write(r, r.Value)
	}
	require.Empty(t, checked(t, db, false))
	for _, table := range append(nameTables, keys.RecordTables+"rpdPXWekoEs"...) {
		require.Positive(t, seen[table], "there is no row of %s", names[table])
	}
}

// A source with history is sound after a repair, although the history does not have the repair.
func TestAMendedSourceThatRemembersIsSound(t *testing.T) {
	t.Parallel()
	db, _ := manyTables(t)
	s := subscription(t, db, "s")
	id := s.Source(s.State)
	require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error {
		return tx.Put(id.LocatorKey(keys.TableTopic, ref(4)), []byte{255})
	}))
	require.NotEmpty(t, checked(t, db, false))
	m, err := db.MendSource(t.Context(), "s")
	require.NoError(t, err)
	require.Positive(t, m.Records)
	require.Empty(t, checked(t, db, false))
}

// A collection or a subscription whose name is lost is not taken for a deleted one: a check restores its name.
func TestALostNameIsFoundAndMended(t *testing.T) {
	t.Parallel()
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	subscribe(t, db, "s", mapOf(t, 4))
	_, err := db.CreateCollection(t.Context(), Collection{Name: "d", SP: "http://d.example.org/", DerivedFrom: []string{"m", "s"}}, &merge.Memory{}, nil)
	require.NoError(t, err)
	before := stored(t, db.rows.Engine)
	lose := func(keys ...[]byte) {
		require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error {
			for _, key := range keys {
				if err := tx.Delete(key); err != nil {
					return err
				}
			}
			return nil
		}))
		db = reopen(t, db)
	}
	lose(keys.Name(keys.TableCollection, "m"), keys.Name(keys.TableSubscription, "s"), keys.Name(keys.TableCollection, "d"))
	require.Len(t, checked(t, db, true), 3)
	require.Empty(t, checked(t, db, false))
	lose(keys.Name(keys.TableInput, "m"))
	require.Len(t, checked(t, db, true), 1)
	require.Empty(t, checked(t, db, false))
	rowsOf := func(all []row, table byte) (keysOf []string) {
		for _, r := range all {
			if keys.Table(r.Key) == table {
				keysOf = append(keysOf, string(r.Key))
			}
		}
		return keysOf
	}
	for _, table := range append(nameTables, keys.RecordTables...) {
		require.Equal(t, rowsOf(before, table), rowsOf(stored(t, db.rows.Engine), table))
	}
}

// Records that are lost, or differ from the published ones, are reported as such: no derivable row is made of the
// remaining ones.
func TestRecordsThatAreNotWhatWasPublished(t *testing.T) {
	t.Parallel()
	db, engine := manyTables(t)
	var id keys.Source
	view(t, db, "m", func(v *View) { id = v.SourceKey() })
	write := func(key, value []byte) {
		w, err := engine.Bulk(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.Delete(key))
		if value != nil {
			require.NoError(t, w.Put(key, value))
		}
		require.NoError(t, w.Commit())
	}
	isReported := func() (is bool) {
		for _, f := range checked(t, db, true) {
			is = is || strings.Contains(f.What, "others than were published") || strings.Contains(f.What, "cannot be read")
			require.False(t, f.Repaired, "%v", f)
		}
		return is
	}
	var associations []row
	topics := 0
	for _, r := range stored(t, engine) {
		switch {
		case keys.SourceOf(r.Key) != id:
		case keys.Table(r.Key) == keys.TableAssociation: // one row is made again of those of other players
			associations = append(associations, r)
		case keys.Table(r.Key) == keys.TableTopic:
			topics++
			write(r.Key, nil)
			require.True(t, isReported(), "lost: %q", r.Key)
			write(r.Key, fragment.MarshalTopic(named(fragment.Ref(keys.Rest(r.Key)), "another one")))
			require.True(t, isReported(), "changed: %q", r.Key)
			write(r.Key, r.Value)
			require.Empty(t, checked(t, db, false))
		}
	}
	require.Positive(t, topics)
	require.NotEmpty(t, associations)
	for _, r := range associations {
		write(r.Key, nil)
	}
	require.True(t, isReported())
	for _, r := range associations {
		write(r.Key, r.Value)
	}
	require.Empty(t, checked(t, db, false))
}

// A renamed field in the row of a collection or a subscription is damage, because its value would be missing.
func TestAFieldOfAnotherNameIsDamage(t *testing.T) {
	t.Parallel()
	db, _ := manyTables(t)
	var m Collection
	require.NoError(t, db.View(t.Context(), "m", func(v *View) error { m = v.Collection; return nil }))
	for key, fields := range map[string][2]string{
		string(keys.Own(subscription(t, db, "s").Number).Key(keys.TableSubscription)): {`"State"`, `"Statd"`},
		string(keys.Own(m.Number).Key(keys.TableCollection)):                          {`"Sign"`, `"Sigo"`},
	} {
		var before []byte
		require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) (err error) {
			if before, err = tx.Get([]byte(key)); err != nil {
				return err
			}
			require.Contains(t, string(before), fields[0])
			return tx.Put([]byte(key), bytes.Replace(before, []byte(fields[0]), []byte(fields[1]), 1))
		}))
		require.NotEmpty(t, checked(t, db, false), fields[1])
		require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.Put([]byte(key), before) }))
	}
	require.Empty(t, checked(t, db, false))
}

// An unreadable row of a name is reported, for damage of any byte, and the check continues: it finds other damage, and
// repairs it if possible.
func TestACheckGoesOnBehindARowThatCannotBeRead(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	db := openUnsynced(t, t.TempDir())
	var lost [][]byte
	for _, name := range []string{"a", "b"} {
		collection(t, db, name, 3)
		view(t, db, name, func(v *View) { lost = append(lost, v.SourceKey().LocatorKey(keys.TableTopic, ref(0))) })
		subscribe(t, db, "of-"+name, mapOf(t, 3))
		s := subscription(t, db, "of-"+name)
		lost = append(lost, s.Source(s.State).LocatorKey(keys.TableMentions, ref(100)))
	}
	put := func(key []byte, change func([]byte) []byte) (was []byte) {
		require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) (err error) {
			if was, err = tx.Get(key); err != nil {
				return err
			}
			return tx.Put(key, change(bytes.Clone(was)))
		}))
		return was
	}
	for _, key := range lost { // of b and of-b, which can be read
		put(key, func([]byte) []byte { return []byte{255} })
	}
	for table, damaged := range map[byte]string{keys.TableCollection: "a", keys.TableSubscription: "of-a"} {
		var key []byte
		require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
			found, err := records.Find(tx, table, damaged)
			key = keys.Own(found.Number).Key(table)
			return err
		}))
		all := 1
		for i := 0; i < all; i += 3 {
			is := put(key, func(row []byte) []byte {
				all = len(row)
				row[i] = 1 // JSON has it nowhere
				return row
			})
			named := map[string]bool{}
			for _, f := range checked(t, db, false) {
				named[f.Where] = true
				named[damaged] = named[damaged] || strings.Contains(f.What, fmt.Sprintf("name %q", damaged))
			}
			require.True(t, named["collection b"] && named["subscription of-b"], "%d: %v", i, named)
			require.True(t, named[damaged], "%d: %s", i, is)
			put(key, func([]byte) []byte { return is })
		}
		require.Greater(t, all, 100)
	}
	mended := false
	put(keys.Name(keys.TableCollection, "a"), func([]byte) []byte { return []byte{255} })
	for _, f := range checked(t, db, true) {
		mended = mended || f.Where == "subscription of-b" && f.Repaired
	}
	require.True(t, mended)
}
