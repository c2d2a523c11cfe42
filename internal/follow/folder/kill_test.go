package folder

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/follow/atompmh"
	rs "github.com/tmshare/tmshare/internal/follow/resourcesync"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/anyhost"
	"github.com/tmshare/tmshare/internal/testkit/kill"
)

func TestMain(m *testing.M) {
	kill.Main(m, kill.Tasks{
		"harvest": func(args []string) error {
			f := fetch.Fetcher{}.WithDefaults()
			return killedRound(args[1], args[0], &atompmh.Source{Fetcher: f}, Options{Fetcher: f, Formats: []string{"application/json", "application/xml"}})
		},
		"mirror": func(args []string) error { // all hosts are at the third argument
			f := fetch.Fetcher{HTTP: anyhost.ClientOf(args[2])}.WithDefaults()
			return killedRound(args[1], args[0], &rs.Source{Fetcher: f, Temp: args[1]}, Options{Fetcher: f, Mirror: true})
		},
	})
}

// killedRound does a round, and saves much more often than others do.
func killedRound(dir, url string, s follow.Source, o Options) error {
	f, err := Open(dir, o)
	if err != nil {
		return err
	}
	f.every, f.durable = time.Nanosecond, false // the machine does not fail
	if _, err := f.Harvest(context.Background(), s, url); err != nil {
		return err
	}
	return f.Close()
}

// runFor runs a task, and kills it after a while if that is not 0. It reports whether it was killed.
func runFor(t *testing.T, after time.Duration, task string, args ...string) (killed bool) {
	t.Helper()
	p := kill.Start(t, task, args...)
	if after == 0 {
		return p.Wait()
	}
	return p.Kill(after)
}

// TestKilledHarvestsAreInStepInTheEnd kills processes that harvest at random instants,
// while the records change. A round that is not killed then leaves the folder as if there
// had been no other.
func TestKilledHarvestsAreInStepInTheEnd(t *testing.T) {
	wanted := testenv.Rounds(5, 40)
	rng := testenv.Rand(9)
	p := newProducer(testenv.Seed())
	p.ids = 60
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond)
		p.ServeHTTP(w, r)
	}))
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "folder")
	mine := filepath.Join(dir, "mine.txt")
	require.NoError(t, os.MkdirAll(dir, 0o777))
	require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o666))
	run := func(after time.Duration) bool { return runFor(t, after, "harvest", server.URL+"/feed", dir) }
	change := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for range rng.IntN(120) {
			p.event(false, nil)
		}
	}

	var took time.Duration
	killed, ended, unfinished, temps := 0, 0, 0, 0
	for killed < wanted {
		change()
		if took > 0 && rng.IntN(4) > 0 {
			if !run(time.Duration(rng.Int64N(int64(took)))) {
				ended++
				took -= took / 4 // there was less to do than the last time, or more time to do it in
				continue
			}
			killed++
			c := copyOf{t: t, dir: dir}
			if len(c.state().Unfinished) > 0 {
				unfinished++
			}
			left, err := filepath.Glob(filepath.Join(dir, follow.OwnPrefix+"-*"))
			require.NoError(t, err)
			if len(left) > 0 {
				temps++
			}
			continue
		}
		begin := time.Now()
		run(0)
		took = time.Since(begin)
		require.NoError(t, os.Remove(mine)) // records wants no other file
		c := copyOf{t: t, dir: dir}
		require.Equal(t, p.wanted([]string{"application/json", "application/xml"}), c.records())
		require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o666))
	}
	run(0)
	require.NoError(t, os.Remove(mine))
	c := copyOf{t: t, dir: dir}
	require.Equal(t, p.wanted([]string{"application/json", "application/xml"}), c.records())
	t.Logf("killed %d times, %d times with files yet to be renamed, %d times with temporary files; %d runs ended before", killed, unfinished, temps, ended)
	if wanted >= 40 {
		require.NotZero(t, unfinished, "no kill came between a state and its files")
		require.NotZero(t, temps)
	}
}
