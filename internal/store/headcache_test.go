package store

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever is committed shows as soon as the commit has returned.
func TestLatestIsNeverBehind(t *testing.T) {
	db := openDB(t, t.TempDir())
	_, err := db.Latest(t.Context(), "m")
	require.ErrorIs(t, err, ErrNotFound)
	collectionOf(t, db, "m", network(t, 20))
	first, err := db.Latest(t.Context(), "m")
	require.NoError(t, err)
	again, err := db.Latest(t.Context(), "m")
	require.NoError(t, err)
	assert.Same(t, first, again, "nothing was committed")

	head := first.Head
	for i := range 20 {
		publish(t, db, "m", rename(i, i+1, "second"))
		latest, err := db.Latest(t.Context(), "m")
		require.NoError(t, err)
		head++
		require.Equal(t, head, latest.Head)
	}
	s, err := db.TakeSnapshot(t.Context(), "m", 3)
	require.NoError(t, err)
	latest, err := db.Latest(t.Context(), "m")
	require.NoError(t, err)
	assert.Equal(t, s.ID, latest.Snapshots[0].ID)

	_, err = db.ChangeSettings(t.Context(), "m", func(s *Settings) error { s.Title = "Towns"; return nil })
	require.NoError(t, err)
	latest, err = db.Latest(t.Context(), "m")
	require.NoError(t, err)
	assert.Equal(t, "Towns", latest.Title)

	require.NoError(t, db.DeleteCollection(t.Context(), "m"))
	_, err = db.Latest(t.Context(), "m")
	assert.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, db.Close())
	_, err = db.Latest(t.Context(), "m")
	assert.ErrorIs(t, err, errClosed)
}

// Those who read a state at the same time get the same pointer, as it says the same.
func TestLatestIsOneForAllWhoReadAtATime(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	for round := range 200 {
		publish(t, db, "m", rename(0, 1, fmt.Sprint("name ", round)))
		var all [4]*Latest
		var readers sync.WaitGroup
		for i := range all {
			readers.Go(func() { all[i], _ = db.Latest(t.Context(), "m") })
		}
		readers.Wait()
		last, err := db.Latest(t.Context(), "m")
		require.NoError(t, err)
		for _, l := range all {
			require.Same(t, last, l)
		}
	}
}
