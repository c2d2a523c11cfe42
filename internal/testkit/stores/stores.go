// Package stores says where the stores of tests are. It is a folder, or, where the command line has "-engine postgres", a database: then
// each folder stands for a store of its own there.
package stores

import (
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv/postgres"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// places are the stores in the database, by the folders that stand for them.
var places sync.Map // path → postgres.Options

// Open opens the store that a folder stands for. Options that name an engine are left as they are.
func Open(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), In(t, o))
	require.NoError(t, err)
	return db
}

// In returns how to open the store that a folder stands for. It is opened once: its engine is closed with it.
func In(t testing.TB, o store.Options) store.Options {
	t.Helper()
	if o.Engine != nil || !testenv.OnPostgreSQL() {
		return o
	}
	o.Engine, o.Closed = InDatabase(t, o.Dir)
	return o
}

// InDatabase opens the engine of the store in a database that a folder stands for, and returns what closes it.
func InDatabase(t testing.TB, folder string) (e *postgres.Engine, closed func() error) {
	t.Helper()
	e, err := postgres.Open(t.Context(), place(t, folder))
	require.NoError(t, err)
	return e, e.Close
}

// Place returns the name of the store that a folder stands for, as programs of another process open it: the folder, or the address of a database.
func Place(t testing.TB, folder string) string {
	t.Helper()
	if !testenv.OnPostgreSQL() {
		return folder
	}
	o := place(t, folder)
	return o.URL + "&search_path=" + o.Schema
}

func place(t testing.TB, folder string) postgres.Options {
	t.Helper()
	if o, ok := places.Load(folder); ok {
		return o.(postgres.Options)
	}
	o := pgserver.Shared(t).Store(t)
	o.Logger = slog.New(slog.DiscardHandler)
	places.Store(folder, o)
	return o
}

// Copy copies what the store that a folder stands for has now to another folder, which is empty. In a folder it must be closed.
func Copy(t testing.TB, from, to string) {
	t.Helper()
	if o, ok := places.Load(from); ok {
		places.Store(to, pgserver.Shared(t).Copy(t, o.(postgres.Options)))
		return
	}
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
}

// InFolders skips a test that looks at the files of a data folder, where stores are in a database.
func InFolders(t testing.TB) {
	t.Helper()
	if testenv.OnPostgreSQL() {
		t.Skip("looks at the files of a data folder")
	}
}
