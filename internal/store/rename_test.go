package store

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/merge"
)

// renamed renames a collection.
func renamed(t testing.TB, db *DB, name, to string) *Collection {
	t.Helper()
	c, err := db.RenameCollection(t.Context(), name, to)
	require.NoError(t, err)
	return c
}

// leadsTo checks the target of a name without a collection.
func leadsTo(t testing.TB, db *DB, name, to string) {
	t.Helper()
	var former *FormerError
	err := db.View(t.Context(), name, func(*View) error { return nil })
	require.ErrorAs(t, err, &former)
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, name, former.Name)
	require.Equal(t, to, former.To)
	_, err = db.Latest(t.Context(), name)
	require.ErrorAs(t, err, &former, "nor is it remembered")
}

// A collection under another name is the same but for that: its rows, its history, its snapshots.
func TestARenamedCollectionIsTheSame(t *testing.T) {
	t.Parallel()
	db := openDB(t, t.TempDir())
	was := collection(t, db, "m", 30)
	takeSnapshot(t, db, "m", 1)
	records := recordsOf(t, db, "m")
	_, err := db.Latest(t.Context(), "m")
	require.NoError(t, err)
	same := func(name string, db *DB) {
		t.Helper()
		view(t, db, name, func(v *View) {
			now := v.Collection
			now.Name, now.Former = "m", nil
			require.Equal(t, *was, now)
			snapshots, err := v.Snapshots()
			require.NoError(t, err)
			require.Len(t, snapshots, 1)
			f, err := v.OpenSnapshot(&snapshots[0])
			require.NoError(t, err)
			require.NoError(t, f.Close())
		})
		require.Equal(t, records, recordsOf(t, db, name))
		require.Empty(t, checked(t, db, false))
	}
	renamed(t, db, "m", "n")
	same("n", db)
	leadsTo(t, db, "m", "n")
	db = reopen(t, db)
	same("n", db)
	leadsTo(t, db, "m", "n")
	renamed(t, db, "n", "o")
	leadsTo(t, db, "m", "o")
	leadsTo(t, db, "n", "o")
	renamed(t, db, "o", "m")
	same("m", db)
	leadsTo(t, db, "n", "m")
	leadsTo(t, db, "o", "m")
}

// A name is given to one collection, and one that leads somewhere is free when that ends.
func TestNamesThatLeadSomewhereAreTaken(t *testing.T) {
	t.Parallel()
	db := openOverEngine(t, t.TempDir(), memory.New())
	for _, name := range []string{"a", "b", "c"} {
		collection(t, db, name, 3)
	}
	rename := func(name, to string) error { _, err := db.RenameCollection(t.Context(), name, to); return err }
	create := func(name string) error {
		_, err := db.CreateCollection(t.Context(), Collection{Name: name, SP: sp}, &merge.Memory{}, nil)
		return err
	}
	var former *FormerError
	require.ErrorIs(t, rename("a", "b"), ErrExists)
	require.ErrorIs(t, rename("a", "a"), ErrExists)
	require.ErrorContains(t, rename("a", "x y"), "letters, digits")
	require.ErrorIs(t, rename("none", "x"), ErrNotFound)
	no := errors.New("no")
	_, err := db.RenameCollection(t.Context(), "a", "x", func(*Collection) error { return no })
	require.ErrorIs(t, err, no)
	require.NoError(t, rename("a", "x"))
	require.ErrorAs(t, rename("b", "a"), &former)
	require.ErrorAs(t, create("a"), &former)
	require.ErrorContains(t, create("a"), `"tmshare-server collections forget a" frees the old one`)
	require.ErrorIs(t, db.ForgetCollection(t.Context(), "b"), ErrExists)
	require.NoError(t, db.ForgetCollection(t.Context(), "a"))
	require.ErrorIs(t, db.ForgetCollection(t.Context(), "a"), ErrNotFound)
	require.NoError(t, create("a"))

	require.NoError(t, rename("b", "y"))
	require.NoError(t, db.DeleteCollection(t.Context(), "y", "never right"))
	leadsTo(t, db, "b", "")
	leadsTo(t, db, "y", "")
	require.ErrorContains(t, db.View(t.Context(), "b", nil), "was deleted at ")
	require.ErrorContains(t, db.View(t.Context(), "b", nil), "never right")
	require.NoError(t, create("b"), "what was deleted may be made anew")
	require.NoError(t, rename("c", "y"), "and its name given away")
	require.NoError(t, db.DeleteCollection(t.Context(), "b", ""))
	require.False(t, errors.As(db.View(t.Context(), "b", nil), &former), "of one without entries nobody has had anything")
}

// renaming is a place for files in which something happens before one begins.
type renaming struct {
	files.Store
	before func()
}

func (r renaming) Create(ctx context.Context, name string) (files.Writer, error) {
	r.before()
	return r.Store.Create(ctx, name)
}

// A snapshot taken during a renaming of its collection is not listed, and removes no listed one.
func TestASnapshotUnderWayWhileACollectionIsRenamed(t *testing.T) {
	t.Parallel()
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 30)
	first := takeSnapshot(t, db, "m", 2)
	publish(t, db, "m", rename(0, 1, "another"))
	db.files = renaming{db.files, func() { renamed(t, db, "m", "n") }}
	_, err := db.TakeSnapshot(t.Context(), "m", 2)
	require.ErrorIs(t, err, ErrNotFound)
	view(t, db, "n", func(v *View) {
		snapshots, err := v.Snapshots()
		require.NoError(t, err)
		require.Equal(t, []Snapshot{*first}, snapshots)
		f, err := v.OpenSnapshot(first)
		require.NoError(t, err, "its file stays")
		require.NoError(t, f.Close())
	})
	require.Len(t, snapshotFiles(t, db), 1)
}
