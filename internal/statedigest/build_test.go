package statedigest

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

// inOrder iterates over the rows of a tree.
func (r rows) inOrder() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, path := range slices.Sorted(maps.Keys(r)) {
			if !yield(r[path], nil) {
				return
			}
		}
	}
}

// The rows of a tree follow from its items. With one bit changed, with a row less, or with a row elsewhere, they do not, or there are other
// items.
func TestATreeIsMadeAgain(t *testing.T) {
	t.Parallel()
	testenv.Check(t, 200, 5000, func(t *rapid.T) {
		owners := rapid.IntRange(1, 40).Draw(t, "owners")
		tree, changed := rows{}, map[Item]Change{}
		for n := range rapid.IntRange(1, 120).Draw(t, "items") {
			e := Of(Topic, fmt.Sprint("http://psi.example.org/", n%owners), fmt.Append(nil, n))
			changed[e.Item] = Change{Entry: e}
		}
		require.NoError(t, Update(tree, slices.Collect(maps.Values(changed))))
		items := func() (all []Entry, same bool) {
			again := rows{}
			ok, err := Again(tree.inOrder(), func(e *Entry) { all = append(all, *e) }, again.Put)
			require.NoError(t, err)
			return all, ok && maps.EqualFunc(tree, again, bytes.Equal)
		}
		want, ok := items()
		require.True(t, ok)
		require.Len(t, want, len(changed))

		path := rapid.SampledFrom(slices.Sorted(maps.Keys(tree))).Draw(t, "path")
		row := bytes.Clone(tree[path])
		switch rapid.SampledFrom([]string{"bit", "lost", "moved", "more"}).Draw(t, "damage") {
		case "bit":
			at := rapid.IntRange(0, 8*len(row)-1).Draw(t, "bit")
			row[at/8] ^= 1 << (at % 8)
			tree[path] = row
		case "lost":
			delete(tree, path)
		case "moved":
			delete(tree, path)
			tree[path+string(rune(rapid.IntRange(0, 15).Draw(t, "child")))] = row
		case "more":
			tree[path+string(rune(rapid.IntRange(0, 15).Draw(t, "child")))+"\x01"] = row
		}
		have, ok := items()
		require.False(t, ok && slices.Equal(want, have))
	})
}
