package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

// heldOf returns the data held for records of a subscription.
func heldOf(t testing.TB, db *DB, name string, ids ...string) map[string]Held {
	all := map[string]Held{}
	require.NoError(t, db.HeldRecords(t.Context(), name, ids, func(h Held) error { all[h.ID] = h; return nil }))
	return all
}

// staged returns the staged generation of the subscription "s", or 0.
func staged(t testing.TB, db *DB) uint32 {
	if p := subscription(t, db, "s").Staging; p != nil {
		return p.Generation
	}
	return 0
}

func applying(t testing.TB, db *DB, f func(a *Applying) error) {
	t.Helper()
	require.NoError(t, db.ApplyEntries(t.Context(), "s", f))
}

func at(second int64) time.Time { return time.Unix(second, 0).UTC() }

func TestRecordsThatAreHeld(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 1))
	require.Empty(t, heldOf(t, db, "s"))
	a1, b := Held{ID: "urn:a", Updated: at(1), TopicSI: ref(1), Named: true}, Held{ID: "urn:ab", Updated: at(2), TopicSI: ref(2)}
	applying(t, db, func(a *Applying) error { return errors.Join(a.Hold(a1), a.Hold(b)) })
	require.Equal(t, map[string]Held{"urn:a": a1, "urn:ab": b}, heldOf(t, db, "s"))
	require.Equal(t, map[string]Held{"urn:ab": b}, heldOf(t, db, "s", "urn:ab", "urn:none"))
	none := 0
	require.NoError(t, db.HeldRecords(t.Context(), "s", []string{}, func(Held) error { none++; return nil }))
	require.Zero(t, none, "none was asked for")
	require.ErrorIs(t, db.HeldRecords(t.Context(), "nope", nil, func(Held) error { return nil }), ErrNotFound)

	// The data held for a record replaces the earlier data, and so does the topic.
	applying(t, db, func(a *Applying) error {
		h, err := a.Held("urn:a")
		require.NoError(t, err)
		require.Equal(t, a1, *h)
		h.TopicSI = ref(3)
		require.NoError(t, a.Hold(*h))
		for topic, by := range map[fragment.Ref]string{ref(1): "", ref(2): "urn:ab", ref(3): "urn:a"} {
			describing, err := a.Describing(topic)
			require.NoError(t, err)
			require.Equal(t, by, describing, topic)
		}
		return nil
	})
	db = reopen(t, db)
	require.Equal(t, ref(3), heldOf(t, db, "s")["urn:a"].TopicSI)

	// Another record that describes the topic takes it over: the first one's end does not
	// take it away.
	applying(t, db, func(a *Applying) error {
		require.NoError(t, a.Hold(Held{ID: "urn:c", Updated: at(3), TopicSI: ref(3)}))
		require.NoError(t, a.LetGo("urn:a"))
		require.NoError(t, a.LetGo("urn:a"), "once more")
		by, err := a.Describing(ref(3))
		require.Equal(t, "urn:c", by)
		h, _ := a.Held("urn:a")
		require.Nil(t, h)
		require.NoError(t, a.LetGo("urn:c"))
		by, _ = a.Describing(ref(3))
		require.Empty(t, by)
		return err
	})
	require.Equal(t, map[string]Held{"urn:ab": b}, heldOf(t, db, "s"))
}

// An id that cannot be a key is an error, and leaves no row.
func TestARecordWithALongID(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 1))
	long := strings.Repeat("x", 8<<10)
	applying(t, db, func(a *Applying) error { return a.Hold(Held{ID: long}) })
	require.Len(t, heldOf(t, db, "s", long), 1)
	err := db.ApplyEntries(t.Context(), "s", func(a *Applying) error {
		return errors.Join(a.Hold(Held{ID: "urn:a"}), a.Hold(Held{ID: long + "x"}))
	})
	require.ErrorContains(t, err, "the id of a record has more than 8192 bytes")
	require.Len(t, heldOf(t, db, "s"), 1)
}

// The data held for records belongs to a generation, and is removed with it.
func TestRecordsThatAreHeldBelongToAGeneration(t *testing.T) {
	db := openDB(t, t.TempDir())
	require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: "s", SP: sp, Protocol: "atom-pmh"}))
	require.Empty(t, heldOf(t, db, "s"), "there is no generation yet")
	stage := func() {
		require.NoError(t, db.StageSource(t.Context(), "s", fragment.Records(&merge.Memory{}), Mark{}, nil))
	}
	hold := func(id string) {
		applying(t, db, func(a *Applying) error {
			a.Records = []byte(fmt.Sprintf("%q", id))
			return a.Hold(Held{ID: id, TopicSI: ref(1)})
		})
	}
	stage()
	hold("urn:first")
	require.NoError(t, db.SwitchSource(t.Context(), "s", staged(t, db), ""))
	require.Len(t, heldOf(t, db, "s", "urn:first"), 1)
	const tables = "hd"
	require.Equal(t, 2, rows(t, db, tables))

	stage()
	require.Empty(t, heldOf(t, db, "s"), "changes are applied to what is staged")
	require.Nil(t, subscription(t, db, "s").Staging.Records)
	hold("urn:second")
	db = reopen(t, db)
	require.Equal(t, `"urn:second"`, string(subscription(t, db, "s").Staging.Records))
	require.Equal(t, `"urn:first"`, string(subscription(t, db, "s").State.Records))
	require.Len(t, heldOf(t, db, "s"), 1)
	require.NoError(t, db.SwitchSource(t.Context(), "s", staged(t, db), ""))
	require.Equal(t, []int{1, 0}, []int{len(heldOf(t, db, "s", "urn:second")), len(heldOf(t, db, "s", "urn:first"))})
	require.Equal(t, 2, rows(t, db, tables), "what the first one held is gone")
	require.NoError(t, db.RemoveSubscription(t.Context(), "s"))
	require.Zero(t, rows(t, db, tables))
}

// What another has staged is not switched to.
func TestOnlyTheOwnGenerationIsSwitchedTo(t *testing.T) {
	db := openDB(t, t.TempDir())
	require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: "s", SP: sp}))
	stage := func() uint32 {
		require.NoError(t, db.StageSource(t.Context(), "s", fragment.Records(&merge.Memory{}), Mark{}, nil))
		return staged(t, db)
	}
	first := stage()
	second := stage()
	require.ErrorIs(t, db.SwitchSource(t.Context(), "s", first, ""), ErrOvertaken)
	require.Nil(t, subscription(t, db, "s").State)
	require.NoError(t, db.SwitchSource(t.Context(), "s", second, ""))
	require.Equal(t, second, subscription(t, db, "s").State.Generation)
}

// A failed commit does not change the data held for records.
func TestWhatIsHeldMovesWithTheData(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 2))
	applying(t, db, func(a *Applying) error { return a.Hold(Held{ID: "urn:a", Updated: at(1), TopicSI: ref(1)}) })
	failed := errors.New("failed")
	require.ErrorIs(t, db.ApplyEntries(t.Context(), "s", func(a *Applying) error {
		require.NoError(t, errors.Join(a.LetGo("urn:a"), a.Hold(Held{ID: "urn:b", TopicSI: ref(1)})))
		return failed
	}), failed)
	require.Equal(t, map[string]Held{"urn:a": {ID: "urn:a", Updated: at(1), TopicSI: ref(1)}}, heldOf(t, db, "s"))
	applying(t, db, func(a *Applying) error {
		by, err := a.Describing(ref(1))
		require.Equal(t, "urn:a", by)
		return err
	})
}

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

// A topic in quarantine has a number of tries, is replaced by later entries of its topic, and is still there after a
// restart.
func TestQuarantine(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	db := openAt(t, func() time.Time { return now })
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

// The quarantine belongs to a generation: a replacement without one removes it.
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

// Removing a subscription removes all its rows, and none of the others.
func TestRemoveSubscription(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "other", mapOf(t, 3))
	count := func() map[byte]int {
		rows := map[byte]int{}
		require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
			for _, r := range listed(t, inTables(tx, keys.SourceTables+string(rune(keys.TableSubscription)))) {
				rows[keys.Table(r.Key)]++
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
	t.Parallel()
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 1))
	before := len(activities(t, db))
	const more = 3
	require.NoError(t, db.ApplyEntries(t.Context(), "s", func(a *Applying) error {
		for i := range sources.MaxActivities + more - before {
			if err := a.Note(Activity{Kind: ActivityApplied, Entries: []sources.ActivityEntry{{TopicSI: "a", Updated: time.Unix(int64(i), 0)}}}); err != nil {
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
		for _, err := range tx.Scan(keys.Once(keys.TableActivity), nil) {
			require.NoError(t, err)
			rows++
		}
		return nil
	}))
	require.Equal(t, sources.MaxActivities, rows)
}
