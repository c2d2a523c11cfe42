//go:build linux

package pgserver

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// Pooler is a PgBouncer before a server, which has a session for a transaction alone.
type Pooler struct{ dir string }

// users is the number of users that a pooler knows: store1, store2 and so on.
const users = 500

// NewPooler starts a pooler with few sessions, and settings of its own such as "ignore_startup_parameters=search_path",
// until the test ends. Without PgBouncer it skips the test.
func NewPooler(t testing.TB, s *Server, settings ...string) *Pooler {
	t.Helper()
	var p Pooler
	var err error
	p.dir, err = os.MkdirTemp("", "pool")
	require.NoError(t, err)
	attributes, err := AsUser(p.dir)
	require.NoError(t, err)
	var names strings.Builder
	for i := range users {
		fmt.Fprintf(&names, "\"store%d\" \"\"\n", i+1)
	}
	file := func(name, content string) string {
		path := filepath.Join(p.dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		return path
	}
	list := file("users", names.String())
	config := file("pgbouncer.ini", fmt.Sprintf(`[databases]
* = host=%s
[pgbouncer]
pool_mode=transaction
unix_socket_dir=%s
listen_addr=
listen_port=5432
auth_type=trust
auth_file=%s
default_pool_size=10
server_idle_timeout=1
max_client_conn=500
%s
`, s.dir, p.dir, list, strings.Join(settings, "\n")))
	cmd := exec.Command(testenv.Command(t, "pgbouncer"), config)
	cmd.SysProcAttr, cmd.Dir = attributes, p.dir
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		os.RemoveAll(p.dir)
		if t.Failed() {
			t.Log(output.String())
		}
	})
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(p.dir, socket))
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	return &p
}

// URL returns the address of the server through the pooler, for a user.
func (p *Pooler) URL(user string) string {
	return "postgres://" + user + "@/postgres?" + url.Values{"host": {p.dir}, "pool_max_conns": {"10"}}.Encode()
}
