package store

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
)

// What costs little finds the same damage as what finds out which rows must be there, and no other.
func TestSoundIsWhatIsExpected(t *testing.T) {
	t.Parallel()
	engine := memory.New()
	db := openWith(t, Options{Dir: t.TempDir(), Engine: engine, Logger: testOptions("").Logger})
	collectionOf(t, db, "m", reifiedState(t))
	publish(t, db, "m", rename(0, 4, "changed since it was loaded"))
	var all []kv.Row
	var id keys.Source
	view(t, db, "m", func(v *View) {
		id = v.SourceKey()
		for _, table := range []byte(keys.SourceTables) {
			for r, err := range v.tx.Scan(id.Key(table), nil) {
				require.NoError(t, err)
				all = append(all, r)
			}
		}
	})
	file := filepath.Join(t.TempDir(), "rows")
	sound := func(t tester, rows []kv.Row) bool {
		engine := memory.New()
		w, err := engine.Bulk(t.Context())
		require.NoError(t, err)
		for _, r := range rows {
			require.NoError(t, w.Put(r.Key, r.Value))
		}
		require.NoError(t, w.Commit())
		reader, err := engine.Snapshot(t.Context())
		require.NoError(t, err)
		defer reader.Close()
		tx := txn.Over(t.Context(), reader)
		ok, err := records.Sound(tx, id)
		require.NoError(t, err)

		found := 0
		expected, err := records.Expect(tx, id, file, 0, func([]byte) { found++ })
		require.NoError(t, err)
		defer expected.Close()
		require.NoError(t, expected.Differences(tx, func(records.Difference) error { found++; return nil }))
		require.Equal(t, found == 0, ok, "findings: %d", found)
		return ok
	}
	require.True(t, sound(t, all))
	testenv.Check(t, 500, 20_000, func(t *rapid.T) {
		at := rapid.IntRange(0, len(all)-1).Draw(t, "row")
		rows := append([]kv.Row{}, all[:at]...)
		rows = append(rows, all[at+1:]...)
		if rapid.IntRange(0, 9).Draw(t, "lost") > 0 {
			r := kv.Row{Key: bytes.Clone(all[at].Key), Value: bytes.Clone(all[at].Value)}
			of := r.Value
			if len(of) == 0 || rapid.IntRange(0, 9).Draw(t, "key") == 0 {
				of = r.Key[keys.SourceSize:]
			}
			if len(of) == 0 {
				t.Skip("the root of the tree has no path")
			}
			bit := rapid.IntRange(0, 8*len(of)-1).Draw(t, "bit")
			of[bit/8] ^= 1 << (bit % 8)
			rows = append(rows, r)
		}
		sound(t, rows)
	})
}
