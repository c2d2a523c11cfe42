package txn

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv/badger"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// open returns a database over an engine on disk, until the test ends.
func open(t testing.TB) *DB {
	t.Helper()
	f, err := badger.Lock(t.TempDir(), false)
	require.NoError(t, err)
	e, err := f.Open(badger.Options{Logger: slog.New(slog.DiscardHandler), Settings: badger.Settings{Unsynced: true}})
	require.NoError(t, err)
	db := New(e, func() error { return nil })
	t.Cleanup(func() {
		require.True(t, db.Close())
		require.NoError(t, e.Close())
	})
	return db
}

// scanned returns the rows of a scan as "key=value".
func scanned(t testing.TB, tx *Tx, prefix, from []byte) []string {
	t.Helper()
	rows := []string{}
	for r, err := range tx.Scan(prefix, from) {
		require.NoError(t, err)
		rows = append(rows, fmt.Sprintf("%s=%s", r.Key, r.Value))
	}
	return rows
}

// The rows that are kept and the changes that are pending look like one table,
// however they lie: this compares random ones with a sorted list.
func TestScanShowsPendingChangesInTheirPlaces(t *testing.T) {
	db := open(t)
	failed := errors.New("the changes are not to be kept")
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		key := func() []byte { return fmt.Appendf(nil, "x%03d/%c%d", seed, 'a'+rng.IntN(3), rng.IntN(12)) }
		model := map[string]string{}
		require.NoError(t, db.Update(t.Context(), func(tx *Tx) error {
			for range rng.IntN(12) {
				k := key()
				model[string(k)] = "kept"
				require.NoError(t, tx.Put(k, []byte("kept")))
			}
			return nil
		}))
		err := db.Update(t.Context(), func(tx *Tx) error {
			for i := range rng.IntN(16) {
				k, v := key(), fmt.Sprint("new ", i)
				if rng.IntN(3) == 0 {
					delete(model, string(k))
					require.NoError(t, tx.Delete(k))
				} else {
					model[string(k)] = v
					require.NoError(t, tx.Put(k, []byte(v)))
				}
			}
			for _, part := range []string{"", "a", "b", "c"} {
				prefix := fmt.Appendf(nil, "x%03d/%s", seed, part)
				var from []byte
				if rng.IntN(2) == 0 {
					if from = key(); !bytes.HasPrefix(from, prefix) {
						from = nil
					}
				}
				want := []string{}
				for _, k := range slices.Sorted(maps.Keys(model)) {
					if bytes.HasPrefix([]byte(k), prefix) && bytes.Compare([]byte(k), from) >= 0 {
						want = append(want, k+"="+model[k])
					}
				}
				require.Equal(t, want, scanned(t, tx, prefix, from), "seed %d, rows of %s from %s", seed, prefix, from)
			}
			for k, v := range model {
				got, err := tx.Get([]byte(k))
				require.NoError(t, err)
				require.Equal(t, v, string(got))
			}
			return failed
		})
		require.ErrorIs(t, err, failed)
	}
	require.NoError(t, db.View(t.Context(), func(tx *Tx) error {
		for _, r := range scanned(t, tx, []byte("x"), nil) {
			require.Contains(t, r, "=kept", "an update that fails changes nothing")
		}
		return nil
	}))
}
