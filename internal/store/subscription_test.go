package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/merge"
)

func subscription(t testing.TB, db *DB, name string) *Subscription {
	t.Helper()
	list, err := db.Subscriptions(t.Context())
	require.NoError(t, err)
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	t.Fatalf("there is no subscription %q", name)
	return nil
}

// applyRename gives topics another name, and moves the mark.
func applyRename(t testing.TB, db *DB, subscription string, from, to int, name string) {
	t.Helper()
	require.NoError(t, db.ApplyEntries(t.Context(), subscription, func(s *Applying) error {
		for i := from; i < to; i++ {
			if err := s.PutTopic(named(ref(i), name)); err != nil {
				return err
			}
		}
		s.Applied += to - from
		s.Mark = Mark{Updated: time.Unix(int64(s.Applied), 0).UTC(), Handled: []string{name}}
		return nil
	}))
}

func TestSubscriptionsAreKept(t *testing.T) {
	db := openDB(t, t.TempDir())
	at := time.Date(2024, 5, 1, 12, 0, 0, 123456000, time.UTC)
	want := Subscription{
		Name: "b", FragmentsFeed: "http://h/f", SnapshotsFeed: "http://h/s", SP: sp, FeedID: "urn:x", ETag: `"e"`,
		LastCheck: at, LastChange: at.Add(time.Second), LastError: "no", LastErrorAt: at.Add(time.Minute),
	}
	require.NoError(t, db.AddSubscription(t.Context(), want))
	require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: "a", SP: sp}))
	want.Number = subscription(t, db, "b").Number
	require.NotEqual(t, want.Number, subscription(t, db, "a").Number)
	require.Equal(t, want, *subscription(t, db, "b"))
	require.NoError(t, db.UpdateSubscription(t.Context(), "b", func(s *Subscription) { s.LastError, s.ETag = "", `"f"` }))
	want.LastError, want.ETag = "", `"f"`
	db = reopen(t, db)
	list, err := db.Subscriptions(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Subscription{*subscription(t, db, "a"), want}, list, "by name")
}

func TestASubscriptionThatExists(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 3))
	before := *subscription(t, db, "s")
	err := db.AddSubscription(t.Context(), Subscription{Name: "s", SP: "http://other/"})
	require.ErrorIs(t, err, ErrExists)
	require.ErrorContains(t, err, `"s"`)
	require.Equal(t, before, *subscription(t, db, "s"))
	_, err = db.CreateCollection(t.Context(), Collection{Name: "s", SP: sp}, mapOf(t, 1), nil)
	require.ErrorContains(t, err, "the name is taken")
}

func TestASubscriptionWithoutAState(t *testing.T) {
	db := openDB(t, t.TempDir())
	require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: "s", SP: sp}))
	err := db.ApplyEntries(t.Context(), "s", func(*Applying) error { return errors.New("it is called") })
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "no state")
	read := func() (n int) {
		require.NoError(t, db.ReadSources(t.Context(), func(s []Subscription, src []fragment.Source) error {
			require.Equal(t, len(s), len(src))
			n = len(s)
			return nil
		}))
		return n
	}
	require.Zero(t, read())
	require.NoError(t, db.StageSource(t.Context(), "s", fragment.Records(mapOf(t, 3)), Mark{}, nil))
	applyRename(t, db, "s", 0, 1, "second")
	require.Zero(t, read(), "what is staged is not shown")
	require.NoError(t, db.UpdateSubscription(t.Context(), "s", switchOver))
	require.Equal(t, 1, read())
}

// Readers see the old generation until the switch, and the new one after it; then the old rows are removed.
func TestACleanReplacementIsASwitch(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 5))
	subscribe(t, db, "bystander", mapOf(t, 7))
	applyRename(t, db, "s", 0, 5, "old")
	old := subscription(t, db, "s").State
	count := rows(t, db, recordRows)
	names := func() map[string]int {
		var n map[string]int
		require.NoError(t, db.ReadSources(t.Context(), func(s []Subscription, src []fragment.Source) error {
			require.Equal(t, "s", s[1].Name)
			n = namesOf(t, src[1])
			return nil
		}))
		return n
	}
	mark := Mark{Updated: time.Unix(7, 0).UTC()}
	var reported []Loading
	require.NoError(t, db.StageSource(t.Context(), "s", fragment.Records(mapOf(t, 1500)), mark, func(l Loading) { reported = append(reported, l) }))
	require.Equal(t, Loading{Records: 1000}, reported[0])
	s := subscription(t, db, "s")
	require.Equal(t, old, s.State, "the state is as it was")
	require.Equal(t, &sources.Progress{Generation: s.Staging.Generation, Snapshot: true, Mark: mark}, s.Staging)
	require.NotEqual(t, old.Generation, s.Staging.Generation)
	require.Equal(t, map[string]int{"old": 5}, names())

	applyRename(t, db, "s", 0, 1000, "caught up")
	require.Equal(t, map[string]int{"old": 5}, names())
	db = reopen(t, db) // the staged generation is continued
	applyRename(t, db, "s", 1000, 1500, "caught up")
	require.Equal(t, map[string]int{"old": 5}, names())
	s = subscription(t, db, "s")
	require.Equal(t, 1500, s.Staging.Applied)

	require.NoError(t, db.ReadSources(t.Context(), func(_ []Subscription, src []fragment.Source) error {
		require.NoError(t, db.UpdateSubscription(t.Context(), "s", switchOver))
		require.Equal(t, map[string]int{"old": 5}, namesOf(t, src[1]), "a reader keeps what it sees")
		return nil
	}))
	require.Equal(t, map[string]int{"caught up": 1500}, names())
	require.Equal(t, count+1500-5, rows(t, db, recordRows), "the old generation is gone, and nothing else")
	now := subscription(t, db, "s")
	require.Nil(t, now.Staging)
	require.Equal(t, s.Staging, now.State)
	applyRename(t, db, "s", 0, 1, "after")
	db = reopen(t, db)
	require.Equal(t, map[string]int{"caught up": 1499, "after": 1}, names())
	require.Equal(t, count+1500-5, rows(t, db, recordRows))
}

func TestStagingAgainDropsWhatWasStaged(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 5))
	require.NoError(t, db.StageSource(t.Context(), "s", fragment.Records(mapOf(t, 100)), Mark{}, nil))
	count := rows(t, db, recordRows)
	require.NoError(t, db.StageSource(t.Context(), "s", fragment.Records(mapOf(t, 10)), Mark{}, nil))
	require.Equal(t, count-90, rows(t, db, recordRows))
	require.NoError(t, db.UpdateSubscription(t.Context(), "s", func(s *Subscription) { s.Staging = nil }))
	require.Equal(t, count-101-1, rows(t, db, recordRows), "what is given up is gone, its counts too")
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) { require.Len(t, topicsOf(t, src), 6) })
}

// A failed or interrupted load leaves no rows, and does not change the state.
func TestAnInterruptedLoadIsSwept(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 5))
	before, count := *subscription(t, db, "s"), rows(t, db, keys.SourceTables)
	broken := errors.New("broken")
	src := &failing{Source: heavy(t), n: 1, after: 40, fail: func() error { return broken }}
	written := countWrites(db, func(int) {})
	require.ErrorIs(t, db.StageSource(t.Context(), "s", fragment.Records(src), Mark{}, nil), broken)
	require.Positive(t, *written, "it wrote something")
	require.Equal(t, count, rows(t, db, keys.SourceTables), "what it wrote is removed")
	require.Equal(t, before, *subscription(t, db, "s"))

	id := keys.Source{Number: before.Number, Generation: before.State.Generation + 100}
	require.NoError(t, db.loader().Load(t.Context(), id, fragment.Records(mapOf(t, 1000)), nil)) // and here the process ends
	require.Greater(t, rows(t, db, keys.SourceTables), count+1000)
	db = reopen(t, db)
	require.Equal(t, count, rows(t, db, keys.SourceTables), "what it wrote is swept")
	require.Equal(t, before, *subscription(t, db, "s"))
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) { require.Len(t, topicsOf(t, src), 6) })
}

// Of two loads at once the one that ends last is staged, alone: they do not mix.
func TestLoadsAtOnceDoNotMix(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 1))
	sources := []*merge.Memory{{}, {}, {}}
	for i, m := range sources {
		for n := range 2000 {
			require.NoError(t, m.PutTopic(named(ref(i*10_000+n), fmt.Sprint("source ", i))))
		}
	}
	errs := make([]error, len(sources))
	var group sync.WaitGroup
	for i := range sources {
		group.Go(func() { errs[i] = db.StageSource(t.Context(), "s", fragment.Records(sources[i]), Mark{}, nil) })
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, db.UpdateSubscription(t.Context(), "s", switchOver))
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) {
		names := namesOf(t, src)
		require.Len(t, names, 1, "the topics are of one source")
		for _, n := range names {
			require.Equal(t, 2000, n)
		}
	})
	require.Equal(t, 2000, rows(t, db, "t"))
	db = reopen(t, db)
	require.Equal(t, 2000, rows(t, db, "t"))
}

// Mark and data move in one commit, or neither does.
func TestMarkAndDataMoveTogether(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 5))
	written := committed(t, db)
	applyRename(t, db, "s", 0, 5, "second")
	require.Equal(t, written+1, committed(t, db))
	s := *subscription(t, db, "s")
	require.Equal(t, Mark{Updated: time.Unix(5, 0).UTC(), Handled: []string{"second"}}, s.State.Mark)

	var before string
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) { before = all(t, src.(merge.State)) })
	failed := errors.New("failed")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for want, ctx := range map[error]context.Context{failed: t.Context(), context.Canceled: ctx} {
		err := db.ApplyEntries(ctx, "s", func(state *Applying) error {
			state.Applied, state.Mark = 99, Mark{}
			require.NoError(t, state.PutTopic(named(ref(1), "third")))
			require.NoError(t, state.DeleteTopic(named(ref(2), "")))
			cancel()
			if want == failed {
				return failed
			}
			return nil
		})
		require.ErrorIs(t, err, want)
		require.Equal(t, s, *subscription(t, db, "s"))
		subscribedTo(t, db, func(_ Subscription, src fragment.Source) { require.Equal(t, before, all(t, src.(merge.State))) })
	}
	require.Equal(t, written+1, committed(t, db))
	db = reopen(t, db)
	require.Equal(t, s, *subscription(t, db, "s"))
}

// What ReadSources gives is all of one moment.
func TestSourcesAreReadAsOfOneMoment(t *testing.T) {
	db := openDB(t, t.TempDir())
	for _, name := range []string{"a", "b", "c"} {
		subscribe(t, db, name, mapOf(t, 20))
	}
	require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: "aa", SP: sp})) // nothing to see yet
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			err := db.ReadSources(t.Context(), func(list []Subscription, sources []fragment.Source) error {
				if len(list) != 3 || list[0].Name != "a" || list[1].Name != "b" || list[2].Name != "c" {
					return fmt.Errorf("not the subscriptions with a state, by name: %v", list)
				}
				for i, s := range list { // they are changed in this order
					if i > 0 && s.State.Applied > list[i-1].State.Applied {
						return errors.New("a later change is seen without the one before it")
					}
					for topic, err := range sources[i].Topics() {
						if err != nil {
							return err
						}
						if want := fmt.Sprint("round ", s.State.Applied/20); s.State.Applied > 0 && len(topic.Names) > 0 && topic.Names[0].Value != want {
							return fmt.Errorf("%s, not %s, in source %s", topic.Names[0].Value, want, s.Name)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for round := range 15 {
		for _, name := range []string{"a", "b", "c"} {
			applyRename(t, db, name, 0, 20, fmt.Sprint("round ", round+1))
		}
	}
	close(stop)
	group.Wait()
}

// TestFormerRowsOfSubscriptionsAreRead reads options of a subscription as written by former versions.
func TestFormerRowsOfSubscriptionsAreRead(t *testing.T) {
	var s Subscription
	require.NoError(t, json.Unmarshal([]byte(`{"Name":"egov","Format":"xtm1","TokenFile":"/t","AcceptMoves":true,`+
		`"CACert":"/c","Hosts":["h"],"Strict":false}`), &s))
	require.Equal(t, Asked{Format: "xtm1", TokenFile: "/t", AcceptMoves: true, CACert: "/c", Hosts: []string{"h"},
		Strict: new(false)}, s.Asked)
}

// TestConsumersEndWithTheirSubscription ends a subscription. Its consumers that end with it do, and no others.
func TestConsumersEndWithTheirSubscription(t *testing.T) {
	db, err := Open(t.Context(), Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer db.Close()
	for _, name := range []string{"egov", "other"} {
		require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: name, SP: "http://example.org/"}))
	}
	for _, c := range []Consumer{{Name: "a", Source: "egov", WithSource: true}, {Name: "b", Source: "egov"},
		{Name: "c", Source: "other", WithSource: true}} {
		require.NoError(t, db.AddConsumer(t.Context(), c))
	}
	require.NoError(t, db.RemoveSubscription(t.Context(), "egov"))
	left, err := db.Consumers(t.Context())
	require.NoError(t, err)
	var names []string
	for _, c := range left {
		names = append(names, c.Name)
	}
	require.Equal(t, []string{"b", "c"}, names)
}
