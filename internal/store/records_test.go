package store

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/xtm"
)

var (
	onlyOld = []xtm.Version{xtm.V10}
	onlyNew = []xtm.Version{xtm.V21}
)

func offer(t testing.TB, db *DB, forms []xtm.Version) {
	t.Helper()
	set(t, db, "m", func(s *Settings) { s.RecordForms = forms })
}

func restate(t testing.TB, db *DB) int {
	t.Helper()
	n, err := db.OfferRecordsAnew(t.Context(), "m")
	require.NoError(t, err)
	return n
}

// checkOffered checks that each record is offered as it ought to be.
func checkOffered(t testing.TB, db *DB, forms []xtm.Version, records int) {
	t.Helper()
	view(t, db, "m", func(v *View) {
		require.False(t, v.Restating)
		n := 0
		for e, err := range v.Records() {
			require.NoError(t, err)
			require.Equal(t, forms, v.FormsOf(&e), "%s, entry %d of %d, offers %v", e.TopicSI, e.Seq, v.Head, v.Offers)
			n++
		}
		require.Equal(t, records, n)
	})
}

// meanwhile is a context for a job that does something before each commit but the first.
func meanwhile(ctx context.Context, do func(commits int)) context.Context {
	return &counted{Context: ctx, at: 1 << 30, look: func(n int) {
		if n > 1 {
			do(n - 1)
		}
	}}
}

// The forms of a record are those in force at its last entry, after any later changes.
func TestRecordsAreOfferedAsAtTheirLastEntry(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3) // entries 1 to 4
	var want [][]xtm.Version
	publishAs := func(forms []xtm.Version, entries int) {
		offer(t, db, forms)
		for range entries {
			publish(t, db, "m", rename(0, 1, fmt.Sprint("name ", len(want))))
			want = append(want, forms)
		}
	}
	want = append(want, Forms[:], Forms[:], Forms[:], Forms[:])
	publishAs(onlyNew, 2)
	publishAs(onlyOld, 0) // taken back before anything was published
	publishAs(onlyNew, 1)
	publishAs(nil, 1)
	want[len(want)-1] = Forms[:]
	publishAs(onlyOld, 2)
	for range 2 {
		view(t, db, "m", func(v *View) {
			for i := range want {
				require.Equal(t, want[i], v.FormsOf(&Entry{Seq: uint64(i + 1)}), "entry %d, offers %v", i+1, v.Offers)
			}
		})
		db = reopen(t, db)
	}
	offer(t, db, append(onlyOld, xtm.V21)) // all, in other words
	require.Equal(t, 1, restate(t, db), "the others are offered in both")
	offer(t, db, nil)
	require.Zero(t, restate(t, db), "the same")
	checkOffered(t, db, Forms[:], 4)
}

// A republished record has the bytes of the entry before; deleted records, and those with the right formats, are not
// republished.
func TestRecordsArePublishedAgainAsTheyAre(t *testing.T) {
	t.Parallel()
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 250) // 251 entries
	live := map[int]bool{0: true, 1: true, 2: true}
	publish(t, db, "m", edit(live, map[int]string{0: "", 1: "new name"}))
	h := &history{cut: cut{size: 100}}
	view(t, db, "m", func(v *View) { h.read(t, v) })
	h.snapshot, h.taken = takeSnapshot(t, db, "m", 1).Seq, true
	h.prune(Retention{Entries: 1}, time.Now())
	require.EqualValues(t, 200, prune(t, db, "m", Retention{Entries: 1}))
	var before map[fragment.Ref][]string
	read := func() map[fragment.Ref][]string {
		all := map[fragment.Ref][]string{}
		view(t, db, "m", func(v *View) {
			for e, err := range v.Records() {
				require.NoError(t, err)
				require.NoError(t, v.SetTitle(&e))
				all[e.TopicSI] = append(shown(t, v, &e), e.Title)
			}
		})
		return all
	}
	before = read()
	require.Len(t, before, 250)
	offer(t, db, onlyNew)
	require.Equal(t, 250, restate(t, db))
	require.Equal(t, before, read())
	checkOffered(t, db, onlyNew, 250)
	view(t, db, "m", func(v *View) {
		h.read(t, v)
		require.EqualValues(t, 253+250, v.Head)
		require.True(t, last(t, v, ref(0)).Deleted)
		require.EqualValues(t, 252, last(t, v, ref(0)).Seq)
	})
	h.check(t, db, "m") // no rows of what was kept for the records' sake are left
	require.Zero(t, restate(t, db), "it is done")
	publish(t, db, "m", rename(5, 6, "later"))
	require.Zero(t, restate(t, db))
	checkOffered(t, db, onlyNew, 250)
}

// The offer changes between two commits, and republished records must be republished again.
func TestOfferThatChangesWhileRecordsArePublishedAgain(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	db := openUnsynced(t, t.TempDir())
	collection(t, db, "m", 500) // three commits
	offer(t, db, onlyNew)
	n, err := db.OfferRecordsAnew(meanwhile(t.Context(), func(commits int) {
		switch commits {
		case 1:
			offer(t, db, onlyOld)
		case 3: // and back, with a change of a later record in between
			publish(t, db, "m", rename(0, 500, "old only"))
			offer(t, db, onlyNew)
			offer(t, db, onlyOld)
			offer(t, db, onlyNew)
		}
	}), "m")
	require.NoError(t, err)
	require.Greater(t, n, 800)
	checkOffered(t, db, onlyNew, 501)
}

// The collection is replaced before the job continues: the job does not change the new one.
func TestCollectionThatIsReplacedWhileItsRecordsArePublishedAgain(t *testing.T) {
	t.Parallel()
	for _, restated := range []bool{false, true} {
		db := openUnsynced(t, t.TempDir())
		collection(t, db, "m", 240)
		offer(t, db, onlyNew)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		n, err := db.OfferRecordsAnew(meanwhile(ctx, func(commits int) {
			if commits == 1 {
				require.NoError(t, db.DeleteCollection(ctx, "m", ""))
				collection(t, db, "m", 5)
				if restated {
					offer(t, db, onlyOld)
				}
			}
		}), "m")
		require.NoError(t, err)
		if restated {
			require.Equal(t, testBatch+6, n)
			checkOffered(t, db, onlyOld, 6)
		} else {
			require.Equal(t, testBatch, n)
			checkOffered(t, db, Forms[:], 6)
		}
		stop()
	}
}

// After any changes, in any order, and any interruptions of the job, its end leaves all records with the right formats.
func TestRandomOffers(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	db := openUnsynced(t, t.TempDir())
	const topics = 1500
	collection(t, db, "m", topics)
	random := testenv.Rand(10)
	forms, stopped, finished := Forms[:], 0, 0
	for turn := range testenv.Rounds(36, 60) {
		switch random.IntN(5) {
		case 0, 1:
			forms = [][]xtm.Version{onlyOld, onlyNew, Forms[:]}[random.IntN(3)]
			offer(t, db, forms)
		case 2:
			from := random.IntN(topics)
			publish(t, db, "m", rename(from, min(from+300, topics), fmt.Sprint("name ", turn)))
		case 3: // one commit of the job, and another change before the next
			_, err := db.OfferRecordsAnew(&counted{Context: t.Context(), at: 2}, "m")
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				stopped++
			}
		case 4:
			_, err := db.OfferRecordsAnew(meanwhile(t.Context(), func(commits int) {
				if commits == 1 {
					forms = [][]xtm.Version{onlyOld, onlyNew}[random.IntN(2)]
					offer(t, db, forms)
					from := random.IntN(topics)
					publish(t, db, "m", rename(from, min(from+300, topics), fmt.Sprint("between ", turn)))
				}
			}), "m")
			require.NoError(t, err)
			finished++
			checkOffered(t, db, forms, topics+1)
		}
		view(t, db, "m", func(v *View) {
			require.True(t, v.Restating || allOffered(t, v, forms), "nobody would do the rest, turn %d", turn)
		})
	}
	require.Positive(t, stopped)
	require.Positive(t, finished)
	restate(t, db)
	checkOffered(t, db, forms, topics+1)
}

func allOffered(t testing.TB, v *View, forms []xtm.Version) bool {
	t.Helper()
	for e, err := range v.Records() {
		require.NoError(t, err)
		if fmt.Sprint(v.FormsOf(&e)) != fmt.Sprint(forms) {
			return false
		}
	}
	return true
}

// restateOnce publishes records again, to be killed while it does.
func restateOnce(dir string) error {
	return onOpen(dir, func(db *DB) error {
		_, err := db.OfferRecordsAnew(context.Background(), "m")
		return err
	})
}

// A process killed while it republishes records has made whole commits, and the next one continues.
func TestPublishingAgainKilledAtAnyInstant(t *testing.T) {
	testenv.OnlyWithAll(t, "it kills processes")
	t.Parallel()
	template := t.TempDir()
	db := openDB(t, template)
	const topics = 440
	collection(t, db, "m", topics)
	offer(t, db, onlyNew)
	require.NoError(t, db.Close())
	copied := func() string {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(template)))
		return dir
	}
	db = openDB(t, copied())
	start := time.Now()
	require.Equal(t, topics+1, restate(t, db))
	long := time.Since(start)
	random := testenv.Rand(19)
	done := map[int]int{}
	for range kills() {
		dir := copied()
		runAndKill(t, "restate", dir, 1, time.Duration(random.Int64N(int64(long)*2/3)))
		db := openDB(t, dir)
		var before []string
		view(t, db, "m", func(v *View) {
			n := int(v.Head) - topics - 1
			require.Contains(t, []int{0, testBatch, 2 * testBatch, topics + 1}, n)
			require.Equal(t, n <= topics, v.Restating)
			done[n]++
			for e, err := range v.Records() {
				require.NoError(t, err)
				require.NoError(t, v.SetTitle(&e))
				before = append(before, e.Title)
			}
		})
		require.Len(t, before, topics+1)
		left := restate(t, db)
		view(t, db, "m", func(v *View) { require.EqualValues(t, 2*(topics+1), v.Head, "none twice: %d were left", left) })
		checkOffered(t, db, onlyNew, topics+1)
		require.NoError(t, db.Close())
		require.NoError(t, os.RemoveAll(dir))
	}
	t.Logf("killed after %v records", done)
	require.NotEmpty(t, done)
}

// Documents that are not pruned lead to the one before, the others to the nearest that
// has any entry left.
func TestRecordEntriesOfAnyDocument(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	db := openDB(t, t.TempDir())
	h := pruneable(t, db, "m", 450) // 901 entries, ten documents
	publish(t, db, "m", rename(0, 80, "third"))
	view(t, db, "m", func(v *View) { h.read(t, v) })
	h.snapshot = takeSnapshot(t, db, "m", 1).Seq
	h.prune(Retention{Entries: 150}, time.Now())
	require.EqualValues(t, 800, prune(t, db, "m", Retention{Entries: 150}))
	h.check(t, db, "m")
	type found struct {
		entries int
		before  uint64
	}
	all := func() (list []found) {
		view(t, db, "m", func(v *View) {
			for n := range v.OpenDocument() {
				entries, before, err := v.RecordEntries(n + 1)
				require.NoError(t, err)
				list = append(list, found{len(entries), before})
			}
		})
		return list
	}
	// The fifth document has the topic of names, which never changed, and the ninth is
	// the first that is not pruned.
	require.Equal(t, []found{{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {69, 5}, {100, 6}, {100, 7}, {100, 8}, {81, 9}}, all())
	publish(t, db, "m", rename(80, 349, "third")) // all that were in documents 6 to 8
	list := all()
	require.Equal(t, []found{{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {0, 5}, {0, 5}, {0, 5}}, list[:8])
	require.Equal(t, found{100, 8}, list[8], "what is not pruned leads where it led")
	require.Equal(t, found{100, 9}, list[9])
}

// A record that ends and begins again is one record, and an entry in a document of its own history.
func TestRecordsThatComeBack(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	live := map[int]bool{0: true, 1: true, 2: true}
	for range 3 {
		publish(t, db, "m", edit(live, map[int]string{1: ""}))
		view(t, db, "m", func(v *View) { require.False(t, last(t, v, ref(1)).Lives()) })
		checkOffered(t, db, Forms[:], 3)
		publish(t, db, "m", edit(live, map[int]string{1: "again"}))
		checkOffered(t, db, Forms[:], 4)
	}
	view(t, db, "m", func(v *View) {
		entries, before, err := v.RecordEntries(1)
		require.NoError(t, err)
		require.Zero(t, before)
		var lives []bool
		for _, e := range entries {
			if e.TopicSI == ref(1) {
				lives = append(lives, e.Lives())
			}
		}
		require.Equal(t, []bool{true, false, true, false, true, false, true}, lives)
		require.Equal(t, "again", last(t, v, ref(1)).Title)
	})
}
