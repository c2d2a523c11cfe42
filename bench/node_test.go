package bench_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// The environment of a child process that serves: the place of the store, and a file for
// a profile of its processor time, if one is wanted.
const (
	childData    = "TMSHARE_BENCH_CHILD_DATA"
	childProfile = "TMSHARE_BENCH_CHILD_PROFILE"
)

// collection is the name of the collection in each data folder.
const collection = "synthetic"

// newPlace returns where a new store is: in a folder, or with "-engine postgres" in a database.
func newPlace(b *testing.B) string { return stores.Place(b, filepath.Join(b.TempDir(), "store")) }

// at returns the flags of a program for the place of its store.
func at(place string) []string {
	if extension.IsAddress(place) {
		return []string{"--store", place}
	}
	return []string{"--data", place}
}

// openStore opens the store at a place.
func openStore(ctx context.Context, place string, logger *slog.Logger) (*store.DB, error) {
	return (&extension.App{Extensions: ext.All()}).OpenAt(ctx, place, store.Options{Logger: logger})
}

// importInto publishes the map in a file in a new store, with a snapshot.
func importInto(b *testing.B, c *corpus) (place string) {
	b.Helper()
	place = newPlace(b)
	logger := slog.New(slog.DiscardHandler)
	db, err := openStore(b.Context(), place, logger)
	require.NoError(b, err)
	s, err := server.New(server.Config{Parts: ext.Parts(), Store: db, BaseURL: "http://127.0.0.1:1", Logger: logger, MaxBody: 4 << 30})
	require.NoError(b, err)
	f := c.open(b)
	defer f.Close()
	created, err := s.Import(b.Context(), store.Collection{Name: collection, SP: synthetic.Base}, f, c.file)
	require.NoError(b, err)
	require.Equal(b, c.topics, created.Topics)
	s.Close()
	require.NoError(b, db.Close())
	return place
}

// node is a server in a process of its own.
type node struct {
	b    *testing.B
	url  string
	cmd  *exec.Cmd
	http *http.Client
}

// serve starts a server on a store. It ends with the benchmark, if stop does
// not end it before.
func serve(b *testing.B, place string) *node {
	b.Helper()
	return startChild(b, childData+"="+place)
}

// startChild starts a server in a process with a line of the environment for its place.
func startChild(b *testing.B, environment string) *node {
	b.Helper()
	n := &node{b: b, cmd: exec.Command(os.Args[0]), http: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	n.cmd.Env = append(os.Environ(), environment)
	n.cmd.Stderr = os.Stderr
	out, err := n.cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, n.cmd.Start())
	b.Cleanup(n.stop)
	_, err = fmt.Fscanln(out, &n.url)
	require.NoError(b, err, "the server does not start")
	return n
}

func (n *node) stop() {
	if n.cmd == nil {
		return
	}
	n.http.CloseIdleConnections()
	require.NoError(n.b, n.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(n.b, n.cmd.Wait())
	n.cmd = nil
}

// do sends a request to an address below that of the collection, or to an absolute
// one, with headers in pairs. The answer must have the status.
func (n *node) do(method, at string, body io.Reader, status int, headers ...string) (http.Header, []byte) {
	n.b.Helper()
	if !strings.HasPrefix(at, "http:") {
		at = n.url + "/topicmaps/" + collection + at
	}
	r, err := http.NewRequest(method, at, body)
	require.NoError(n.b, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := n.http.Do(r)
	require.NoError(n.b, err)
	defer a.Body.Close()
	got, err := io.ReadAll(a.Body)
	require.NoError(n.b, err)
	require.Equal(n.b, status, a.StatusCode, "%s %s: %.500s", method, at, got)
	return a.Header, got
}

// servePlace is the work of the child process: it serves the store, as tmshare-server does but without logging
// requests, until SIGTERM.
func servePlace(place string) (err error) {
	if path := os.Getenv(childProfile); path != "" {
		var profile bytes.Buffer
		if err := pprof.StartCPUProfile(&profile); err != nil {
			return err
		}
		defer func() {
			pprof.StopCPUProfile()
			err = errors.Join(err, os.WriteFile(path, profile.Bytes(), 0o600))
		}()
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	db, err := openStore(context.Background(), place, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s, err := server.New(server.Config{
		Parts: ext.Parts(),
		Store: db, BaseURL: "http://" + listener.Addr().String(), OnLoopback: true, Logger: logger, MaxBody: 4 << 30,
		Policy: upkeep.Policy{SnapshotEvery: 1 << 30}, // only on request
	})
	if err != nil {
		return err
	}
	defer s.Close()
	return serveUntilTold(s, web.Listener{Listener: listener})
}

// serveUntilTold serves until SIGTERM. It prints the URL.
func serveUntilTold(handler http.Handler, listener net.Listener) error {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	h := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ConnContext: web.ConnContext}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(listener) }()
	fmt.Println("http://" + listener.Addr().String())
	select {
	case err := <-failed:
		return err
	case <-end:
		return h.Close()
	}
}

// asChild does the work of a child process, and ends it.
func asChild(work func(string) error, test string) {
	if err := work(test); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// profile begins the profile of a child process other than the server, if it is requested. ending is that of its file.
func profile(ending string) (stop func(), err error) {
	path := os.Getenv(childProfile)
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path + ending)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}
