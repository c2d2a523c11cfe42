package records

import (
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
)

var (
	ref      = storetest.Ref
	reifying = storetest.Reifying
)

// open returns a database over an engine on disk, until the test ends.
func open(t testing.TB) *txn.DB {
	t.Helper()
	f, err := badger.Lock(t.TempDir(), false)
	require.NoError(t, err)
	e, err := f.Open(badger.Options{Logger: slog.New(slog.DiscardHandler), Settings: badger.Settings{Unsynced: true}})
	require.NoError(t, err)
	db := txn.New(e, func() error { return nil })
	t.Cleanup(func() {
		require.True(t, db.Close())
		require.NoError(t, e.Close())
	})
	return db
}

// filesIn returns the names of the files in a folder.
func filesIn(t testing.TB, folder string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

func yielding(list []fragment.Record) iter.Seq2[fragment.Record, error] {
	return func(yield func(fragment.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// The stored rows do not depend on the order of the records, nor on the number of rows sorted and mentions counted in
// memory.
func TestRecordsAreLoadedInAnyOrder(t *testing.T) {
	testenv.SkipUnderRace(t)
	list := reifying(200)
	want := &merge.Memory{}
	for _, r := range list {
		if r.Topic != nil {
			require.NoError(t, want.PutTopic(r.Topic))
		} else {
			require.NoError(t, want.PutAssociation(r.Association))
		}
	}
	var first []row
	for seed, bounds := range []struct{ mentions, sort int }{
		{1 << 20, 32 << 20}, {1, 1}, {2, 32 << 20}, {30, 5_000}, {400, 100_000}, {1 << 20, 20_000},
	} {
		db, scratch := open(t), t.TempDir()
		id := keys.Source{Number: 7, Generation: 7}
		l := Loader{Engine: db.Engine, Scratch: scratch, Ready: func() error { return nil }}.loading(id)
		l.most, l.sorter.Most = bounds.mentions, bounds.sort
		require.NoError(t, l.load(t.Context(), yielding(list)))
		require.Equal(t, bounds.sort < 32<<20, len(filesIn(t, scratch)) > 0, "%+v", bounds)
		require.NoError(t, l.sorter.Close())
		require.Empty(t, filesIn(t, scratch))
		require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
			got := In(tx, id)
			require.Equal(t, storetest.Everything(t, want), storetest.Everything(t, got), "%+v", bounds)
			for i := range 3 * 200 {
				wanted, err := want.Mentions(ref(i))
				require.NoError(t, err)
				n, err := got.Mentions(ref(i))
				require.NoError(t, err)
				require.Equal(t, wanted, n, "mentions of %s with %+v", ref(i), bounds)
			}
			return nil
		}))
		if seed == 0 {
			first = allRows(t, db)
		}
		require.Equal(t, first, allRows(t, db), "%+v", bounds)
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
}

// allRows returns the rows of records.
func allRows(t testing.TB, db *txn.DB) []row {
	t.Helper()
	var list []row
	require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
		for r, err := range tx.Scan(nil, nil) {
			require.NoError(t, err)
			if keys.SourceOf(r.Key).Generation > 0 {
				list = append(list, r)
			}
		}
		return nil
	}))
	return list
}
