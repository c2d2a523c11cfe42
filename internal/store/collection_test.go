package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/merge"
)

func TestCreatingACollectionPublishesEachTopic(t *testing.T) {
	db := openAt(t, tick())
	src := mapOf(t, 5)
	var reported []int
	c, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp, Settings: Settings{Title: "A map", DocumentSize: 7}}, src, func(n int) { reported = append(reported, n) })
	require.NoError(t, err)
	require.Equal(t, []any{"m", "A map", sp, 7, uint64(6), 6}, []any{c.Name, c.Title, c.SP, c.DocumentSize, c.Head, c.Topics})
	require.NotEqual(t, uuid.Nil, c.Epoch)
	require.Empty(t, reported, "so few records are no progress")
	for range 2 {
		view(t, db, "m", func(v *View) {
			require.Equal(t, *c, v.Collection)
			require.Equal(t, all(t, src), all(t, v.Source().(merge.State)))
			log, topics := entries(t, v), topicsOf(t, src)
			require.Len(t, log, len(topics))
			for i, e := range log {
				require.Equal(t, Entry{Seq: uint64(i + 1), Run: c.Run, Updated: e.Updated, TopicSI: topics[i].TopicSI(), Title: topics[i].Title(), Digest: e.Digest}, e)
				commit, err := v.CommitOf(e.Seq)
				require.NoError(t, err)
				require.Equal(t, c.Head, commit, "they are one commit")
				require.Equal(t, topics[i].TopicSI(), e.Describes())
			}
			require.Equal(t, log[len(log)-1].Updated, c.Updated)
		})
		db = reopen(t, db)
	}
}

func TestACollectionOfNoTopicsIsACollection(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collectionOf(t, db, "m", &merge.Memory{})
	require.Zero(t, c.Head)
	require.Equal(t, c.Created, c.Updated)
	view(t, db, "m", func(v *View) { require.Empty(t, entries(t, v)) })
	require.Equal(t, uint64(1), publish(t, db, "m", rename(0, 1, "first")).Head)
}

func TestCreatingTellsProgress(t *testing.T) {
	db := openDB(t, t.TempDir())
	var reported []int
	_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp}, mapOf(t, 2500), func(n int) { reported = append(reported, n) })
	require.NoError(t, err)
	require.Equal(t, []int{1000, 2000}, reported)
}

func TestANameThatIsTakenExists(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 3)
	before := recordsOf(t, db, "m")
	_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: "http://other/"}, mapOf(t, 9), nil)
	require.ErrorIs(t, err, ErrExists)
	require.ErrorContains(t, err, `"m"`)
	require.Equal(t, before, recordsOf(t, db, "m"))
	view(t, db, "m", func(v *View) { require.Equal(t, *c, v.Collection) })
}

// Of several that create a collection at once one succeeds, with its map alone.
func TestOneOfSeveralCreatorsWins(t *testing.T) {
	db := openDB(t, t.TempDir())
	errs := make([]error, 4)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			_, errs[i] = db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp}, mapOf(t, 10+i), nil)
		})
	}
	group.Wait()
	won := -1
	for i, err := range errs {
		if err == nil {
			require.Negative(t, won, "two have won")
			won = i
		} else {
			require.ErrorIs(t, err, ErrExists)
		}
	}
	require.GreaterOrEqual(t, won, 0)
	db = reopen(t, db)
	require.Equal(t, all(t, mapOf(t, 10+won)), recordsOf(t, db, "m"))
	require.Equal(t, 11+won, rows(t, db, "t"), "what the others loaded is gone")
	require.Equal(t, 11+won, rows(t, db, "e"))
}

// failing is a source whose n-th iteration over the topics fails after some of them.
type failing struct {
	fragment.Source
	n, after int
	fail     func() error
	read     int // topics, of all iterations
}

func (f *failing) Topics() iter.Seq2[*fragment.Topic, error] {
	f.n--
	return func(yield func(*fragment.Topic, error) bool) {
		seen := 0
		for topic, err := range f.Source.Topics() {
			if seen++; f.n == 0 && seen > f.after {
				if err := f.fail(); err != nil {
					yield(nil, err)
					return
				}
			}
			f.read++
			if !yield(topic, err) {
				return
			}
		}
	}
}

// A failed creation, at any point, leaves no visible collection and no rows.
func TestAnInterruptedCreationLeavesNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		pass, after int
		cancel      bool
	}{
		"first record":          {1, 0, false},
		"record in the middle":  {1, 40, false},
		"cancelled at a record": {1, 40, true},
		"first entry":           {2, 0, false},
		"entry in the middle":   {2, 40, false},
		"cancelled at an entry": {2, 40, true},
	} {
		t.Run(name, func(t *testing.T) {
			db := openDB(t, t.TempDir())
			collection(t, db, "other", 3)
			kept := rows(t, db, "tilanefkcsU")
			ctx, cancel := context.WithCancel(t.Context())
			src := &failing{Source: heavy(t), n: c.pass, after: c.after, fail: func() error {
				if c.cancel {
					cancel()
					return nil
				}
				return broken
			}}
			created, err := db.CreateCollection(ctx, Collection{Name: "m", SP: sp}, src, nil)
			require.Nil(t, created)
			if c.cancel {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				require.ErrorIs(t, err, broken)
			}
			require.LessOrEqual(t, src.read, (c.pass-1)*len(topicsOf(t, src.Source))+c.after+1, "it ends at once")
			require.ErrorIs(t, db.View(t.Context(), "m", func(*View) error { return nil }), ErrNotFound)
			require.Equal(t, kept, rows(t, db, "tilanefkcsU"), "nothing is left")
			require.Equal(t, 11, collection(t, db, "m", 10).Topics, "the name is free")
		})
	}
}

func TestCollectionsComeByName(t *testing.T) {
	db := openDB(t, t.TempDir())
	none, err := db.Collections(t.Context())
	require.NoError(t, err)
	require.Empty(t, none)
	for _, name := range []string{"b", "a", "ab", "B"} {
		collection(t, db, name, 1)
	}
	list, err := reopen(t, db).Collections(t.Context())
	require.NoError(t, err)
	var names []string
	numbers := map[uint32]bool{}
	for _, c := range list {
		names = append(names, c.Name)
		numbers[c.Number] = true
	}
	require.Equal(t, []string{"B", "a", "ab", "b"}, names)
	require.Len(t, numbers, 4)
}

// Collections and subscriptions with similar maps are separate.
func TestSourcesAreKeptApart(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "a", 4)
	collection(t, db, "b", 4)
	subscribe(t, db, "s", mapOf(t, 4))
	before := recordsOf(t, db, "b")
	publish(t, db, "a", rename(0, 4, "second"))
	require.Equal(t, before, recordsOf(t, db, "b"))
	view(t, db, "b", func(v *View) { require.Len(t, entries(t, v), 5) })
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) {
		require.Equal(t, before, all(t, src.(merge.State)))
	})
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 1)
	for name, ask := range map[string]func() error{
		"view": func() error { return db.View(t.Context(), "x", func(*View) error { return nil }) },
		"publish": func() error {
			_, err := db.Publish(t.Context(), "x", func(Collection, merge.State) (*fragment.Change, error) { return rename(0, 1, "x"), nil })
			return err
		},
		"snapshot":     func() error { _, err := db.TakeSnapshot(t.Context(), "x", 1); return err },
		"subscription": func() error { return db.UpdateSubscription(t.Context(), "m", func(*Subscription) {}) },
		"stage":        func() error { return db.StageSource(t.Context(), "m", fragment.Records(mapOf(t, 1)), Mark{}, nil) },
		"apply": func() error {
			return db.ApplyEntries(t.Context(), "m", func(*Applying) error { return nil })
		},
		"entry 0": func() error {
			return db.View(t.Context(), "m", func(v *View) error { _, err := v.Entry(0); return err })
		},
		"entry above Head": func() error {
			return db.View(t.Context(), "m", func(v *View) error { _, err := v.Entry(v.Head + 1); return err })
		},
	} {
		require.ErrorIs(t, ask(), ErrNotFound, name)
	}
	require.Equal(t, 2, rows(t, db, "t"))
}

// Times of entries increase strictly for any clock, and are in UTC with microseconds.
func TestTimesOfEntriesIncrease(t *testing.T) {
	start := time.Date(2024, 5, 1, 14, 0, 0, 123456789, time.FixedZone("CEST", 2*60*60))
	now := start
	o := testOptions(t.TempDir())
	o.Now = func() time.Time { return now }
	db := openWith(t, o)
	c := collection(t, db, "m", 3) // the clock stands still
	require.Equal(t, "2024-05-01T12:00:00.123456Z", c.Created.Format(time.RFC3339Nano))
	for i, at := range []time.Time{start, start.Add(-24 * 365 * time.Hour), start.Add(time.Hour), start.Add(time.Minute), {}} {
		now = at
		before := c.Updated
		c = publish(t, db, "m", rename(0, 3, fmt.Sprint("name ", i)))
		require.True(t, c.Updated.After(before))
		require.NoError(t, db.Close())
		db = openWith(t, o)
	}
	require.Equal(t, start.Add(time.Hour).UTC().Truncate(time.Microsecond).Add(8*time.Microsecond), c.Updated, "a clock that goes back is not followed")
	view(t, db, "m", func(v *View) {
		last := c.Created
		for _, e := range entries(t, v) {
			require.True(t, e.Updated.After(last), "entry %d", e.Seq)
			require.Equal(t, e.Updated.Truncate(time.Microsecond).UTC(), e.Updated)
			last = e.Updated
		}
		require.Equal(t, last, v.Updated)
	})
}

func TestSettingsChange(t *testing.T) {
	db := openDB(t, t.TempDir())
	before := collection(t, db, "m", 3)
	other := collection(t, db, "other", 3)
	all := Settings{
		Title: "A map", Summary: "of things", DocumentSize: 7, OmitInstances: true, SnapshotEvery: 5, SnapshotAfter: time.Hour,
		SnapshotsKept: 4, KeepEntries: 1000, KeepFor: 90 * 24 * time.Hour,
	}
	c, err := db.ChangeSettings(t.Context(), "m", func(s *Settings) error {
		require.Equal(t, before.Settings, *s, "it sees what is set")
		*s = all
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, all, c.Settings)
	for range 2 {
		view(t, db, "m", func(v *View) {
			require.Equal(t, *c, v.Collection, "what was returned is what is kept")
			want := *before
			want.Settings, want.Segments, want.Omits = all, v.Segments, collections.Turns{before.Head}
			require.Equal(t, want, v.Collection, "nothing else has changed")
			require.Len(t, entries(t, v), int(before.Head))
		})
		view(t, db, "other", func(v *View) { require.Equal(t, *other, v.Collection) })
		db = reopen(t, db)
	}
	c, err = db.ChangeSettings(t.Context(), "m", func(s *Settings) error { *s = Settings{}; return nil })
	require.NoError(t, err)
	require.Equal(t, Settings{DocumentSize: 7}, c.Settings, "documents must have some size: it stays")
}

func TestSettingsThatAreRefusedChangeNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 3)
	written, refused := committed(t, db), errors.New("no")
	set := func(change func(*Settings)) func(*Settings) error {
		return func(s *Settings) error { s.Title = "changed"; change(s); return nil }
	}
	for name, change := range map[string]func(*Settings) error{
		"documentSize (--document-size) is negative":   set(func(s *Settings) { s.DocumentSize = -1 }),
		"snapshotEvery (--snapshot-every) is negative": set(func(s *Settings) { s.SnapshotEvery = -1 }),
		"snapshotAfter (--snapshot-after) is negative": set(func(s *Settings) { s.SnapshotAfter = -time.Second }),
		"snapshotsKept (--snapshots-kept) is negative": set(func(s *Settings) { s.SnapshotsKept = -1 }),
		"keepFor (--keep-for) is negative":             set(func(s *Settings) { s.KeepFor = -1 }),
		"no":                                           func(s *Settings) error { s.Title = "changed"; return refused },
	} {
		got, err := db.ChangeSettings(t.Context(), "m", change)
		require.ErrorContains(t, err, name)
		require.Nil(t, got)
	}
	passes := func(got *Collection) error { require.Equal(t, c, got); return nil }
	got, err := db.ChangeSettings(t.Context(), "m", set(func(*Settings) {}), passes, func(*Collection) error { return refused })
	require.ErrorIs(t, err, refused, "the second check")
	require.Nil(t, got)
	_, err = db.ChangeSettings(t.Context(), "x", set(func(*Settings) {}))
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, written, committed(t, db))
	view(t, db, "m", func(v *View) { require.Equal(t, *c, v.Collection) })
	_, err = db.ChangeSettings(t.Context(), "m", set(func(*Settings) {}), passes)
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), Collection{Name: "n", SP: sp, Settings: Settings{KeepFor: -1}}, mapOf(t, 1), nil)
	require.ErrorContains(t, err, "keepFor (--keep-for) is negative")
}
