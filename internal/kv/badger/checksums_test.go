package badger

import (
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

// A row that was changed is found in tables of all kinds, wherever it is; the first release compressed them.
func TestDamagedRowsAreFound(t *testing.T) {
	testenv.SkipUnderRace(t)
	for name, compression := range map[string]options.CompressionType{"plain": options.None, "packed": options.Snappy} {
		for _, length := range []int{1, 300} { // the index is large, or small, beside the rows
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
