package store

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
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
	src, err := fragment.NameTopics(t.Context(), tm, sp, nil)
	require.NoError(t, err)

	no := errors.New("no")
	_, err = db.FillCollection(t.Context(), "m", src, func(*Collection) error { return no })
	require.ErrorIs(t, err, no)
	require.NoError(t, db.View(t.Context(), "m", func(v *View) error { assert.Zero(t, v.Head); return nil }))

	// The time is up when the records are stored already.
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = db.FillCollection(ctx, "m", &lastTopics{Source: src, then: func() { cancel(late) }})
	require.ErrorIs(t, err, late)
	onlyOf(t, db, empty)
	_, err = db.FillCollection(ctx, "m", src)
	require.ErrorIs(t, err, late)
	onlyOf(t, db, empty)

	filled, err := db.FillCollection(t.Context(), "m", src)
	require.NoError(t, err)
	assert.Equal(t, empty.Epoch, filled.Epoch)
	require.NoError(t, db.View(t.Context(), "m", func(v *View) error {
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

	onlyOf(t, db, filled)
}

// Of a collection that could not be created nothing is left, whenever it failed.
func TestACollectionThatIsNotCreatedLeavesNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	src := mapOf(t, 50)
	create := func(ctx context.Context, src fragment.Source) error {
		_, err := db.CreateCollection(ctx, Collection{Name: "m", SP: sp}, src, nil)
		return err
	}
	all := keys.SourceTables + "efkg"
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	require.ErrorIs(t, create(ctx, &lastTopics{Source: src, then: func() { cancel(late) }}), late)
	require.Zero(t, rows(t, db, all))
	require.ErrorIs(t, create(t.Context(), &lastTopics{Source: src, then: func() {
		collection(t, db, "m", 3) // somebody else is quicker
	}}), ErrExists)
	view(t, db, "m", func(v *View) {
		require.Equal(t, 4, v.Topics)
		onlyOf(t, db, &v.Collection)
	})
}

// onlyOf checks that nothing is kept under other numbers than that of a collection,
// neither of a map that was replaced nor of attempts that failed.
func onlyOf(t *testing.T, db *DB, c *Collection) {
	t.Helper()
	require.NoError(t, db.rows.View(t.Context(), func(rows *txn.Tx) error {
		for _, table := range []byte(keys.SourceTables + string([]byte{keys.TableLog, keys.TableFragment, keys.TableKey, keys.TableSnapshot, keys.TableChangeList})) {
			for r, err := range rows.Scan([]byte{table}, nil) {
				require.NoError(t, err)
				assert.Equal(t, c.source().Key(table)[:5], r.Key[:5], "%c", table)
			}
		}
		return nil
	}))
}

// lastTopics calls then when the topics are read again, for the entries.
type lastTopics struct {
	fragment.Source
	then  func()
	times int
}

func (l *lastTopics) Topics() iter.Seq2[*fragment.Topic, error] {
	if l.times++; l.times == 2 {
		l.then()
	}
	return l.Source.Topics()
}
