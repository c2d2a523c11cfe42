package store

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

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
	src, err := fragment.NameTopics(tm, sp, nil)
	require.NoError(t, err)

	no := errors.New("no")
	_, err = db.FillCollection(t.Context(), "m", src, func(*Collection) error { return no })
	require.ErrorIs(t, err, no)
	require.NoError(t, db.View("m", func(v *View) error { assert.Zero(t, v.Head); return nil }))

	filled, err := db.FillCollection(t.Context(), "m", src)
	require.NoError(t, err)
	assert.Equal(t, empty.Epoch, filled.Epoch)
	require.NoError(t, db.View("m", func(v *View) error {
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

	// Nothing is kept under other numbers, neither of the empty map nor of the
	// attempts that failed.
	require.NoError(t, db.viewing(func(t2 *tx) error {
		for _, table := range []byte(sourceTables + string([]byte{tableLog, tableFragment, tableKey, tableSnapshot, tableChangeList})) {
			for r, err := range t2.scan([]byte{table}, nil) {
				require.NoError(t, err)
				assert.Equal(t, filled.source().key(table)[:5], r.key[:5], "%c", table)
			}
		}
		return nil
	}))
}
