package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/xtm"
)

// busyServer starts the program, and a request to it whose body ends when finish is called. finish returns the status
// of the answer.
func busyServer(t *testing.T) (cmd *exec.Cmd, addr string, finish func() string) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lib.xtm")
	require.NoError(t, os.WriteFile(file, maps.Libraries, 0o600))
	addr = freeAddress(t)
	cmd = exec.Command("tmshare-server", "serve", "--listen", addr, "--data", dir, "--map", "lib="+file)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	testenv.Eventually(t, func() bool {
		res, err := http.Get("http://" + addr + "/healthz")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})

	const document = "<topicMap xmlns='http://www.topicmaps.org/xtm/' version='2.1'/>"
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	answers := bufio.NewReader(c)
	fmt.Fprintf(c, "PUT /topicmaps/lib HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nTMShare-Max-Delete: all\r\nExpect: 100-continue\r\n\r\n", addr, len(document))
	line, err := answers.ReadString('\n') // received when the body is being read
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
	testenv.Eventually(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	}, "new connections are refused")
	assert.Equal(t, "HTTP/1.1 200 OK", finish())
	assert.NoError(t, cmd.Wait(), "exit code 0")
}

func TestSecondSIGTERMEndsAtOnce(t *testing.T) {
	t.Parallel()
	cmd, addr, _ := busyServer(t)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	testenv.Eventually(t, func() bool {
		_, err := net.Dial("tcp", addr)
		return err != nil
	})
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	assert.EqualError(t, cmd.Wait(), "signal: terminated", "it does not wait for the request, which never ends")
}

// A command that waits for a server ends at once after Ctrl-C, with the exit code for that, and reports the outcome.
func TestCommandsThatAreInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "lib.xtm")
	require.NoError(t, os.WriteFile(file, maps.Libraries, 0o600))
	asked, over := make(chan bool, 10), make(chan bool)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- true
		<-over
	}))
	defer silent.Close()
	defer close(over)
	for _, c := range []struct {
		says string
		args []string
	}{
		{`interrupted; what the server had begun may have been done: "tmshare-server log lib" shows whether it was`, []string{"import", "lib", file}},
		{"interrupted; nothing was changed", []string{"collections"}},
	} {
		cmd := exec.Command("tmshare-server", append(c.args, "--server", silent.URL)...)
		var output bytes.Buffer
		cmd.Stderr = &output
		require.NoError(t, cmd.Start())
		<-asked
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait()
		assert.Equal(t, 130, cmd.ProcessState.ExitCode(), "%v: %s", c.args, output.String())
		assert.Contains(t, output.String(), "tmshare-server: "+c.says, "%v", c.args)
	}
}

// A publication that takes longer than the grace period is ended with it, as a whole: the map is the old one or the new
// one.
func TestGraceEndsAPublicationAsAWhole(t *testing.T) {
	t.Parallel()
	before := largeMap()
	after := bytes.ReplaceAll(before, []byte("<name><value>0"), []byte("<name><value>new"))
	p := launch(t, before, "--shutdown-grace", "20ms")
	request, err := http.NewRequest(http.MethodPut, "http://"+p.addr+"/topicmaps/lib", &signalling{Reader: bytes.NewReader(after), atEnd: func() {
		assert.NoError(t, p.Process.Signal(syscall.SIGTERM))
	}})
	require.NoError(t, err)
	published := false
	if res, err := http.DefaultClient.Do(request); err == nil {
		published = res.StatusCode == http.StatusOK
		res.Body.Close()
	}
	assert.NoError(t, p.ended(), "exit code 0")

	db, err := store.Open(p.t.Context(), store.Options{Dir: filepath.Dir(p.log.Name()), Access: store.Read})
	require.NoError(t, err)
	defer db.Close()
	var now bytes.Buffer
	require.NoError(t, db.View(p.t.Context(), "lib", func(v *store.View) error { return v.WriteSnapshot(&now, xtm.V21) }))
	changed := bytes.Count(now.Bytes(), []byte("<value>new"))
	t.Logf("acknowledged: %v, topics changed: %d of %d", published, changed, largeTopics)
	assert.Contains(t, []int{0, largeTopics}, changed, "nothing is half-applied")
	if published {
		assert.Equal(t, largeTopics, changed)
	}
}

// signalling calls atEnd when all of it is read.
type signalling struct {
	io.Reader
	atEnd func()
}

func (s *signalling) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err == io.EOF {
		s.atEnd()
	}
	return n, err
}

// A client that disconnects during its publication leaves the old map, or the whole new one, and the server continues.
func TestALostConnectionLeavesAllOrNothing(t *testing.T) {
	t.Parallel()
	before := largeMap()
	p := launch(t, before)
	for i, c := range []struct {
		name   string
		part   float64 // of the document that is sent
		reset  bool    // the connection is not closed in order
		change bool    // whether the map may change
	}{
		{"half of the body, closed", 0.5, false, false},
		{"half of the body, reset", 0.5, true, false},
		{"all of the body, closed before the answer", 1, false, true},
		{"all of the body, reset before the answer", 1, true, true},
	} {
		value := fmt.Sprint("changed", i)
		after := bytes.ReplaceAll(before, []byte("<name><value>0"), []byte("<name><value>"+value))
		conn, err := net.Dial("tcp", p.addr)
		require.NoError(t, err)
		fmt.Fprintf(conn, "PUT /topicmaps/lib HTTP/1.1\r\nHost: %s\r\nX-Request-Id: lost%d\r\nContent-Length: %d\r\n\r\n", p.addr, i, len(after))
		_, err = conn.Write(after[:int(c.part*float64(len(after)))])
		require.NoError(t, err, c.name)
		if c.reset {
			require.NoError(t, conn.(*net.TCPConn).SetLinger(0))
		}
		require.NoError(t, conn.Close())
		require.Eventually(t, func() bool { return strings.Contains(p.logged(), fmt.Sprint("request=lost", i)) }, 30*time.Second, 10*time.Millisecond, c.name)

		res, err := http.Get("http://" + p.addr + "/topicmaps/lib/snapshots/current.xtm21")
		require.NoError(t, err, c.name)
		now, err := io.ReadAll(res.Body)
		res.Body.Close()
		require.NoError(t, err, c.name)
		changed := bytes.Count(now, []byte("<value>"+value))
		t.Logf("%s: topics changed: %d of %d", c.name, changed, largeTopics)
		if c.change {
			assert.Contains(t, []int{0, largeTopics}, changed, c.name)
		} else {
			assert.Zero(t, changed, c.name)
		}
	}
	request, err := http.NewRequest(http.MethodPut, "http://"+p.addr+"/topicmaps/lib", bytes.NewReader(before))
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	res.Body.Close()
	assert.Equal(t, http.StatusOK, res.StatusCode, "it serves on")
	assert.NotContains(t, p.logged(), "level=ERROR", "a client that is gone is no failure of the server")
}

// A server killed while it renames a collection has renamed it or not: one name has all published data, and the former
// one redirects to it. Derived collections continue.
func TestRenamesOfServersThatAreKilled(t *testing.T) {
	testenv.SkipUnderRace(t)
	dir, address, rng := t.TempDir(), freeAddress(t), testenv.Rand(39)
	s := startAt(t, dir, address).answers()
	for _, body := range []string{"{}", topicMap("one", "two")} {
		status, answer := s.ask("PUT", "/topicmaps/n0", body)
		require.Less(t, status, 300, answer)
	}
	code, output := run(t, "tmshare-server", "derive", "all", "--from", "n0", "--server", s.url(""))
	require.Zero(t, code, output)
	name, renamed := "n0", 0
	for i := range testenv.Rounds(testenv.Usual(6, 30), 300) {
		to := fmt.Sprintf("n%d", i+1)
		c, err := admin.New(s.url(""), "")
		require.NoError(t, err)
		answered := make(chan error)
		go func() {
			_, err := c.Rename(t.Context(), name, to, "")
			answered <- err
		}()
		if i%3 > 0 {
			time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
		} else {
			require.NoError(t, <-answered)
		}
		_ = s.end(syscall.SIGKILL)
		done := i%3 == 0
		if !done {
			done = <-answered == nil
		}
		s = startAt(t, dir, address).answers()
		status, answer := s.ask("GET", "/topicmaps/"+to+"/settings", "")
		require.Contains(t, []int{200, 404}, status, answer)
		if done {
			require.Equal(t, 200, status, "the rename was answered: %s", answer)
		}
		if status == 200 {
			former := name
			name, renamed = to, renamed+1
			status, answer = s.ask("GET", "/topicmaps/"+former+"/settings", "") // redirects are followed
			require.Equal(t, 200, status, answer)
		}
		text := fmt.Sprintf("change %d", i)
		status, answer = s.ask("PUT", "/topicmaps/"+name, topicMap("one", "two", text))
		require.Equal(t, 200, status, answer)
		testenv.Eventually(t, func() bool {
			_, answer, err := s.try("GET", "/topicmaps/all/fragments", "")
			return err == nil && strings.Contains(answer, text)
		})
	}
	require.NotZero(t, renamed)
	_ = s.end(syscall.SIGTERM)
	code, output = run(t, "tmshare-server", "check", "--data", dir)
	require.Zero(t, code, output)
}
