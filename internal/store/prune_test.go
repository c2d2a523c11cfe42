package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// After any publications, deletions, snapshots, changes of size and pruning, in any order, the log loses exactly the
// whole documents that need not be kept.
func TestRetentionKeepsWhatItMust(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	o := testOptions(t.TempDir())
	o.Now = func() time.Time { return now }
	db, err := openTuned(o.Dir, o.Logger, badger.Settings{Unsynced: true})
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	db.now = o.Now
	histories, pruned := 0, uint64(0)
	testenv.Check(t, 15, 100, func(t *rapid.T) {
		histories++
		name := fmt.Sprintf("m%d", histories)
		size := rapid.IntRange(1, 6).Draw(t, "size")
		live := map[int]bool{0: true, 1: true, 2: true}
		src := mapOf(t, 3)
		_, err := db.CreateCollection(t.Context(), Collection{Name: name, SP: sp, Settings: Settings{DocumentSize: size}}, src, nil)
		require.NoError(t, err)
		h := &history{cut: cut{size: uint64(size)}}
		view(t, db, name, func(v *View) { h.read(t, v) })
		turn := 0
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				turn++
				names := map[int]string{}
				for _, i := range rapid.SliceOfN(rapid.IntRange(0, 7), 1, 8).Draw(t, "topics") {
					names[i] = rapid.SampledFrom([]string{fmt.Sprint("name ", turn), fmt.Sprint("name ", turn), ""}).Draw(t, "name")
				}
				publish(t, db, name, edit(live, names))
				view(t, db, name, func(v *View) { h.read(t, v) })
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(-2, 10).Draw(t, "seconds")) * time.Second)
			},
			"snapshot": func(t *rapid.T) {
				h.snapshot, h.taken = takeSnapshot(t, db, name, 2).Seq, true
			},
			"resize": func(t *rapid.T) {
				size := rapid.IntRange(1, 6).Draw(t, "size")
				set(t, db, name, func(s *Settings) { s.DocumentSize = size })
				h.cut.size = uint64(size)
			},
			"sign": func(t *rapid.T) {
				path := rapid.SampledFrom([]string{"", "/key"}).Draw(t, "path")
				set(t, db, name, func(s *Settings) { s.Sign = path })
			},
			"offer otherwise": func(t *rapid.T) {
				forms := rapid.SampledFrom([][]xtm.Version{onlyOld, onlyNew, nil}).Draw(t, "forms")
				set(t, db, name, func(s *Settings) { s.RecordForms = forms })
				_, err := db.OfferRecordsAnew(t.Context(), name)
				require.NoError(t, err)
				view(t, db, name, func(v *View) { h.read(t, v) })
			},
			"prune": func(t *rapid.T) {
				keep := Retention{
					Entries: rapid.Uint64Range(0, 12).Draw(t, "entries"),
					For:     time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second,
				}
				before := h.horizon
				h.prune(keep, now)
				n, err := db.Prune(t.Context(), name, keep)
				require.NoError(t, err)
				require.Equal(t, h.horizon-before, n)
				pruned += n
			},
			"": func(t *rapid.T) { h.check(t, db, name) },
		})
		require.NoError(t, db.DeleteCollection(t.Context(), name, ""))
	})
	require.Greater(t, pruned, uint64(histories), "too little was pruned to mean anything")
}

// pruneable returns a collection of n topics, each changed once, with a snapshot.
func pruneable(t testing.TB, db *DB, name string, n int) *history {
	t.Helper()
	collection(t, db, name, n)
	h := &history{cut: cut{size: 100}}
	publish(t, db, name, rename(0, n, "second"))
	view(t, db, name, func(v *View) { h.read(t, v) })
	h.snapshot, h.taken = takeSnapshot(t, db, name, 1).Seq, true
	return h
}

func prune(t testing.TB, db *DB, name string, keep Retention) uint64 {
	t.Helper()
	n, err := db.Prune(t.Context(), name, keep)
	require.NoError(t, err)
	return n
}

func TestNothingIsPrunedWithoutNeed(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 250)
	written := committed(t, db)
	require.Zero(t, prune(t, db, "m", Retention{Entries: 1}), "there is no snapshot")
	takeSnapshot(t, db, "m", 1)
	written++
	for name, keep := range map[string]Retention{"no limit": {}, "many": {Entries: 1000}, "all": {Entries: 251}, "for long": {For: time.Hour}, "a document": {Entries: 152}} {
		require.Zero(t, prune(t, db, "m", keep), name)
	}
	require.Equal(t, written, committed(t, db))
	require.EqualValues(t, 100, prune(t, db, "m", Retention{Entries: 151}))
	require.EqualValues(t, 100, prune(t, db, "m", Retention{For: 1}), "the open document stays")
	require.Zero(t, prune(t, db, "m", Retention{Entries: 1}))
	_, err := db.Prune(t.Context(), "x", Retention{Entries: 1})
	require.ErrorIs(t, err, ErrNotFound)
	none := collectionOf(t, db, "none", &merge.Memory{})
	takeSnapshot(t, db, none.Name, 1)
	require.Zero(t, prune(t, db, "none", Retention{Entries: 1, For: 1}))
}

// An entry kept for a live topic is removed after the topic's next entry.
func TestLastEntriesGoWhenTheyAreSuperseded(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	db := openDB(t, t.TempDir())
	h := pruneable(t, db, "m", 250) // 501 entries
	h.prune(Retention{Entries: 1}, time.Now())
	require.EqualValues(t, 500, prune(t, db, "m", Retention{Entries: 1}))
	h.check(t, db, "m")
	c := publish(t, db, "m", &fragment.Change{})
	require.Equal(t, []int{251, 251}, rowCounts(t, db, c.Number, "ek"), "the last entry of each topic")
	publish(t, db, "m", rename(0, 100, "third"))
	require.Equal(t, []int{251, 251}, rowCounts(t, db, c.Number, "ek"), "each in place of the one before")
	view(t, db, "m", func(v *View) { h.read(t, v) })
	h.check(t, db, "m")
	db = reopen(t, db)
	h.check(t, db, "m")
	live := map[int]bool{0: true, 200: true}
	publish(t, db, "m", edit(live, map[int]string{0: ""}))
	view(t, db, "m", func(v *View) {
		h.read(t, v)
		require.True(t, last(t, v, ref(0)).Deleted, "a tombstone stays as long as its entry")
	})
	h.check(t, db, "m")
	for i := range 3 {
		publish(t, db, "m", rename(100, 200, fmt.Sprint(i)))
	}
	view(t, db, "m", func(v *View) { h.read(t, v) })
	h.snapshot = takeSnapshot(t, db, "m", 1).Seq
	h.prune(Retention{Entries: 1}, time.Now())
	prune(t, db, "m", Retention{Entries: 1})
	h.check(t, db, "m")
	view(t, db, "m", func(v *View) {
		_, err := v.Entry(last(t, v, ref(0)).Seq)
		require.ErrorIs(t, err, ErrGone, "and goes with it")
	})
	require.Equal(t, publish(t, db, "m", rename(0, 1, "again")).Head, uint64(len(h.log))+1, "the topic may come back")
}

// An entry that closes the key of a topic with a new key is no current fragment: it loses its fragment like a
// tombstone, and is kept like one.
func TestClosingEntriesArePruned(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 3)
	publish(t, db, "m", &fragment.Change{
		DeleteTopics: []fragment.Ref{ref(2)},
		PutTopics: []*fragment.Topic{{
			Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{"http://owner", ref(2)}},
			Names:    []fragment.Name{{Value: "owner", Type: tmdm.PSIDefaultNameType}},
		}},
		Entries: []fragment.Entry{{TopicSI: ref(2), Topic: "http://owner", Title: "owner"}, {TopicSI: "http://owner", Topic: "http://owner", Title: "owner"}},
		Added:   1,
	})
	for i := range 110 {
		publish(t, db, "m", rename(0, 1, fmt.Sprint(i)))
	}
	takeSnapshot(t, db, "m", 1)
	require.EqualValues(t, 100, prune(t, db, "m", Retention{Entries: 1}))
	view(t, db, "m", func(v *View) {
		_, err := v.Entry(last(t, v, ref(2)).Seq)
		require.ErrorIs(t, err, ErrGone)
		require.NotNil(t, last(t, v, "http://owner"))
	})
	require.Equal(t, []int{int(c.Head) + 2 + 110 - 100 + 4, 5}, rowCounts(t, db, c.Number, "ek"))
}

// Pruning that is stopped between two commits leaves a log that is whole after its horizon, and continues where it
// stopped.
func TestPruningThatIsStoppedGoesOn(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	db := openUnsynced(t, t.TempDir())
	h := pruneable(t, db, "m", 330) // 661 entries
	for at := 1; ; at++ {
		n, err := db.Prune(&counted{Context: t.Context(), at: 1}, "m", Retention{Entries: 150})
		h.horizon += n
		if err == nil {
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		require.EqualValues(t, testBatch, n)
		h.check(t, db, "m")
		if at == 2 {
			require.NoError(t, db.Close())
			db = openUnsynced(t, db.Dir())
			h.check(t, db, "m")
			publish(t, db, "m", rename(0, 40, "between"))
			view(t, db, "m", func(v *View) { h.read(t, v) })
			h.check(t, db, "m")
		}
	}
	require.EqualValues(t, 500, h.horizon)
	h.check(t, db, "m")
}

// Pruning while others publish and read: readers see one state, with all that it
// must have.
func TestPruningWhileOthersWriteAndRead(t *testing.T) {
	t.Parallel()
	db := openUnsynced(t, t.TempDir())
	collection(t, db, "m", 20)
	set(t, db, "m", func(s *Settings) { s.DocumentSize = 10 })
	done := make(chan struct{})
	written := make(chan struct{})
	var writers, work, readers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := range 60 {
				publish(t, db, "m", rename(w*10, w*10+1+i%10, fmt.Sprint(w, i)))
			}
		})
	}
	pruned := uint64(0)
	work.Go(func() { writers.Wait(); close(written) })
	work.Go(func() {
		for last := false; !last; {
			select {
			case <-written:
				last = true
			default:
			}
			takeSnapshot(t, db, "m", 2)
			pruned += prune(t, db, "m", Retention{Entries: 25})
		}
	})
	for r := range 2 {
		readers.Go(func() {
			rng := testenv.Rand(uint64(r))
			for {
				select {
				case <-done:
					return
				default:
				}
				view(t, db, "m", func(v *View) {
					all := entries(t, v)
					require.Len(t, all, int(v.Head-v.Horizon))
					require.Equal(t, []uint64{v.Horizon + 1, v.Head}, []uint64{all[0].Seq, all[len(all)-1].Seq})
					for i := range 20 {
						e := last(t, v, ref(i))
						require.NotNil(t, e)
						shown(t, v, e)
					}
					from := all[rng.IntN(len(all))]
					some, err := since(v, from.Updated, 0)
					require.NoError(t, err)
					require.True(t, slices.IsSortedFunc(some, func(a, b Entry) int { return int(a.Seq) - int(b.Seq) }))
					require.Equal(t, all[len(all)-1].Seq, some[len(some)-1].Seq)
				})
			}
		})
	}
	work.Wait()
	close(done)
	readers.Wait()
	require.Greater(t, pruned, uint64(300))
	view(t, db, "m", func(v *View) {
		require.Equal(t, pruned, v.Horizon)
		behind := 0
		for i := range 20 {
			if last(t, v, ref(i)).Seq <= v.Horizon {
				behind++
			}
		}
		behind++ // the type of names
		require.Equal(t, []int{int(v.Head-v.Horizon) + behind, 21}, rowCounts(t, db, v.Number, "ek"))
	})
}

// rowCounts counts the rows that a collection has in tables.
func rowCounts(t tester, db *DB, number uint32, tables string) (counts []int) {
	t.Helper()
	require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
		for _, table := range []byte(tables) {
			n := 0
			for _, table := range []byte(withBlocks(string(table))) {
				for r, err := range tx.Scan(keys.Own(number).Key(table), nil) {
					require.NoError(t, err)
					n += countsFor(r)
				}
			}
			counts = append(counts, n)
		}
		return nil
	}))
	return counts
}

// history is a model of a log with all entries.
type history struct {
	log      []Entry
	cut      cut
	horizon  uint64
	snapshot uint64 // the sequence of the newest, if there is one
	taken    bool

	leaves      [][]byte // of the tree
	checkpoints []*checkpoint.Checkpoint
}

// read adds the entries that are new.
func (h *history) read(t tester, v *View) {
	t.Helper()
	for e, err := range v.Entries(uint64(len(h.log)) + 1) {
		require.NoError(t, err)
		h.log = append(h.log, e)
	}
	require.Len(t, h.log, int(v.Head))
	h.cut.growTo(v.Head)
}

// prune moves the horizon by the retention: over the first documents without entries to keep.
func (h *history) prune(keep Retention, now time.Time) {
	needless := func(e *Entry) bool {
		many := keep.Entries > 0 && e.Seq+keep.Entries <= uint64(len(h.log))
		old := keep.For > 0 && e.Updated.Before(now.Add(-keep.For))
		return (many || old) && h.taken && e.Seq < h.snapshot // its last entry is kept
	}
	for _, d := range h.cut.documents[:len(h.cut.documents)-1] {
		last := d.first + d.size - 1
		if !needless(&h.log[last-1]) {
			return
		}
		h.horizon = max(h.horizon, last)
	}
}

// last is the last entry of each topic.
func (h *history) last() map[fragment.Ref]*Entry {
	last := map[fragment.Ref]*Entry{}
	for i := range h.log {
		last[h.log[i].TopicSI] = &h.log[i]
	}
	return last
}

// checkRecords checks the documents of the records, from the open one back: they have all entries that are not pruned,
// and of the others the last one of each key.
func (h *history) checkRecords(t tester, v *View, same func(want, got Entry)) {
	t.Helper()
	var want []Entry
	last := h.last()
	for i := range h.log {
		if e := h.log[i]; e.Seq > h.horizon || last[e.TopicSI].Seq == e.Seq {
			want = append(want, e)
		}
	}
	var got []Entry
	for n := v.OpenDocument(); n > 0; {
		entries, before, err := v.RecordEntries(n)
		require.NoError(t, err)
		for i := range entries {
			require.Equal(t, n, v.DocumentOf(entries[i].Seq))
		}
		got = append(entries, got...)
		require.Less(t, before, n)
		if before > 0 {
			if first, _ := v.Document(n); first > v.Horizon {
				require.Equal(t, n-1, before, "what is not pruned does not change")
			} else {
				entries, _, err := v.RecordEntries(before)
				require.NoError(t, err)
				require.NotEmpty(t, entries, "document %d, pruned up to %d", before, v.Horizon)
			}
		}
		n = before
	}
	require.Len(t, got, len(want))
	for i := range want {
		same(want[i], got[i])
	}
}

// check compares all that a collection shows, and the rows that it has.
func (h *history) check(t tester, db *DB, name string) {
	t.Helper()
	view(t, db, name, func(v *View) {
		require.Equal(t, h.horizon, v.Horizon)
		require.Equal(t, uint64(len(h.log)), v.Head)
		if h.horizon > 0 {
			require.Equal(t, h.log[h.horizon-1].Updated, v.HorizonTime)
		}
		same := func(want, got Entry) {
			t.Helper()
			require.Equal(t, want, got)
		}
		listed := entries(t, v)
		require.Len(t, listed, len(h.log)-int(h.horizon))
		logRows, keyRows := len(listed), 0
		for i, e := range listed {
			same(h.log[int(h.horizon)+i], e)
			shown(t, v, &e)
		}
		h.checkRecords(t, v, same)
		h.checkTree(t, v)
		for i := range h.log {
			e, err := v.Entry(h.log[i].Seq)
			if h.log[i].Seq <= h.horizon {
				require.ErrorIs(t, err, ErrGone, "entry %d", h.log[i].Seq)
			} else {
				require.NoError(t, err)
				require.NoError(t, v.SetTitle(e))
				same(h.log[i], *e)
			}
		}
		for si, want := range h.last() {
			got := last(t, v, si)
			require.NotNil(t, got, "what has become of %s", si)
			same(*want, *got)
			keyRows++
			if want.Seq <= h.horizon {
				logRows++
			}
			if !want.Deleted && want.Topic == "" {
				f, err := fragment.Read(context.Background(), strings.NewReader(shown(t, v, got)[1]), xtm.Options{Base: sp}, si)
				require.NoError(t, err)
				require.Equal(t, want.Title, f.Topic.Title(), "the current fragment of %s", si)
			}
		}
		require.Equal(t, []int{logRows, keyRows}, rowCounts(t, db, v.Number, "ek"), "nothing of what is pruned stays behind")
		list, err := v.Snapshots()
		require.NoError(t, err)
		if h.horizon > 0 {
			require.GreaterOrEqual(t, list[0].Seq, h.horizon, "never behind the newest snapshot")
		}
	})
}

// edit is a change that gives topics their names; the empty name deletes.
func edit(live map[int]bool, names map[int]string) *fragment.Change {
	c := &fragment.Change{}
	for i := range 30 {
		name, ok := names[i]
		switch {
		case !ok || name == "" && !live[i]:
		case name == "":
			delete(live, i)
			c.DeleteTopics = append(c.DeleteTopics, ref(i))
			c.Entries = append(c.Entries, fragment.Entry{TopicSI: ref(i), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(i)}}})
			c.Deleted++
		default:
			if !live[i] {
				c.Added++
			} else {
				c.Updated++
			}
			live[i] = true
			c.PutTopics = append(c.PutTopics, named(ref(i), name))
			c.Entries = append(c.Entries, fragment.Entry{TopicSI: ref(i), Topic: ref(i), Title: name})
		}
	}
	return c
}
