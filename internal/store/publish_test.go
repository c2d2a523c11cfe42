package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

func TestPublishingAppendsToTheLog(t *testing.T) {
	o := testOptions(t.TempDir())
	o.Now = tick()
	db := openWith(t, o)
	c := collection(t, db, "m", 4)
	change := rename(1, 3, "second")
	change.PutTopics = append(change.PutTopics, named(ref(9), "new"))
	change.DeleteTopics = []fragment.Ref{ref(0)}
	change.Entries = append(change.Entries,
		fragment.Entry{TopicSI: ref(9), Topic: ref(9), Title: "new"},
		fragment.Entry{TopicSI: ref(0), Deleted: true, Title: "first", Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(0)}}},
	)
	change.Added, change.Deleted = 1, 1
	after := publish(t, db, "m", change)
	require.Equal(t, c.Head+4, after.Head)
	require.Equal(t, c.Topics, after.Topics, "one more and one less")
	require.True(t, after.Updated.After(c.Updated))
	for range 2 {
		view(t, db, "m", func(v *View) {
			require.Equal(t, *after, v.Collection, "what was returned is what is kept")
			log := entries(t, v)
			require.Len(t, log, int(after.Head))
			for i, want := range []Entry{
				{TopicSI: ref(1), Title: "second", Prior: 2, Modified: true}, {TopicSI: ref(2), Title: "second", Prior: 3, Modified: true},
				{TopicSI: ref(9), Title: "new"}, {TopicSI: ref(0), Title: "first", Deleted: true, Prior: 1, Modified: true},
			} {
				e := log[int(c.Head)+i]
				require.Len(t, e.Digests, len(Forms))
				want.Run, want.Seq, want.Updated, want.Stored, want.Apart, want.Digests = c.Run, c.Head+uint64(i)+1, e.Updated, true, e.Apart, e.Digests
				require.Equal(t, want, e)
				one, err := v.Entry(e.Seq)
				require.NoError(t, err)
				require.Equal(t, e, *one)
			}
			require.Equal(t, after.Updated, log[len(log)-1].Updated)
		})
		db = reopen(t, db)
	}
}

func TestEntriesBeginWhereAsked(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "a", 300)
	collection(t, db, "b", 3)
	view(t, db, "a", func(v *View) {
		for _, from := range []uint64{0, 1, 2, 255, 256, 257, 301, 302, 1000} {
			want := max(from, 1)
			for e, err := range v.Entries(from) {
				require.NoError(t, err)
				require.Equal(t, want, e.Seq)
				want++
			}
			require.Equal(t, max(v.Head+1, from), want, "from %d to the end", from)
		}
	})
}

// What is above the committed head, as a crash might leave it, is not shown.
func TestEntriesAboveTheHeadAreInvisible(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 3)
	require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error {
		return tx.PutJSON(keys.Sequence(keys.TableLog, c.Number, c.Head+1), Entry{Seq: c.Head + 1, TopicSI: ref(0)})
	}))
	view(t, db, "m", func(v *View) {
		require.Len(t, entries(t, v), int(c.Head))
		_, err := v.Entry(c.Head + 1)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = v.EntryOf(v.ID(&Entry{Seq: c.Head + 1}))
		require.ErrorIs(t, err, ErrNotFound)
	})
}

func TestAnEmptyChangePublishesNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 3)
	for name, change := range map[string]*fragment.Change{"nil": nil, "empty": {}, "without entries": {PutTopics: []*fragment.Topic{named(ref(0), "second")}}} {
		before := committed(t, db)
		require.Equal(t, c, publish(t, db, "m", change), name)
		require.Equal(t, before, committed(t, db), name)
	}
	next := version(t, func(tm *tmdm.TopicMap) {
		for i := range 3 {
			tm.CreateTopicBySubjectIdentifier(ref(i)).AddName("first", nil)
		}
	})
	require.Equal(t, c, publishMap(t, db, "m", next), "the same map again")
}

// version makes a map in which each topic has a subject identifier.
func version(t testing.TB, build func(*tmdm.TopicMap)) *fragment.Map {
	t.Helper()
	tm := tmdm.New()
	build(tm)
	tm.Normalize(t.Context())
	m, err := fragment.NewMap(tm, sp)
	require.NoError(t, err)
	return m
}

func TestADecisionThatFailsChangesNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 3)
	before, written := recordsOf(t, db, "m"), committed(t, db)
	failed := errors.New("no")
	for name, decide := range map[string]func(Collection, merge.State) (*fragment.Change, error){
		"error":            func(Collection, merge.State) (*fragment.Change, error) { return nil, failed },
		"change and error": func(Collection, merge.State) (*fragment.Change, error) { return rename(0, 3, "second"), failed },
		"writes and error": func(_ Collection, s merge.State) (*fragment.Change, error) {
			require.NoError(t, s.PutTopic(named(ref(0), "second")))
			return nil, failed
		},
	} {
		got, err := db.Publish(t.Context(), "m", decide)
		require.ErrorIs(t, err, failed, name)
		require.Nil(t, got, name)
		require.Equal(t, before, recordsOf(t, db, "m"), name)
		require.Equal(t, written, committed(t, db), name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := db.Publish(ctx, "m", func(Collection, merge.State) (*fragment.Change, error) {
		cancel()
		return rename(0, 3, "second"), nil
	})
	require.ErrorIs(t, err, context.Canceled)
	_, err = db.Publish(t.Context(), "m", func(Collection, merge.State) (*fragment.Change, error) {
		return &fragment.Change{Entries: []fragment.Entry{{TopicSI: "http://nobody", Topic: "http://nobody"}}}, nil
	})
	require.ErrorContains(t, err, "http://nobody", "a fragment of no topic")
	require.Equal(t, before, recordsOf(t, db, "m"))
	require.Equal(t, written, committed(t, db))
	require.Equal(t, c.Head+3, publish(t, db, "m", rename(0, 3, "second")).Head, "and no number is used up")
}

// Identifiers can move from any topic to any other in one change.
func TestIdentifiersMoveInOneChange(t *testing.T) {
	build := func(of map[fragment.Ref][2]fragment.Ref) *fragment.Map { // a second identifier and a locator for each topic
		return version(t, func(tm *tmdm.TopicMap) {
			for _, si := range slices.Sorted(maps.Keys(of)) {
				topic := tm.CreateTopicBySubjectIdentifier(si)
				require.NoError(t, errors.Join(topic.AddSubjectIdentifier(of[si][0]), topic.AddSubjectLocator(of[si][1])))
			}
		})
	}
	states := []*fragment.Map{
		build(map[fragment.Ref][2]fragment.Ref{"http://a": {"http://x", "http://l"}, "http://b": {"http://y", "http://m"}, "http://c": {"http://z", "http://n"}}),
		build(map[fragment.Ref][2]fragment.Ref{"http://a": {"http://y", "http://m"}, "http://b": {"http://z", "http://n"}, "http://c": {"http://x", "http://l"}}),
		build(map[fragment.Ref][2]fragment.Ref{"http://a": {"http://x", "http://l"}, "http://b": {"http://c", "http://m"}}), // c is b's now
		build(map[fragment.Ref][2]fragment.Ref{"http://c": {"http://b", "http://l"}, "http://x": {"http://a", "http://n"}}), // other TopicSIs
	}
	db := openDB(t, t.TempDir())
	collectionOf(t, db, "m", states[0])
	for _, i := range []int{1, 0, 2, 1, 3, 2, 0, 3, 0} {
		publishMap(t, db, "m", states[i])
		var want merge.Memory
		require.NoError(t, want.Load(states[i]))
		require.Equal(t, all(t, &want), recordsOf(t, db, "m"))
	}
}

// A decision sees the state that its change is applied to: of many writers none
// overwrites what another has written.
func TestWritersWaitForEachOther(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 0)
	const writers, each = 4, 10
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range each {
				_, err := db.Publish(t.Context(), "m", func(c Collection, s merge.State) (*fragment.Change, error) {
					i := c.Topics
					if there, err := s.Topic(ref(i)); there != nil || err != nil {
						t.Errorf("topic %d is there already, %v", i, err)
					}
					change := rename(i, i+1, "new")
					change.Added, change.Updated = 1, 0
					return change, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	view(t, db, "m", func(v *View) {
		require.Equal(t, c.Topics+writers*each, v.Topics)
		require.Len(t, topicsOf(t, v.Source()), v.Topics)
		require.Equal(t, c.Head+writers*each, v.Head)
	})
}

// A view shows one state: records, log, last entries, fragments.
func TestAViewIsStable(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 5)
	publish(t, db, "m", rename(1, 2, "second"))
	state := func(v *View) []any {
		last, err := v.Last(fragment.Key(ref(1)))
		require.NoError(t, err)
		data, err := v.StoredFragment(last, Forms[1])
		require.NoError(t, err)
		return []any{v.Collection, all(t, v.Source().(merge.State)), entries(t, v), *last, data}
	}
	var before []any
	view(t, db, "m", func(v *View) {
		before = state(v)
		publish(t, db, "m", rename(0, 5, "third"))
		publish(t, db, "m", &fragment.Change{DeleteTopics: []fragment.Ref{ref(1)}, Entries: []fragment.Entry{
			{TopicSI: ref(1), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(1)}}},
		}, Deleted: 1})
		require.Equal(t, before, state(v), "the view has not moved")
	})
	view(t, db, "m", func(v *View) {
		require.NotEqual(t, before[0], v.Collection)
		require.Equal(t, 5, v.Topics)
	})
}

// A preview does all that publishing does but for the commit, and what it has read
// and made does not show in what is published next.
func TestPreviewChangesNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	before := collection(t, db, "m", 4)
	records, at := recordsOf(t, db, "m"), committed(t, db)
	change := rename(1, 3, "second")
	change.DeleteTopics, change.Deleted = []fragment.Ref{ref(0)}, 1
	change.Entries = append(change.Entries, fragment.Entry{TopicSI: ref(0), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(0)}}})
	would, err := db.Preview(t.Context(), "m", func(Collection, merge.State) (*fragment.Change, error) { return change, nil })
	require.NoError(t, err)
	require.Equal(t, before.Head+3, would.Head)
	require.Equal(t, before.Topics-1, would.Topics)
	require.Equal(t, at, committed(t, db))
	require.Equal(t, records, recordsOf(t, db, "m"))
	view(t, db, "m", func(v *View) { require.Equal(t, *before, v.Collection) })
	require.Equal(t, before.Head+3, publish(t, db, "m", change).Head)
	require.Equal(t, recordsOf(t, db, "m"), recordsOf(t, reopen(t, db), "m"))
}
