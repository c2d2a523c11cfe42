package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// busyServer starts the program, and a request to it whose body does not end
// until finish is called. finish returns the status of the answer.
func busyServer(t *testing.T) (cmd *exec.Cmd, addr string, finish func() string) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lib.xtm")
	require.NoError(t, os.WriteFile(file, maps.Libraries, 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr = l.Addr().String()
	require.NoError(t, l.Close())
	cmd = exec.Command("tmshare-server", "serve", "--listen", addr, "--data", dir, "--map", "lib="+file)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	require.Eventually(t, func() bool {
		res, err := http.Get("http://" + addr + "/healthz")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)

	const document = "<topicMap xmlns='http://www.topicmaps.org/xtm/' version='2.1'/>"
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	answers := bufio.NewReader(c)
	fmt.Fprintf(c, "PUT /topicmaps/lib HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", addr, len(document))
	line, err := answers.ReadString('\n') // comes when the body is being read
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", line)
	return cmd, addr, func() string {
		fmt.Fprint(c, document)
		_, _ = answers.ReadString('\n') // the end of the first answer
		line, _ := answers.ReadString('\n')
		return strings.TrimSpace(line)
	}
}

func TestSIGTERMFinishesTheRequestsThatRun(t *testing.T) {
	t.Parallel()
	cmd, addr, finish := busyServer(t)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	}, 10*time.Second, 10*time.Millisecond, "new connections are refused")
	assert.Equal(t, "HTTP/1.1 200 OK", finish())
	assert.NoError(t, cmd.Wait(), "exit code 0")
}

func TestSecondSIGTERMEndsAtOnce(t *testing.T) {
	t.Parallel()
	cmd, addr, _ := busyServer(t)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		_, err := net.Dial("tcp", addr)
		return err != nil
	}, 10*time.Second, 10*time.Millisecond)
	start := time.Now()
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	assert.EqualError(t, cmd.Wait(), "signal: terminated")
	assert.Less(t, time.Since(start), 10*time.Second)
}
