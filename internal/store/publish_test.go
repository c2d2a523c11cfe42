package store

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

func TestPublishingAppendsToTheLog(t *testing.T) {
	db := openAt(t, tick())
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
				want.Run, want.Seq, want.Updated, want.Digest = c.Run, c.Head+uint64(i)+1, e.Updated, e.Digest
				require.Equal(t, want, e)
				commit, err := v.CommitOf(e.Seq)
				require.NoError(t, err)
				require.Equal(t, after.Head, commit, "they are one commit")
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
		return tx.PutJSON(c.Log().Numbered(keys.TableLog, c.Head+1), Entry{Seq: c.Head + 1, TopicSI: ref(0)})
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
	require.Equal(t, before, recordsOf(t, db, "m"))
	require.Equal(t, written, committed(t, db))
	require.Equal(t, c.Head+3, publish(t, db, "m", rename(0, 3, "second")).Head, "and no number is used up")
}

// Identifiers can move from any topic to any other in one change.
func TestIdentifiersMoveInOneChange(t *testing.T) {
	build := func(identifiers map[fragment.Ref][2]fragment.Ref) *fragment.Map { // a second identifier and a locator for each topic
		return version(t, func(tm *tmdm.TopicMap) {
			for _, si := range slices.Sorted(maps.Keys(identifiers)) {
				topic := tm.CreateTopicBySubjectIdentifier(si)
				require.NoError(t, errors.Join(topic.AddSubjectIdentifier(identifiers[si][0]), topic.AddSubjectLocator(identifiers[si][1])))
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

// A decision sees the state to which its change is applied: no writer overwrites the changes of another one.
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
		return []any{v.Collection, all(t, v.Source().(merge.State)), entries(t, v), *last, shown(t, v, last)}
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

// A preview does the same as publishing, without the commit, and its reads and changes do not affect the next
// publication.
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

// The snapshot of the empty collection is removed with that state.
func TestFillingLeavesNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	nothing, err := fragment.NewMap(tmdm.New(), sp)
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp}, nothing, nil)
	require.NoError(t, err)
	_, err = db.TakeSnapshot(t.Context(), "m", 3)
	require.NoError(t, err)
	_, err = db.FillCollection(t.Context(), "m", mapOf(t, 3))
	require.NoError(t, err)
	_, err = db.TakeSnapshot(t.Context(), "m", 3)
	require.NoError(t, err)
	left, err := db.leftovers(t.Context(), anyTime)
	require.NoError(t, err)
	require.Empty(t, left.files)
	require.Empty(t, left.rows)
}

func TestFillCollection(t *testing.T) {
	db := openDB(t, t.TempDir())
	nothing, err := fragment.NewMap(tmdm.New(), sp)
	require.NoError(t, err)
	empty, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp}, nothing, nil)
	require.NoError(t, err)
	_, err = db.TakeSnapshot(t.Context(), "m", 3)
	require.NoError(t, err)
	tm := tmdm.New()
	tm.CreateTopicBySubjectIdentifier("http://example.org/a").AddName("A", nil)
	src, err := fragment.NameTopics(t.Context(), tm, sp, nil)
	require.NoError(t, err)

	no := errors.New("no")
	_, err = db.FillCollection(t.Context(), "m", src, func(*Collection) error { return no })
	require.ErrorIs(t, err, no)
	require.NoError(t, db.View(t.Context(), "m", func(v *View) error { assert.Zero(t, v.Head); return nil }))

	// The time is up when the records are stored already.
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = db.FillCollection(ctx, "m", &lastTopics{Source: src, then: func() { cancel(late) }})
	require.ErrorIs(t, err, late)
	onlyOf(t, db, empty)
	_, err = db.FillCollection(ctx, "m", src)
	require.ErrorIs(t, err, late)
	onlyOf(t, db, empty)

	filled, err := db.FillCollection(t.Context(), "m", src)
	require.NoError(t, err)
	assert.Equal(t, empty.Epoch, filled.Epoch)
	require.NoError(t, db.View(t.Context(), "m", func(v *View) error {
		assert.EqualValues(t, 2, v.Head)
		assert.Equal(t, 2, v.Topics)
		got, err := v.Source().Topic("http://example.org/a")
		require.NoError(t, err)
		assert.Equal(t, "A", got.Title())
		snapshots, err := v.Snapshots()
		assert.Empty(t, snapshots)
		return err
	}))
	_, err = db.FillCollection(t.Context(), "m", src)
	require.ErrorIs(t, err, ErrExists)

	onlyOf(t, db, filled)
}

// A failed creation of a collection, at any point, leaves no rows.
func TestACollectionThatIsNotCreatedLeavesNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	src := mapOf(t, 50)
	create := func(ctx context.Context, src fragment.Source) error {
		_, err := db.CreateCollection(ctx, Collection{Name: "m", SP: sp}, src, nil)
		return err
	}
	all := keys.SourceTables + "efkg"
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	require.ErrorIs(t, create(ctx, &lastTopics{Source: src, then: func() { cancel(late) }}), late)
	require.Zero(t, rows(t, db, all))
	require.ErrorIs(t, create(t.Context(), &lastTopics{Source: src, then: func() {
		collection(t, db, "m", 3) // somebody else is quicker
	}}), ErrExists)
	view(t, db, "m", func(v *View) {
		require.Equal(t, 4, v.Topics)
		onlyOf(t, db, &v.Collection)
	})
}

// onlyOf checks that all rows have the numbers of a collection: none of a replaced map or of failed attempts remain.
func onlyOf(t *testing.T, db *DB, c *Collection) {
	t.Helper()
	require.NoError(t, db.rows.View(t.Context(), func(rows *txn.Tx) error {
		for r, err := range rows.Scan(nil, keys.Space(keys.FirstNumber)) {
			require.NoError(t, err)
			assert.Equal(t, c.Number, keys.SourceOf(r.Key).Number, "%x", r.Key)
		}
		return nil
	}))
}

// lastTopics calls then when the topics are read again, for the entries.
type lastTopics struct {
	fragment.Source
	then  func()
	times int
}

func (l *lastTopics) Topics() iter.Seq2[*fragment.Topic, error] {
	if l.times++; l.times == 2 {
		l.then()
	}
	return l.Source.Topics()
}

// Entries have the author and the note of the change; those that the store publishes by itself have none.
func TestEntriesBearAuthorAndNote(t *testing.T) {
	db := openDB(t, t.TempDir())
	_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp}, &merge.Memory{}, nil)
	require.NoError(t, err)
	first, err := db.FillCollection(t.Context(), "m", First{Source: mapOf(t, 3), Author: "Alice", Note: "the beginning"})
	require.NoError(t, err)
	change := rename(0, 2, "second")
	change.Author, change.Note = "Bob", "better names"
	second := publish(t, db, "m", change)
	publish(t, db, "m", rename(2, 3, "third"))
	_, err = db.ChangeSettings(t.Context(), "m", func(s *Settings) error { s.RecordForms = []xtm.Version{xtm.V21}; return nil })
	require.NoError(t, err)
	_, err = db.OfferRecordsAnew(t.Context(), "m")
	require.NoError(t, err)
	db = reopen(t, db)
	view(t, db, "m", func(v *View) {
		require.Greater(t, v.Head, second.Head+1, "records were published again")
		for e, err := range v.Entries(1) {
			require.NoError(t, err)
			want := [2]string{}
			switch {
			case e.Seq <= first.Head:
				want = [2]string{"Alice", "the beginning"}
			case e.Seq <= second.Head:
				want = [2]string{"Bob", "better names"}
			}
			require.Equal(t, want, [2]string{e.Author, e.Note}, "entry %d", e.Seq)
		}
	})
}

// A collection of an extension is published only by that, even if the program does not have the extension. It can be
// read and deleted.
func TestAnOwnedCollectionIsPublishedByItsOwnerAlone(t *testing.T) {
	t.Parallel()
	db := openAt(t, tick())
	says := "is kept by something else: change that"
	_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp, Owner: &collections.Owner{Extension: "x", Says: says}}, &merge.Memory{}, nil)
	require.NoError(t, err)
	decide := func(Collection, merge.State) (*fragment.Change, error) { return nil, nil }
	refused := func(err error) {
		t.Helper()
		var readOnly *ReadOnlyError
		require.ErrorAs(t, err, &readOnly)
		require.EqualError(t, err, `collection "m" `+says)
	}
	_, err = db.Publish(t.Context(), "m", decide)
	refused(err)
	_, err = db.Preview(t.Context(), "m", decide)
	refused(err)
	_, err = db.FillCollection(t.Context(), "m", &merge.Memory{})
	refused(err)
	_, err = db.publish(t.Context(), db.rows.UpdateOf, "m", writer{extension: "y"}, decide)
	refused(err)
	_, err = db.publish(t.Context(), db.rows.UpdateOf, "m", writer{extension: "x"}, decide)
	require.NoError(t, err)
	_, err = db.ChangeSettings(t.Context(), "m", func(s *Settings) error { s.Title = "t"; return nil })
	require.NoError(t, err)
	require.NoError(t, db.View(t.Context(), "m", func(v *View) error { require.Equal(t, "x", v.Owner.Extension); return nil }))
	require.NoError(t, db.DeleteCollection(t.Context(), "m", ""))
}
