package folder_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"
)

// A process that opens the folder after a kill keeps the files fetched since the last save. The kill is a copy of the
// folder that is made in the middle of a round.
func TestWhatAKilledRoundHasFetchedIsKept(t *testing.T) {
	const resources, after = 60, 50
	s, m := newMirror(t, careful, resources)
	m.noDumps, m.Parallel = true, 1
	killed := &mirror{t: t, dir: filepath.Join(t.TempDir(), "killed"), url: m.url, noDumps: true, Options: m.Options}
	kill := func(round func()) {
		var asked atomic.Int64
		s.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if strings.HasPrefix(r.URL.Path, "/r/") {
				if asked.Add(1) == after+1 {
					m.journaled(after - 1) // a file may take a while to arrive
					require.NoError(t, os.RemoveAll(killed.dir))
					require.NoError(t, os.CopyFS(killed.dir, os.DirFS(m.dir)))
				}
			}
			return false
		})
		round()
		s.BreakWith(nil)
		s.Seen()
	}
	fetched := func() (paths []string) {
		for _, path := range s.Seen() {
			if strings.HasPrefix(path, "/r/") {
				paths = append(paths, path)
			}
		}
		return paths
	}

	kill(func() { m.round() })
	damaged := damageJournal(t, killed.dir, after-1)
	r := killed.round()
	again := fetched()
	require.LessOrEqual(t, len(again), resources-after+1+len(damaged))
	require.Subset(t, again, damaged)
	require.Equal(t, resources, r.Held)
	require.Equal(t, s.pool, killed.records())
	require.NoFileExists(t, filepath.Join(killed.dir, JournalFile))

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
	require.LessOrEqual(t, len(fetched()), resources-after+2)
	require.Equal(t, s.pool, killed.records())
}

// journaled waits until the journal has some lines besides its first.
func (m *mirror) journaled(lines int) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if b, _ := os.ReadFile(filepath.Join(m.dir, JournalFile)); strings.Count(string(b), "\n") > lines {
			return
		}
	}
}

// damageJournal damages a journal, and the files that it names, as a machine may do that fails as well. It returns
// the paths of the records that have to be fetched again.
func damageJournal(t *testing.T, dir string, atLeast int) (paths []string) {
	path := filepath.Join(dir, JournalFile)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	require.GreaterOrEqual(t, len(lines)-1, atLeast)
	damage := func(i int, f func(line *JournalLine, content []byte) []byte) {
		var line JournalLine
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &line))
		content, err := os.ReadFile(filepath.Join(dir, line.Temp))
		require.NoError(t, err)
		require.NotEmpty(t, content)
		require.NoError(t, os.WriteFile(filepath.Join(dir, line.Temp), f(&line, content), 0o666))
		b, err := json.Marshal(line)
		require.NoError(t, err)
		lines[i] = string(b)
		paths = append(paths, strings.TrimPrefix(line.ID, rsHost))
	}
	damage(1, func(_ *JournalLine, content []byte) []byte { return content[1:] })
	damage(2, func(_ *JournalLine, content []byte) []byte { content[0]++; return content }) // as long as it was
	damage(3, func(line *JournalLine, content []byte) []byte {
		line.Held.SHA256 = strings.Repeat("0", len(line.Held.SHA256))
		return content
	})
	lines = append(lines, `{"id":"http://exam`) // and a line was cut off
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o666))
	return paths
}
