package store

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/testenv"
)

// Sizes say what is on disk, of records and of snapshots.
func TestSizesFollowWhatIsKept(t *testing.T) {
	testenv.SkipUnderRace(t)
	db := openDB(t, t.TempDir())
	empty, err := db.Sizes()
	require.NoError(t, err)
	require.Zero(t, empty.Snapshots)
	require.Less(t, empty.Records, int64(1<<20), "what Badger reserves takes no room")
	collectionOf(t, db, "m", heavy(t)) // 80 topics of 120 kB
	s := takeSnapshot(t, db, "m", 1)
	require.NoError(t, os.WriteFile(filepath.Join(db.Dir(), "other"), []byte("not ours"), 0o600))
	full, err := db.Sizes()
	require.NoError(t, err)
	require.Equal(t, s.Sizes[Forms[0]]+s.Sizes[Forms[1]], full.Snapshots)
	// Badger packs what it moves out of memory; its logs are as they were written.
	require.Greater(t, full.Records, empty.Records+int64(1<<20))
	require.NoError(t, db.DeleteCollection(t.Context(), "m"))
	gone, err := db.Sizes()
	require.NoError(t, err)
	require.Zero(t, gone.Snapshots)
}

// Closing lets what is under way end; what begins later is refused. A deletion
// goes on to its end, or does not begin.
func TestClosingWaitsForDeletions(t *testing.T) {
	for turn := range 10 {
		db, err := Open(t.Context(), testOptions(t.TempDir()))
		require.NoError(t, err)
		other := collection(t, db, "other", 3)
		takeSnapshot(t, db, "other", 1)
		before := rows(t, db, collectionTables)
		collection(t, db, "m", 2000)
		var deleting sync.WaitGroup
		begun := make(chan struct{})
		var deleted error
		deleting.Go(func() {
			deleted = db.DeleteCollection(t.Context(), "m", func(*Collection) error { close(begun); return nil })
		})
		<-begun
		time.Sleep(time.Duration(turn) * time.Millisecond)
		require.NoError(t, db.Close())
		deleting.Wait()
		require.NoError(t, deleted, "turn %d", turn)
		require.ErrorIs(t, db.DeleteCollection(t.Context(), "other"), errClosed)
		_, err = db.Prune(t.Context(), "other", Retention{Entries: 1})
		require.ErrorIs(t, err, errClosed)
		again, err := openTuned(db.Dir(), db.log, badger.Settings{})
		require.NoError(t, err, fmt.Sprint("turn ", turn))
		checkOnly(t, again, other, before)
		require.NoError(t, again.Close())
	}
}
