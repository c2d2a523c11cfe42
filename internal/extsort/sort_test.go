package extsort

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// sorting returns a sorter with rows, some of one key and some large, in no order.
func sorting(t *testing.T, most int) (*Sorter, []Row) {
	s := &Sorter{Path: filepath.Join(t.TempDir(), "some", "rows"), Most: most}
	t.Cleanup(func() { _ = s.Close() })
	random := rand.New(rand.NewPCG(1, 2))
	var list []Row
	for i := range 3000 {
		r := Row{fmt.Append(nil, random.IntN(2000)), fmt.Append(nil, i)}
		switch random.IntN(100) {
		case 0:
			r.Value = bytes.Repeat(r.Value, 50_000)
		case 1:
			r.Value = nil
		}
		require.NoError(t, s.Add(r.Key, r.Value))
		list = append(list, r)
	}
	return s, list
}

// Rows are sorted by key, with and without a file; those of one key are in the order of addition.
func TestSorted(t *testing.T) {
	order := func(a, b Row) int { return bytes.Compare(a.Key, b.Key) }
	for _, most := range []int{1, 10_000, 1 << 20, 1 << 30} {
		s, list := sorting(t, most)
		var got []Row
		for r, err := range s.Sorted() {
			require.NoError(t, err)
			if len(got) > 0 {
				require.LessOrEqual(t, string(got[len(got)-1].Key), string(r.Key))
			}
			got = append(got, r)
		}
		require.Equal(t, most == 1<<30, len(s.runs) == 0)
		slices.SortStableFunc(list, order)
		require.Len(t, got, len(list))
		for i := range list {
			require.Equal(t, string(list[i].Key), string(got[i].Key))
			require.Equal(t, string(list[i].Value), string(got[i].Value))
		}
		require.NoError(t, s.Close())
		require.NoFileExists(t, s.Path)
	}
}

// A changed file is an error at any end, not a smaller map.
func TestSortedFromADamagedFile(t *testing.T) {
	whole, _ := sorting(t, 1<<20)
	for _, err := range whole.Sorted() {
		require.NoError(t, err)
	}
	ends := []int64{0, 1, 1000, whole.runs[0].offset - 1}
	for _, r := range whole.runs[:len(whole.runs)-1] {
		ends = append(ends, r.offset)
	}
	for _, ends := range ends {
		s, _ := sorting(t, 1<<20)
		require.NoError(t, s.writeRun(), "the rest")
		require.NoError(t, os.Truncate(s.Path, ends))
		var failed error
		for _, err := range s.Sorted() {
			failed = err
		}
		require.Error(t, failed, "it ends after %d bytes", ends)
	}
}

// The memory of merging does not grow with the number of runs: more than a few are merged in
// several passes. After a pass the file has no more runs than are merged at a time.
func TestMemoryOfManyRuns(t *testing.T) {
	const runs, rows = 5000, 3 * 5000 // so many that one pass is not enough
	s := &Sorter{Path: filepath.Join(t.TempDir(), "rows"), Most: 3 * (perRow + 8)}
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

// live returns the live bytes.
func live() int64 {
	runtime.GC()
	runtime.GC() // the content of a sync.Pool survives one collection
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

// A file without a name holds all rows, in so many runs that they are merged, and its folder is always empty.
func TestFileWithoutAName(t *testing.T) {
	folder := t.TempDir()
	s := &Sorter{Path: filepath.Join(folder, "rows"), Most: 4000, Unnamed: true}
	const n = 20_000 // more than 64 runs
	for i := range n {
		require.NoError(t, s.Add(fmt.Appendf(nil, "%08d", i*7919%n), nil))
	}
	for range 2 {
		i := 0
		for row, err := range s.Sorted() {
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%08d", i), string(row.Key))
			i++
		}
		require.Equal(t, n, i)
		files, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, files)
	}
	require.NoError(t, s.Close())
}
