//go:build linux

package pgserver

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// Server is a server of PostgreSQL that listens on a Unix socket.
type Server struct {
	t         testing.TB
	bin, dir  string
	settings  []string
	port      string
	authority string // the certificate file of the authority that signed the server's; "": none
	process   *exec.Cmd
	log       bytes.Buffer
}

// defaultPort is only used in the name of the socket of a server.
const defaultPort = "5432"

// Start starts a server with settings such as "fsync=off", until the test ends. Without programs of
// PostgreSQL the test is skipped.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := newServer(t, settings)
	s.initialize()
	s.Run()
	return s
}

// initialize makes the files of a server in its folder.
func (s *Server) initialize() {
	s.t.Helper()
	s.call("initdb", "-D", s.data(), "-U", "tmshare", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
}

// newServer returns a server with an empty folder.
func newServer(t testing.TB, settings []string) *Server {
	t.Helper()
	s := &Server{t: t, bin: programs(t), settings: settings, port: defaultPort}
	s.makeFolder()
	t.Cleanup(func() {
		s.Kill()
		os.RemoveAll(s.dir)
	})
	return s
}

// makeFolder makes the folder of a server.
func (s *Server) makeFolder() {
	s.t.Helper()
	var err error
	s.dir, err = os.MkdirTemp("", "pg")
	require.NoError(s.t, err)
	_, err = AsUser(s.dir)
	require.NoError(s.t, err)
}

// call runs a program of PostgreSQL.
func (s *Server) call(program string, args ...string) {
	s.t.Helper()
	attributes, err := AsUser("")
	require.NoError(s.t, err)
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.SysProcAttr, cmd.Dir = attributes, s.dir
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s: %s", program, out)
}

// SQL carries out statements, and returns the rows of answers, a line each.
func (s *Server) SQL(t testing.TB, statements string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(s.bin, "psql"), "-qAt", "-h", s.dir, "-p", s.port, "-U", "tmshare", "-d",
		"postgres", "-v", "ON_ERROR_STOP=1", "-c", "SET client_min_messages = warning", "-c", statements).CombinedOutput()
	require.NoError(t, err, "%s: %s", statements, out)
	return string(out)
}

// Freeze stops the forwarding of connections of programs to the server, until thaw is called.
func (s *Server) Freeze(t testing.TB) (thaw func()) {
	t.Helper()
	return stop(t, s.SQL(t, "SELECT pid FROM pg_stat_activity WHERE application_name = 'tmshare'"))
}

// Stop suspends all processes of the server, until cont is called.
func (s *Server) Stop(t testing.TB) (cont func()) {
	t.Helper()
	return stop(t, fmt.Sprint(s.process.Process.Pid, " ", s.SQL(t, "SELECT pid FROM pg_stat_activity")))
}

func stop(t testing.TB, processes string) (cont func()) {
	t.Helper()
	signal := func(by syscall.Signal) {
		for _, pid := range strings.Fields(processes) {
			n, err := strconv.Atoi(pid)
			require.NoError(t, err)
			_ = syscall.Kill(n, by) // it may have ended
		}
	}
	signal(syscall.SIGSTOP)
	return func() { signal(syscall.SIGCONT) }
}

// Dump returns the output of pg_dump for the store in a schema.
func (s *Server) Dump(t testing.TB, schema string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(s.bin, "pg_dump"), "--clean", "--if-exists", "-h", s.dir, "-p", s.port, "-U",
		"tmshare", "-d", "postgres", "-n", schema).Output()
	require.NoError(t, err)
	return string(out)
}

// Restore puts the store in a schema back to a dump, under the processes that have it open.
func (s *Server) Restore(t testing.TB, schema, dump string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, "psql"), "-q", "-1", "-h", s.dir, "-p", s.port, "-U", "tmshare", "-d",
		"postgres", "-v", "ON_ERROR_STOP=1")
	cmd.Stdin = strings.NewReader(strings.Replace(dump, "DROP SCHEMA IF EXISTS "+schema+";",
		"DROP SCHEMA "+schema+" CASCADE;", 1))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Standby starts a server that follows this one, with its settings and some of its own. If this one has the setting
// synchronous_standby_names=*, its commits wait for the standby, even for its start.
func (s *Server) Standby(own ...string) *Server {
	s.t.Helper()
	settings := slices.DeleteFunc(slices.Clone(s.settings), func(set string) bool {
		return strings.HasPrefix(set, "synchronous_standby_names")
	})
	b := newServer(s.t, append(settings, own...))
	b.call("pg_basebackup", "-h", s.dir, "-U", "tmshare", "-D", b.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	b.Run()
	return b
}

// Promote has a standby take writes.
func (s *Server) Promote() {
	s.t.Helper()
	s.call("pg_ctl", "promote", "-w", "-D", s.data())
}

// Pause stops the replay of a standby until Resume.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.SQL(t, "SELECT pg_wal_replay_pause(); DO $$ BEGIN WHILE pg_get_wal_replay_pause_state() <> 'paused' LOOP PERFORM "+
		"pg_sleep(0.01); END LOOP; END $$")
}

// Resume ends Pause.
func (s *Server) Resume(t testing.TB) { s.SQL(t, "SELECT pg_wal_replay_resume()") }

// programs returns the folder with the newest programs of PostgreSQL.
func programs(t testing.TB) string {
	t.Helper()
	if !testenv.OnPostgreSQL() {
		testenv.OnlyWithAll(t, "it needs PostgreSQL")
	}
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	require.NoError(t, err)
	if path, err := exec.LookPath("initdb"); err == nil && len(all) == 0 {
		all = append(all, path)
	}
	if len(all) == 0 {
		t.Skip("NOT CHECKED: PostgreSQL is not installed (Debian: postgresql). The engine for it is not tested.")
	}
	return filepath.Dir(slices.Max(all))
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Dir returns the folder of the server.
func (s *Server) Dir() string { return s.dir }

// URL returns the address of a database of the server.
func (s *Server) URL() string {
	return "postgres://tmshare@/postgres?" + url.Values{"host": {s.dir}}.Encode()
}

// Run starts the server, which does not run, and waits until it answers.
func (s *Server) Run() {
	s.t.Helper()
	args := s.commandLine()
	s.process = exec.Command(args[0], args[1:]...)
	attributes, err := AsUser("")
	require.NoError(s.t, err)
	attributes.Pdeathsig = syscall.SIGQUIT // it ends with the test
	s.process.SysProcAttr, s.process.Dir, s.process.Stderr = attributes, s.dir, &s.log
	require.NoError(s.t, s.process.Start())
	require.Eventually(s.t, s.answers, time.Minute, 20*time.Millisecond, "the server does not answer: %s", &s.log)
}

// Kill ends the server as a crash does.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	s.process.Process.Signal(syscall.SIGQUIT) // "immediate shutdown": without a checkpoint, as after a crash
	s.process.Wait()
	s.process = nil
}

// String returns the log of the server.
func (s *Server) String() string { return fmt.Sprint(s.dir, ": ", s.log.String()) }
