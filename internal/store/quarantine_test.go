package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

func quarantine(t testing.TB, db *DB, name string, all ...Quarantined) {
	t.Helper()
	require.NoError(t, db.ApplyEntries(t.Context(), name, func(a *Applying) error {
		for _, q := range all {
			if err := a.Quarantine(q); err != nil {
				return err
			}
		}
		return nil
	}))
}

func inQuarantine(t testing.TB, db *DB, name string) map[string]Quarantined {
	t.Helper()
	all, err := db.Quarantine(t.Context(), name)
	require.NoError(t, err)
	byTopic := map[string]Quarantined{}
	for _, q := range all {
		byTopic[q.TopicSI] = q
	}
	return byTopic
}

func activities(t testing.TB, db *DB) []Activity {
	t.Helper()
	var all []Activity
	require.NoError(t, db.Activity(t.Context(), func(a Activity) bool { all = append(all, a); return true }))
	return all
}

// What is in quarantine counts its tries, gives way to later entries of its
// topic, and is kept when the database is opened again.
func TestQuarantine(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o := testOptions(t.TempDir())
	o.Now = func() time.Time { return now }
	db := openWith(t, o)
	subscribe(t, db, "s", mapOf(t, 3))
	subscribe(t, db, "other", mapOf(t, 3))
	second := func(n int) time.Time { return time.Unix(int64(n), 0).UTC() }
	first := now
	quarantine(t, db, "s", Quarantined{TopicSI: "a", Entry: "1", Updated: second(1), Error: "no"}, Quarantined{TopicSI: "b", Entry: "2", Updated: second(2)})
	now = now.Add(time.Hour)
	quarantine(t, db, "s", Quarantined{TopicSI: "a", Entry: "1", Updated: second(1), Error: "still no"}, Quarantined{TopicSI: "b", Entry: "3", Updated: second(3)})
	db = reopen(t, db)
	got := inQuarantine(t, db, "s")
	require.Len(t, got, 2)
	require.Equal(t, Quarantined{TopicSI: "a", Entry: "1", Updated: second(1), First: first, Last: first.Add(time.Hour), Tries: 2, Error: "still no"}, got["a"])
	require.Equal(t, 1, got["b"].Tries, "another entry begins anew")
	require.Empty(t, inQuarantine(t, db, "other"), "of another subscription")

	for updated, want := range map[time.Time]bool{second(2): false, second(3): true} {
		if !want {
			require.NoError(t, db.ApplyEntries(t.Context(), "s", func(a *Applying) error {
				released, err := a.Release("b", updated)
				require.False(t, released, "an entry before that in quarantine")
				return err
			}))
		}
	}
	require.NoError(t, db.ApplyEntries(t.Context(), "s", func(a *Applying) error {
		released, err := a.Release("b", second(3))
		require.True(t, released)
		return err
	}))
	require.Len(t, inQuarantine(t, db, "s"), 1)

	gone, err := db.Forget(t.Context(), "s", "b")
	require.NoError(t, err)
	require.Empty(t, gone, "it is not in quarantine")
	gone, err = db.Forget(t.Context(), "s", "a")
	require.NoError(t, err)
	require.Len(t, gone, 1)
	require.Empty(t, inQuarantine(t, db, "s"))
	_, err = db.Forget(t.Context(), "nobody")
	require.ErrorIs(t, err, ErrNotFound)
}

// The quarantine belongs to a generation: a replacement that has none leaves none.
func TestQuarantineGoesWithItsGeneration(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 3))
	quarantine(t, db, "s", Quarantined{TopicSI: "a", Entry: "1"})
	require.NoError(t, db.StageSource(t.Context(), "s", fragment.Records(mapOf(t, 4)), Mark{}, nil))
	require.Len(t, inQuarantine(t, db, "s"), 1, "of the state that readers see")
	quarantine(t, db, "s", Quarantined{TopicSI: "c", Entry: "9"})
	require.Contains(t, inQuarantine(t, db, "s"), "a")
	require.NoError(t, db.SwitchSource(t.Context(), "s", staged(t, db), "for a reason"))
	require.Contains(t, inQuarantine(t, db, "s"), "c")
	require.Len(t, inQuarantine(t, db, "s"), 1)
	require.NoError(t, db.StageSource(t.Context(), "s", fragment.Records(mapOf(t, 4)), Mark{}, nil))
	require.NoError(t, db.SwitchSource(t.Context(), "s", staged(t, db), ""))
	require.Empty(t, inQuarantine(t, db, "s"))
	require.ErrorIs(t, db.SwitchSource(t.Context(), "s", staged(t, db), ""), ErrNotFound, "nothing is staged")

	log := activities(t, db)
	require.Equal(t, ActivityReplaced, log[0].Kind)
	require.Equal(t, "for a reason", log[1].Note)
}

// A subscription that is removed leaves no row of its own, and nothing of the
// others goes.
func TestRemoveSubscription(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "other", mapOf(t, 3))
	count := func() map[byte]int {
		rows := map[byte]int{}
		require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
			for _, table := range []byte(keys.SourceTables + string(rune(keys.TableSubscription))) {
				for _, err := range tx.Scan([]byte{table}, nil) {
					require.NoError(t, err)
					rows[table]++
				}
			}
			return nil
		}))
		return rows
	}
	before := count()
	subscribe(t, db, "s", mapOf(t, 5))
	quarantine(t, db, "s", Quarantined{TopicSI: "a", Entry: "1"})
	require.NoError(t, db.StageSource(t.Context(), "s", fragment.Records(mapOf(t, 4)), Mark{}, nil))
	require.NotEqual(t, before, count())
	require.NoError(t, db.RemoveSubscription(t.Context(), "s"))
	require.Equal(t, before, count())
	require.ErrorIs(t, db.RemoveSubscription(t.Context(), "s"), ErrNotFound)
	require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: "s", SP: sp}), "the name is free again")
	log := activities(t, db)
	require.Equal(t, ActivitySubscribed, log[0].Kind)
	require.Equal(t, ActivityUnsubscribed, log[1].Kind)
}

// The newest activities are kept, and no others.
func TestActivitiesAreBounded(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 1))
	before := len(activities(t, db))
	const more = 3
	require.NoError(t, db.ApplyEntries(t.Context(), "s", func(a *Applying) error {
		for i := range sources.MaxActivities + more - before {
			if err := a.Note(Activity{Kind: ActivityApplied, Entries: []ActivityEntry{{TopicSI: "a", Updated: time.Unix(int64(i), 0)}}}); err != nil {
				return err
			}
		}
		return nil
	}))
	log := activities(t, db)
	require.Len(t, log, sources.MaxActivities)
	require.Equal(t, ActivityApplied, log[0].Kind)
	require.Equal(t, "s", log[0].Source)
	rows := 0
	require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
		for _, err := range tx.Scan([]byte{keys.TableActivity}, nil) {
			require.NoError(t, err)
			rows++
		}
		return nil
	}))
	require.Equal(t, sources.MaxActivities, rows)
}
