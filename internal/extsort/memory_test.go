package extsort

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The memory of merging does not grow with the number of runs: more than a few are merged in
// several passes. After a pass the file has no more runs than are merged at a time.
func TestMemoryOfManyRuns(t *testing.T) {
	const runs, rows = 5000, 3 * 5000 // so many that one pass is not enough
	s := &Sorter{Path: filepath.Join(t.TempDir(), "rows"), Most: 3 * (perRow + 16)}
	defer s.Close()
	before := live()
	for i := range rows {
		key := make([]byte, 8, 16)
		copy(key, fmt.Appendf(nil, "%08d", i*7919%rows))
		require.NoError(t, s.Add(key, nil))
	}
	require.Len(t, s.runs, runs)
	for pass := range 2 {
		at := 0
		for r, err := range s.Sorted() {
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%08d", at), string(r.Key))
			if at++; at == rows/2 {
				require.Less(t, live()-before, int64(16<<20), "pass %d", pass)
			}
		}
		require.Equal(t, rows, at)
		require.LessOrEqual(t, len(s.runs), fanIn)
	}
	require.NoError(t, s.Close())
	files, err := os.ReadDir(filepath.Dir(s.Path))
	require.NoError(t, err)
	require.Empty(t, files)
}

// live returns the bytes of what is in use.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Rows may be added between two readings.
func TestRowsAddedBetweenReadings(t *testing.T) {
	for _, most := range []int{1, 1000, 1 << 20} {
		s := &Sorter{Path: filepath.Join(t.TempDir(), "rows"), Most: most}
		for round := range 3 {
			for i := range 200 {
				require.NoError(t, s.Add(fmt.Appendf(nil, "%03d-%d", i, round), nil))
			}
			var got []string
			for r, err := range s.Sorted() {
				require.NoError(t, err)
				got = append(got, string(r.Key))
			}
			require.IsIncreasing(t, got)
			require.Len(t, got, 200*(round+1))
		}
		require.NoError(t, s.Close())
	}
}
