package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testenv"
)

// put commits n rows of a size, each with a byte of its own.
func put(t testing.TB, e *Engine, n, size int) {
	t.Helper()
	require.NoError(t, kvtest.Update(context.Background(), e, func(_ kv.Reader, w kv.Writer) error {
		for i := range n {
			if err := w.Put(fmt.Appendf(nil, "r%06d", i), bytes.Repeat([]byte{byte(i)}, size)); err != nil {
				return err
			}
		}
		return nil
	}))
}

func countRows(t testing.TB, e *Engine) (n int, err error) {
	t.Helper()
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	for row, err := range r.Range(nil, nil, false) {
		if err != nil {
			return n, err
		}
		if _, err := r.Get(row.Key); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// withTables returns the closed folder of a database with some tables, and its number of rows.
func withTables(t *testing.T) (folder string, rows int) {
	t.Helper()
	folder = t.TempDir()
	for range 2 {
		e := openIn(t, folder, small)
		put(t, e, 2000, 300)
		require.NoError(t, e.Close())
	}
	m, err := readManifest(folder)
	require.NoError(t, err)
	require.NotEmpty(t, m.Tables)
	return folder, 2000
}

// MANIFEST grows while the database is open. Its record follows.
func TestTheRecordFollowsManifest(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	e := openIn(t, folder, small)
	first, err := readRecord(folder)
	require.NoError(t, err)
	put(t, e, 5000, 300) // more than a memtable
	var now *record
	testenv.Eventually(t, func() bool {
		now, err = readRecord(folder)
		return err == nil && now.Manifest.Size > first.Manifest.Size
	})
	require.False(t, now.Closed)
	require.NotEqual(t, first.Files, now.Files)
	require.NoError(t, e.Close())
	now, err = readRecord(folder)
	require.NoError(t, err)
	require.True(t, now.Closed)
}

// Badger rewrites MANIFEST after many deletions, but not while the database is closed.
func TestAManifestThatWasWrittenAnewIsNoDamage(t *testing.T) {
	t.Parallel()
	folder, rows := withTables(t)
	for _, closed := range []bool{false, true} {
		r, err := readRecord(folder)
		require.NoError(t, err)
		r.Manifest.SHA256, r.Manifest.Deletions, r.Closed = hashOf(nil), rewrittenFrom, closed
		if !closed {
			r.Manifest.Size = 1 << 20
		}
		r.SHA256 = r.sum()
		require.NoError(t, durable.WriteJSON(filepath.Join(folder, recordFile), r))
		e, err := tryToOpen(folder, Options{Settings: small})
		if closed {
			require.ErrorIs(t, err, kv.ErrDamaged)
			continue
		}
		require.NoError(t, err)
		n, err := countRows(t, e)
		require.NoError(t, err)
		require.Equal(t, rows, n)
		require.NoError(t, e.Close())
	}
}

// A copy of a closed database that is put over the files of one that crashed is refused before anything is written.
// Badger would replay the log of the crash over the copy, and all commits between would be missing.
func TestACopyOverTheFilesOfACrashIsDamage(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"memtable": 100, "values": 200 << 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, week, crash := t.TempDir(), t.TempDir(), t.TempDir()
			for n := range 2 {
				e := openIn(t, folder, small)
				put(t, e, n+1, size)
				require.NoError(t, e.Close())
				if n == 0 {
					require.NoError(t, os.CopyFS(week, os.DirFS(folder)))
				}
			}
			e := openIn(t, folder, small)
			put(t, e, 3, size)
			require.NoError(t, os.CopyFS(crash, os.DirFS(folder)))
			require.NoError(t, e.Close())

			files, err := os.ReadDir(week)
			require.NoError(t, err)
			for _, file := range files {
				content, err := os.ReadFile(filepath.Join(week, file.Name()))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(crash, file.Name()), content, 0o600))
			}
			for range 2 {
				_, err := tryToOpen(crash, Options{Settings: small})
				require.ErrorIs(t, err, kv.ErrDamaged)
				require.ErrorContains(t, err, "empty a folder before you put a copy into it")
			}
			openIn(t, week, small)
		})
	}
}

// A database is of one node.
func TestADatabaseOfAnotherNodeIsRefused(t *testing.T) {
	t.Parallel()
	folder, _ := withTables(t)
	f, err := Lock(folder, false)
	require.NoError(t, err)
	defer f.Unlock()
	err = f.Inspect(uuid.New())
	require.ErrorIs(t, err, kv.ErrDamaged)
	require.ErrorContains(t, err, "another node ("+node.String()+")")
}

// A table that Badger is deleting, and has cut already, is no damage.
func TestATableThatIsBeingDeletedIsNoDamage(t *testing.T) {
	t.Parallel()
	folder, _ := withTables(t)
	e := openIn(t, folder, small)
	m, err := readManifest(folder)
	require.NoError(t, err)
	for id, table := range m.Tables {
		content, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("%06d.sst", id)))
		require.NoError(t, err)
		cut := filepath.Join(folder, "999999.sst")
		require.NoError(t, os.WriteFile(cut, content[:len(content)/2], 0o600))
		require.ErrorIs(t, checkRows(cut, 999999, table, new([]byte), nil), kv.ErrDamaged)
		require.NoError(t, e.checkRowsInUse(999999, table, new([]byte)))
		return
	}
	t.Fatal("there is no table")
}

// Whatever the bytes of a table are, reading ends, and panics of Badger are errors. The databases
// are opened for reading only: a compaction reads tables in a goroutine of Badger's, where a panic
// ends the process. Nothing is lost then; "check" compares the checksums and names the table.
func TestDamagedTablesEndNoProcess(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	whole, rows := withTables(t)
	m, err := readManifest(whole)
	require.NoError(t, err)
	panics := 0
	for id := range m.Tables {
		name := fmt.Sprintf("%06d.sst", id)
		content, err := os.ReadFile(filepath.Join(whole, name))
		require.NoError(t, err)
		for turn := range 12 {
			folder := t.TempDir()
			require.NoError(t, os.CopyFS(folder, os.DirFS(whole)))
			damaged := bytes.Clone(content)
			for at := turn * 7; at < len(damaged)/2; at += 997 {
				damaged[at] ^= 0xA5
			}
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), damaged, 0o600))
			e, err := tryToOpen(folder, Options{ReadOnly: true, Settings: small})
			if err != nil {
				panics += isDamage(err)
				continue
			}
			require.ErrorIs(t, e.Verify(t.Context()), kv.ErrDamaged)
			if n, err := countRows(t, e); err != nil {
				panics += isDamage(err)
			} else {
				require.LessOrEqual(t, n, rows*2)
			}
			require.NoError(t, e.Close())
		}
	}
	require.Positive(t, panics, "none of the damages has Badger panic")
}

func isDamage(err error) int {
	if errors.Is(err, kv.ErrDamaged) {
		return 1
	}
	return 0
}

// Tables were compressed once. What was written then stays readable.
func TestCompressedTablesAreRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := Settings{}
	compressed := s.badgerOptions(folder).WithLogger(nil).WithCompression(options.Snappy).WithBlockCacheSize(1 << 20)
	b, err := badgerdb.Open(compressed)
	require.NoError(t, err)
	value := bytes.Repeat([]byte("row "), 1000)
	require.NoError(t, b.Update(func(txn *badgerdb.Txn) error { return txn.Set([]byte("a"), value) }))
	require.NoError(t, b.Close())

	e := openIn(t, folder, Settings{})
	tables := e.badger.Tables()
	require.Len(t, tables, 1)
	assert.Greater(t, tables[0].UncompressedSize, 2*tables[0].OnDiskSize, "it is compressed")
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	got, err := r.Get([]byte("a"))
	require.NoError(t, err)
	require.Equal(t, value, got)
}

// The collection of garbage sleeps most of the time: closing wakes it.
func TestClosingDoesNotWaitForTheNextCollectionOfGarbage(t *testing.T) {
	t.Parallel()
	for range 3 {
		e := openIn(t, t.TempDir(), Settings{})
		closed := make(chan error)
		go func() { closed <- e.Close() }()
		select {
		case err := <-closed:
			require.NoError(t, err)
		case <-time.After(time.Minute):
			require.Fail(t, "it waits for the next collection of garbage")
		}
	}
}

// A reader keeps its rows during deletions and compactions.
func TestCompactingTakesNothingFromAReader(t *testing.T) {
	t.Parallel()
	e := openIn(t, t.TempDir(), small)
	put(t, e, 2000, 300)
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, e.DeletePrefix(t.Context(), []byte("r")))
	put(t, e, 3000, 10)
	require.NoError(t, e.badger.Flatten(1))
	n := 0
	for row, err := range r.Range(nil, nil, false) {
		require.NoError(t, err)
		require.Len(t, row.Value, 300)
		n++
	}
	require.Equal(t, 2000, n)
}
