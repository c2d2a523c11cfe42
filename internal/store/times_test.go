package store

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// Two writers at once, a clock that jumps, restarts, pruning: the times of
// entries go on increasing, the newest is that of the collection, and each
// commit returns it.
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
