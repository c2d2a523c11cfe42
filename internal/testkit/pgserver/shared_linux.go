//go:build linux

package pgserver

import (
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shared is the server that all tests of a process use together.
var shared struct {
	sync.Mutex
	*Server
	alive io.WriteCloser // of the process: it is never closed before that ends
}

// untilTheProcessEnds runs a server until its standard input is closed, even by a crash of the parent process, and then
// removes its folder.
const untilTheProcessEnds = `"$@" >log 2>&1 & cat >/dev/null; kill -QUIT $!; wait; cd / && rm -rf "$FOLDER"`

// Shared returns a server that all tests, or all benchmarks, of this process share, each with a store of its own. It
// ends with the process. Without programs of PostgreSQL it skips the test.
func Shared(t testing.TB) *Server {
	t.Helper()
	programs(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.Server == nil {
		shared.Server = startShared(t)
	}
	return shared.Server
}

func startShared(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, bin: programs(t), settings: []string{"max_connections=500"}, port: defaultPort}
	if _, measures := t.(*testing.B); !measures { // which waits for the disk
		s.settings = append(s.settings, "fsync=off", "full_page_writes=off")
	}
	s.makeFolder()
	s.initialize()
	cmd := exec.Command("sh", append([]string{"-c", untilTheProcessEnds, "sh"}, s.commandLine()...)...)
	attributes, err := AsUser("")
	require.NoError(t, err)
	attributes.Setpgid = true // an interrupt of the tests does not end it
	cmd.SysProcAttr, cmd.Dir, cmd.Env = attributes, s.dir, append(cmd.Environ(), "FOLDER="+s.dir)
	shared.alive, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.Eventually(t, s.answers, time.Minute, 20*time.Millisecond, "the server does not answer: see %s/log", s.dir)
	return s
}

func (s *Server) answers() bool {
	return exec.Command(filepath.Join(s.bin, "pg_isready"), "-q", "-h", s.dir, "-p", s.port).Run() == nil
}

// commandLine is how the server is run.
func (s *Server) commandLine() []string {
	args := []string{filepath.Join(s.bin, "postgres"), "-D", s.data(), "-k", s.dir, "-p", s.port, "-c",
		"listen_addresses="}
	for _, set := range s.settings {
		args = append(args, "-c", set)
	}
	return args
}
