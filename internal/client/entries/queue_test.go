package entries

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// However little memory there is, entries come back in the order of time, each once, and it
// is known of each whether a later one is of the same topic.
func TestEntryQueue(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, memory := range []int{1, 3000, 1 << 20} {
		path := filepath.Join(t.TempDir(), "scratch", "entries")
		q := New(path, Limits{Memory: memory, Chunk: 7}, func() error { return nil })
		var added []feeds.Entry // the newest first
		for i := range 300 {
			e := feeds.Entry{ID: fmt.Sprint("urn:", i), Updated: time.Date([]int{1, 2024, 9999}[random.IntN(3)], 1, 1, 0, 0, 0, random.IntN(20), time.UTC)}
			switch name := fmt.Sprint("http://psi.example.org/", random.IntN(40)); random.IntN(4) {
			case 0:
				e.TopicSL = []string{name}
			case 1:
			default:
				e.TopicSI = []string{name, "http://psi.example.org/other"}
			}
			if len(added) > 0 && random.IntN(10) == 0 { // once more
				e = added[random.IntN(len(added))]
			} else {
				added = append(added, e)
			}
			require.NoError(t, q.Add(&Entry{e, "http://server.example/feed"}))
		}
		require.NoError(t, q.Sort(t.Context()))
		require.Equal(t, len(added), q.Total())

		slices.Reverse(added)
		slices.SortStableFunc(added, func(a, b feeds.Entry) int { return a.Updated.Compare(b.Updated) })
		require.Equal(t, Key(&added[len(added)-1]), q.Newest())
		at, superseded := 0, 0
		for c, err := range q.Chunks() {
			require.NoError(t, err)
			require.Equal(t, at, c.Before)
			for i := range c.Entries {
				require.Equal(t, added[at], c.Entries[i])
				require.Equal(t, "http://server.example/feed", c.Documents[i])
				later := slices.ContainsFunc(added[at+1:], func(e feeds.Entry) bool {
					return len(e.TopicSI)+len(e.TopicSL) > 0 && string(namedTopic(&e)) == string(namedTopic(&added[at]))
				})
				require.Equal(t, later, c.Superseded[i], "%d: %+v", at, added[at])
				if later {
					superseded++
				}
				at++
			}
		}
		require.Equal(t, len(added), at)
		require.Equal(t, superseded, q.Superseded())
		require.NotZero(t, superseded)

		files, err := os.ReadDir(filepath.Dir(path))
		require.Equal(t, memory < 1<<20, err == nil && len(files) > 0)
		require.NoError(t, q.Close())
		require.NoError(t, q.Close(), "once more")
		files, _ = os.ReadDir(filepath.Dir(path))
		require.Empty(t, files)
	}
}
