package control

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// long limits the time to wait for events that are expected at once.
const long = 10 * time.Second

func serve(t *testing.T, dir string, run func(context.Context, *Request) int) *Server {
	t.Helper()
	s, err := Serve(dir, "holder", run)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close(ended()) })
	return s
}

func ended() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}

func request(stdin string, args ...string) (r *Request, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return &Request{Args: args, Stdin: strings.NewReader(stdin), Stdout: stdout, Stderr: stderr}, stdout, stderr
}

func TestACommandIsExecutedByTheHolder(t *testing.T) {
	var got Request
	dir := t.TempDir()
	serve(t, dir, func(_ context.Context, r *Request) int {
		got = *r
		in, err := io.ReadAll(r.Stdin)
		fmt.Fprint(r.Stdout, strings.ToUpper(string(in)))
		fmt.Fprint(r.Stderr, "err: ", err)
		return 4
	})
	big := strings.Repeat("abc", 1<<20) // many frames each way
	r, stdout, stderr := request(big, "sync", "--json")
	r.Dir, r.Env, r.StdoutTerminal, r.Width = "/home/kari", map[string]string{"TMSHARE_QUIET": "1"}, true, 77
	code, err := Call(t.Context(), dir, r)
	require.NoError(t, err)
	assert.Equal(t, 4, code)
	assert.Equal(t, strings.ToUpper(big), stdout.String())
	assert.Equal(t, "err: <nil>", stderr.String())
	assert.Equal(t, []string{"sync", "--json"}, got.Args)
	assert.Equal(t, "/home/kari/map.xtm", got.Path("map.xtm"))
	assert.Equal(t, "/tmp/map.xtm", got.Path("/tmp/map.xtm"))
	assert.Equal(t, "1", got.Getenv("TMSHARE_QUIET"))
	assert.True(t, got.StdoutTerminal)
	assert.False(t, got.StderrTerminal)
	assert.Equal(t, 77, got.Width)
}

// Standard input is left for the next command, unless it is read.
func TestStandardInputIsLeftAloneUnlessItIsRead(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, func(_ context.Context, r *Request) int {
		line, _ := bufio.NewReaderSize(r.Stdin, 16).ReadString('\n')
		fmt.Fprint(r.Stdout, line)
		return 0
	})
	stdin, input := io.Pipe()
	r, stdout, _ := request("")
	r.Stdin = stdin
	go func() { _, _ = input.Write([]byte("first\n")) }() // and then nothing for ever
	_, err := Call(t.Context(), dir, r)
	require.NoError(t, err)
	assert.Equal(t, "first\n", stdout.String())

	read := make(chan string, 1)
	go func() {
		b := make([]byte, 100)
		n, _ := stdin.Read(b)
		read <- string(b[:n])
	}()
	go func() { _, _ = input.Write([]byte("second\n")) }()
	select {
	case text := <-read:
		assert.Equal(t, "second\n", text)
	case <-time.After(long):
		t.Fatal("somebody else has read it")
	}
}

func TestAnInterruptedCommandHasTheLastWord(t *testing.T) {
	dir := t.TempDir()
	begun := make(chan struct{})
	var cause error
	serve(t, dir, func(ctx context.Context, r *Request) int {
		close(begun)
		<-ctx.Done()
		cause = context.Cause(ctx)
		fmt.Fprint(r.Stderr, "interrupted")
		return 1
	})
	ctx, interrupt := context.WithCancel(t.Context())
	go func() { <-begun; interrupt() }()
	r, _, stderr := request("")
	code, err := Call(ctx, dir, r)
	require.NoError(t, err)
	assert.Equal(t, 1, code)
	assert.Equal(t, "interrupted", stderr.String())
	assert.ErrorIs(t, cause, ErrInterrupted)
}

func TestACallerThatIsGoneInterruptsItsCommand(t *testing.T) {
	dir := t.TempDir()
	ends := make(chan error, 1)
	s := serve(t, dir, func(ctx context.Context, r *Request) int {
		<-ctx.Done()
		ends <- context.Cause(ctx)
		return 0
	})
	conn, _, err := dial(dir)
	require.NoError(t, err)
	require.NoError(t, (&output{w: conn}).writeJSON(frameRequest, &Request{}))
	testenv.Eventually(t, func() bool { return s.Busy() == 1 })
	conn.Close()
	select {
	case cause := <-ends:
		assert.ErrorIs(t, cause, ErrInterrupted)
	case <-time.After(long):
		t.Fatal("it goes on")
	}
	testenv.Eventually(t, func() bool { return s.Busy() == 0 })
}

func TestCloseWaitsForCommands(t *testing.T) {
	dir := t.TempDir()
	begun, finish := make(chan struct{}), make(chan struct{})
	s := serve(t, dir, func(context.Context, *Request) int {
		close(begun)
		<-finish
		return 7
	})
	codes := make(chan int, 1)
	go func() {
		r, _, _ := request("")
		code, _ := Call(t.Context(), dir, r)
		codes <- code
	}()
	<-begun
	closed := make(chan struct{})
	go func() { s.Close(context.Background()); close(closed) }()
	testenv.Eventually(t, func() bool { _, err := Holder(dir); return errors.Is(err, ErrNobody) })
	select {
	case <-closed:
		t.Fatal("it has not waited")
	default:
	}
	close(finish)
	assert.Equal(t, 7, <-codes)
	select {
	case <-closed:
	case <-time.After(long):
		t.Fatal("it waits for ever")
	}
	assert.NoFileExists(t, filepath.Join(dir, socketName))
}

func TestCloseInterruptsCommandsWhenItsContextEnds(t *testing.T) {
	dir := t.TempDir()
	begun := make(chan struct{})
	s := serve(t, dir, func(ctx context.Context, r *Request) int {
		close(begun)
		<-ctx.Done()
		fmt.Fprint(r.Stderr, context.Cause(ctx))
		return 1
	})
	r, _, stderr := request("")
	done := make(chan error, 1)
	go func() { _, err := Call(t.Context(), dir, r); done <- err }()
	<-begun
	s.Close(ended())
	require.NoError(t, <-done)
	assert.Equal(t, ErrStopping.Error(), stderr.String())
}

func TestAPanicEndsTheCommandOnly(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, func(context.Context, *Request) int { panic("out of order") })
	for range 2 {
		r, _, stderr := request("")
		code, err := Call(t.Context(), dir, r)
		require.NoError(t, err)
		assert.Equal(t, 1, code)
		assert.Contains(t, stderr.String(), "holder: panic: out of order")
	}
}

func TestAHolderThatIsKilled(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, socketName))
	require.NoError(t, err)
	defer l.Close()
	go func() { // a holder that ends in the middle
		conn, err := l.Accept()
		if err == nil {
			_ = (&output{w: conn}).writeJSON(frameHello, hello{protocol, "holder", version(), 1})
			_, _, _ = readFrame(conn)
			_ = (&output{w: conn}).write(frameStdout, []byte("half"))
			conn.Close()
		}
	}()
	r, stdout, _ := request("")
	_, err = Call(t.Context(), dir, r)
	assert.ErrorContains(t, err, "holder (process 1), which held the data folder, ended before the command was done")
	assert.Equal(t, "half", stdout.String())
}

func TestNobodyServes(t *testing.T) {
	dir := t.TempDir()
	r, _, _ := request("")
	_, err := Call(t.Context(), dir, r)
	assert.ErrorIs(t, err, ErrNobody)
	_, err = Call(t.Context(), filepath.Join(dir, "none"), r)
	assert.ErrorIs(t, err, ErrNobody)

	stale(t, dir)
	_, err = Call(t.Context(), dir, r)
	assert.ErrorIs(t, err, ErrNobody)
	serve(t, dir, func(context.Context, *Request) int { return 0 })
	_, err = Call(t.Context(), dir, r)
	assert.NoError(t, err, "a socket that a killed process has left is replaced")
}

// stale leaves a socket without a listener.
func stale(t *testing.T, dir string) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName)})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.FileExists(t, filepath.Join(dir, socketName))
}

func TestTheSocketIsPrivate(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, func(context.Context, *Request) int { return 0 })
	info, err := os.Stat(filepath.Join(dir, socketName))
	require.NoError(t, err)
	assert.Equal(t, os.ModeSocket|0o600, info.Mode())
}

func TestFoldersWithLongNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a", 100), strings.Repeat("b", 100))
	require.NoError(t, os.MkdirAll(dir, 0o750))
	t.Setenv("TMPDIR", os.TempDir())
	s := serve(t, dir, func(context.Context, *Request) int { return 3 })
	assert.FileExists(t, filepath.Join(dir, socketName))
	r, _, _ := request("")
	code, err := Call(t.Context(), dir, r)
	require.NoError(t, err)
	assert.Equal(t, 3, code)
	t.Chdir(filepath.Dir(dir)) // a relative path, too long as well
	_, err = Call(t.Context(), filepath.Base(dir)+strings.Repeat("/.", 10), r)
	require.NoError(t, err)
	s.Close(context.Background())
	assert.NoFileExists(t, filepath.Join(dir, socketName))
}

func TestAnotherVersion(t *testing.T) {
	as := func(h hello) string {
		dir := t.TempDir()
		s, err := serveAs(dir, h, func(_ context.Context, r *Request) int { fmt.Fprint(r.Stdout, "done"); return 0 })
		require.NoError(t, err)
		t.Cleanup(func() { s.Close(ended()) })
		return dir
	}
	r, stdout, stderr := request("")
	_, err := Call(t.Context(), as(hello{protocol, "holder", "v0.0.1", 12}), r)
	require.NoError(t, err)
	assert.Equal(t, "done", stdout.String())
	assert.Regexp(t, `^note: executed by holder \(process 12\), which is of another version \(v0\.0\.1\) than this program`, stderr.String())

	r, stdout, _ = request("")
	_, err = Call(t.Context(), as(hello{protocol + 1, "holder", "v9", 12}), r)
	assert.ErrorContains(t, err, "cannot take its commands")
	assert.Empty(t, stdout.String())
}

func TestHolder(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, func(context.Context, *Request) int { return 0 })
	who, err := Holder(dir)
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("holder (process %d)", os.Getpid()), who)
	s.Close(context.Background())
	_, err = Holder(dir)
	assert.ErrorIs(t, err, ErrNobody)
}

func TestALongFrameIsRefused(t *testing.T) {
	_, _, err := readFrame(strings.NewReader("o\xff\xff\xff\xff"))
	assert.ErrorContains(t, err, "too long")
}

func TestLocal(t *testing.T) {
	t.Setenv("TMSHARE_DATA", "/data")
	t.Setenv("OTHER", "x")
	r := Local("tmshare-client", []string{"status"})
	assert.Equal(t, []string{"status"}, r.Args)
	assert.Equal(t, "/data", r.Getenv("TMSHARE_DATA"))
	assert.Empty(t, r.Getenv("OTHER"))
	here, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(here, "x"), r.Path("x"))
	assert.Empty(t, r.Path(""))
	assert.Equal(t, "-", r.Path("-"))
}
