package follow

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

// With any amount of memory, entries are returned in the order of time, each once, with the information whether a later
// one is of the same topic.
func TestLog(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	state := feeds.StateLive
	for _, memory := range []int{1, 3000, 1 << 20} {
		path := filepath.Join(t.TempDir(), "scratch", "entries")
		l := NewLog("http://server.example/feed", &Scratch{Path: path, Memory: memory, Chunk: 7})
		var added []*Record // the newest first
		for i := range 300 {
			e := feeds.Entry{ID: fmt.Sprint("urn:", i), State: state, Updated: time.Date([]int{1, 2024, 9999}[random.IntN(3)], 1, 1, 0, 0, 0, random.IntN(20), time.UTC)}
			switch name := fmt.Sprint("http://psi.example.org/", random.IntN(40)); random.IntN(4) {
			case 0:
				e.TopicSL = []string{name}
			case 1:
				e.TopicII = []string{name}
			case 2:
			default:
				e.TopicSI = []string{name, "http://psi.example.org/other"}
			}
			r := ChangeOf(&e, "http://server.example/feed")
			if len(added) > 0 && random.IntN(10) == 0 { // a duplicate
				r = added[random.IntN(len(added))]
			} else {
				added = append(added, r)
			}
			require.NoError(t, l.Add(r))
		}
		require.NoError(t, l.Sort(t.Context()))
		require.Equal(t, len(added), l.Total())

		slices.Reverse(added)
		slices.SortStableFunc(added, func(a, b *Record) int { return a.Updated.Compare(b.Updated) })
		last := added[len(added)-1]
		require.Equal(t, Key(last.ID, last.Updated), l.Newest())
		at, superseded := 0, 0
		for chunk, err := range l.chunks() {
			require.NoError(t, err)
			require.LessOrEqual(t, len(chunk), 7)
			for _, r := range chunk {
				later := slices.ContainsFunc(added[at+1:], func(e *Record) bool {
					return len(e.topicKey()) > 0 && string(e.topicKey()) == string(added[at].topicKey())
				})
				want := *added[at]
				want.Change = &Change{State: state, TopicII: want.Change.TopicII, Document: "http://server.example/feed", Superseded: later}
				require.Equal(t, want, r)
				if later {
					superseded++
				}
				at++
			}
		}
		require.Equal(t, len(added), at)
		require.NotZero(t, superseded)
		require.False(t, l.Passes(), "an entry may name no topic: then no entry can be passed over")

		files, err := os.ReadDir(filepath.Dir(path))
		require.Equal(t, memory < 1<<20, err == nil && len(files) > 0)
		require.NoError(t, l.Close())
		require.NoError(t, l.Close(), "once more")
		files, _ = os.ReadDir(filepath.Dir(path))
		require.Empty(t, files)
	}
}
