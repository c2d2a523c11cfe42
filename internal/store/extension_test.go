package store

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

// extend puts two rows of an extension.
func extend(t tester, db *DB, name string) {
	t.Helper()
	require.NoError(t, db.Extend(t.Context(), name, func(v *View) error {
		return errors.Join(v.Tx().Put(append(v.Extension("test"), 1), []byte(v.Name)), v.Tx().Put(append(v.Extension("test"), 2), nil))
	}))
}

// The data of extensions about a collection are deleted with it, even if its deletion was interrupted.
func TestInterruptedDeletionsLeaveNothingOfExtensions(t *testing.T) {
	db := openDB(t, t.TempDir())
	for _, name := range []string{"deleted", "kept"} {
		collection(t, db, name, 3)
		extend(t, db, name)
	}
	require.Equal(t, 4, rows(t, db, string(rune(keys.TableExtension))))
	require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { // and no further step
		c, err := collections.Get(tx, "deleted")
		require.NoError(t, err)
		return records.Unname(tx, keys.TableCollection, c.Name, c.Number)
	}))
	db = reopen(t, db)
	require.Equal(t, 2, rows(t, db, string(rune(keys.TableExtension))))
	view(t, db, "kept", func(v *View) {
		value, err := v.Tx().Get(append(v.Extension("test"), 1))
		require.NoError(t, err)
		require.Equal(t, "kept", string(value))
		require.ErrorIs(t, v.Tx().Put(append(v.Extension("test"), 1), nil), txn.ErrReadOnly)
	})
	require.ErrorIs(t, db.Extend(t.Context(), "deleted", func(*View) error { return nil }), ErrNotFound)
}

// What extensions keep of an empty collection stays where its first version is published.
func TestFirstVersionsLeaveExtensionsTheirRows(t *testing.T) {
	db := openDB(t, t.TempDir())
	collectionOf(t, db, "m", &merge.Memory{})
	extend(t, db, "m")
	_, err := db.FillCollection(t.Context(), "m", mapOf(t, 3))
	require.NoError(t, err)
	view(t, db, "m", func(v *View) {
		value, err := v.Tx().Get(append(v.Extension("test"), 1))
		require.NoError(t, err)
		require.Equal(t, "m", string(value))
	})
	require.Equal(t, 2, rows(t, db, string(rune(keys.TableExtension))))
}
