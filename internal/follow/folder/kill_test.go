package folder

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/follow/atompmh"
	"github.com/tmshare/tmshare/internal/testenv"
)

// childVariables are the URL and the folder of a process that harvests, and is killed.
const childURL, childDir = "HARVEST_TEST_URL", "HARVEST_TEST_DIR"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(childURL) == "":
	case os.Getenv(childAddress) != "":
		mirrorChild()
		return
	default:
		child()
		return
	}
	os.Exit(m.Run())
}

// child does a round, and saves much more often than others do.
func child() {
	f, err := Open(os.Getenv(childDir), Options{Fetcher: fetch.Fetcher{}.WithDefaults(), Formats: []string{"application/json", "application/xml"}})
	if err == nil {
		f.every, f.durable = time.Nanosecond, false // the machine does not fail
		_, err = f.Harvest(context.Background(), &atompmh.Source{Fetcher: f.Fetcher}, os.Getenv(childURL))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
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
	run := func(kill time.Duration) (killed bool) {
		t.Helper()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childURL+"="+server.URL+"/feed", childDir+"="+dir)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		if kill > 0 {
			timer := time.AfterFunc(kill, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
		}
		err := cmd.Wait()
		if cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
			return true
		}
		require.NoError(t, err)
		return false
	}
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
