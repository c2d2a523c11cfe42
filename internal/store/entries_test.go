package store

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// The identifier of an entry leads back to it, and no other identifier does: neither
// those of other collections nor those of a run that is not in the log.
func TestEntryIdentifiersLeadBack(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "a", 300)
	db = reopen(t, db)
	publish(t, db, "a", rename(0, 4, "second"))
	collection(t, db, "b", 310)
	seen := map[uuid.UUID]bool{}
	runs := map[uint32]bool{}
	view(t, db, "a", func(v *View) {
		view(t, db, "b", func(other *View) {
			for e, err := range v.Entries(1) {
				require.NoError(t, err)
				id := v.ID(&e)
				require.False(t, seen[id])
				seen[id], runs[e.Run] = true, true
				require.Equal(t, uuid.Version(8), id.Version(), "RFC 9562 §5.8")
				require.Equal(t, uuid.RFC4122, id.Variant())
				again, err := uuid.Parse(id.String())
				require.NoError(t, err)
				found, err := v.EntryOf(again)
				require.NoError(t, err)
				require.NoError(t, v.SetTitle(found))
				require.Equal(t, e, *found)
				_, err = other.EntryOf(id)
				require.ErrorIs(t, err, ErrNotFound, "it is another collection's")
				for i := range 10 { // any bit of the run and the epoch counts
					id[i] ^= 1
					_, err := v.EntryOf(id)
					require.ErrorIs(t, err, ErrNotFound)
					id[i] ^= 1
				}
			}
		})
		require.Len(t, seen, 305)
		require.Len(t, runs, 2, "each process has a part of its own")
		last, err := v.Entry(v.Head)
		require.NoError(t, err)
		for name, id := range map[string]uuid.UUID{
			"no entry":         v.IDOf(last.Run, 0),
			"not yet an entry": v.IDOf(last.Run, v.Head+1),
			"far away":         v.IDOf(last.Run, 1<<48-1),
			"the epoch":        v.Epoch,
			"nil":              uuid.Nil,
			"max":              uuid.Max,
			"random":           uuid.New(),
		} {
			_, err := v.EntryOf(id)
			require.ErrorIs(t, err, ErrNotFound, name)
		}
	})
	require.NotEqual(t, c.Epoch, collection(t, db, "c", 1).Epoch, "each history has an epoch of its own")
}

// Entries that were written before entries had a run keep their identifiers: the epoch
// and the sequence.
func TestEntriesWithoutARunKeepTheirIdentifiers(t *testing.T) {
	db := openDB(t, t.TempDir())
	db.run.Store(0)
	c := collection(t, db, "m", 2)
	want := c.Epoch
	copy(want[6:], []byte{0x80 | c.Epoch[6]&0x0F, c.Epoch[7], c.Epoch[8], c.Epoch[9], 0, 0, 0, 0, 0, 2})
	db = reopen(t, db)
	publish(t, db, "m", rename(0, 1, "second"))
	view(t, db, "m", func(v *View) {
		require.NotZero(t, v.Run)
		e, err := v.EntryOf(want)
		require.NoError(t, err)
		require.Equal(t, uint64(2), e.Seq)
		require.Equal(t, v.Epoch, v.History(e.Run))
	})
}

// The run of a document's last entry is known for as long as a document links to it: for
// the one before the horizon, too.
func TestTheRunOfADocumentIsKnown(t *testing.T) {
	db := openDB(t, t.TempDir())
	src := mapOf(t, 5)
	_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp, Settings: Settings{DocumentSize: 4}}, src, nil)
	require.NoError(t, err)
	first := db.run.Load()
	db = reopen(t, db)
	publish(t, db, "m", rename(0, 5, "second"))
	second := db.run.Load()
	runs := func() (runs []uint32) {
		view(t, db, "m", func(v *View) {
			for n := range v.OpenDocument() {
				run, ok, err := v.DocumentRun(n + 1)
				require.NoError(t, err)
				require.True(t, ok)
				runs = append(runs, run)
				for _, r := range []uint32{first, second} {
					written, err := v.WrittenIn(n+1, r)
					require.NoError(t, err)
					require.Equal(t, n == 1 || r == run, written, "only the second document has entries of both")
				}
			}
		})
		return runs
	}
	require.Equal(t, []uint32{first, second, second}, runs())
	takeSnapshot(t, db, "m", 1)
	require.Equal(t, uint64(8), prune(t, db, "m", Retention{Entries: 1}))
	view(t, db, "m", func(v *View) {
		run, ok, err := v.DocumentRun(2)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, second, run)
	})
}

// With two concurrent writers, a clock that jumps, restarts and pruning, the times of entries increase, the newest is
// that of the collection, and each commit returns it.
func TestTimesIncreaseWithTwoWritersAndAJumpingClock(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	rng := testenv.Rand(9)
	start := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	back := 0
	o := testOptions(t.TempDir())
	last := start
	o.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now := start.Add(time.Duration(rng.Int64N(int64(time.Hour))))
		if now.Before(last) {
			back++
		}
		last = now
		return now
	}
	db := openWith(t, o)
	collection(t, db, "m", 20)
	var log []Entry
	for range 4 {
		seen := map[uint64]time.Time{}
		var writers sync.WaitGroup
		for w := range 2 {
			writers.Go(func() {
				for i := range 8 {
					c := publish(t, db, "m", rename(w*10, w*10+1+i, fmt.Sprint(w, i)))
					mu.Lock()
					seen[c.Head] = c.Updated
					mu.Unlock()
				}
			})
		}
		writers.Wait()
		require.Len(t, seen, 16, "each commit has a head of its own")
		view(t, db, "m", func(v *View) {
			for e, err := range v.Entries(uint64(len(log)) + 1) {
				require.NoError(t, err)
				log = append(log, e)
				if at, ok := seen[e.Seq]; ok {
					require.Equal(t, at, e.Updated, "a commit returns the time of its last entry")
				}
			}
			updated := v.Created
			for _, e := range log {
				require.True(t, e.Updated.After(updated), "entry %d: %s is not after %s", e.Seq, e.Updated, updated)
				updated = e.Updated
			}
			require.Equal(t, updated, v.Updated)
		})
		takeSnapshot(t, db, "m", 1)
		prune(t, db, "m", Retention{Entries: 1})
		require.NoError(t, db.Close())
		db = openWith(t, o)
	}
	require.Greater(t, back, 50, "the clock has jumped back")
}

// Whatever is committed shows as soon as the commit has returned.
func TestLatestIsNeverBehind(t *testing.T) {
	db := openDB(t, t.TempDir())
	_, err := db.Latest(t.Context(), "m")
	require.ErrorIs(t, err, ErrNotFound)
	collectionOf(t, db, "m", network(t, 20))
	first, err := db.Latest(t.Context(), "m")
	require.NoError(t, err)
	again, err := db.Latest(t.Context(), "m")
	require.NoError(t, err)
	assert.Same(t, first, again, "nothing was committed")

	head := first.Head
	for i := range 20 {
		publish(t, db, "m", rename(i, i+1, "second"))
		latest, err := db.Latest(t.Context(), "m")
		require.NoError(t, err)
		head++
		require.Equal(t, head, latest.Head)
	}
	s, err := db.TakeSnapshot(t.Context(), "m", 3)
	require.NoError(t, err)
	latest, err := db.Latest(t.Context(), "m")
	require.NoError(t, err)
	assert.Equal(t, s.ID, latest.Snapshots[0].ID)

	set(t, db, "m", func(s *Settings) { s.Title = "Towns" })
	latest, err = db.Latest(t.Context(), "m")
	require.NoError(t, err)
	assert.Equal(t, "Towns", latest.Title)

	require.NoError(t, db.DeleteCollection(t.Context(), "m", ""))
	_, err = db.Latest(t.Context(), "m")
	assert.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, db.Close())
	_, err = db.Latest(t.Context(), "m")
	assert.ErrorIs(t, err, errClosed)
}

// Concurrent reads of a state return the same pointer.
func TestLatestIsOneForAllWhoReadAtATime(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	for round := range 200 {
		publish(t, db, "m", rename(0, 1, fmt.Sprint("name ", round)))
		var all [4]*Latest
		var readers sync.WaitGroup
		for i := range all {
			readers.Go(func() { all[i], _ = db.Latest(t.Context(), "m") })
		}
		readers.Wait()
		last, err := db.Latest(t.Context(), "m")
		require.NoError(t, err)
		for _, l := range all {
			require.Same(t, last, l)
		}
	}
}
