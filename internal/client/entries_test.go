package client

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
	"github.com/tmshare/tmshare/internal/extsort"
)

// However little memory there is, entries come back in the order of time, each once, and it
// is known of each whether a later one is of the same topic.
func TestEntryQueue(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, memory := range []int{1, 3000, 1 << 20} {
		path := filepath.Join(t.TempDir(), "scratch", "entries")
		q := &entryQueue{
			byTopic: extsort.Sorter{Path: path + "1", Most: memory}, byTime: extsort.Sorter{Path: path + "2", Most: memory},
			chunk: 7, room: func() error { return nil },
		}
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
			require.NoError(t, q.add(&queuedEntry{e, "http://server.example/feed"}))
		}
		require.NoError(t, q.sort(t.Context()))
		require.Equal(t, len(added), q.total())

		slices.Reverse(added)
		slices.SortStableFunc(added, func(a, b feeds.Entry) int { return a.Updated.Compare(b.Updated) })
		require.Equal(t, key(&added[len(added)-1]), q.last)
		at, superseded := 0, 0
		for c, err := range q.chunks() {
			require.NoError(t, err)
			require.Equal(t, at, c.before)
			for i := range c.entries {
				require.Equal(t, added[at], c.entries[i])
				require.Equal(t, "http://server.example/feed", c.documents[i])
				later := slices.ContainsFunc(added[at+1:], func(e feeds.Entry) bool {
					return len(e.TopicSI)+len(e.TopicSL) > 0 && string(namedTopic(&e)) == string(namedTopic(&added[at]))
				})
				require.Equal(t, later, c.superseded[i], "%d: %+v", at, added[at])
				if later {
					superseded++
				}
				at++
			}
		}
		require.Equal(t, len(added), at)
		require.Equal(t, superseded, q.superseded)
		require.NotZero(t, superseded)

		files, err := os.ReadDir(filepath.Dir(path))
		require.Equal(t, memory < 1<<20, err == nil && len(files) > 0)
		require.NoError(t, q.close())
		require.NoError(t, q.close(), "once more")
		files, _ = os.ReadDir(filepath.Dir(path))
		require.Empty(t, files)
	}
}
