package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
)

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// origin is a real server: a store on disk, package server and a socket. In
// front of it stands a handler that records requests and makes faults. The
// store can be exchanged under the same address, as in a restore from a backup.
type origin struct {
	t      *testing.T
	URL    string
	config server.Config

	mu       sync.Mutex
	dir      string
	db       *store.DB
	server   *server.Server
	requests []string
	fault    fault
}

// fault answers a request in place of the server, or reports that it does not.
// real answers as the server would.
type fault func(w http.ResponseWriter, r *http.Request, real http.Handler) bool

// newOrigin starts a server without any collection.
func newOrigin(t *testing.T, change ...func(*server.Config)) *origin {
	o := &origin{t: t}
	socket := httptest.NewServer(http.HandlerFunc(o.answer))
	o.URL = socket.URL
	o.config = server.Config{BaseURL: o.URL, OnLoopback: true, Logger: silent, Policy: upkeep.Policy{SnapshotEvery: 1_000_000}}
	for _, f := range change {
		f(&o.config)
	}
	o.start(t.TempDir())
	t.Cleanup(func() {
		socket.Close()
		o.stop()
	})
	return o
}

// publishing starts a server with one collection, egov.
func publishing(t *testing.T, doc string, change ...func(*server.Config)) *origin {
	o := newOrigin(t, change...)
	o.create("egov", doc)
	return o
}

func documentSize(n int) func(*server.Config) {
	return func(c *server.Config) { c.DocumentSize = n }
}

func (o *origin) start(dir string) {
	db, err := store.Open(o.t.Context(), store.Options{Dir: dir, Logger: silent, Now: o.config.Now})
	require.NoError(o.t, err)
	o.config.Store = db
	s, err := server.New(o.config)
	require.NoError(o.t, err)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dir, o.db, o.server = dir, db, s
}

func (o *origin) stop() {
	o.server.Close()
	require.NoError(o.t, o.db.Close())
}

// rebuild puts a server on an empty database in the place of this one.
func (o *origin) rebuild() {
	o.stop()
	o.start(o.t.TempDir())
}

// backup copies the data folder.
func (o *origin) backup() (dir string) {
	o.stop()
	dir = o.t.TempDir()
	require.NoError(o.t, os.CopyFS(dir, os.DirFS(o.dir)))
	o.start(o.dir)
	return dir
}

// restore goes on with a copy of the data folder.
func (o *origin) restore(dir string) {
	o.stop()
	o.start(dir)
}

func (o *origin) answer(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	s, f := o.server, o.fault
	what := strings.TrimPrefix(r.URL.Path, "/topicmaps")
	if r.Header.Get("If-None-Match") != "" {
		what += " (if changed)"
	}
	o.requests = append(o.requests, what)
	o.mu.Unlock()
	if f == nil || !f(w, r, s) {
		s.ServeHTTP(w, r)
	}
}

// breakWith makes faults from now on; nil ends them.
func (o *origin) breakWith(f fault) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault = f
}

// seen returns the paths requested since it was called last, without what they
// have in common. A conditional request is marked.
func (o *origin) seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.requests
	o.requests = nil
	return all
}

// create imports a collection, and takes its first snapshot.
func (o *origin) create(name, doc string) { o.createWithPrefix(name, o.sp(name), doc) }

func (o *origin) createWithPrefix(name, sp, doc string) {
	c := store.Collection{Name: name, SP: sp}
	_, err := o.server.Import(context.Background(), c, strings.NewReader(doc), name+".xtm")
	require.NoError(o.t, err)
}

func (o *origin) sp(name string) string { return server.DefaultPrefix(o.URL, name) }

func (o *origin) feedURL(name string) string { return o.URL + "/topicmaps/" + name + "/fragments" }

// put publishes a version of egov, over HTTP but not through the faults.
func (o *origin) put(doc string) server.Published { return o.putAs("egov", doc) }

func (o *origin) putAs(name, doc string) server.Published {
	r := httptest.NewRequest(http.MethodPut, o.URL+"/topicmaps/"+name, strings.NewReader(doc))
	r.Header.Set("TMShare-Max-Delete", "all")
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	o.server.ServeHTTP(w, r)
	require.Equal(o.t, http.StatusOK, w.Code, "%s", w.Body)
	var p server.Published
	require.NoError(o.t, json.Unmarshal(w.Body.Bytes(), &p))
	return p
}

func (o *origin) takeSnapshot() {
	_, err := o.db.TakeSnapshot(context.Background(), "egov", 3)
	require.NoError(o.t, err)
}

// get returns what the server answers, not through the faults.
func (o *origin) get(path string) string {
	r := httptest.NewRequest(http.MethodGet, o.URL+path, nil)
	w := httptest.NewRecorder()
	o.server.ServeHTTP(w, r)
	require.Equal(o.t, http.StatusOK, w.Code, "%s: %s", path, w.Body)
	return w.Body.String()
}

// times counts the strings that contain a part.
func times(all []string, part string) int {
	n := 0
	for _, s := range all {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

// fragments counts the fragments among the paths of seen.
func fragments(all []string) int { return times(all, ".xtm21") - times(all, "/snapshots/") }

// The kinds of requests.
func isRecent(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/fragments") }

func isArchive(r *http.Request) bool { return strings.Contains(r.URL.Path, "/archive/") }

func isSnapshots(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/snapshots") }

func isSnapshot(r *http.Request) bool { return strings.Contains(r.URL.Path, "/snapshots/") }

func isFragment(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/fragments/") && strings.HasSuffix(r.URL.Path, ".xtm21")
}

// record returns what a handler answers.
func record(h http.Handler, r *http.Request) (*httptest.ResponseRecorder, []byte) {
	r = r.Clone(r.Context())
	r.Header.Del("Accept-Encoding")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w, bytes.Clone(w.Body.Bytes())
}
