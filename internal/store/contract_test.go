package store

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/merge"
)

var histories = flag.Int("histories", 12, "random histories to run")
var firstSeed = flag.Uint64("seed", 1, "seed of the first history")

// subscribed is the source of a subscription on disk as a backend of records. It
// does not wait for the disk: only crashes show the difference.
type subscribed struct {
	t  *testing.T
	db *DB
}

func openSubscribed(t *testing.T) storetest.Backend {
	db := openUnsynced(t, t.TempDir())
	subscribe(t, db, "s", &merge.Memory{})
	return &subscribed{t, db}
}

func (s *subscribed) Update(f func(merge.State) error) error {
	return s.db.ApplyEntries(s.t.Context(), "s", func(state *Applying) error { return f(state) })
}

func (s *subscribed) Reopen() error {
	if err := s.db.Close(); err != nil {
		return err
	}
	s.db = openUnsynced(s.t, s.db.Dir())
	return nil
}

func TestSourcesOnDiskKeepTheRules(t *testing.T) {
	t.Parallel()
	storetest.Run(t, openSubscribed)
}

func TestSourcesOnDiskAgreeWithMemory(t *testing.T) {
	t.Parallel()
	storetest.Histories(t, openSubscribed, *histories, *firstSeed)
}

// A publisher's records, changed by differences, agree with those in memory as
// a subscriber's do, and its log says what the differences say.
func TestPublishedRecordsAgreeWithMemory(t *testing.T) {
	t.Parallel()
	require.Positive(t, *histories)
	published := 0
	for i := range uint64(*histories) {
		seed := *firstSeed + i
		editor := storetest.NewEditor(t, seed)
		var want merge.Memory
		first := editor.Version(nil)
		require.NoError(t, want.Load(first))
		db := openDB(t, t.TempDir())
		collectionOf(t, db, "m", first)
		for version := range 6 {
			require.Equal(t, all(t, &want), recordsOf(t, db, "m"), "seed %d, version %d: %q", seed, version, editor.Said)
			next := editor.Version(&want)
			c := publishMap(t, db, "m", next)
			storetest.Write(t, &want, mustDiff(t, &want, next))
			view(t, db, "m", func(v *View) {
				require.Len(t, topicsOf(t, &want), v.Topics, "the number of topics is kept")
				require.Equal(t, c.Head, uint64(len(entries(t, v))))
			})
			published = int(c.Head)
			if version == 3 {
				db = reopen(t, db)
			}
		}
		require.Equal(t, all(t, &want), recordsOf(t, db, "m"), "seed %d", seed)
		require.NoError(t, db.Close())
	}
	require.Greater(t, published, 6, "the versions changed too little to mean anything")
}
