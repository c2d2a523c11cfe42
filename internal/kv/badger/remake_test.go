package badger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testenv"
)

// largeValues are settings with which a database has several value logs.
var largeValues = Settings{MemTableSize: 1 << 20, TableSize: 256 << 10, ValueThreshold: 16 << 10, ValueLogFileSize: 1 << 20, Unsynced: true}

const lastTurn = 6 // in which a value is written; compactions begin with more than 5 tables

// withValues returns the folder of a database with value logs, half of which is of no use any more.
func withValues(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for turn := range lastTurn + 1 {
		e := openIn(t, folder, largeValues)
		for i := range 100 {
			putValue(t, e, turn, i)
		}
		require.NoError(t, e.Close())
	}
	e := openIn(t, folder, largeValues)
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	r.Close()
	require.NoError(t, e.badger.Flatten(1)) // which keeps rows of possible readers
	require.NoError(t, e.Close())
	return folder
}

func putValue(t *testing.T, e *Engine, turn, i int) {
	t.Helper()
	require.NoError(t, kvtest.Update(t.Context(), e, func(_ kv.Reader, w kv.Writer) error {
		return w.Put(fmt.Appendf(nil, "row %03d", i), valueIn(turn, i))
	}))
}

func valueIn(turn, i int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "value %d of row %d,", turn, i), 2000)
}

// discarded reads a DISCARD.
func discarded(t *testing.T, folder string) map[uint64]uint64 {
	b, err := os.ReadFile(filepath.Join(folder, discardFile))
	require.NoError(t, err)
	all := map[uint64]uint64{}
	for ; binary.BigEndian.Uint64(b) != 0; b = b[discardEntry:] {
		if n := binary.BigEndian.Uint64(b[8:]); n > 0 {
			all[binary.BigEndian.Uint64(b)] = n
		}
	}
	return all
}

// requireValues requires that all values are there, before garbage is collected and after that, and that this ends.
func requireValues(t *testing.T, e *Engine) {
	t.Helper()
	look := func() {
		r, err := e.Snapshot(t.Context())
		require.NoError(t, err)
		defer r.Close()
		for i := range 100 {
			value, err := r.Get(fmt.Appendf(nil, "row %03d", i))
			require.NoError(t, err)
			require.True(t, bytes.Equal(valueIn(lastTurn, i), value), "row %d", i)
		}
	}
	look()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e.collectOnce() == nil {
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		require.FailNow(t, "collecting garbage does not end")
	}
	look()
}

// For any content of the files without rows, the database opens, has all values, and keeps them when garbage is
// collected.
func TestFilesThatSayNothingOfRowsAreMadeAgain(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	whole := withValues(t)
	right := discarded(t, whole)
	require.Greater(t, len(right), 2)
	entry := func(content []byte, at int, log, n uint64) {
		binary.BigEndian.PutUint64(content[at*discardEntry:], log)
		binary.BigEndian.PutUint64(content[at*discardEntry+8:], n)
	}
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:n] } }
	type damages map[string]func([]byte) []byte
	for name, all := range map[string]damages{
		discardFile: {
			"half":     cut(discardSize / 2),
			"a part":   cut(discardSize - 3),
			"one byte": cut(1),
			"empty":    cut(0),
			"longer":   func(b []byte) []byte { return append(b, 7, 7, 7) },
			"twice": func(b []byte) []byte {
				entry(b, len(right)+3, 1, 5<<20)
				entry(b, 0, 1, 9<<20)
				entry(b, 1, 1, 9<<20)
				return b
			},
			"no log":      func(b []byte) []byte { entry(b, 0, 1<<40+1, 1<<50); return b },
			"another log": func(b []byte) []byte { entry(b, 0, 99999, 1<<50); return b },
			"negative":    func(b []byte) []byte { entry(b, 0, 1, math.MaxUint64); return b },
			"all":         func(b []byte) []byte { return bytes.Repeat([]byte{0xA5}, len(b)) },
			"behind":      func(b []byte) []byte { b[len(b)-1] = 1; return b },
			"no end": func(b []byte) []byte {
				for i := range len(b) / discardEntry {
					entry(b, i, uint64(i+1), 1)
				}
				return b
			},
		},
		keysFile: {
			"half":    cut(14),
			"empty":   cut(0),
			"longer":  func(b []byte) []byte { return append(b, 7, 7, 7, 7, 7, 7, 7, 7, 7) },
			"flipped": func(b []byte) []byte { b[20] ^= 1; return b },
		},
	} {
		for how, damage := range all {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				folder := t.TempDir()
				require.NoError(t, os.CopyFS(folder, os.DirFS(whole)))
				path := filepath.Join(folder, name)
				content, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, damage(content), 0o600))
				f, err := Lock(folder, false)
				require.NoError(t, err)
				require.NoError(t, f.Inspect(node))
				if f.MustRecover() {
					require.Equal(t, []string{name}, f.condition.unusable)
				} else {
					require.Equal(t, discardFile, name, "it must be made before the database is read")
				}
				f.Unlock()
				e := openIn(t, folder, largeValues)
				if now := discarded(t, folder); f.MustRecover() {
					require.Equal(t, right, now, "what rows do not lead to")
				}
				requireValues(t, e)
				require.NoError(t, e.Close())
				e, err = tryToOpen(folder, Options{ReadOnly: true, Settings: largeValues})
				require.NoError(t, err)
				require.NoError(t, e.Close())
			})
		}
	}
}

// What a process that was killed has left does not keep DISCARD from being made again.
func TestFilesAreMadeAgainAfterAKill(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	whole := withValues(t)
	e := openIn(t, whole, largeValues)
	for i := range 100 {
		putValue(t, e, lastTurn, i)
	}
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS(whole))) // while it is open
	require.NoError(t, os.Truncate(filepath.Join(folder, discardFile), discardSize/2))
	require.NoError(t, os.Truncate(filepath.Join(folder, keysFile), 3))
	again := openIn(t, folder, largeValues)
	requireValues(t, again)
	require.NoError(t, again.Close())
}
