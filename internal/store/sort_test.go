package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// sorting returns a sorter with rows, some of one key and some large, in no order.
func sorting(t *testing.T, most int) (*sorter, []row) {
	s := &sorter{path: filepath.Join(t.TempDir(), "some", "rows"), most: most}
	t.Cleanup(func() { _ = s.close() })
	random := rand.New(rand.NewPCG(1, 2))
	var list []row
	for i := range 3000 {
		r := row{fmt.Append(nil, random.IntN(2000)), fmt.Append(nil, i)}
		switch random.IntN(100) {
		case 0:
			r.value = bytes.Repeat(r.value, 50_000)
		case 1:
			r.value = nil
		}
		require.NoError(t, s.add(r.key, r.value))
		list = append(list, r)
	}
	return s, list
}

// Rows come by key, with and without a file; those of one key in any order.
func TestSorted(t *testing.T) {
	order := func(a, b row) int {
		if by := bytes.Compare(a.key, b.key); by != 0 {
			return by
		}
		return bytes.Compare(a.value, b.value)
	}
	for _, most := range []int{1, 10_000, 1 << 20, 1 << 30} {
		s, list := sorting(t, most)
		var got []row
		for r, err := range s.sorted() {
			require.NoError(t, err)
			if len(got) > 0 {
				require.LessOrEqual(t, string(got[len(got)-1].key), string(r.key))
			}
			got = append(got, r)
		}
		require.Equal(t, most == 1<<30, len(s.runs) == 0)
		slices.SortFunc(list, order)
		slices.SortFunc(got, order)
		require.Len(t, got, len(list))
		for i := range list {
			require.Equal(t, string(list[i].key), string(got[i].key))
			require.Equal(t, string(list[i].value), string(got[i].value))
		}
		require.NoError(t, s.close())
		require.NoFileExists(t, s.path)
	}
}

// A file that is not what it was is an error wherever it ends, not a smaller map.
func TestSortedFromADamagedFile(t *testing.T) {
	whole, _ := sorting(t, 1<<20)
	for _, err := range whole.sorted() {
		require.NoError(t, err)
	}
	for _, ends := range append([]int64{0, 1, 1000, whole.runs[0] - 1}, whole.runs[:len(whole.runs)-1]...) {
		s, _ := sorting(t, 1<<20)
		require.NoError(t, s.writeRun(), "the rest")
		require.NoError(t, os.Truncate(s.path, ends))
		var failed error
		for _, err := range s.sorted() {
			failed = err
		}
		require.Error(t, failed, "it ends after %d bytes", ends)
	}
}
