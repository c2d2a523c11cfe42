package systemd_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/systemd"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// Systemd is told nothing while the process is not healthy, so that it restarts it.
func TestOnlyAHealthyProcessIsAlive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "3000")
	ctx, end := context.WithCancel(t.Context())
	asked := make(chan int, 1000)
	go systemd.KeepAlive(ctx, func(context.Context) error {
		asked <- 1
		if len(asked) < 5 {
			return errors.New("not yet")
		}
		return nil
	})
	b := make([]byte, 100)
	n, err := socket.Read(b)
	end()
	require.NoError(t, err)
	assert.Equal(t, "WATCHDOG=1", string(b[:n]))
	assert.GreaterOrEqual(t, len(asked), 5)
}

// Without systemd nothing is told, and there is no socket.
func TestWithoutSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	l, err := systemd.Listener()
	require.NoError(t, err)
	assert.Nil(t, l)
	systemd.Ready()
	systemd.KeepAlive(t.Context(), nil) // returns at once
}
