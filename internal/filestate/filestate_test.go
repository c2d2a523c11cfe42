package filestate

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// Nobody can write a file, or put another one in its place, so that it looks as before; to look at it, or read it,
// changes nothing.
func TestOf(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows tells no time of change")
	}
	path := filepath.Join(t.TempDir(), "file")
	long := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	write := func(path, content string) {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, os.Chtimes(path, long, long))
	}
	state := func() string {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return Describe(info)
	}
	write(path, "one")
	before := state()
	_, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, state())
	testenv.Eventually(t, func() bool { // as soon as the clock of the file system has moved on
		write(path, "two")
		return state() != before
	})
	before = state()
	write(path+"2", "six")
	require.NoError(t, os.Rename(path+"2", path))
	require.NotEqual(t, before, state())
}
