package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// headOf returns the head of a fragments feed; nil without an answer.
func headOf(url string) *feeds.Feed {
	res, err := http.Get(url)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	feed, err := feeds.Decode(res.Body, url, feeds.Limits{})
	if err != nil || res.StatusCode != http.StatusOK {
		return nil
	}
	return feed
}

// Each process that publishes from a folder begins an opening before it serves, after a kill at any time: followers
// never see the feed of one that they take for another. Commands begin none. A folder that is restored, or copied back,
// lacks the later openings, and has an unknown one.
func TestEachServerBeginsAnOpening(t *testing.T) {
	testenv.SkipUnderRace(t) // it runs programs, of which the parts run by themselves
	testenv.OnlyWithAll(t, "processes are killed")
	t.Parallel()
	dir, random := t.TempDir(), rand.New(rand.NewPCG(testenv.Seed(), 0))
	data, address := filepath.Join(dir, "data"), freeAddress(t)
	file := filepath.Join(dir, "map.xtm")
	require.NoError(t, os.WriteFile(file, []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`), 0o600))
	command := func(name string, args ...string) {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	serve := func(data string) *exec.Cmd {
		cmd := exec.Command("tmshare-server", "serve", "--listen", address, "--data", data, "--map", "m="+file)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd
	}
	end := func(cmd *exec.Cmd) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	opened := func(data string) (openings []string) {
		t.Helper()
		cmd := serve(data)
		defer end(cmd)
		testenv.Eventually(t, func() bool {
			feed := headOf("http://" + address + "/topicmaps/m/fragments")
			if feed != nil {
				openings = feed.Openings
			}
			return feed != nil
		})
		return openings
	}
	var seen []string // the newest first
	for range 4 {
		for range 2 { // is killed at any moment of its start
			cmd := serve(data)
			time.AfterFunc(time.Duration(random.IntN(200))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait()
		}
		now := opened(data)
		require.NotEmpty(t, now)
		assert.NotContains(t, seen, now[0])
		if len(seen) > 0 {
			i := slices.Index(now, seen[0])
			require.Positive(t, i, "what was served before is known")
			assert.Equal(t, seen[:min(len(seen), len(now)-i)], now[i:], "in the same order")
		}
		seen = now
	}
	other := serve(filepath.Join(dir, "other"))
	testenv.Eventually(t, func() bool { return headOf("http://"+address+"/topicmaps/m/fragments") != nil })
	command("tmshare-client", "--data", data, "subscribe", "--as", "theirs", "http://"+address+"/topicmaps/m")
	for range 3 {
		command("tmshare-client", "--data", data, "sync")
	}
	end(other)
	now := opened(data)
	assert.Equal(t, seen[0], now[1], "commands open nothing")

	saved := filepath.Join(dir, "saved")
	command("tmshare-client", "--data", data, "backup", saved)
	command("cp", "-a", data, filepath.Join(dir, "copy"))
	later := opened(data)
	assert.Equal(t, now[0], later[1])
	command("tmshare-client", "--data", filepath.Join(dir, "restored"), "restore", saved)
	for _, put := range []string{"copy", "restored"} {
		back := opened(filepath.Join(dir, put))
		assert.Equal(t, now[0], back[1], "%s: what was known before", put)
		assert.NotContains(t, back, later[0], "%s: what came later is not known", put)
		assert.NotContains(t, append(now, later...), back[0], put)
	}
}

// opened returns the openings that the feed of a collection states at a process.
func (s *sharing) opened(i int, collection string) []string {
	if feed := headOf(fmt.Sprint(s.nodes[i].url(), "/topicmaps/", collection, "/fragments")); feed != nil {
		return feed.Openings
	}
	return nil
}

// Processes that share a database have one opening as long as one of them lives.
func TestSharedOpenings(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	database := pgserver.Start(t, "fsync=off")
	s := share(t, database.URL(), database.URL(), 2)
	code, answer, _ := s.request(0, http.MethodPut, "/topicmaps/m", "{}", map[string]string{"Content-Type": "application/json"})
	require.Less(t, code, 300, "%s", answer)
	opened := func(i int) []string { return s.opened(i, "m") }
	first := opened(0)
	require.Len(t, first, 1)
	assert.Equal(t, first, opened(1))
	for i := range 2 {
		s.kill(i)
		s.start(i)
		assert.Equal(t, first, opened(i), "the other one lived")
	}
	s.kill(0)
	s.kill(1)
	s.start(0)
	second := opened(0)
	require.Len(t, second, 2, "nobody was there")
	assert.Equal(t, first[0], second[1])
	s.start(1)
	assert.Equal(t, second, opened(1))
}
