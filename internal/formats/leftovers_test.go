package formats

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/xtm"
)

// What a killed run has left beside a file goes when the file is written a day later, and nothing else.
func TestLeftoversOfKilledRunsAreRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "e.ttl")
	id := "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	kept := []string{path + "." + id[1:] + "2.tmp", path + ".mine.tmp", path + "x." + id + ".tmp"}
	for _, name := range append(kept, path+"."+id+".tmp") {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	old := time.Now().Add(-25 * time.Hour)
	for _, name := range []string{path + "." + id + ".tmp", kept[1], kept[2]} {
		require.NoError(t, os.Chtimes(name, old, old))
	}
	_, err := Target{Path: path}.Write(t.Context(), func(w io.Writer) (xtm.Losses, error) { return xtm.Losses{}, nil })
	require.NoError(t, err)
	assert.NoFileExists(t, path+"."+id+".tmp")
	for _, name := range append(kept, path) {
		assert.FileExists(t, name)
	}
}
