package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/testenv"
)

// long limits the time to wait for events that are expected soon.
const long = 30 * time.Second

// node is a data folder, with which the program is run.
type node struct {
	t    *testing.T
	data string
}

func newNode(t *testing.T) *node {
	return &node{t, filepath.Join(t.TempDir(), "data")}
}

// newOrigin starts a server with collections, all of the same content.
func newOrigin(t *testing.T, content string, names ...string) *origin {
	o := &origin{dir: t.TempDir()}
	require.NoError(t, o.start())
	t.Cleanup(o.close)
	for _, name := range names {
		require.NoError(t, o.create(name, content))
	}
	return o
}

func (o *origin) collection(name string) string { return o.socket.URL + "/topicmaps/" + name }

// version returns a map of two topics.
func version(v string) string {
	return fmt.Sprintf(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
<topic><subjectIdentifier href="http://psi.example.org/a"/><name><value>A %s</value></name></topic>
<topic><subjectIdentifier href="http://psi.example.org/b"/><name><value>B %s</value></name></topic>
</topicMap>`, v, v)
}

func (n *node) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmshare-client", append(args, "--data", n.data)...)
	cmd.Dir = n.t.TempDir()
	return cmd
}

// run runs a command that must succeed, and returns its output.
func (n *node) run(args ...string) string {
	n.t.Helper()
	cmd := n.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(n.t, err, "%s: %s", strings.Join(args, " "), &stderr)
	return string(out)
}

// status returns the output of status --json for a subscription.
func (n *node) status(name string) map[string]any {
	var all []map[string]any
	require.NoError(n.t, json.Unmarshal([]byte(n.run("status", "--json")), &all))
	for _, s := range all {
		if s["name"] == name {
			return s
		}
	}
	return nil
}

func (n *node) eventually(what string, ok func() bool) {
	n.t.Helper()
	testenv.Eventually(n.t, ok, what)
}

// process is a program that runs.
type process struct {
	t   *testing.T
	cmd *exec.Cmd

	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // closed and replaced with each output

	ended chan struct{}
}

func (n *node) start(env []string, args ...string) *process {
	p := &process{t: n.t, cmd: n.command(args...), more: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = p
	require.NoError(n.t, p.cmd.Start())
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	n.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if n.t.Failed() {
			n.t.Logf("%s:\n%s", strings.Join(args, " "), p.text.String())
		}
	})
	return p
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.more)
	p.more = make(chan struct{})
	return p.text.Write(b)
}

// says waits for a line on standard error, and returns the match with its groups.
func (p *process) says(pattern string) []string {
	p.t.Helper()
	re, limit := regexp.MustCompile(pattern), time.After(long)
	for {
		p.mu.Lock()
		m, more := re.FindStringSubmatch(p.text.String()), p.more
		p.mu.Unlock()
		if m != nil {
			return m
		}
		select {
		case <-more:
		case <-limit:
			require.Fail(p.t, "it does not say "+pattern)
		}
	}
}

func (p *process) signal(s os.Signal) { require.NoError(p.t, p.cmd.Process.Signal(s)) }

// ends waits for the end and returns the exit code.
func (p *process) ends() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(long):
		require.Fail(p.t, "it does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

func fetch(t *testing.T, url, accept string) (int, string) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(b)
}

func TestWatchBringsChanges(t *testing.T) {
	t.Parallel()
	o, n := newOrigin(t, version("1"), "egov", "libraries"), newNode(t)
	n.run("subscribe", o.collection("egov"))
	// With so slow a watchdog it does not look at the subscriptions by itself.
	w := n.start([]string{"WATCHDOG_USEC=36000000000"}, "watch", "--interval", "100ms", "--listen", "127.0.0.1:0")
	url := w.says(`url=(http://127\.0\.0\.1:\d+)/status`)[1]
	w.says("loaded from a snapshot.*source=egov")

	require.NoError(t, o.put("egov", version("2")))
	w.says("changes applied.*source=egov entries=2 fragments=2")
	assert.Contains(t, n.run("export", "-"), "A 2")
	assert.Contains(t, n.run("verify"), "egov: equal to the server's map")

	// What others change takes effect at once.
	n.run("subscribe", o.collection("libraries"))
	w.says("loaded from a snapshot.*source=libraries")
	n.run("unsubscribe", "egov")
	code, page := fetch(t, url+"/status", "text/html")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, page, "<bdi>libraries</bdi></a></td>")
	assert.NotContains(t, page, "egov")
	_, text := fetch(t, url+"/status", "application/json")
	assert.True(t, json.Valid([]byte(text)), text)
	_, text = fetch(t, url+"/metrics", "")
	assert.Regexp(t, `(?m)^tmshare_source_rounds_total\{source="libraries"\} \d+$`, text)
	assert.NotContains(t, text, `"egov"`)
	for _, path := range []string{"/healthz", "/readyz"} {
		code, _ := fetch(t, url+path, "")
		assert.Equal(t, http.StatusOK, code, path)
	}

	w.signal(syscall.SIGTERM)
	assert.Zero(t, w.ends())
	assert.NoFileExists(t, filepath.Join(n.data, "control.sock"))
	n.run("status") // the folder is free
}

func TestWatchHeedsSIGHUP(t *testing.T) {
	t.Parallel()
	o, n := newOrigin(t, version("1"), "egov"), newNode(t)
	n.run("subscribe", o.collection("egov"))
	w := n.start(nil, "watch", "--interval", "1h")
	w.says("loaded from a snapshot")
	require.NoError(t, o.put("egov", version("2")))
	w.signal(syscall.SIGHUP)
	w.says("SIGHUP: a round of each source begins")
	w.says("changes applied")
	w.signal(os.Interrupt)
	assert.Zero(t, w.ends())
}

func TestWatchGoesOnBesideADeadSource(t *testing.T) {
	t.Parallel()
	good, dead, n := newOrigin(t, version("1"), "good"), newOrigin(t, version("1"), "dead"), newNode(t)
	n.run("subscribe", dead.collection("dead"))
	n.run("subscribe", good.collection("good"))
	dead.setFault(0, "/topicmaps") // it takes requests and never answers
	w := n.start(nil, "watch", "--interval", "100ms")
	w.says("loaded from a snapshot.*source=good")
	require.NoError(t, good.put("good", version("2")))
	w.says("changes applied.*source=good")
	assert.Equal(t, "in step", n.status("good")["state"])
	assert.Equal(t, "not loaded yet", n.status("dead")["state"])
	require.NoError(t, good.put("good", version("3")))
	w.says("(?s)changes applied.*changes applied.*source=good")
	assert.Zero(t, n.start(nil, "unsubscribe", "dead").ends(), "although a round of it is under way")
	assert.Nil(t, n.status("dead"))
	w.signal(syscall.SIGTERM)
	assert.Zero(t, w.ends())
}

// A killed daemon leaves its socket, which is harmless.
func TestWatchAfterAKill(t *testing.T) {
	testenv.OnlyWithAll(t, "a daemon is killed")
	t.Parallel()
	o, n := newOrigin(t, version("1"), "egov"), newNode(t)
	n.run("subscribe", o.collection("egov"))
	for range 3 {
		w := n.start(nil, "watch", "--interval", "100ms")
		w.says("watching")
		n.eventually("in step", func() bool { return n.status("egov")["state"] == "in step" })
		w.signal(os.Kill)
		w.ends()
		assert.FileExists(t, filepath.Join(n.data, "control.sock"))
	}
	n.run("sync")
	assert.NoFileExists(t, filepath.Join(n.data, "control.sock"))
}

func TestWatchNeedsTheFolderForItself(t *testing.T) {
	t.Parallel()
	o, n := newOrigin(t, version("1"), "egov"), newNode(t)
	n.run("subscribe", o.collection("egov"))
	w := n.start(nil, "watch")
	w.says("watching")
	second := n.start(nil, "watch")
	assert.Equal(t, 1, second.ends())
	second.says(fmt.Sprintf(`is in use by tmshare-client watch \(process %d\)`, w.cmd.Process.Pid))
	nowhere := newNode(t).start(nil, "watch")
	assert.Equal(t, 1, nowhere.ends())
	nowhere.says("no data folder at ")
	w.signal(os.Interrupt)
	w.ends()
	unknown := n.start(nil, "watch", "nope")
	assert.Equal(t, 1, unknown.ends())
	unknown.says(`there is no subscription "nope"`)
	for _, args := range [][]string{{"--interval", "0s"}, {"--jitter", "2"}, {"--interval", "often"}} {
		assert.Equal(t, 2, newNode(t).start(nil, append([]string{"watch"}, args...)...).ends(), args)
	}
	assert.Equal(t, 1, newNode(t).start(nil, "watch", "--listen", "nowhere:x").ends())
}

// A command that the daemon executes ends with it, and reports the reason; one that waits for a round can be
// interrupted separately.
func TestCommandsEndWithTheDaemonThatExecutesThem(t *testing.T) {
	t.Parallel()
	o, n := newOrigin(t, version("1"), "egov"), newNode(t)
	n.run("subscribe", o.collection("egov"))
	o.setFault(0, "/snapshots/")
	w := n.start(nil, "watch", "--interval", "1h")
	n.eventually("a round is under way", func() bool { return o.wasAsked("/snapshots/") })
	waiting, interrupted := n.start(nil, "sync"), n.start(nil, "sync")
	for _, p := range []*process{waiting, interrupted} {
		p.says("egov: waiting for the round that is under way")
	}
	interrupted.signal(os.Interrupt)
	assert.Equal(t, cli.Interrupted, interrupted.ends())
	interrupted.says(`(?m)^tmshare-client: interrupted; what is applied stays`)
	assert.Equal(t, "not loaded yet", n.status("egov")["state"], "the daemon goes on")
	w.signal(syscall.SIGTERM)
	assert.Zero(t, w.ends())
	assert.Equal(t, 1, waiting.ends())
	waiting.says(`(?m)^tmshare-client: the process that holds the data folder is stopping; what is applied stays`)
}

// A short command whose data folder others use waits for the commands that it executes for them.
func TestACommandWaitsForThoseOfOthers(t *testing.T) {
	t.Parallel()
	o, n := newOrigin(t, version("1"), "egov", "libraries"), newNode(t)
	n.run("subscribe", o.collection("egov"))
	o.setFault(0, "/egov/snapshots/")
	first := n.start(nil, "sync", "egov")
	n.eventually("asked", func() bool { return o.wasAsked("/egov/snapshots/") })
	n.run("subscribe", o.collection("libraries"))
	o.setFault(0, "/libraries/snapshots/")
	second := n.start(nil, "sync", "libraries")
	n.eventually("asked", func() bool { return o.wasAsked("/libraries/snapshots/") })
	o.socket.CloseClientConnections() // both try again: egov succeeds
	first.says("waiting for commands that others have sent: 1")
	select {
	case <-first.ended:
		t.Error("it has not waited")
	default:
	}
	o.setFault(0, "\x00")
	o.socket.CloseClientConnections()
	assert.Zero(t, first.ends())
	assert.Zero(t, second.ends())
}

// systemd gets the state of the daemon.
func TestWatchTellsSystemd(t *testing.T) {
	t.Parallel()
	o, n := newOrigin(t, version("1"), "egov"), newNode(t)
	n.run("subscribe", o.collection("egov"))
	dir, err := os.MkdirTemp("", "notify") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: filepath.Join(dir, "s")})
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, socket.SetDeadline(time.Now().Add(long)))
	w := n.start([]string{"NOTIFY_SOCKET=" + filepath.Join(dir, "s"), "WATCHDOG_USEC=300000"}, "watch", "--interval", "1h")
	b := make([]byte, 1000)
	receives := func(what string) {
		t.Helper()
		for {
			size, err := socket.Read(b)
			require.NoError(t, err, "systemd is not told %s", what)
			if strings.HasPrefix(string(b[:size]), what) {
				return
			}
		}
	}
	receives("READY=1")
	receives("STATUS=all sources are in step")
	receives("WATCHDOG=1")
	receives("WATCHDOG=1")
	w.signal(syscall.SIGHUP)
	receives("RELOADING=1\nMONOTONIC_USEC=")
	receives("READY=1")
	w.signal(syscall.SIGTERM)
	receives("STOPPING=1")
	assert.Zero(t, w.ends())
}
