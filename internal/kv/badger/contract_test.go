package badger

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testenv"
)

var testLog = slog.New(slog.DiscardHandler)

// small are settings under which files and transactions are small.
var small = Settings{MemTableSize: 256 << 10, ValueLogFileSize: 1 << 20, ValueThreshold: 16 << 10}

var node = uuid.MustParse("6b6f0c1e-9d4e-4c4b-8a7b-0d8f0c9b7a11")

// openIn opens the database in a folder, or makes one.
func openIn(t testing.TB, folder string, s Settings) *Engine {
	t.Helper()
	e, err := tryToOpen(folder, Options{Settings: s})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func tryToOpen(folder string, o Options) (*Engine, error) {
	o.Node, o.Logger = node, testLog
	f, err := Lock(folder, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(folder, recordFile)); err == nil {
		if err := f.Inspect(node); err != nil {
			f.Unlock()
			return nil, err
		}
	}
	e, err := f.Open(o)
	if err == nil && !o.ReadOnly {
		err = e.KeepRecord(node)
	}
	if err != nil {
		f.Unlock()
		return nil, err
	}
	return e, nil
}

func TestContract(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(t *testing.T) kv.Engine { return openIn(t, t.TempDir(), Settings{Unsynced: true}) })
}

func TestChanged(t *testing.T) {
	kvtest.Changed(t, func(t *testing.T) []kv.Engine { return []kv.Engine{openIn(t, t.TempDir(), small)} })
}

func TestPutBack(t *testing.T) {
	t.Parallel()
	kvtest.PutBack(t, func(t *testing.T) (kv.Engine, func() (kv.Engine, func() kv.Engine)) {
		folder, copied := t.TempDir(), t.TempDir()
		s := Settings{Unsynced: true}
		e := openIn(t, folder, s)
		return e, func() (kv.Engine, func() kv.Engine) {
			require.NoError(t, e.Close())
			require.NoError(t, os.CopyFS(copied, os.DirFS(folder)))
			return openIn(t, folder, s), func() kv.Engine { return openIn(t, copied, s) }
		}
	})
}

func TestHistories(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	s := small
	s.Unsynced = true
	kvtest.Histories(t, func(t *testing.T) kv.Engine { return openIn(t, t.TempDir(), s) })
}

func TestDurable(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	kvtest.Durable(t, func(t *testing.T, folder string) kv.Engine { return openIn(t, folder, Settings{}) })
}
