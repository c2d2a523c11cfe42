package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	storekeys "github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/loads"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
	"github.com/tmshare/tmshare/merge"
)

// mortal is the engine of a process that may die: then it changes nothing any more.
type mortal struct {
	kv.Engine
	dead    atomic.Bool
	unknown atomic.Bool // commits are made, but return an error
}

var errDead = errors.New("the process is dead")

func (m *mortal) alive() error {
	if m.dead.Load() {
		return errDead
	}
	return nil
}

func (m *mortal) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	w, err := m.Engine.Begin(ctx, since)
	return &mortalWriter{w, m, true}, err
}

func (m *mortal) Bulk(ctx context.Context) (kv.Writer, error) {
	w, err := m.Engine.Bulk(ctx)
	return &mortalWriter{w, m, false}, err
}

func (m *mortal) DeletePrefix(ctx context.Context, prefix []byte) error {
	if err := m.alive(); err != nil {
		return err
	}
	return m.Engine.DeletePrefix(ctx, prefix)
}

type mortalWriter struct {
	kv.Writer
	engine *mortal
	commit bool
}

func (w *mortalWriter) Put(key, value []byte) error {
	if err := w.engine.alive(); err != nil {
		return err
	}
	return w.Writer.Put(key, value)
}

func (w *mortalWriter) Commit() error {
	if err := w.engine.alive(); err != nil {
		return err
	}
	err := w.Writer.Commit()
	if w.commit && err == nil && w.engine.unknown.Load() {
		return fmt.Errorf("%w: whether the change was made is not known", kv.ErrUnavailable)
	}
	return err
}

// loadKinds are the ways to load a map that becomes visible only as a whole.
var loadKinds = map[string]func(db *DB, src fragment.Source) error{
	"subscription": func(db *DB, src fragment.Source) error {
		return db.StageSource(context.Background(), "s", fragment.Records(src), Mark{}, nil)
	},
	"collection": func(db *DB, src fragment.Source) error {
		_, err := db.CreateCollection(context.Background(), Collection{Name: "n", SP: "http://example.org/n/"}, src, nil)
		return err
	},
	"first version": func(db *DB, src fragment.Source) error {
		_, err := db.FillCollection(context.Background(), "empty", src)
		return err
	},
}

// interrupted is a map in the middle of which something happens.
type interrupted struct {
	fragment.Source
	after int
	f     func()
}

func (i *interrupted) Topics() iter.Seq2[*fragment.Topic, error] {
	return func(yield func(*fragment.Topic, error) bool) {
		n := 0
		for t, err := range i.Source.Topics() {
			if n++; n == i.after {
				i.f()
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// sharing returns two stores over an engine: one may take a load of the other for an abandoned one. The clock of the
// other is ahead by so much.
func sharing(t *testing.T, engine kv.Engine) (one, other *DB, fragile *mortal, ahead *atomic.Int64) {
	fragile, ahead = &mortal{Engine: engine}, &atomic.Int64{}
	one = openOverEngine(t, t.TempDir(), fragile)
	o := testOptions(t.TempDir())
	o.Engine, o.Now = engine, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	other = openWith(t, o)
	subscribe(t, one, "s", mapOf(t, 3))
	collection(t, one, "m", 3)
	_, err := one.CreateCollection(t.Context(), Collection{Name: "empty", SP: "http://example.org/empty/"}, &merge.Memory{}, nil)
	require.NoError(t, err)
	return one, other, fragile, ahead
}

// rowsOfLoads counts the rows of sources and collections, and those of notes.
func rowsOfLoads(t testing.TB, engine kv.Engine) (rows, notes int) {
	t.Helper()
	for key := range dumped(t, engine) {
		switch {
		case storekeys.Table([]byte(key)) == storekeys.TableLoad:
			notes++
		case storekeys.SourceOf([]byte(key)).Number >= storekeys.FirstNumber:
			rows++
		}
	}
	return rows, notes
}

// The rows of a load of a dead process are removed after a day, by any other process, and no others are.
func TestWhatADeadLoadHasLeftIsRemoved(t *testing.T) {
	t.Parallel()
	src := mapOf(t, 12_000) // an engine has some of its rows before it has all
	inEngines(t, func(t *testing.T, engine kv.Engine) {
		for what, load := range loadKinds {
			one, other, fragile, ahead := sharing(t, engine)
			before, none := rowsOfLoads(t, engine)
			require.Zero(t, none)
			err := load(one, &interrupted{src, 11_900, func() { fragile.dead.Store(true) }})
			require.ErrorIs(t, err, errDead, what)
			left, notes := rowsOfLoads(t, engine)
			require.Greater(t, left, before, "%s: nothing is left", what)
			require.Equal(t, 1, notes, what)

			require.NoError(t, other.Sweep(t.Context()))
			now, _ := rowsOfLoads(t, engine)
			require.Equal(t, left, now, "%s: it might live", what)
			ahead.Store(int64(25 * time.Hour))
			require.NoError(t, other.Sweep(t.Context()))
			now, notes = rowsOfLoads(t, engine)
			require.Equal(t, []int{before, 0}, []int{now, notes}, what)
			requireWhole(t, other)
			require.NoError(t, load(other, mapOf(t, 5)), "it is loaded again")
			require.NoError(t, other.DeleteCollection(t.Context(), "m", ""))
			require.NoError(t, other.DeleteCollection(t.Context(), "empty", ""))
			require.NoError(t, other.RemoveSubscription(t.Context(), "s"))
			if what == "collection" {
				require.NoError(t, other.DeleteCollection(t.Context(), "n", ""))
			}
		}
	})
}

// A load that takes days is not taken for one of a dead process.
func TestASlowLoadIsNotRemoved(t *testing.T) {
	t.Parallel()
	src := mapOf(t, 3000)
	for what, load := range loadKinds {
		synctest.Test(t, func(t *testing.T) {
			engine := memory.New()
			one, other, _, _ := sharing(t, engine)
			swept := 0
			require.NoError(t, load(one, &interrupted{src, 2900, func() {
				for range 20 {
					time.Sleep(7 * time.Hour)
					before, notes := rowsOfLoads(t, engine)
					require.Positive(t, notes)
					require.NoError(t, other.Sweep(t.Context()))
					after, _ := rowsOfLoads(t, engine)
					require.Equal(t, before, after)
					swept++
				}
			}}), what)
			require.GreaterOrEqual(t, swept, 20)
			_, notes := rowsOfLoads(t, engine)
			require.Zero(t, notes, what)
			requireWhole(t, other)
			require.NoError(t, errors.Join(one.Close(), other.Close()))
		})
	}
}

// A load that was taken for abandoned, because its process was suspended or clocks differ, fails: its rows are removed.
func TestALoadThatWasGivenUpIsNotNamed(t *testing.T) {
	t.Parallel()
	src := mapOf(t, 6000)
	inEngines(t, func(t *testing.T, engine kv.Engine) {
		one, other, _, ahead := sharing(t, engine)
		ahead.Store(int64(25 * time.Hour))
		before := rowsWithoutTimes(t, engine)
		for what, load := range loadKinds {
			err := load(one, &interrupted{src, 5900, func() { require.NoError(t, other.Sweep(t.Context())) }})
			require.ErrorIs(t, err, loads.ErrGivenUp, what)
			require.ErrorContains(t, err, "load it again")
			require.Equal(t, before, rowsWithoutTimes(t, engine), what)
			requireWhole(t, other)
		}
		ahead.Store(0)
		for what, load := range loadKinds {
			require.NoError(t, load(one, mapOf(t, 5)), what)
		}
		requireWhole(t, other)
	})
}

// rowsWithoutTimes returns the keys of all rows except those of files, whose names are random.
func rowsWithoutTimes(t testing.TB, engine kv.Engine) (keys []string) {
	t.Helper()
	r, err := engine.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	for row, err := range r.Range(nil, nil, false) {
		require.NoError(t, err)
		if storekeys.SourceOf(row.Key).Number != storekeys.Files {
			keys = append(keys, string(row.Key))
		}
	}
	return keys
}

// Nothing of a load is removed while it is not known whether the commit that names it was carried out.
func TestWhatMayBeNamedIsNotRemoved(t *testing.T) {
	t.Parallel()
	inEngines(t, func(t *testing.T, engine kv.Engine) {
		one, other, fragile, ahead := sharing(t, engine)
		src := mapOf(t, 50)
		for what, load := range loadKinds {
			err := load(one, &interrupted{src, 40, func() { fragile.unknown.Store(true) }})
			fragile.unknown.Store(false)
			require.ErrorIs(t, err, ErrUnavailable, what)
			requireWhole(t, other)
			_, notes := rowsOfLoads(t, engine)
			require.Zero(t, notes, what)
			ahead.Add(int64(48 * time.Hour))
			require.NoError(t, other.Sweep(t.Context()))
			requireWhole(t, other)
		}
		for _, name := range []string{"n", "empty"} {
			l, err := other.Latest(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, 51, l.Topics, name)
		}
		require.NotZero(t, staged(t, other))
	})
}

// loadForever opens a store in a database, and loads maps until it is killed. Its arguments are the address and a
// folder.
func loadForever(args []string) error {
	ctx := context.Background()
	e, err := pgserver.Dial(args[0])
	if err != nil {
		return err
	}
	o := testOptions(args[1])
	o.Engine = e
	db, err := Open(ctx, o)
	if err != nil {
		return err
	}
	var src merge.Memory
	for i := range 20_000 {
		if err := src.PutTopic(named(ref(i), "loaded")); err != nil {
			return err
		}
	}
	for {
		fmt.Println("loading")
		if err := db.StageSource(ctx, "s", fragment.Records(&src), Mark{}, nil); err != nil {
			return err
		}
	}
}

// Processes killed while they load leave no rows for longer than a day.
func TestWhatKilledLoadsHaveLeftIsRemoved(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	s := pgserver.Shared(t)
	o := s.Store(t)
	engine := pgserver.Open(t, o)
	_, other, _, ahead := sharing(t, engine)
	rng := testenv.Rand(77)
	most := 0
	for range testenv.Rounds(3, 30) {
		p := kill.Start(t, "load", pgserver.Address(o), t.TempDir())
		for range 1 + rng.IntN(2) {
			p.Line()
		}
		require.True(t, p.Kill(time.Duration(rng.Int64N(int64(500*time.Millisecond)))))
		_, notes := rowsOfLoads(t, engine)
		most = max(most, notes)
		requireWhole(t, other)
	}
	require.Positive(t, most, "no kill came during a load")
	ahead.Store(int64(25 * time.Hour))
	testenv.Eventually(t, func() bool { // once the database has noticed that the process has ended
		require.NoError(t, other.Sweep(t.Context()))
		_, notes := rowsOfLoads(t, engine)
		left, err := other.leftovers(t.Context(), anyTime)
		require.NoError(t, err)
		return notes == 0 && len(left.rows) == 0
	})
	requireWhole(t, other)
}
