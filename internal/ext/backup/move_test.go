package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/backup"
	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/files/filestest"
	"github.com/tmshare/tmshare/internal/store/moving"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// place is where a store is, or will be.
type place struct {
	backup.Target
	open func(t testing.TB, o store.Options) (*store.DB, error)
}

func opening(f func(context.Context, store.Options) (*store.DB, error), dir string) place {
	p := place{Target: backup.Target{Name: dir, Open: f, Logger: silent}}
	p.open = func(t testing.TB, o store.Options) (*store.DB, error) {
		o.Dir, o.Logger, o.Badger = dir, silent, badger.Small
		db, err := f(t.Context(), o)
		if err == nil {
			t.Cleanup(func() { db.Close() })
		}
		return db, err
	}
	return p
}

func inFolder(dir string) place {
	p := opening(store.Open, dir)
	p.Dir = dir
	return p
}

func inMemory(t testing.TB) place {
	engine := memory.New()
	return over(t, func(context.Context) (kv.Engine, error) { return engine, nil })
}

func inPostgres(t testing.TB, o pg.Options) place {
	return over(t, func(ctx context.Context) (kv.Engine, error) { return pg.Open(ctx, o) })
}

func over(t testing.TB, engine func(context.Context) (kv.Engine, error)) place {
	dir := t.TempDir()
	p := opening(func(ctx context.Context, o store.Options) (*store.DB, error) {
		e, err := engine(ctx)
		if err != nil {
			return nil, err
		}
		if o.Dir = dir; e != nil {
			o.Engine = e
		}
		if _, ok := e.(*pg.Engine); ok {
			o.Closed = e.Close
		}
		db, err := store.Open(ctx, o)
		if err != nil && o.Closed != nil {
			err = errors.Join(err, o.Closed())
		}
		return db, err
	}, dir)
	p.Name = "database"
	return p
}

// all returns all rows and the contents of the newest snapshots.
func all(t testing.TB, db *store.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, db.Dump(t.Context(), func(d *store.Dump) error {
		for r, err := range d.Rows() {
			require.NoError(t, err)
			all[string(r.Key)] = string(r.Value)
		}
		return nil
	}))
	require.Greater(t, len(all), 100)
	for n, content := range snapshots(t, db) {
		all[fmt.Sprint("snapshot ", n)] = content
	}
	made, err := files.All(t.Context(), db.Files(), files.Resources+"/")
	require.NoError(t, err)
	for _, f := range made {
		content, err := filestest.Read(t.Context(), db.Files(), f.Name)
		require.NoError(t, err)
		all[f.Name] = string(content)
	}
	return all
}

func (p *place) must(t testing.TB, access store.Access) *store.DB {
	t.Helper()
	db, err := p.open(t, store.Options{Access: access})
	require.NoError(t, err)
	return db
}

// move moves the store of a place to another one.
func move(t testing.TB, from, to place) error {
	t.Helper()
	db, err := from.open(t, store.Options{Access: store.Write, EvenMoved: true})
	require.NoError(t, err)
	_, err = backup.Move(t.Context(), db, from.Name, to.Target, none)
	require.NoError(t, db.Close())
	return err
}

// A store goes from place to place and stays the same, to the last byte, and the same node with the
// same epochs. It is open in one place only.
func TestAMovedStoreIsTheSame(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, "fsync=off")
	db := node(t, 200)
	require.NoError(t, filestest.Write(t.Context(), db.Files(), "resourcesync/epoch/tag/set-1-a/set.json", []byte("{}")))
	want, ids, id := all(t, db), epochs(t, db), db.Node()
	require.NoError(t, db.Close())
	at := inFolder(db.Dir())
	for n, to := range []place{
		inPostgres(t, server.Store(t)), inFolder(filepath.Join(t.TempDir(), "new")), inMemory(t), inPostgres(t, server.Store(t)), inFolder(filepath.Join(t.TempDir(), "last")),
	} {
		require.NoError(t, move(t, at, to), "move %d", n)
		for _, access := range []store.Access{store.Create, store.Write, store.Read} {
			_, err := at.open(t, store.Options{Access: access})
			require.ErrorIs(t, err, moving.ErrMoved)
			require.ErrorContains(t, err, "the store was moved to "+to.Name)
		}
		db := to.must(t, store.Write)
		require.True(t, maps.Equal(want, all(t, db)), "move %d", n)
		require.Equal(t, ids, epochs(t, db))
		require.Equal(t, id, db.Node())
		require.NoError(t, db.Check(t.Context(), false, func(f store.Finding) { t.Errorf("move %d: %+v", n, f) }, func(string) {}))
		publish(t, db, "a", 3, fmt.Sprint("after move ", n))
		_, err := db.TakeSnapshot(t.Context(), "a", 2)
		require.NoError(t, err)
		want = all(t, db)
		require.NoError(t, db.Close())
		at = to
	}
}

// The old place can be moved again when the new one is lost.
func TestAMovedStoreCanBeMovedAgain(t *testing.T) {
	t.Parallel()
	db := node(t, 60)
	want := all(t, db)
	require.NoError(t, db.Close())
	from := inFolder(db.Dir())
	require.NoError(t, move(t, from, inMemory(t)))
	to := inFolder(filepath.Join(t.TempDir(), "new"))
	require.NoError(t, move(t, from, to))
	require.True(t, maps.Equal(want, all(t, to.must(t, store.Read))))
}

// A place that has something stays as it is, and so does the store that was to be moved there.
func TestNothingIsMovedOrRestoredIntoAPlaceThatHasSomething(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, "fsync=off")
	db := node(t, 60)
	file := filepath.Join(t.TempDir(), "one.backup")
	_, err := backup.Make(t.Context(), db, file, none)
	require.NoError(t, err)
	want := all(t, db)
	require.NoError(t, db.Close())
	from, taken := inFolder(db.Dir()), inPostgres(t, server.Store(t))
	require.NoError(t, taken.must(t, store.Create).AddSubscription(t.Context(), store.Subscription{Name: "s", FragmentsFeed: "http://example.org/feed", SP: "http://example.org/s/"}))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "letter"), nil, 0o600))
	for _, to := range []place{taken, inFolder(dir), from} {
		require.ErrorContains(t, move(t, from, to), " is not empty: restore ")
		_, err := backup.Restore(t.Context(), file, to.Target, none)
		require.ErrorContains(t, err, " is not empty: restore ")
	}
	subscriptions, err := taken.must(t, store.Read).Subscriptions(t.Context())
	require.NoError(t, err)
	require.Len(t, subscriptions, 1)
	require.True(t, maps.Equal(want, all(t, from.must(t, store.Write))))
}

// A change of a store that is being moved is not left behind: the move fails, and the store goes on.
func TestAStoreThatIsWrittenToIsNotMoved(t *testing.T) {
	t.Parallel()
	engine := memory.New()
	at := over(t, func(context.Context) (kv.Engine, error) { return engine, nil })
	db := node(t, 60)
	require.NoError(t, db.Close())
	require.NoError(t, move(t, inFolder(db.Dir()), at))
	first, other := at.must(t, store.Write), at.must(t, store.Write)
	to := inMemory(t)
	written := false
	_, err := backup.Move(t.Context(), first, "here", to.Target, func(p backup.Progress) {
		if p.Phase == "moving files" && !written {
			written = true
			publish(t, other, "a", 1, "meanwhile")
		}
	})
	require.ErrorContains(t, err, "somebody has written to here meanwhile: stop all programs that use it, and move it again")
	require.ErrorContains(t, err, "database is not complete: move again, which begins anew")
	_, err = to.open(t, store.Options{Access: store.Write})
	require.ErrorIs(t, err, moving.ErrFilling)
	publish(t, at.must(t, store.Write), "a", 1, "and goes on")
	require.NoError(t, move(t, at, to), "the remains are removed")
	require.NoError(t, to.must(t, store.Write).Check(t.Context(), false, func(f store.Finding) { t.Errorf("%+v", f) }, func(string) {}))
}

// A program that uses a store, and does not write just now, is seen as well.
func TestAStoreThatIsInUseIsNotMoved(t *testing.T) {
	t.Parallel()
	at, to := inMemory(t), inMemory(t)
	db := node(t, 60)
	require.NoError(t, db.Close())
	require.NoError(t, move(t, inFolder(db.Dir()), at))
	shared := store.Options{Access: store.Write, Silence: time.Second}
	other, err := at.open(t, shared)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		other.Lease(ctx, "upkeep", func(ctx context.Context) { close(begun); <-ctx.Done() })
	}()
	<-begun
	first, err := at.open(t, shared)
	require.NoError(t, err)
	_, err = backup.Move(t.Context(), first, "here", to.Target, none)
	require.ErrorContains(t, err, "another program uses here: stop all programs that use it, and move it then")
	stop()
	<-ended
	_, err = backup.Move(t.Context(), first, "here", to.Target, none)
	require.NoError(t, err)
}

// A backup does not know where its store is: it is restored anywhere, with a node and epochs of its own.
func TestABackupIsOfNoEngine(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, "fsync=off")
	db := node(t, 300)
	folder := t.TempDir() + "/"
	first, err := backup.Make(t.Context(), db, folder, none)
	require.NoError(t, err)
	want, contents := rows(t, db), snapshots(t, db)
	require.NoError(t, db.Close())
	moved := inPostgres(t, server.Store(t))
	require.NoError(t, move(t, inFolder(db.Dir()), moved))
	source := moved.must(t, store.Write)
	second, err := backup.Make(t.Context(), source, folder, none)
	require.NoError(t, err)
	assert.Zero(t, second.Written, "the same store has the same chunks in each engine")
	assert.Equal(t, first.Rows, second.Rows)
	for _, to := range []place{inFolder(filepath.Join(t.TempDir(), "restored")), inPostgres(t, server.Store(t)), inMemory(t)} {
		_, err := backup.Restore(t.Context(), folder, to.Target, none)
		require.NoError(t, err)
		again := to.must(t, store.Write)
		assert.True(t, maps.Equal(want, rows(t, again)))
		assert.Equal(t, contents, snapshots(t, again))
		assert.NotEqual(t, source.Node(), again.Node())
		for i, e := range epochs(t, again) {
			assert.NotEqual(t, epochs(t, source)[i], e)
		}
		require.NoError(t, again.Check(t.Context(), false, func(f store.Finding) { t.Errorf("%+v", f) }, func(string) {}))
		publish(t, again, "a", 1, "after the restore")
	}
}

// A file that is no whole backup leaves a database as it was.
func TestNoDamagedBackupReachesADatabase(t *testing.T) {
	t.Parallel()
	db := node(t, 100)
	path := filepath.Join(t.TempDir(), "one.backup")
	_, err := backup.Make(t.Context(), db, path, none)
	require.NoError(t, err)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	rng, to := testenv.Rand(211), inMemory(t)
	for n := range testenv.Rounds(20, 500) {
		damaged := append([]byte{}, whole...)
		if n%2 == 0 {
			damaged = damaged[:rng.IntN(len(damaged))]
		} else {
			for range 3 {
				damaged[rng.IntN(len(damaged))] ^= byte(1 + rng.IntN(255))
			}
		}
		bad := filepath.Join(t.TempDir(), "bad.backup")
		require.NoError(t, os.WriteFile(bad, damaged, 0o600))
		if _, err := backup.Restore(t.Context(), bad, to.Target, none); err == nil {
			to = inMemory(t) // the damage was in the padding of the archive
			continue
		}
		opened, err := to.open(t, store.Options{Access: store.Create})
		require.NoError(t, err, "round %d: it is as it was", n)
		collections, err := opened.Collections(t.Context())
		require.NoError(t, err)
		require.Empty(t, collections)
		require.NoError(t, opened.Close())
	}
}

// taskPlace is a place as the arguments of a process have it.
type taskPlace struct{ Folder, URL, Schema string }

func (p taskPlace) argument() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// moveStore moves a store from args[0] to args[1].
func moveStore(args []string) error {
	fmt.Println("begin")
	var targets [2]backup.Target
	for i := range targets {
		var p taskPlace
		if err := json.Unmarshal([]byte(args[i]), &p); err != nil {
			return err
		}
		targets[i] = backup.Folder(p.Folder, silent)
		if p.URL != "" {
			targets[i] = backup.Target{Name: "database", Logger: silent, Open: func(ctx context.Context, o store.Options) (*store.DB, error) {
				e, err := pg.Open(ctx, pg.Options{URL: p.URL, Schema: p.Schema})
				if err != nil {
					return nil, err
				}
				o.Dir, o.Engine, o.Closed = p.Folder, e, e.Close
				return store.Open(ctx, o)
			}}
		}
	}
	from := targets[0]
	db, err := from.Open(context.Background(), store.Options{Dir: from.Dir, Access: store.Write, EvenMoved: true, Logger: silent})
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = backup.Move(context.Background(), db, from.Name, targets[1], tell)
	return err
}

// Whatever kills a move, one place at most can be opened, and the next move from the same place to the
// same place ends it.
func TestAKilledMoveIsDoneAgain(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, "fsync=off")
	rng := testenv.Rand(212)
	killed := 0
	for n := range testenv.Rounds(6, 100) {
		db := node(t, 400)
		want := all(t, db)
		require.NoError(t, db.Close())
		o, dir := server.Store(t), filepath.Join(t.TempDir(), "new")
		from, to := inFolder(db.Dir()), inPostgres(t, o)
		args := []string{taskPlace{Folder: db.Dir()}.argument(), taskPlace{Folder: t.TempDir(), URL: o.URL, Schema: o.Schema}.argument()}
		if n%2 == 1 {
			require.NoError(t, move(t, from, to))
			from, to = to, inFolder(dir)
			args[0], args[1] = args[1], taskPlace{Folder: dir}.argument()
		}
		for again := 0; again < 3 && killSoon(t, rng, args); again++ {
			killed++
			requireOneAtMost(t, from, to)
			if isThere(t, to) {
				break
			}
			require.NoError(t, os.RemoveAll(dir))
		}
		if !isThere(t, to) {
			require.NoError(t, move(t, from, to))
		}
		_, err := from.open(t, store.Options{Access: store.Write})
		require.ErrorIs(t, err, moving.ErrMoved)
		require.True(t, maps.Equal(want, all(t, to.must(t, store.Write))), "round %d", n)
	}
	require.Positive(t, killed)
}

func killSoon(t testing.TB, rng *rand.Rand, args []string) bool {
	p := kill.Start(t, "move", args...)
	for range 1 + rng.IntN(8) {
		if _, more := p.Line(); !more {
			break
		}
	}
	return p.Kill(time.Duration(rng.Int64N(int64(30 * time.Millisecond))))
}

// isThere reports whether the store of a place can be opened, and has something.
func isThere(t testing.TB, p place) bool {
	t.Helper()
	db, err := p.open(t, store.Options{Access: store.Write})
	if err != nil {
		return false
	}
	collections, err := db.Collections(t.Context())
	require.NoError(t, errors.Join(err, db.Close()))
	return len(collections) > 0
}

func requireOneAtMost(t testing.TB, from, to place) {
	t.Helper()
	require.False(t, isThere(t, from) && isThere(t, to), "both can be opened")
}
