// Package stores selects the stores of tests: in memory, or, with "-engine badger" on the command line, in folders, or,
// with "-engine postgres", in a database. In memory and in a database each folder identifies a store of its own.
package stores

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

var (
	places    sync.Map // the stores in the database: path of a folder → pg.Options
	memories  sync.Map // the stores in memory: path of a folder → *kept
	inFolders sync.Map // the names of tests that always have stores in folders → true
)

// kept is a store in memory. It still exists after it is closed.
type kept struct {
	mu     sync.Mutex
	engine *memory.Engine
	open   int // number of users
}

// use returns the engine, and the function to call after the last use. The last user closes it, as if another process
// had done so.
func (k *kept) use() (e *memory.Engine, closed func() error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open++
	return k.engine, sync.OnceValue(func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.open--; k.open > 0 {
			return nil
		}
		before := k.engine
		k.engine = before.Copy()
		return before.Close()
	})
}

// Open opens the store of a folder. Options with an engine are not changed.
func Open(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), In(t, o))
	require.NoError(t, err)
	return db
}

// In returns the options that open the store of a folder. It is opened once: its engine is closed with it.
func In(t testing.TB, o store.Options) store.Options {
	t.Helper()
	switch {
	case o.Engine != nil:
	case testenv.OnPostgreSQL():
		o.Engine, o.Closed = InDatabase(t, o.Dir)
	case inMemory(t, o.Dir):
		forget()
		k, _ := memories.LoadOrStore(o.Dir, &kept{engine: memory.New()})
		o.Engine, o.Closed = k.(*kept).use()
	}
	return o
}

// forget removes the stores in memory whose folders were removed after the test that made them.
func forget() {
	memories.Range(func(folder, _ any) bool {
		if _, err := os.Stat(filepath.Dir(folder.(string))); err != nil {
			memories.Delete(folder)
		}
		return true
	})
}

// inMemory reports whether the store of a folder is in memory. An existing folder with a store is opened, and
// benchmarks measure folders.
func inMemory(t testing.TB, folder string) bool {
	if _, benchmark := t.(*testing.B); benchmark || testenv.OnBadger() {
		return false
	}
	for test, more := t.Name(), true; more; test, more = parent(test) {
		if _, is := inFolders.Load(test); is {
			return false
		}
	}
	_, err := os.Stat(filepath.Join(folder, "node.json"))
	return err != nil
}

// parent returns the name of the test that a subtest is part of, if it is one.
func parent(test string) (string, bool) {
	end := strings.LastIndexByte(test, '/')
	return test[:max(end, 0)], end > 0
}

// InDatabase opens the engine of a folder's store in a database, and returns the function that closes it.
func InDatabase(t testing.TB, folder string) (e *pg.Engine, closed func() error) {
	t.Helper()
	e, err := pg.Open(t.Context(), place(t, folder))
	require.NoError(t, err)
	return e, e.Close
}

// Place returns the name by which other processes open the store of a folder: the folder, or the address of a database.
func Place(t testing.TB, folder string) string {
	t.Helper()
	if !testenv.OnPostgreSQL() {
		return folder
	}
	return pgserver.Address(place(t, folder))
}

func place(t testing.TB, folder string) pg.Options {
	t.Helper()
	if o, ok := places.Load(folder); ok {
		return o.(pg.Options)
	}
	o := pgserver.Shared(t).Store(t)
	o.Logger = slog.New(slog.DiscardHandler)
	places.Store(folder, o)
	return o
}

// Copy copies the present content of a folder's store to another, empty folder. A store in a folder must be closed.
func Copy(t testing.TB, from, to string) {
	t.Helper()
	if o, ok := places.Load(from); ok {
		places.Store(to, pgserver.Shared(t).Copy(t, o.(pg.Options)))
		return
	}
	if k, ok := memories.Load(from); ok {
		memories.Store(to, &kept{engine: k.(*kept).engine.Copy()})
		return
	}
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
}

// InFolders makes the stores of a test use folders, because it reads their files. It skips the test with stores in a
// database.
func InFolders(t testing.TB) {
	t.Helper()
	if testenv.OnPostgreSQL() {
		t.Skip("looks at the files of a data folder")
	}
	inFolders.Store(t.Name(), true)
	t.Cleanup(func() { inFolders.Delete(t.Name()) })
}
