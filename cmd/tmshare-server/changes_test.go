package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/testenv"
)

// The process of the command prints the lines, even if another one holds the store. The stored position is after the
// printed lines, and no farther.
func TestChangesAreHandedOn(t *testing.T) {
	testenv.SkipUnderRace(t)
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "position")
	s := startIn(t, dir).answers()
	for _, body := range []string{"{}", topicMap("one", "two", "three")} {
		status, answer := s.ask("PUT", "/topicmaps/m", body)
		require.Less(t, status, 300, answer)
	}
	shell := func(line string) (code int, output string) {
		t.Setenv("MARKER", "of the caller")
		return run(t, "sh", "-c", strings.NewReplacer("CHANGES", "tmshare-server changes m --data "+dir+" --state "+state).Replace(line))
	}
	position := func() string {
		b, err := os.ReadFile(state)
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		return strings.TrimSpace(string(b))
	}
	for _, held := range []bool{true, false} {
		if !held {
			require.NoError(t, s.cmd.Process.Kill())
			<-s.done
		}
		require.NoError(t, os.RemoveAll(state))
		if _, err := os.Stat("/dev/full"); err == nil {
			code, output := shell("CHANGES > /dev/full")
			require.NotZero(t, code, output)
			require.Empty(t, position())
		}
		code, output := shell("CHANGES --batch 2 --exec 'read line; echo \"$MARKER: $line\"; test -e " + state + " && exit 1; true'")
		require.Equal(t, cli.Failed, code, output)
		require.Contains(t, output, `of the caller: {"position":`)
		kept := position()
		require.NotEmpty(t, kept, "that of the first two")
		code, output = shell("CHANGES")
		require.Zero(t, code, output)
		require.Equal(t, 2, strings.Count(output, `"kind"`), output) // and the type of names
		require.NotEqual(t, kept, position())
		code, output = shell("CHANGES")
		require.Zero(t, code, output)
		require.Empty(t, output)
		require.NoError(t, os.WriteFile(state, []byte("garbage\n"), 0o600))
		code, output = shell("CHANGES")
		require.Equal(t, cli.BrokenInput, code, output)
		require.Contains(t, output, state)
	}
	lines, err := exec.Command("tmshare-server", "changes", "m", "--data", dir).Output()
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(lines), `"kind":"present"`))
}
