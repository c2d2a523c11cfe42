package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
)

func cutChanges(t tester, db *DB, name string, after uint64, at time.Time, cut Cut) *Collection {
	t.Helper()
	c, err := db.CutChanges(t.Context(), name, after, at, cut)
	require.NoError(t, err)
	return c
}

func changeLists(t tester, db *DB, name string) (lists []ChangeList, c Collection) {
	t.Helper()
	view(t, db, name, func(v *View) {
		var err error
		lists, err = v.ChangeLists()
		require.NoError(t, err)
		c = v.Collection
	})
	return lists, c
}

// The change lists of a collection go with it, also where its deletion was interrupted.
func TestInterruptedDeletionsLeaveNoChangeLists(t *testing.T) {
	db := openDB(t, t.TempDir())
	for _, name := range []string{"deleted", "kept"} {
		c := collection(t, db, name, 3)
		publish(t, db, name, rename(0, 3, "second"))
		cutChanges(t, db, name, c.Head, c.Updated, Cut{Changes: 1})
	}
	require.Equal(t, 4, rows(t, db, "g"))
	require.NoError(t, db.rows.Update(t.Context(), func(t *txn.Tx) error { return t.Delete(keys.Name(keys.TableCollection, "deleted")) })) // and then nothing
	db = reopen(t, db)
	lists, _ := changeLists(t, db, "kept")
	require.Len(t, lists, 2)
	require.Equal(t, 2, rows(t, db, "g"))
}

// Whatever is published and cut when: the lists have every entry behind their beginning
// once, in order, and what one is up to the next one is from. Once there are changes, the one
// that is open is never empty.
func TestChangeListsAreARowWithoutGaps(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	db := openUnsynced(t, t.TempDir())
	db.now = func() time.Time { return now }
	closed := 0
	testenv.Check(t, 15, 100, func(t *rapid.T) {
		defer func() { require.NoError(t, db.DeleteCollection(t.Context(), "m")) }()
		_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp}, mapOf(t, 3), nil)
		require.NoError(t, err)
		begun := uint64(0)
		live := map[int]bool{0: true, 1: true, 2: true}
		var known []ChangeList
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				names := map[int]string{}
				for _, i := range rapid.SliceOfN(rapid.IntRange(0, 7), 1, 8).Draw(t, "topics") {
					names[i] = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
				}
				publish(t, db, "m", edit(live, names))
			},
			"time": func(*rapid.T) { now = now.Add(time.Hour) },
			"cut": func(t *rapid.T) {
				var head Collection
				_, head = changeLists(t, db, "m")
				if begun == 0 {
					begun = head.Head
				}
				cut := Cut{Changes: rapid.Uint64Range(0, 5).Draw(t, "changes"), After: time.Duration(rapid.IntRange(0, 3).Draw(t, "hours")) * time.Hour}
				got := cutChanges(t, db, "m", head.Head, head.Updated, cut)
				open := got.Head + 1 - got.Changes.Open
				require.True(t, open > 0 || got.Head == begun, "the last change stays open")
				require.True(t, cut.Changes == 0 || open <= max(cut.Changes, 1), "%d changes are open, and no more than %d ought to be", open, cut.Changes)
				if cut.After > 0 && open > 1 {
					view(t, db, "m", func(v *View) {
						first, err := v.Entry(got.Changes.Open)
						require.NoError(t, err)
						require.Less(t, now.Sub(first.Updated), cut.After)
					})
				}
			},
			"": func(t *rapid.T) {
				lists, c := changeLists(t, db, "m")
				if begun == 0 {
					require.Empty(t, lists)
					require.Nil(t, c.Changes)
					return
				}
				require.Equal(t, known, append([]ChangeList(nil), lists[:len(known)]...), "a closed list stays as it is")
				known = append([]ChangeList(nil), lists...)
				next, from := begun+1, c.Updated
				view(t, db, "m", func(v *View) {
					e, err := v.Entry(begun)
					require.NoError(t, err)
					from = e.Updated
					for i, l := range lists {
						require.EqualValues(t, i+1, l.Number)
						require.Equal(t, next, l.First)
						require.Equal(t, from, l.From)
						last, err := v.Entry(l.Last)
						require.NoError(t, err)
						require.Equal(t, last.Updated, l.Until)
						next, from = l.Last+1, l.Until
					}
				})
				require.Equal(t, Changes{Closed: uint64(len(lists)), Open: next, OpenFrom: from}, *c.Changes)
			},
		})
		closed += len(known)
	})
	require.Greater(t, closed, 40, "too few lists to mean anything")
}

func TestChangeListsAreDroppedFromTheOldestOn(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 10)
	cutChanges(t, db, "m", 0, c.Created, Cut{Changes: 3})
	lists, _ := changeLists(t, db, "m")
	require.Len(t, lists, 3)
	require.NoError(t, db.DropChangeLists(t.Context(), "m", 2))
	left, _ := changeLists(t, db, "m")
	require.Equal(t, lists[2:], left)
	publish(t, db, "m", rename(0, 3, "second"))
	cutChanges(t, db, "m", 0, c.Created, Cut{Changes: 3})
	left, _ = changeLists(t, db, "m")
	require.Len(t, left, 2)
	require.EqualValues(t, 4, left[1].Number, "numbers are not used again")
	require.ErrorIs(t, db.DropChangeLists(t.Context(), "none", 2), ErrNotFound)
}

// What is pruned while nobody cut the log into lists is in none of them.
func TestChangeListsBeginBehindWhatIsPruned(t *testing.T) {
	db := openDB(t, t.TempDir())
	h := pruneable(t, db, "m", 150)
	cutChanges(t, db, "m", 0, h.log[0].Updated, Cut{})
	require.NotZero(t, prune(t, db, "m", Retention{Entries: 1}))
	publish(t, db, "m", rename(0, 2, "later"))
	c := cutChanges(t, db, "m", 0, h.log[0].Updated, Cut{Changes: 1})
	lists, _ := changeLists(t, db, "m")
	require.NotEmpty(t, lists)
	require.Equal(t, c.Horizon+1, lists[0].First)
	require.Equal(t, c.HorizonTime, lists[0].From)
}

// since collects what View.Since yields until an error.
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

// checkSince compares at times on, before and behind those of entries.
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

// Over random histories, Since yields what a walk over all entries finds: of each
// topic the last, as long as nothing since then is pruned.
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

// A reader may stop at any entry and go on behind it.
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
