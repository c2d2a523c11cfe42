package main

import (
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/testenv"
)

// smallDisk returns a folder on a disk of a size, such as 200m.
func smallDisk(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("NOT CHECKED: a disk that is full: no small one can be made here: ", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// fill leaves some bytes free on a disk, and returns a function that frees the others again.
func fill(t *testing.T, disk string, left int64) (free func()) {
	t.Helper()
	var s syscall.Statfs_t
	require.NoError(t, syscall.Statfs(disk, &s))
	f, err := os.Create(filepath.Join(disk, "fill"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, syscall.Fallocate(int(f.Fd()), 0, 0, int64(s.Bavail)*s.Bsize-left))
	return func() { require.NoError(t, os.Remove(f.Name())) }
}

// With little space on its disk a server starts, also after a kill, and so do commands that read. Acknowledged changes
// are read, and new ones are refused until there is space again.
func TestReadingGoesOnWhereTheDiskIsFull(t *testing.T) {
	testenv.SkipUnderRace(t)
	testenv.OnlyWithAll(t, "disks are filled")
	for _, by := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, left := range []int64{40 << 20, 64 << 10} {
			disk := smallDisk(t, "200m")
			dir := filepath.Join(disk, "data")
			first := filepath.Join(t.TempDir(), "m.xtm")
			require.NoError(t, os.WriteFile(first, []byte(topicMap("first", "second")), 0o600))
			s := serveIn(t, dir, "--map", "m="+first)
			status, answer := s.ask(http.MethodPut, "/topicmaps/m", topicMap("changed", "second"))
			require.Equal(t, http.StatusOK, status, answer)
			_ = s.end(by)
			free := fill(t, disk, left)
			s = serveIn(t, dir)
			reads := func() {
				status, answer := s.ask(http.MethodGet, "/topicmaps/m/snapshots/current", "")
				require.Equal(t, http.StatusOK, status, answer)
				require.Contains(t, answer, "changed")
				status, answer = s.ask(http.MethodGet, "/readyz", "")
				require.Equal(t, http.StatusOK, status, answer)
			}
			reads()
			_, answer = s.ask(http.MethodGet, "/metrics", "")
			require.Contains(t, answer, `tmshare_store_refuses_changes{reason="full"} 1`)
			status, answer = s.ask(http.MethodPut, "/topicmaps/m", topicMap("not taken", "second"))
			require.Equal(t, http.StatusInsufficientStorage, status, answer)
			status, answer = s.ask(http.MethodPut, "/topicmaps/new", "{}")
			require.Equal(t, http.StatusInsufficientStorage, status, answer)
			reads()
			code, output := run(t, "tmshare-server", "doctor", "--data", dir, "--listen", s.addr)
			require.Equal(t, cli.Differs, code, output)
			require.Regexp(t, `data folder: \d+ MB are free on its disk; nothing is written below 64 MB\n +to do: free some space: `, output)
			require.NoError(t, s.end(syscall.SIGTERM), s.log.String())
			code, output = run(t, "tmshare-client", "check", "--data", dir)
			require.Zero(t, code, output)
			free()
			s = serveIn(t, dir)
			reads()
			status, answer = s.ask(http.MethodPut, "/topicmaps/m", topicMap("taken", "second"))
			require.Equal(t, http.StatusOK, status, answer)
			require.NoError(t, s.end(syscall.SIGTERM), s.log.String())
		}
	}
}

// A change for which the disk has no space is refused while it is written. The server continues, without the change.
func TestALargeChangeOnASmallDiskIsRefused(t *testing.T) {
	testenv.SkipUnderRace(t)
	testenv.OnlyWithAll(t, "disks are filled")
	texts := []string{"first"}
	for n := range 1200 {
		texts = append(texts, incompressible(200<<10+n))
	}
	large := topicMap(texts...)
	for range testenv.Rounds(2, 12) {
		dir := filepath.Join(smallDisk(t, "250m"), "data")
		first := filepath.Join(t.TempDir(), "m.xtm")
		require.NoError(t, os.WriteFile(first, []byte(topicMap("first", "second")), 0o600))
		s := serveIn(t, dir, "--map", "m="+first)
		for range 3 {
			status, answer := s.ask(http.MethodPut, "/topicmaps/m", large)
			require.Equal(t, http.StatusInsufficientStorage, status, answer)
			status, answer = s.ask(http.MethodGet, "/topicmaps/m/snapshots/current", "")
			require.Equal(t, http.StatusOK, status, answer)
			require.Contains(t, answer, "second")
		}
		require.NoError(t, s.end(syscall.SIGTERM), s.log.String())
		code, output := run(t, "tmshare-client", "check", "--data", dir)
		require.Zero(t, code, output)
	}
}
