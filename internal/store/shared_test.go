package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/files/filestest"
	storekeys "github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
)

func openOverEngine(t testing.TB, dir string, engine kv.Engine) *DB {
	o := testOptions(dir)
	o.Engine = engine
	return openWith(t, o)
}

// conflicting is an engine to which others commit before each transaction: all is decided twice.
type conflicting struct {
	kv.Engine
	again bool
	tries int
}

func (c *conflicting) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	w, err := c.Engine.Begin(ctx, since)
	return &late{w, c, ctx}, err
}

// late is a writer that is late each other time.
type late struct {
	kv.Writer
	engine *conflicting
	ctx    context.Context
}

// Narrow makes the commit depend on the whole state, which others do not change.
func (l *late) Narrow(kv.Reader, []uint32) error { return nil }

func (l *late) Commit() error {
	if l.engine.again = !l.engine.again; l.engine.again {
		l.engine.tries++
		version, err := l.engine.Version(l.ctx)
		if err != nil {
			return err
		}
		other, err := l.engine.Engine.Begin(l.ctx, version)
		if err != nil {
			return err
		}
		if err := other.Commit(); err != nil {
			return err
		}
	}
	return l.Writer.Commit()
}

// An update based on an outdated state has no effect: with retries, everyUpdate returns the same, and writes the same
// rows, as without other commits.
func TestUpdatesMayBeTriedAgain(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	alone, tried := memory.New(), &conflicting{Engine: memory.New()}
	want, keys := everyUpdate(t, openOverEngine(t, t.TempDir(), alone))
	got, same := everyUpdate(t, openOverEngine(t, t.TempDir(), tried))
	require.Equal(t, want, got)
	require.Equal(t, keys, same)
	require.Greater(t, tried.tries, 30)
}

// everyUpdate makes changes of each kind, and returns their results, and the keys of all rows.
func everyUpdate(t *testing.T, db *DB) (returned []any, keys []string) {
	returns := func(values ...any) {
		t.Helper()
		err, _ := values[len(values)-1].(error)
		require.NoError(t, err)
		returned = append(returned, values[:len(values)-1]...)
	}
	ctx := t.Context()
	db.now = tick()
	rename := func(from, to int, name string) {
		t.Helper()
		_, err := db.Publish(ctx, "m", func(Collection, merge.State) (*fragment.Change, error) { return rename(from, to, name), nil })
		require.NoError(t, err)
	}
	collection(t, db, "m", 440)
	rename(0, 50, "second")
	offer(t, db, onlyNew)
	returns(db.OfferRecordsAnew(ctx, "m"))
	for i := range 4 {
		rename(i, i+100, fmt.Sprint("name ", i))
		s, err := db.TakeSnapshot(ctx, "m", 2)
		returns(s.Seq, err)
	}
	extend(t, db, "m")
	returns(db.Prune(ctx, "m", Retention{Entries: 300}))
	rename(0, 10, "last")
	view(t, db, "m", func(v *View) {
		returned = append(returned, v.Head, v.Horizon, v.Topics, len(storedFiles(t, db)))
	})
	collection(t, db, "other", 3)
	c, err := db.RenameCollection(ctx, "other", "another")
	returns(c.Name, err)
	returns(db.ForgetCollection(ctx, "other"))
	returns(db.DeleteCollection(ctx, "another", "no use"))

	subscribe(t, db, "s", mapOf(t, 10))
	for i := range 2 { // the first is replaced before it is read
		returns(db.StageSource(ctx, "s", fragment.Records(mapOf(t, 5+i)), Mark{}, nil))
	}
	returns(db.SwitchSource(ctx, "s", staged(t, db), "for a test"))
	returns(db.ApplyEntries(ctx, "s", func(a *Applying) error {
		for i := range 3 {
			if err := a.Quarantine(Quarantined{TopicSI: string(ref(i)), Entry: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		a.Applied++
		return a.Hold(Held{ID: "record", TopicSI: ref(1)})
	}))
	forgotten, err := db.Forget(ctx, "s", string(ref(1)))
	returns(len(forgotten), err)
	all, err := db.Subscriptions(ctx)
	returns(all[0].State.Applied, all[0].Number, all[0].State.Generation, err)
	subscribe(t, db, "gone", mapOf(t, 3))
	returns(db.RemoveSubscription(ctx, "gone"))
	epochs, err := db.BeginEpochs(ctx)
	returns(len(epochs), err)
	for _, f := range storedFiles(t, db) { // as a restore does
		content, err := filestest.Read(ctx, db.Files(), f.Name)
		require.NoError(t, err)
		before := uuid.MustParse(path.Base(path.Dir(f.Name)))
		require.NoError(t, filestest.Write(ctx, db.Files(), strings.Replace(f.Name, before.String(), epochs[before].String(), 1), content))
	}
	view(t, db, "m", func(v *View) {
		snapshots, err := v.Snapshots()
		require.NoError(t, err)
		for i := range snapshots {
			f, err := v.OpenSnapshot(&snapshots[i])
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	})
	requireWhole(t, db)
	require.NoError(t, db.rows.View(ctx, func(t *txn.Tx) error {
		for r, err := range t.Scan(nil, nil) {
			if err != nil {
				return err
			}
			if storekeys.SourceOf(r.Key).Number != storekeys.Files { // in which all names are random
				keys = append(keys, string(r.Key))
			}
		}
		return nil
	}))
	return returned, keys
}

// storedFiles returns the files of snapshots, in any place.
func storedFiles(t testing.TB, db *DB) []files.Info {
	t.Helper()
	all, err := files.All(t.Context(), db.Files(), files.Snapshots+"/")
	require.NoError(t, err)
	return all
}

// requireWhole checks all invariants.
func requireWhole(t *testing.T, db *DB) {
	t.Helper()
	require.NoError(t, db.Check(t.Context(), false, func(f Finding) { t.Errorf("%+v", f) }, func(string) {}))
}

// Two stores over one engine: a commit of one is visible in the other at once, no acknowledged change is lost, and in
// the end all invariants hold.
func TestTwoStoresShareAnEngine(t *testing.T) {
	engine, dir := memory.New(), t.TempDir()
	stores := []*DB{openOverEngine(t, dir, engine), openOverEngine(t, dir, engine)}
	collection(t, stores[0], "m", 30)
	subscribe(t, stores[1], "s", mapOf(t, 5))
	writers, rounds := 4, testenv.Rounds(25, 100)
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() { // each has topics of its own
			rng := rand.New(rand.NewPCG(testenv.Seed(), uint64(n)))
			for i := range rounds {
				writer := rng.IntN(2)
				if err := changeShared(t, stores[writer], stores[1-writer], rng, 1000*(n+1)+i, i); err != nil {
					t.Errorf("writer %d, round %d: %v", n, i, err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, db := range stores {
		view(t, db, "m", func(v *View) {
			require.Equal(t, 31+writers*rounds, v.Topics)
			require.Len(t, entries(t, v), int(v.Head-v.Horizon))
		})
		subscriptions, err := db.Subscriptions(t.Context())
		require.NoError(t, err)
		require.Equal(t, writers*rounds, subscriptions[0].State.Applied)
		requireWhole(t, db)
		require.NoError(t, db.Close())
	}
	requireWhole(t, openOverEngine(t, dir, engine)) // none of them has closed it
}

// changeShared adds a topic through one store, and reads it through the other.
func changeShared(t *testing.T, through, other *DB, rng *rand.Rand, number, round int) error {
	ctx, topic := t.Context(), named(ref(number), fmt.Sprint(number))
	c, err := through.Publish(ctx, "m", func(Collection, merge.State) (*fragment.Change, error) {
		return &fragment.Change{
			PutTopics: []*fragment.Topic{topic}, Entries: []fragment.Entry{{TopicSI: ref(number), Topic: ref(number), Title: "new"}}, Added: 1,
		}, nil
	})
	if err != nil {
		return err
	}
	if l, err := other.Latest(ctx, "m"); err != nil || l.Head < c.Head || l.Topics < c.Topics {
		return fmt.Errorf("behind after entry %d: %+v, %w", c.Head, l, err)
	}
	err = other.View(ctx, "m", func(v *View) error {
		found, err := v.Source().Topic(ref(number))
		if err == nil && found == nil {
			err = fmt.Errorf("topic %d is not there", number)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := through.ApplyEntries(ctx, "s", func(a *Applying) error { a.Applied++; return a.PutTopic(topic) }); err != nil {
		return err
	}
	if round%8 == 0 {
		if _, err := through.TakeSnapshot(ctx, "m", 1+rng.IntN(2)); err != nil {
			return err
		}
		if _, err := other.Prune(ctx, "m", Retention{Entries: 50}); err != nil {
			return err
		}
	}
	return nil
}
