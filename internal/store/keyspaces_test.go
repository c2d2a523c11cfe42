package store

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/internal/store/replicas"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// neighbours opens a database in which the next numbers are 255, 256 and so on.
func neighbours(t *testing.T) *DB {
	t.Helper()
	db := openDB(t, t.TempDir())
	require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.PutJSON(keys.Meta("next"), 254) }))
	return db
}

// removes calls remove, and requires that exactly the rows for which gone returns true are removed. It returns the keys
// of new rows.
func removes(t *testing.T, db *DB, remove func(), gone func(key []byte) bool) (came [][]byte) {
	t.Helper()
	before := dumped(t, db.rows.Engine)
	remove()
	after := dumped(t, db.rows.Engine)
	went := 0
	for key := range before {
		_, there := after[key]
		assert.Equal(t, gone([]byte(key)), !there, "%q", key)
		if !there {
			went++
		}
	}
	require.Positive(t, went)
	for key := range after {
		if _, there := before[key]; !there {
			came = append(came, []byte(key))
		}
	}
	return came
}

// numbered are the keys of a number, and that of the row in the names that leads to it.
func numbered(number uint32, name []byte) func(key []byte) bool {
	return func(key []byte) bool { return keys.SourceOf(key).Number == number || string(key) == string(name) }
}

// Collections with consecutive numbers do not see each other's rows. A deletion removes all rows of the collection, and
// no others.
func TestCollectionsAreKeyspaces(t *testing.T) {
	db := neighbours(t)
	names := []string{"first", "second", "third"}
	for i, name := range names {
		c := collection(t, db, name, 4+i)
		require.EqualValues(t, 255+i, c.Number)
		publish(t, db, name, rename(0, 3, name))
		extend(t, db, name)
		_, err := db.TakeSnapshot(t.Context(), name, 1)
		require.NoError(t, err)
	}
	says := func() (all []string) {
		for _, name := range names {
			view(t, db, name, func(v *View) {
				for e, err := range v.Records() {
					require.NoError(t, err)
					require.NoError(t, v.SetTitle(&e))
					all = append(all, name+" "+string(e.TopicSI)+" "+e.Title)
				}
				require.Len(t, entries(t, v), int(v.Head))
				require.Len(t, topicsOf(t, v.Source()), v.Topics)
				listed, err := v.Snapshots()
				require.NoError(t, err)
				require.Len(t, listed, 1)
			})
		}
		return all
	}
	require.Len(t, says(), 5+6+7, "with the types of names")
	other := removes(t, db, func() { require.NoError(t, db.DeleteCollection(t.Context(), "second", "")) }, numbered(256, keys.Name(keys.TableCollection, "second")))
	require.Equal(t, [][]byte{keys.Name(keys.TableFormer, "second")}, other)
	names = []string{"first", "third"}
	require.Len(t, says(), 5+7)
	require.NoError(t, db.Check(t.Context(), false, func(f Finding) { t.Error(f) }, func(string) {}))
}

// The end of a subscription removes all its rows, and no others; so does that of a generation.
func TestSubscriptionsAndGenerationsAreKeyspaces(t *testing.T) {
	db := neighbours(t)
	first, err := mapOf(t, 5).Topic(ref(1))
	require.NoError(t, err)
	for _, name := range []string{"first", "s", "third"} {
		subscribe(t, db, name, mapOf(t, 5))
		require.NoError(t, db.Reject(t.Context(), name, "why", rejections.OfName(ref(1), &first.Names[0])))
		require.NoError(t, db.UpdateSubscription(t.Context(), name, func(s *Subscription) { s.LastCheck = at(1) }))
	}
	quarantine(t, db, "s", Quarantined{TopicSI: "a", Entry: "1"})
	was := subscription(t, db, "s")
	old := was.Source(was.State)
	require.NoError(t, db.StageSource(t.Context(), "s", fragment.Records(mapOf(t, 4)), Mark{}, nil))
	came := removes(t, db, func() { require.NoError(t, db.SwitchSource(t.Context(), "s", staged(t, db), "")) }, func(key []byte) bool { return keys.SourceOf(key) == old })
	require.Len(t, came, 1, "an activity")
	came = removes(t, db, func() { require.NoError(t, db.RemoveSubscription(t.Context(), "s")) }, numbered(was.Number, keys.Name(keys.TableSubscription, "s")))
	require.Len(t, came, 1, "an activity")
	require.Equal(t, byte(keys.TableActivity), keys.Table(came[0]))
	require.NoError(t, db.Check(t.Context(), false, func(f Finding) { t.Error(f) }, func(string) {}))
}

// A replica is in the keyspace of its subscription: a replaced log is removed as a generation, and all of it with the
// subscription.
func TestReplicasAreInTheKeyspaceOfTheirSubscription(t *testing.T) {
	db := neighbours(t)
	origin := collection(t, db, "origin", 6)
	var log []Logged
	view(t, db, "origin", func(v *View) {
		for _, e := range entries(t, v) {
			log = append(log, Logged{ID: origin.ID(&e).URN(), TopicSI: e.TopicSI, Title: e.Title, Updated: e.Updated, Digest: e.Digest})
		}
	})
	for _, name := range []string{"other", "s"} {
		require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: name, SP: sp, Replica: true}))
		replicate(t, db, name, origin, log)
	}
	replica := func() (c *Collection) {
		view(t, db, "s", func(v *View) { c = &v.Collection })
		return c
	}
	first, s := replica(), subscription(t, db, "s")
	require.Equal(t, s.Number, first.Number)
	require.NotEqual(t, first.Log(), first.SourceKey())
	gone := []keys.Source{first.Log(), first.SourceKey()}
	removes(t, db, func() { replicate(t, db, "s", origin, log) }, func(key []byte) bool { return keys.SourceOf(key) == gone[0] || keys.SourceOf(key) == gone[1] })
	require.NotEqual(t, first.Log(), replica().Log())
	view(t, db, "s", func(v *View) { require.Len(t, entries(t, v), len(log)) })

	// One that is staged is left, and another staged in its place.
	stage(t, db, "s", origin, log)
	var before *Collection
	require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) (err error) { before, err = replicas.Staged(tx, s); return err }))
	removes(t, db, func() { stageLog(t, db, "s", origin, log) }, func(key []byte) bool { return keys.SourceOf(key) == before.Log() })
	nameless := numbered(s.Number, keys.Name(keys.TableSubscription, "s"))
	removes(t, db, func() { require.NoError(t, db.RemoveSubscription(t.Context(), "s")) }, func(key []byte) bool {
		return nameless(key) || string(key) == string(keys.Name(keys.TableCollection, "s"))
	})
	require.NoError(t, db.Check(t.Context(), false, func(f Finding) { t.Error(f) }, func(string) {}))
}

func stage(t *testing.T, db *DB, name string, origin *Collection, log []Logged) {
	t.Helper()
	require.NoError(t, db.StageSource(t.Context(), name, fragment.Records(mapOf(t, 6)), Mark{Updated: origin.Updated}, nil))
	stageLog(t, db, name, origin, log)
}

func stageLog(t *testing.T, db *DB, name string, origin *Collection, log []Logged) {
	t.Helper()
	require.NoError(t, db.StageLog(t.Context(), name, origin.Epoch.URN(), func(yield func(Logged, error) bool) {
		for _, l := range log {
			if !yield(l, nil) {
				return
			}
		}
	}, func(context.Context, *Logged) error { return nil }))
}

// replicate makes a replica of a log, or replaces it.
func replicate(t *testing.T, db *DB, name string, origin *Collection, log []Logged) {
	t.Helper()
	stage(t, db, name, origin, log)
	require.NoError(t, db.SwitchSource(t.Context(), name, subscription(t, db, name).Staging.Generation, ""))
}

// The era is a row of the names, as the engines know it by its key alone: no key is too short to have a keyspace.
func TestTheEraIsInTheNames(t *testing.T) {
	require.Equal(t, keys.Meta("era"), kv.EraKey)
}

// A name without a target, or with a target of another name, is damage: "check" reports it, and no other row is used
// instead.
func TestANameThatLeadsAstrayIsDamage(t *testing.T) {
	for what, leads := range map[string][]byte{"to nothing": {0, 0, 3, 0}, "to another": {0, 0, 0, 255}, "to no number": {1}} {
		t.Run(what, func(t *testing.T) {
			db := neighbours(t)
			collection(t, db, "first", 2)
			collection(t, db, "second", 2)
			require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.Put(keys.Name(keys.TableCollection, "second"), leads) }))
			require.ErrorIs(t, db.View(t.Context(), "second", func(*View) error { return nil }), ErrDamaged)
			_, err := db.Collections(t.Context())
			require.ErrorIs(t, err, ErrDamaged)
			view(t, db, "first", func(v *View) { require.Equal(t, 3, v.Topics) })
			var found []Finding
			require.NoError(t, db.Check(t.Context(), false, func(f Finding) { found = append(found, f) }, func(string) {}))
			require.NotEmpty(t, found)
			require.Equal(t, "collections", found[0].Where)
			require.Contains(t, found[0].What, `name "second"`)
			require.False(t, slices.ContainsFunc(found, func(f Finding) bool { return f.Where == "collection first" }))
		})
	}
}
