package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/triplestore"
)

// has reports whether the graph of a target has a name, and not another one.
func has(s *triplestore.Store, name, not string) bool {
	all := strings.Join(s.Graph("<http://e/graph>"), "\n")
	return strings.Contains(all, `"`+name+`"`) && !strings.Contains(all, `"`+not+`"`)
}

// serve and watch keep targets in step while they run, and continue after a restart. An unavailable store delays no
// other, and sync reports it.
func TestTargetsOfProcesses(t *testing.T) {
	testenv.SkipUnderRace(t)
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	address := freeAddress(t)
	s := startAt(t, dir, address).answers()
	put := func(names ...string) {
		status, answer := s.ask("PUT", "/topicmaps/m", topicMap(names...))
		require.Less(t, status, 300, answer)
	}
	status, answer := s.ask("PUT", "/topicmaps/m", "{}")
	require.Less(t, status, 300, answer)
	put("one", "two")
	own, followed, gone := triplestore.New(t, ""), triplestore.New(t, ""), triplestore.New(t, "")
	target := func(program, data, name string, store *triplestore.Store) {
		code, output := run(t, program, "target", "add", name, "--data", data, "--of", "m", "--sparql-update", store.URL+"/update",
			"--graph", "http://e/graph")
		require.Zero(t, code, output)
	}
	target("tmshare-server", dir, "own", own)
	require.True(t, has(own, "one", "three"))

	code, output := run(t, "tmshare-client", "subscribe", s.url("/topicmaps/m"), "--data", copied)
	require.Zero(t, code, output)
	code, output = run(t, "tmshare-client", "target", "add", "early", "--data", copied, "--of", "m", "--sparql-update",
		gone.URL+"/update", "--graph", "http://e/graph")
	require.Zero(t, code, output)
	require.Contains(t, output, "not loaded yet")
	code, output = run(t, "tmshare-client", "sync", "--data", copied)
	require.Zero(t, code, output)
	require.True(t, has(gone, "one", "three"))
	target("tmshare-client", copied, "followed", followed)

	put("one", "three") // while the processes run, and while one does not
	testenv.Eventually(t, func() bool { return has(own, "three", "two") })
	gone.Keep(func() { gone.Fault = func(bool) triplestore.Fault { return triplestore.Away } })
	code, output = run(t, "tmshare-client", "sync", "--data", copied)
	require.Equal(t, cli.Unreachable, code, output)
	require.Contains(t, output, "target early")
	require.True(t, has(followed, "three", "two"))
	code, output = run(t, "tmshare-client", "target", "status", "--data", copied)
	require.Equal(t, cli.Differs, code, output)
	require.Regexp(t, `early +m +failing`, output)
	require.Regexp(t, `followed +m +in step`, output)
	gone.Keep(func() { gone.Fault = nil })

	watch := exec.Command("tmshare-client", "watch", "--interval", "1s", "--data", copied)
	watch.Stderr = os.Stderr
	require.NoError(t, watch.Start())
	put("one", "four")
	testenv.Eventually(t, func() bool { return has(followed, "four", "three") && has(gone, "four", "two") })
	code, output = run(t, "tmshare-client", "target", "verify", "--data", copied) // executed by the process that watches
	require.Zero(t, code, output)
	require.NoError(t, watch.Process.Signal(syscall.SIGTERM))
	require.NoError(t, watch.Wait())

	status, metrics := s.ask("GET", "/metrics", "")
	require.Equal(t, 200, status)
	require.Contains(t, metrics, `tmshare_target_failing{target="own"} 0`)
	_ = s.end(syscall.SIGKILL)
	s = startAt(t, dir, address).answers()
	put("one", "five")
	testenv.Eventually(t, func() bool { return has(own, "five", "four") })
	code, output = run(t, "tmshare-server", "target", "remove", "own", "--clear", "--data", dir)
	require.Zero(t, code, output)
	require.Empty(t, own.Graph("<http://e/graph>"))
}

// Commands, pages and doctor report the state of targets and hubs. Removing the source of a target reports it too.
func TestDependentsAreSeen(t *testing.T) {
	testenv.SkipUnderRace(t)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not here", http.StatusForbidden) }))
	t.Cleanup(hub.Close)
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.Chmod(dir, 0o700))
	s := startAt(t, dir, freeAddress(t), "--hub", hub.URL).answers()
	for _, body := range []string{"{}", topicMap("one", "two")} {
		status, answer := s.ask("PUT", "/topicmaps/m", body)
		require.Less(t, status, 300, answer)
	}
	is := func(code int, program string, args ...string) string {
		t.Helper()
		got, output := run(t, program, args...)
		require.Equal(t, code, got, "%s %s: %s", program, args, output)
		return output
	}
	own, picky, followed := triplestore.New(t, ""), triplestore.New(t, ""), triplestore.New(t, "")
	picky.Refuse = func(triple string) bool { return strings.Contains(triple, `"two"`) }
	add := func(program, data, name string, store *triplestore.Store) {
		is(0, program, "target", "add", name, "--data", data, "--of", "m", "--sparql-update", store.URL+"/update", "--graph", "http://e/graph")
	}
	is(0, "tmshare-client", "subscribe", s.url("/topicmaps/m"), "--data", copied)
	is(0, "tmshare-client", "sync", "--data", copied)
	add("tmshare-server", dir, "own", own)
	add("tmshare-client", copied, "followed", followed)
	add("tmshare-client", copied, "picky", picky)

	output := is(0, "tmshare-client", "status", "--data", copied)
	require.Contains(t, output, "\ntarget picky, of m: the store refuses 2 statements, such as ")
	require.NotContains(t, output, "target followed", "it is in step")
	require.Regexp(t, `target followed, of m\n +state +in step\n +store +`+followed.URL, is(0, "tmshare-client", "status", "-v", "--data", copied))
	require.Contains(t, is(0, "tmshare-client", "status", "--json", "--data", copied), `"name": "target followed"`)
	output = is(4, "tmshare-client", "doctor", "--offline", "--data", copied)
	require.Regexp(t, `target picky: the store refuses 2 statements, .*\n  to do: correct them in the source`, output)
	require.NotContains(t, output, "target followed")

	followed.Keep(func() { followed.Fault = func(bool) triplestore.Fault { return triplestore.Away } })
	status, answer := s.ask("PUT", "/topicmaps/m", topicMap("one", "three"))
	require.Less(t, status, 300, answer)
	is(7, "tmshare-client", "sync", "--data", copied)
	require.Regexp(t, `target followed, of m: .*503`, is(0, "tmshare-client", "status", "--data", copied))
	require.Regexp(t, `target followed: .*503.*\n  to do: "tmshare-client target sync followed --data `+copied+`"`,
		is(4, "tmshare-client", "doctor", "--offline", "--data", copied))

	testenv.Eventually(t, func() bool {
		_, output := run(t, "tmshare-server", "doctor", "--listen", s.addr, "--data", dir)
		return strings.Contains(output, "hub "+hub.URL+": it was not told of the last change: ") && strings.Contains(output, "403")
	})
	status, answer = s.ask("GET", "/node.json", "")
	require.Equal(t, 200, status, answer)
	require.Contains(t, answer, `"target own"`)
	status, answer = s.ask("GET", "/node.html", "")
	require.Equal(t, 200, status, answer)
	require.Contains(t, answer, "Kept in step elsewhere")

	require.Contains(t, is(0, "tmshare-client", "unsubscribe", "m", "--data", copied),
		"target followed gets no more changes of m: \"target remove followed\" ends it\n")
	require.Regexp(t, `target followed: .*\n  to do: "tmshare-client target remove followed --data `,
		is(4, "tmshare-client", "doctor", "--offline", "--data", copied))
	require.Contains(t, is(0, "tmshare-server", "collections", "delete", "m", "--yes", "--server", s.url("")),
		"m: warning: target own gets no more changes of m: \"target remove own\" ends it\n")
}
