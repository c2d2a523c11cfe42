package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
)

// since collects the entries of View.Since until an error.
func since(v *View, at time.Time, after uint64) (list []Entry, err error) {
	for e, err := range v.Since(at, after) {
		if err != nil {
			return list, err
		}
		list = append(list, e)
	}
	return list, nil
}

// naiveSince is the same from all entries there ever were.
func naiveSince(log []Entry, at time.Time, after uint64) (list []Entry) {
	last := map[fragment.Ref]uint64{}
	for _, e := range log {
		last[e.TopicSI] = e.Seq
	}
	for _, e := range log {
		if !e.Updated.Before(at) && e.Seq > after && last[e.TopicSI] == e.Seq {
			list = append(list, e)
		}
	}
	return list
}

// checkSince compares at times on, before and after those of entries.
func checkSince(t tester, rng *rand.Rand, v *View, log []Entry) (gone int) {
	t.Helper()
	times := []time.Time{{}, v.Created, v.HorizonTime, v.HorizonTime.Add(1), v.Updated, v.Updated.Add(1), v.Updated.Add(time.Hour)}
	for range 10 {
		at := log[rng.IntN(len(log))].Updated
		times = append(times, at.Add(-1), at, at.Add(1))
	}
	for _, at := range times {
		for _, after := range []uint64{0, 1, v.Head - 1, v.Head, v.Head + 9, rng.Uint64N(v.Head)} {
			got, err := since(v, at, after)
			if v.Horizon > 0 && !at.After(log[v.Horizon-1].Updated) {
				require.ErrorIs(t, err, ErrGone, "since %s, with the horizon at %s", at, v.HorizonTime)
				require.Empty(t, got)
				gone++
				continue
			}
			require.NoError(t, err)
			want := naiveSince(log, at, after)
			require.Equal(t, want, got, "since %s, after %d", at, after)
		}
	}
	return gone
}

// Over random histories, Since yields the same as a walk over all entries: the last one of each topic, unless an entry
// since then is pruned.
func TestSinceIsTheLastOfEachTopic(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	rng := testenv.Rand(7)
	db := openAt(t, tick())
	collection(t, db, "m", 20)
	set(t, db, "m", func(s *Settings) { s.DocumentSize = 5 })
	var log []Entry
	gone := 0
	for turn := range 30 {
		from := rng.IntN(20)
		publish(t, db, "m", rename(from, from+1+rng.IntN(20-from), fmt.Sprint(turn)))
		if turn%6 == 5 {
			takeSnapshot(t, db, "m", 1)
			_, err := db.Prune(t.Context(), "m", Retention{Entries: 60})
			require.NoError(t, err)
		}
		view(t, db, "m", func(v *View) {
			for e, err := range v.Entries(uint64(len(log)) + 1) {
				require.NoError(t, err)
				log = append(log, e)
			}
			require.Len(t, log, int(v.Head))
			gone += checkSince(t, rng, v, log)
		})
	}
	require.Greater(t, gone, 100, "times before the horizon are tried")
}

// A reader may stop at any entry and continue after it.
func TestSinceByPages(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 20)
	for i := range 5 {
		c = publish(t, db, "m", rename(i, 20-i, fmt.Sprint(i)))
	}
	view(t, db, "m", func(v *View) {
		whole, err := since(v, c.Created, 0)
		require.NoError(t, err)
		require.Len(t, whole, 21)
		for size := 1; size < 23; size += 3 {
			var paged []Entry
			after := uint64(0)
			for more := true; more; {
				more = false
				n := 0
				for e, err := range v.Since(c.Created, after) {
					require.NoError(t, err)
					if more = n == size; more {
						break
					}
					paged, after = append(paged, e), e.Seq
					n++
				}
			}
			require.Equal(t, whole, paged, "pages of %d", size)
		}
	})
}
