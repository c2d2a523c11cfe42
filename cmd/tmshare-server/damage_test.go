package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// served is a server in a process of its own.
type served struct {
	t    *testing.T
	dir  string
	addr string
	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan struct{} // closed when it has ended
	how  error
}

// serveIn starts a server on a data folder, and waits until it answers.
func serveIn(t *testing.T, dir string, flags ...string) *served {
	t.Helper()
	return startIn(t, dir, flags...).answers()
}

// answers waits until the server does.
func (s *served) answers() *served {
	s.t.Helper()
	testenv.Eventually(s.t, func() bool {
		_, _, err := s.try(http.MethodGet, "/healthz", "")
		return err == nil || s.ended()
	})
	require.False(s.t, s.ended(), s.log.String())
	return s
}

// ended reports whether the server has ended by itself.
func (s *served) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// startIn starts a server whose links are not checked.
func startIn(t *testing.T, dir string, flags ...string) *served {
	t.Helper()
	return startAt(t, dir, freeAddress(t), append([]string{"--base-url", "http://127.0.0.1:9"}, flags...)...)
}

func startAt(t *testing.T, dir, address string, flags ...string) *served {
	t.Helper()
	s := &served{t: t, dir: dir, addr: address, done: make(chan struct{})}
	s.cmd = exec.Command("tmshare-server", append([]string{"serve", "--listen", s.addr, "--data", dir}, flags...)...)
	s.cmd.Stderr = &s.log
	require.NoError(t, s.cmd.Start())
	go func() {
		s.how = s.cmd.Wait()
		close(s.done)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.done
	})
	return s
}

func (s *served) url(path string) string { return "http://" + s.addr + path }

// ask makes a request, and returns the status and the body of the answer.
func (s *served) ask(method, path, body string) (status int, answer string) {
	s.t.Helper()
	status, answer, err := s.try(method, path, body)
	require.NoError(s.t, err)
	return status, answer
}

func (s *served) try(method, path, body string) (status int, answer string, err error) {
	r, err := http.NewRequest(method, s.url(path), strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("TMShare-Max-Delete", "all")
	if body == "{}" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// end ends the server, and returns how.
func (s *served) end(signal syscall.Signal) error {
	require.NoError(s.t, s.cmd.Process.Signal(signal))
	<-s.done
	return s.how
}

// topicMap is a map of topics a0, a1, …, each with a name.
func topicMap(names ...string) string {
	var m strings.Builder
	m.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
	for i, name := range names {
		fmt.Fprintf(&m, `<topic id="a%d"><subjectIdentifier href="http://e/a%d"/><name><value>%s</value></name></topic>`, i, i, name)
	}
	m.WriteString("</topicMap>")
	return m.String()
}

// incompressible returns a text that packs to half of it at best.
func incompressible(size int) string {
	rng := testenv.Rand(uint64(size))
	text := make([]byte, size)
	for i := range text {
		text[i] = "0123456789abcdef"[rng.IntN(16)]
	}
	return string(text)
}

// folderOfAServer returns the data folder of a server that has ended, or was killed. It has files of each kind: values
// of more than 1 MiB are in files of their own, some rows are in tables, and others in the log alone.
func folderOfAServer(t *testing.T, by syscall.Signal) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	first := filepath.Join(t.TempDir(), "m.xtm")
	require.NoError(t, os.WriteFile(first, []byte(topicMap("first", incompressible(9<<17))), 0o600))
	for turn, signal := range []syscall.Signal{syscall.SIGTERM, by} {
		s := serveIn(t, dir, "--map", "m="+first)
		for n := range 4 {
			status, answer := s.ask(http.MethodPut, "/topicmaps/m", topicMap(fmt.Sprint("name", turn, n), incompressible(9<<17+turn+n)))
			require.Equal(t, http.StatusOK, status, answer)
		}
		if turn == 0 {
			status, answer := s.ask(http.MethodPut, "/topicmaps/big", "{}")
			require.Equal(t, http.StatusCreated, status, answer)
			status, answer = s.ask(http.MethodPut, "/topicmaps/big", topicMap("small", incompressible(9<<17)))
			require.Equal(t, http.StatusOK, status, answer)
		}
		for n := range 2 {
			name := fmt.Sprintf("/topicmaps/n%d%d", turn, n)
			status, answer := s.ask(http.MethodPut, name, "{}")
			require.Equal(t, http.StatusCreated, status, answer)
			status, answer = s.ask(http.MethodPut, name, topicMap(incompressible(2000+n)))
			require.Equal(t, http.StatusOK, status, answer)
		}
		if turn == 1 {
			status, answer := s.ask(http.MethodGet, "/topicmaps/n10/resourcesync/resourcelist.xml", "")
			require.Equal(t, http.StatusOK, status, answer)
		}
		require.Equal(t, signal == syscall.SIGKILL, s.end(signal) != nil, s.log.String())
	}
	if err := os.Remove(filepath.Join(dir, "control.sock")); !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return dir
}

// run runs a program to its end, and returns its exit code.
func run(t *testing.T, program string, args ...string) (code int, output string) {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), string(out)
	}
	require.NoError(t, err)
	return 0, string(out)
}

// stateOf returns all that a folder publishes, in words.
func stateOf(t *testing.T, dir string) string {
	t.Helper()
	s := serveIn(t, dir)
	var b strings.Builder
	for _, c := range []string{"m", "big", "n00", "n01", "n10", "n11"} {
		status, answer := s.ask(http.MethodGet, "/topicmaps/"+c+"/snapshots/current", "")
		_, feed := s.ask(http.MethodGet, "/topicmaps/"+c+"/fragments", "")
		fmt.Fprintln(&b, c, status, answer, feed[strings.Index(feed, "<entry"):])
	}
	status, list := s.ask(http.MethodGet, "/topicmaps/n10/resourcesync/resourcelist.xml", "")
	fmt.Fprintln(&b, status, list)
	require.NoError(t, s.end(syscall.SIGTERM), s.log.String())
	return b.String()
}

// filesIn returns the paths of the files in a folder, relative to that.
func filesIn(t *testing.T, dir string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			path, err = filepath.Rel(dir, path)
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// copyFolder copies a data folder. What was not written in a file is not written in the copy.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	for _, file := range filesIn(t, from) {
		content, err := os.ReadFile(filepath.Join(from, file))
		require.NoError(t, err)
		path := filepath.Join(to, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, content[:written(content)], 0o600))
		require.NoError(t, os.Truncate(path, int64(len(content))))
	}
}

// written is the part of a file that was written: logs are longer at first.
func written(content []byte) int { return len(bytes.TrimRight(content, "\x00")) }

// spoilers change a file. They return false where that is no change.
func spoilers() map[string]func(path string, content []byte) (bool, error) {
	all := map[string]func(string, []byte) (bool, error){
		"missing": func(path string, _ []byte) (bool, error) { return true, os.Remove(path) },
		"short": func(path string, content []byte) (bool, error) {
			return len(content) > 1, os.Truncate(path, int64(written(content)/2))
		},
		"empty": func(path string, content []byte) (bool, error) { return len(content) > 0, os.Truncate(path, 0) },
		"longer": func(path string, content []byte) (bool, error) {
			return true, os.WriteFile(path, append(content, bytes.Repeat([]byte{7}, 100)...), 0o600)
		},
	}
	parts := testenv.Rounds(2, 20)
	for part := range parts {
		all[fmt.Sprintf("flipped at %d/%d", 2*part+1, 2*parts)] = func(path string, content []byte) (bool, error) {
			at := written(content) * (2*part + 1) / (2 * parts)
			if at >= len(content) {
				return false, nil
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return false, err
			}
			_, err = f.WriteAt([]byte{content[at] ^ 0x10}, int64(at))
			return true, errors.Join(err, f.Close())
		}
	}
	return all
}

// Any damage of any file of a data folder is found, with the name of the file, or is harmless: all is published
// unchanged.
func TestNoDamageOfAFolderIsSilent(t *testing.T) {
	testenv.SkipUnderRace(t)
	testenv.OnlyWithAll(t, "processes are killed")
	t.Parallel()
	turn, spoiled := 0, spoilers()
	for _, by := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		whole := folderOfAServer(t, by)
		reference := filepath.Join(t.TempDir(), "reference")
		copyFolder(t, whole, reference)
		expected := stateOf(t, reference)
		kinds := map[string]int{}
		for _, file := range filesIn(t, whole) {
			if kinds[filepath.Ext(file)]++; kinds[filepath.Ext(file)] > testenv.Rounds(2, 1000) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(whole, file))
			require.NoError(t, err)
			for _, how := range slices.Sorted(maps.Keys(spoiled)) {
				if turn++; turn%29 > 0 && !testenv.All() { // so that each kind of damage has some file
					continue
				}
				what := fmt.Sprint(by, ": ", file, " is ", how)
				dir := filepath.Join(t.TempDir(), "data")
				copyFolder(t, whole, dir)
				changed, err := spoiled[how](filepath.Join(dir, file), content)
				require.NoError(t, err, what)
				if changed {
					code, output := run(t, "tmshare-client", "check", "--data", dir)
					if code == 0 {
						assert.Truef(t, stateOf(t, dir) == expected, "%s: another state is published, and check says %s", what, output)
					} else {
						named, _, _ := strings.Cut(filepath.Base(file), ".xtm") // a snapshot has a file of each version
						assert.Contains(t, output, named, what)
					}
				}
				require.NoError(t, os.RemoveAll(dir))
			}
		}
		for _, kind := range []string{"", ".json", ".sst", ".vlog", ".gz", ".xml", ".zip"} {
			assert.NotZero(t, kinds[kind], "%v: there is no file of the kind %q", by, kind)
		}
		assert.Equal(t, by == syscall.SIGKILL, kinds[".mem"] > 0)
	}
}

// A server with known damage accepts no changes, takes no snapshots, and reports it to programs and people. Undamaged
// data can be read.
func TestAServerThatHasFoundDamageChangesNothing(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	whole := folderOfAServer(t, syscall.SIGTERM)
	for _, kind := range []string{".sst", ".vlog"} {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			copyFolder(t, whole, dir)
			files, err := filepath.Glob(filepath.Join(dir, "badger", "*"+kind))
			require.NoError(t, err)
			if kind == ".vlog" {
				files = files[:1] // the last one is looked at before the folder is opened
			}
			for _, path := range files {
				content, err := os.ReadFile(path)
				require.NoError(t, err)
				at := len(content) / 4
				if kind == ".vlog" {
					at = len(content) - 1000 // in the last value, which no newer one has replaced
				}
				content[at] ^= 1
				require.NoError(t, os.WriteFile(path, content, 0o600))
			}
			s := serveIn(t, dir)
			s.refuses("damaged", "damage was found in the data folder")
			require.NoError(t, s.end(syscall.SIGTERM))
			require.Contains(t, s.log.String(), filepath.Join(dir, "badger"))
		})
	}
}

// refuses checks that a server reports why it accepts no changes.
func (s *served) refuses(reason, says string) {
	s.t.Helper()
	var status int
	var answer string
	testenv.Eventually(s.t, func() bool {
		status, answer = s.ask(http.MethodGet, "/readyz", "")
		return status == http.StatusServiceUnavailable
	}, "it is ready")
	require.Contains(s.t, answer, says)
	_, answer = s.ask(http.MethodGet, "/metrics", "")
	require.Contains(s.t, answer, fmt.Sprintf("tmshare_store_refuses_changes{reason=%q} 1", reason))
	status, answer = s.ask(http.MethodPut, "/topicmaps/n00", topicMap("another"))
	require.Equal(s.t, http.StatusServiceUnavailable, status, answer)
	require.Contains(s.t, answer, says)
	status, answer = s.ask(http.MethodPost, "/topicmaps/m/snapshots", "")
	require.Equal(s.t, http.StatusServiceUnavailable, status, answer)
	status, answer = s.ask(http.MethodGet, "/topicmaps/n00/fragments", "")
	require.Equal(s.t, http.StatusOK, status, answer)
}

// A folder is the opened one, not the one at its path: after any change of the path of a running server, it
// acknowledges no changes, reports it, and writes nothing to another folder at the path.
func TestAFolderIsNotItsPath(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	begin := func(t *testing.T) (dir, backup string) {
		dir = filepath.Join(t.TempDir(), "data")
		first := filepath.Join(t.TempDir(), "m.xtm")
		require.NoError(t, os.WriteFile(first, []byte(topicMap("first", "second")), 0o600))
		s := serveIn(t, dir, "--map", "m="+first, "--map", "n00="+first)
		require.NoError(t, s.end(syscall.SIGTERM))
		backup = filepath.Join(t.TempDir(), "backup")
		code, output := run(t, "tmshare-server", "backup", backup, "--data", dir)
		require.Zero(t, code, output)
		return dir, backup
	}
	change := func(t *testing.T, s *served) {
		for n := range 3 {
			status, answer := s.ask(http.MethodPut, "/topicmaps/m", topicMap(fmt.Sprint("changed ", n), "second"))
			require.Equal(t, http.StatusOK, status, answer)
		}
	}
	sound := func(t *testing.T, dir, says string) {
		code, output := run(t, "tmshare-client", "check", "--data", dir)
		require.Zero(t, code, output)
		s := serveIn(t, dir)
		_, answer := s.ask(http.MethodGet, "/topicmaps/m/snapshots/current", "")
		require.Contains(t, answer, says)
		require.NoError(t, s.end(syscall.SIGTERM))
	}
	restore := func(t *testing.T, backup, dir string) {
		code, output := run(t, "tmshare-server", "restore", backup, "--data", dir)
		require.Zero(t, code, output)
	}
	contents := func(t *testing.T, dir string) map[string]string {
		all := map[string]string{}
		for _, file := range filesIn(t, dir) {
			b, err := os.ReadFile(filepath.Join(dir, file))
			require.NoError(t, err)
			all[file] = string(b)
		}
		return all
	}
	t.Run("replaced", func(t *testing.T) {
		dir, backup := begin(t)
		s := serveIn(t, dir)
		change(t, s)
		require.NoError(t, os.Rename(dir, dir+".old"))
		restore(t, backup, dir)
		before := contents(t, dir)
		s.refuses("moved", "was moved, removed or replaced")
		require.NoError(t, s.end(syscall.SIGTERM), s.log.String())
		require.Equal(t, before, contents(t, dir))
		sound(t, dir, "first")
		sound(t, dir+".old", "changed 2")
	})
	t.Run("a link that leads elsewhere", func(t *testing.T) {
		one, backup := begin(t)
		two := one + "2"
		restore(t, backup, two)
		link := filepath.Join(t.TempDir(), "link")
		require.NoError(t, os.Symlink(one, link))
		s := serveIn(t, link)
		change(t, s)
		require.NoError(t, os.Remove(link))
		require.NoError(t, os.Symlink(two, link))
		before := contents(t, two)
		s.refuses("moved", "was moved, removed or replaced")
		require.NoError(t, s.end(syscall.SIGTERM), s.log.String())
		require.Equal(t, before, contents(t, two))
		sound(t, two, "first")
		sound(t, one, "changed 2")
	})
	t.Run("moved away", func(t *testing.T) {
		dir, _ := begin(t)
		s := serveIn(t, dir)
		change(t, s)
		require.NoError(t, os.Rename(dir, dir+".old"))
		s.refuses("moved", "was moved, removed or replaced")
		require.NoError(t, os.Rename(dir+".old", dir))
		testenv.Eventually(t, func() bool {
			status, _ := s.ask(http.MethodGet, "/readyz", "")
			return status == http.StatusOK
		})
		change(t, s)
		require.NoError(t, s.end(syscall.SIGTERM), s.log.String())
		sound(t, dir, "changed 2")
	})
	t.Run("removed", func(t *testing.T) {
		dir, backup := begin(t)
		s := serveIn(t, dir)
		change(t, s)
		require.NoError(t, os.RemoveAll(dir))
		s.refuses("moved", "was moved, removed or replaced")
		require.Error(t, s.end(syscall.SIGTERM), "what was acknowledged is lost")
		require.Contains(t, s.log.String(), dir)
		require.NoDirExists(t, dir)
		restore(t, backup, dir)
		sound(t, dir, "first")
	})
	t.Run("with the files of another node", func(t *testing.T) {
		dir, backup := begin(t)
		other := dir + ".other"
		restore(t, backup, other)
		s := serveIn(t, dir)
		change(t, s)
		identity, err := os.ReadFile(filepath.Join(other, "node.json"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "node.json"), identity, 0o600))
		s.refuses("moved", "was moved, removed or replaced")
		require.NoError(t, s.cmd.Process.Kill())
	})
}
