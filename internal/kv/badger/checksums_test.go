package badger

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/testenv"
)

// A changed row is found in tables of all kinds, at any place; the first release compressed them.
func TestDamagedRowsAreFound(t *testing.T) {
	testenv.SkipUnderRace(t)
	for name, compression := range map[string]options.CompressionType{"plain": options.None, "packed": options.Snappy} {
		for _, length := range []int{1, 300} { // the index is large, or small, relative to the rows
			t.Run(fmt.Sprint(name, length), func(t *testing.T) {
				t.Parallel()
				folder := t.TempDir()
				db, err := badgerdb.Open(badgerdb.DefaultOptions(folder).WithCompression(compression).WithLogger(nil))
				require.NoError(t, err)
				batch := db.NewWriteBatch()
				for i := range 20_000 {
					require.NoError(t, batch.Set(fmt.Appendf(nil, "%0*d", length+4, i), fmt.Appendf(nil, "value %d", i)))
				}
				require.NoError(t, batch.Flush())
				require.NoError(t, db.Close())
				m, err := readManifest(folder)
				require.NoError(t, err)
				require.NoError(t, checkTables(folder, m))
				require.NotEmpty(t, m.Tables)
				var buffer []byte
				for id, table := range m.Tables {
					require.Equal(t, compression, table.Compression)
					path := filepath.Join(folder, fmt.Sprintf("%06d.sst", id))
					require.NoError(t, checkRows(path, id, table, &buffer, nil))
					whole, err := os.ReadFile(path)
					require.NoError(t, err)
					for _, at := range []int{10, 5000, len(whole) / 2} {
						damaged := append([]byte(nil), whole...)
						damaged[at] ^= 1
						require.NoError(t, os.WriteFile(path, damaged, 0o600))
						require.ErrorIs(t, checkRows(path, id, table, &buffer, nil), kv.ErrDamaged, "at %d", at)
					}
				}
			})
		}
	}
}

// A short command compares the rows of a small database, for any number of tables, and none of a large one.
func TestComparingIsShortByTheBytesOfRows(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	for name, c := range map[string]struct {
		settings   Settings
		rows, size int
		tables     int // at least so many
		soon       bool
	}{
		"many tables": {Settings{Unsynced: true, MemTableSize: 256 << 10, TableSize: 32 << 10, ValueThreshold: 16 << 10}, 20_000, 300, 33, true},
		"few tables":  {Settings{Unsynced: true, MemTableSize: 16 << 20, TableSize: 32 << 20}, 200, 400 << 10, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			e := openIn(t, folder, c.settings)
			w, err := e.Bulk(t.Context())
			require.NoError(t, err)
			for i := range c.rows {
				require.NoError(t, w.Put(fmt.Appendf(nil, "r%06d", i), bytes.Repeat([]byte{byte(i)}, c.size)))
			}
			require.NoError(t, w.Commit())
			require.NoError(t, e.badger.Flatten(1))
			require.NoError(t, e.Close())
			e = openIn(t, folder, c.settings)
			m, err := readManifest(folder)
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(m.Tables), c.tables)
			require.Equal(t, c.soon, e.VerifiesSoon(), "%d tables", len(m.Tables))
			require.NoError(t, e.Verify(t.Context()))
		})
	}
}
