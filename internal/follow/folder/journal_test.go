package folder

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tmshare/tmshare/internal/follow"

	"github.com/stretchr/testify/require"
)

// What was fetched since the last save is kept by whoever opens the folder after a kill. The
// kill is a copy of the folder that is made in the middle of a round.
func TestWhatAKilledRoundHasFetchedIsKept(t *testing.T) {
	const resources, after = 60, 50
	s, m := newMirror(t, careful, resources)
	m.noDumps, m.Parallel = true, 1
	killed := &mirror{t: t, dir: filepath.Join(t.TempDir(), "killed"), url: m.url, noDumps: true, Options: m.Options}
	kill := func(round func()) {
		var asked atomic.Int64
		s.mu.Lock()
		s.fault = func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/r/") {
				if asked.Add(1) == after+1 {
					require.NoError(t, os.RemoveAll(killed.dir))
					require.NoError(t, os.CopyFS(killed.dir, os.DirFS(m.dir)))
				}
			}
			return false
		}
		s.mu.Unlock()
		round()
		s.mu.Lock()
		s.fault = nil
		s.mu.Unlock()
		s.seen()
	}
	fetched := func() (n int) {
		for _, path := range s.seen() {
			if strings.HasPrefix(path, "/r/") {
				n++
			}
		}
		return n
	}

	kill(func() { m.round() })
	hidden, err := filepath.Glob(filepath.Join(killed.dir, follow.OwnPrefix+"*"+follow.TempSuffix))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(hidden), after-1)
	require.NoError(t, os.WriteFile(hidden[0], []byte("not what was fetched"), 0o666)) // the machine failed as well
	journal, err := os.OpenFile(filepath.Join(killed.dir, journalFile), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = journal.WriteString(`{"id":"http://exam`) // and a line was cut off
	require.NoError(t, err)
	require.NoError(t, journal.Close())

	r := killed.round()
	require.LessOrEqual(t, fetched(), resources-after+2)
	require.Equal(t, resources, r.Held)
	require.Equal(t, s.pool, killed.records())
	require.NoFileExists(t, filepath.Join(killed.dir, journalFile))

	// A later round, in which some are changed, and some deleted before they were seen again.
	for i := range resources {
		s.put(fmt.Sprintf("%s/r/%d.txt", rsHost, i), "new")
	}
	s.publish()
	kill(func() { m.round() })
	for i := range 10 {
		s.change(fmt.Sprintf("%s/r/%d.txt", rsHost, i), "", "deleted")
	}
	s.publishChanges()
	killed.round()
	require.LessOrEqual(t, fetched(), resources-after+2)
	require.Equal(t, s.pool, killed.records())
}
