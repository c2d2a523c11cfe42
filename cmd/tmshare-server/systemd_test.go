//go:build linux

package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Under systemd the server takes the socket that is passed to it, and reports that it is ready, alive, and stopping.
func TestServeUnderSystemd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notify := filepath.Join(dir, "notify")
	notified, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	require.NoError(t, err)
	defer notified.Close()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	passed, err := socket.(*net.TCPListener).File()
	require.NoError(t, err)
	address := socket.Addr().String()
	require.NoError(t, socket.Close())

	// systemd sets the process of the socket. --listen would be an error: it is not used.
	c := exec.Command("sh", "-c", `export LISTEN_PID=$$; exec tmshare-server serve --listen nowhere --data "$1"`, "sh", filepath.Join(dir, "data"))
	c.ExtraFiles = []*os.File{passed}
	c.Env = append(os.Environ(), "LISTEN_FDS=1", "NOTIFY_SOCKET="+notify, "WATCHDOG_USEC=60000")
	c.Stderr = os.Stderr
	require.NoError(t, c.Start())
	defer func() { _ = c.Process.Kill() }()
	require.NoError(t, passed.Close())
	next := func() string {
		b := make([]byte, 1000)
		n, err := notified.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	assert.Equal(t, "READY=1", next())
	assert.Equal(t, "WATCHDOG=1", next())
	assert.Equal(t, "WATCHDOG=1", next(), "again and again")
	res, err := http.Get("http://" + address + "/healthz")
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, "ok", strings.TrimSpace(string(body)))
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	for {
		if state := next(); state != "WATCHDOG=1" {
			assert.Equal(t, "STOPPING=1", state)
			break
		}
	}
	assert.NoError(t, c.Wait())
}
