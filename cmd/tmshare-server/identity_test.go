package main

import (
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// create creates the collection m.
func (s *sharing) create() {
	s.t.Helper()
	code, answer, _ := s.request(0, http.MethodPut, "/topicmaps/m", "{}", map[string]string{"Content-Type": "application/json"})
	require.Less(s.t, code, 300, "%s", answer)
}

// put sets the counter of a collection by a process.
func (s *sharing) put(i, n int) {
	s.t.Helper()
	code, answer, _ := s.request(i, http.MethodPut, "/topicmaps/m", counterMap(n), map[string]string{"Content-Type": "application/xtm+xml"})
	require.Less(s.t, code, 300, "%s", answer)
}

// shows reports whether a process serves a number of the counter as the present one.
func (s *sharing) shows(i, n int) bool {
	_, now, _ := s.request(i, http.MethodGet, "/topicmaps/m/snapshots/current.xtm21", "", nil)
	found := counterName.FindSubmatch(now)
	return found != nil && string(found[1]) == string(counterName.FindSubmatch([]byte(counterMap(n)))[1])
}

// whole checks the database at an address.
func (s *sharing) whole(store string) {
	s.t.Helper()
	out, err := exec.Command("tmshare-client", "check", "--store", store).CombinedOutput()
	require.NoError(s.t, err, "%s", out)
}

// A dump is restored into the database under running servers, and written again at once: as many commits as were lost
// lead to another state. No process serves lost data, all of them begin another opening, also idle ones, and check
// finds no errors.
func TestARestoreUnderRunningServers(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	database := pgserver.Start(t, "fsync=off")
	s := share(t, database.URL(), database.URL(), 2)
	rounds := testenv.Rounds(2, 20)
	s.create()
	const store = "tmshare" // its schema
	for round := range rounds {
		kept, lost, again := 3*round, 3*round+1, 3*round+2
		s.put(0, kept)
		dump := database.Dump(t, store)
		s.put(1, lost)
		for i := range s.nodes {
			require.True(t, s.shows(i, lost))
		}
		before := s.opened(1, "m")
		database.Restore(t, store, dump)
		for i := range s.nodes {
			assert.False(t, s.shows(i, lost), "node %d serves what was lost", i)
		}
		s.put(0, again)
		for i := range s.nodes {
			assert.True(t, s.shows(i, again), "node %d", i)
		}
		restored := time.Now()
		for i := range s.nodes {
			testenv.Eventually(t, func() bool { now := s.opened(i, "m"); return len(now) > 0 && now[0] != before[0] })
		}
		t.Logf("all processes have another opening %s after the restore", time.Since(restored).Round(time.Millisecond))
	}
	s.whole(database.URL())
}

// The address of the database leads to two, which each process detects even without requests. It reports it, serves no
// data of the other one, does not write to it, and continues when there is one again.
func TestServersThatSeeTwoDatabases(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	database, other := pgserver.Start(t, "fsync=off"), pgserver.Start(t, "fsync=off")
	const never = 1 << 40
	at := pgserver.NewCutter(t, database.URL(), never, never+1)
	s := share(t, database.URL(), at.URL(), 2)
	out, err := exec.Command("tmshare-server", "migrate", "--store", other.URL()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	s.create()
	s.put(0, 1)
	ready := func(status int, why string) func() bool {
		return func() bool {
			for i := range s.nodes {
				code, answer, _ := s.request(i, http.MethodGet, "/readyz", "", nil)
				if code != status {
					return false
				}
				assert.Contains(t, string(answer), why)
			}
			return true
		}
	}
	testenv.Eventually(t, ready(http.StatusOK, "ready"))
	for range testenv.Rounds(1, 10) {
		began := time.Now()
		at.Lead(t, other.URL())
		testenv.Eventually(t, ready(http.StatusServiceUnavailable, "another database"))
		t.Logf("all processes have noticed after %s", time.Since(began).Round(time.Millisecond))
		at.CutAll()
		for i := range s.nodes {
			code, answer, _ := s.request(i, http.MethodGet, "/topicmaps/m", "", nil)
			assert.Equal(t, http.StatusServiceUnavailable, code, "%s", answer)
		}
		at.Lead(t, database.URL())
		at.CutAll()
		testenv.Eventually(t, ready(http.StatusOK, "ready"))
		for i := range s.nodes {
			assert.True(t, s.shows(i, 1))
		}
	}
	s.whole(database.URL())
}
