package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	_ "github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// kept is a keeper of a store, on a clock that the test sets. What the keeper does by the clock, the test has it do.
type kept struct {
	*Keeper
	t    *testing.T
	db   *store.DB
	now  atomic.Int64 // microseconds
	logs testenv.Log
	// snapshot, if not nil, is called before a snapshot is taken, and may refuse it.
	snapshot func(context.Context) error
}

type refusing struct {
	*store.DB
	k *kept
}

func (r refusing) TakeSnapshot(ctx context.Context, name string, keep int) (*store.Snapshot, error) {
	if r.k.snapshot != nil {
		if err := r.k.snapshot(ctx); err != nil {
			return nil, err
		}
	}
	return r.DB.TakeSnapshot(ctx, name, keep)
}

func keep(t *testing.T, p Policy) *kept {
	k := &kept{t: t}
	k.now.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro())
	now := func() time.Time { return time.UnixMicro(k.now.Load()) }
	var err error
	k.db, err = store.Open(t.Context(), store.Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Now: now, Badger: badger.Small})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.db.Close()) })
	require.NoError(t, p.Validate())
	k.Keeper = New(Config{
		Policy: p, Store: refusing{k.db, k}, Logger: slog.New(slog.NewTextHandler(&k.logs, nil)), Now: now,
	})
	t.Cleanup(k.Close)
	return k
}

func (k *kept) advance(d time.Duration) { k.now.Add(d.Microseconds()) }

// document is a map in which one topic has a name.
func (k *kept) document(sp, name string) *fragment.Map {
	tm, err := xtm.Read(k.t.Context(), strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="oslo"><subjectIdentifier href="http://psi.example.org/oslo"/><name><value>`+name+`</value></name></topic></topicMap>`), xtm.Options{Base: tmdm.Locator(sp)})
	require.NoError(k.t, err)
	m, err := fragment.NewMap(tm, sp)
	require.NoError(k.t, err)
	return m
}

// create makes a collection with its first snapshot.
func (k *kept) create(name string) {
	k.t.Helper()
	sp := "http://localhost/" + name + "/"
	_, err := k.db.CreateCollection(k.t.Context(), store.Collection{Name: name, SP: sp, Settings: store.Settings{DocumentSize: 2}}, k.document(sp, "Oslo"), nil)
	require.NoError(k.t, err)
	_, err = k.db.TakeSnapshot(k.t.Context(), name, 1)
	require.NoError(k.t, err)
}

// rename publishes another name of the topic in one entry, and notifies the keeper.
func (k *kept) rename(collection, to string) {
	k.t.Helper()
	c, err := k.db.Publish(k.t.Context(), collection, func(c store.Collection, published merge.State) (*fragment.Change, error) {
		tm, err := xtm.Read(k.t.Context(), strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="oslo"><subjectIdentifier href="http://psi.example.org/oslo"/><name><value>`+to+`</value></name></topic></topicMap>`), xtm.Options{Base: tmdm.Locator(c.SP)})
		if err != nil {
			return nil, err
		}
		return fragment.Replace(k.t.Context(), published, tm, c.SP)
	})
	require.NoError(k.t, err)
	k.Changed(c)
}

func (k *kept) settings(name string, change func(*store.Settings)) {
	k.t.Helper()
	_, err := k.db.ChangeSettings(k.t.Context(), name, func(s *store.Settings) error { change(s); return nil })
	require.NoError(k.t, err)
}

// look makes the keeper do its periodic work, and waits until it is done.
func (k *kept) look(how care) {
	k.t.Helper()
	require.NoError(k.t, k.lookAfterAll(k.t.Context(), how))
	k.Wait()
}

func (k *kept) latest(name string) *store.Latest {
	k.t.Helper()
	l, err := k.db.Latest(k.t.Context(), name)
	require.NoError(k.t, err)
	return l
}

func (k *kept) snapshots(name string) int { k.t.Helper(); return len(k.latest(name).Snapshots) }

func TestSnapshotIsTakenAfterATime(t *testing.T) {
	t.Parallel()
	k := keep(t, Policy{})
	k.create("small")
	k.create("hasty")
	k.settings("hasty", func(s *store.Settings) { s.SnapshotAfter = time.Hour })
	k.advance(100 * time.Hour)
	k.rename("small", "Christiania")
	k.rename("hasty", "Christiania")
	k.look(ofFiles)
	assert.Equal(t, 1, k.snapshots("hasty"), "the change is new, however old the snapshot")
	k.advance(time.Hour - time.Second)
	k.rename("hasty", "Oslo")
	k.look(ofFiles)
	assert.Equal(t, 1, k.snapshots("hasty"))
	k.advance(time.Second)
	k.look(ofFiles)
	assert.Equal(t, 2, k.snapshots("hasty"))
	assert.Equal(t, 1, k.snapshots("small"), "which has the default")
	k.advance(23 * time.Hour)
	k.look(ofFiles)
	assert.Equal(t, 2, k.snapshots("small"))
	k.advance(1000 * time.Hour)
	k.look(ofAge)
	assert.Equal(t, 2, k.snapshots("small"), "nothing has changed")
	assert.Equal(t, 2, k.snapshots("hasty"))
}

func TestHistoryIsPrunedByAgeNowAndThen(t *testing.T) {
	t.Parallel()
	k := keep(t, Policy{KeepFor: 24 * time.Hour})
	k.create("small")
	for _, name := range []string{"a", "b", "c", "d"} {
		k.rename("small", name)
	}
	last, _, err := k.TakeSnapshot(t.Context(), "small")
	require.NoError(t, err)
	k.advance(23 * time.Hour)
	k.rename("small", "Christiania")
	k.look(ofAge)
	assert.Zero(t, k.latest("small").Horizon)
	k.advance(2 * time.Hour)
	k.look(ofFiles)
	assert.Zero(t, k.latest("small").Horizon, "not in each look")
	k.look(ofAge)
	assert.NotZero(t, k.latest("small").Horizon)
	assert.Less(t, k.latest("small").Horizon, last.Seq, "the last entry of the snapshot stays, and its document")
	assert.Contains(t, k.logs.String(), "pruned")

	// The recent document has the most recent entries, however old they are.
	for _, name := range []string{"a", "b", "c"} {
		k.rename("small", name)
	}
	_, _, err = k.TakeSnapshot(t.Context(), "small")
	require.NoError(t, err)
	k.advance(1000 * time.Hour)
	k.look(ofAge)
	l := k.latest("small")
	open, _ := l.Document(l.OpenDocument())
	assert.Less(t, l.Horizon, open)
}

func TestSnapshotThatFailsIsTriedAgainWithoutAnotherChange(t *testing.T) {
	t.Parallel()
	k := keep(t, Policy{SnapshotEvery: 1})
	k.create("small")
	tries := 0
	k.snapshot = func(context.Context) error {
		if tries++; tries < 4 {
			return errors.New("the disk is full")
		}
		return nil
	}
	k.rename("small", "Christiania")
	k.Wait()
	for range 3 {
		assert.Equal(t, 1, k.snapshots("small"))
		k.look(ofFiles)
	}
	assert.Equal(t, 2, k.snapshots("small"))
	assert.Equal(t, 3, strings.Count(k.logs.String(), "the disk is full"))
	assert.Contains(t, k.logs.String(), "level=ERROR")
}

// Removing a collection while its snapshot is taken is no failure, and the waiting ones get theirs.
func TestRemovedCollectionIsNotLookedAfter(t *testing.T) {
	t.Parallel()
	k := keep(t, Policy{SnapshotEvery: 1})
	k.create("small")
	k.create("other")
	begun, goOn := make(chan bool), make(chan bool)
	calls := 0
	k.snapshot = func(context.Context) error {
		if calls++; calls > 1 {
			return nil
		}
		close(begun)
		<-goOn
		return store.ErrNotFound
	}
	k.rename("small", "Christiania")
	<-begun
	k.rename("other", "Christiania")
	require.NoError(t, k.db.DeleteCollection(t.Context(), "small", ""))
	sp := "http://localhost/small/"
	_, err := k.db.CreateCollection(t.Context(), store.Collection{Name: "small", SP: sp, Settings: store.Settings{DocumentSize: 2}}, k.document(sp, "Oslo"), nil)
	require.NoError(t, err)
	close(goOn)
	k.Wait()
	assert.Equal(t, 2, k.snapshots("other"))
	assert.NotContains(t, k.logs.String(), "level=ERROR")
}

func TestNoTwoSnapshotsOfACollectionAtOnce(t *testing.T) {
	t.Parallel()
	k := keep(t, Policy{})
	k.create("small")
	k.rename("small", "Christiania")
	var inside atomic.Int32
	k.snapshot = func(context.Context) error {
		assert.EqualValues(t, 1, inside.Add(1), "two at a time")
		time.Sleep(20 * time.Millisecond) // time for the others to arrive
		inside.Add(-1)
		return nil
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			_, _, err := k.TakeSnapshot(t.Context(), "small")
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.Equal(t, 2, k.snapshots("small"))
}

func TestCloseStopsASnapshotAndWaitsForIt(t *testing.T) {
	t.Parallel()
	k := keep(t, Policy{SnapshotEvery: 1})
	k.create("small")
	begun := make(chan bool)
	var done atomic.Bool
	k.snapshot = func(ctx context.Context) error {
		close(begun)
		<-ctx.Done() // fails the test by its timeout where Close does not stop it
		done.Store(true)
		return ctx.Err()
	}
	k.rename("small", "Christiania")
	<-begun
	k.Close()
	assert.True(t, done.Load(), "Close has waited")
	assert.NotContains(t, k.logs.String(), "level=ERROR", "to be stopped is no failure")
	k.Close() // repeating it is harmless
	k.snapshot = func(context.Context) error { panic("a snapshot was begun after Close") }
	k.rename("small", "Oslo")
	k.Run(func(context.Context) { panic("a job was begun after Close") })
	k.Wait()
}

// counting is a store without collections that counts the looks.
type counting struct {
	Store
	looks atomic.Int32
}

func (c *counting) Sweep(context.Context) error { return nil }

func (c *counting) Alone() bool { return true }

func (c *counting) Collections(context.Context) ([]store.Collection, error) {
	c.looks.Add(1)
	return nil, nil
}

func (c *counting) Listing(context.Context) (*store.Listing, error) { return &store.Listing{}, nil }

// Checks run once a minute and once an hour until Close. Time advances when all goroutines wait.
func TestLooksComeNowAndThenUntilClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		p := Policy{}
		require.NoError(t, p.Validate())
		k := New(Config{Policy: p, Store: c, Logger: slog.New(slog.DiscardHandler), Now: time.Now})
		k.Do(Task{Sweep: func(context.Context) error { c.looks.Add(1); return nil }})
		require.NoError(t, k.Start())
		atOnce := c.looks.Load()
		time.Sleep(59*time.Minute + 30*time.Second)
		assert.EqualValues(t, 59, c.looks.Load()-atOnce, "one each minute")
		time.Sleep(time.Minute)
		assert.EqualValues(t, 62, c.looks.Load()-atOnce, "and one that prunes, which has extensions look for leftovers too")
		k.Close()
		time.Sleep(24 * time.Hour)
		assert.EqualValues(t, 62, c.looks.Load()-atOnce)
	})
}

// none is an empty store.
type none struct{ Store }

func (none) Version(context.Context) (store.Version, error) { return store.Version{Number: 1}, nil }
func (none) Await(ctx context.Context, _ store.Version, _ time.Duration) (store.Version, error) {
	<-ctx.Done()
	return store.Version{Number: 1}, context.Cause(ctx)
}
func (none) Listing(context.Context) (*store.Listing, error)       { return nil, nil }
func (none) Latest(context.Context, string) (*store.Latest, error) { return nil, store.ErrNotFound }

// those has all collections but removed ones.
type those struct {
	none
	latest *store.Latest
}

func (l those) Latest(_ context.Context, name string) (*store.Latest, error) {
	if strings.HasPrefix(name, "gone") {
		return nil, store.ErrNotFound
	}
	return l.latest, nil
}

// Removed collections are dropped, but not the time of their last change.
func TestChangesOfCollectionsThatAreGoneAreForgotten(t *testing.T) {
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	var c Changes
	c.init(those{latest: new(store.Latest)}, func() time.Time { return now })
	change := func(name string) {
		now = now.Add(10 * time.Second)
		c.Begin(name)()
	}
	change("kept")
	kept := now
	for i := range 100 {
		change(fmt.Sprint("gone-", i))
	}
	gone := now
	end := c.Begin("new") // created, and not listed yet
	now = now.Add(time.Minute)
	assert.Len(t, c.last, 1)
	assert.False(t, c.Settled(t.Context(), "kept").Before(kept))
	assert.Equal(t, gone, c.Settled(t.Context(), "gone-99"), "later than it was, or as it was")
	assert.Zero(t, c.Settled(t.Context(), "new"), "a change is under way")
	end()
	now = now.Add(time.Minute)
	assert.Equal(t, now.Add(-time.Minute), c.Settled(t.Context(), "new"))
	assert.Equal(t, now.Add(-time.Minute), c.Settled(t.Context(), ""))
}

func (c *counting) Await(ctx context.Context, _ store.Version, _ time.Duration) (store.Version, error) {
	<-ctx.Done()
	return store.Version{}, context.Cause(ctx)
}

// Many collections are maintained in turn: each time a limited number, and all of them in the end, even if the last one
// was removed.
func TestManyCollectionsAreLookedAfterInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &many{}
		for i := range 2*atOnce + 500 {
			m.all = append(m.all, store.Collection{Name: fmt.Sprintf("map%05d", i)})
		}
		k := New(Config{Store: m, Logger: slog.New(slog.DiscardHandler), Now: time.Now})
		looks := func() map[string]int {
			m.looks = map[string]int{}
			require.NoError(t, k.lookAfterAll(t.Context(), ofFiles))
			k.Wait()
			return m.looks
		}
		for _, first := range []int{0, atOnce, 2 * atOnce, 500} {
			names := looks()
			assert.Len(t, names, atOnce)
			assert.Equal(t, 1, names[m.all[first].Name])
			assert.Equal(t, 1, names[m.all[(first+atOnce-1)%len(m.all)].Name])
		}
		m.all = slices.Delete(m.all, 1499, 1500)
		assert.Equal(t, 1, looks()["map01500"])
		m.all = m.all[:3]
		assert.Len(t, looks(), 3)
		m.all = nil
		assert.Empty(t, looks())
	})
}

// many is a store of many collections, which counts the maintained ones.
type many struct {
	Store
	all   []store.Collection
	looks map[string]int
}

func (m *many) Collections(context.Context) ([]store.Collection, error) { return m.all, nil }

func (m *many) Latest(_ context.Context, name string) (*store.Latest, error) {
	m.looks[name]++
	return nil, store.ErrNotFound
}
