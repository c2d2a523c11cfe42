package sim

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// TestMain lets garbage wait: runs are small, and each leaves much of it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// simulate runs the world of a seed.
func simulate(t *testing.T, seed uint64, b breach) (w *world, err error) {
	rows := newRows(t)
	synctest.Test(t, func(t *testing.T) { w, err = run(t, rows, seed, b) })
	return w, err
}

func TestSim(t *testing.T) {
	testenv.SkipUnderRace(t)
	rounds, workers := testenv.Rounds(100, 5000), runtime.GOMAXPROCS(0)
	var mu sync.Mutex
	var all counts
	t.Cleanup(func() { t.Logf("%+v", all) })
	for first := range workers {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			for n := first; n < rounds; n += workers {
				seed := testenv.Seed() + uint64(n)
				w, err := simulate(t, seed, breach{})
				mu.Lock()
				all.add(&w.counts)
				mu.Unlock()
				if err != nil {
					t.Fatalf("seed %d: %v\n%s\nto replay: %s", seed, err, w.tail(), replay(seed))
				}
			}
		})
	}
}

// replay is the command that does a run again.
func replay(seed uint64) string {
	long := ""
	if testenv.Long() {
		long = " -long"
	}
	return fmt.Sprintf("go test ./internal/sim -run 'TestSim$' -rounds 1 -seed %d%s", seed, long)
}

// A seed determines the run, so that a failure can be reproduced.
func TestSeedsReplay(t *testing.T) {
	testenv.SkipUnderRace(t)
	for n := range testenv.Rounds(15, 200) {
		seed := testenv.Seed() + uint64(n)
		one, err := simulate(t, seed, breach{})
		require.NoError(t, err)
		two, err := simulate(t, seed, breach{})
		require.NoError(t, err)
		require.Equal(t, one.log, two.log, "seed %d", seed)
	}
}

// An omitted rule is detected, by most seeds that depend on it.
func TestRulesThatAreLeftOutAreNoticed(t *testing.T) {
	testenv.OnlyWithAll(t, "it tests the simulation itself")
	testenv.SkipUnderRace(t)
	for _, b := range breaches {
		t.Run(b.name, func(t *testing.T) {
			noticed, runs := 0, 0
			for ; runs < testenv.Rounds(120, 300) && (noticed < 1 || testenv.Long()); runs++ {
				if _, err := simulate(t, testenv.Seed()+uint64(b.skip+runs), b); err != nil {
					if noticed++; noticed == 1 {
						t.Log(err)
					}
				}
			}
			require.NotZero(t, noticed, "nothing is wrong in %d runs", runs)
			t.Logf("%d of %d runs", noticed, runs)
		})
	}
}
