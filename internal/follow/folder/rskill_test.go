package folder

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/testenv"
)

// TestKilledMirrorsAreInStepInTheEnd kills processes that mirror at random instants, while the
// resources change, by lists and by packages. A round that is not killed then leaves the folder
// as if there had been no other.
func TestKilledMirrorsAreInStepInTheEnd(t *testing.T) {
	wanted := testenv.Rounds(5, 40)
	rng := testenv.Rand(10)
	style := careful
	style.Awkward = true
	s := newRSSource(t, testenv.Seed(), style)
	change := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for range 1 + rng.IntN(60) {
			if rng.IntN(2) == 0 {
				s.event() // URIs in each other's way
			} else {
				s.put(fmt.Sprintf("%s/more/%d/x", rsHost, rng.IntN(40)), fmt.Sprint("version ", s.clock.UnixMicro()))
			}
		}
		if rng.IntN(4) == 0 {
			s.prune()
		}
		s.publish()
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond)
		s.ServeHTTP(w, r)
	}))
	defer server.Close()
	m := &mirror{t: t, dir: filepath.Join(t.TempDir(), "m")}
	run := func(after time.Duration) bool {
		return runFor(t, after, "mirror", s.url(), m.dir, server.Listener.Addr().String())
	}
	var took time.Duration
	killed, unfinished, packages := 0, 0, 0
	for tries := 0; killed < wanted && tries < 20*wanted; tries++ {
		change()
		if took > 0 && rng.IntN(4) > 0 {
			if !run(time.Duration(rng.Int64N(int64(took)))) {
				took -= took / 4
				continue
			}
			killed++
			if _, err := os.Stat(m.dir); err != nil {
				continue
			}
			if len(m.state().Unfinished) > 0 {
				unfinished++
			}
			left, err := filepath.Glob(filepath.Join(m.dir, follow.PackagePrefix+"*"))
			require.NoError(t, err)
			if len(left) > 0 {
				packages++
			}
			continue
		}
		begin := time.Now()
		run(0)
		took = time.Since(begin)
		require.Equal(t, s.pool, m.records())
	}
	run(0)
	require.Equal(t, s.pool, m.records())
	t.Logf("killed %d times, %d times with files yet to be renamed, %d times with packages", killed, unfinished, packages)
	require.Equal(t, wanted, killed)
	if wanted >= 200 { // in the long form: it is a matter of luck
		require.NotZero(t, unfinished, "no kill came between a state and its files")
		require.NotZero(t, packages)
	}
}
