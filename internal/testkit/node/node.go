// Package node has real servers for tests: a store (see package stores), package server and a socket. A handler in
// front of it records requests and makes faults.
package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testkit/faults"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// Silent discards all messages.
var Silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// Origin is the server. Its store can be exchanged under the same address, as in a restore from a
// backup.
type Origin struct {
	T        testing.TB // that fails; it may be changed
	URL      string
	Config   server.Config
	Indexes  []txn.Index
	Settings []store.Setting

	tempDir  func() string // that is there until the server ends
	mu       sync.Mutex
	Dir      string
	DB       *store.DB
	Server   *server.Server
	requests []string
	fault    faults.Fault
}

// New starts a server without any collection.
func New(t testing.TB, change ...func(*server.Config)) *Origin {
	return On(t, store.Options{Dir: t.TempDir()}, change...)
}

// On starts a server on a store, which may be one that is only read.
func On(t testing.TB, at store.Options, change ...func(*server.Config)) *Origin {
	o := &Origin{T: t, tempDir: t.TempDir, Indexes: ext.Indexes(), Settings: extension.Settings(ext.All())}
	socket := httptest.NewServer(o)
	o.URL = socket.URL
	o.Config = server.Config{BaseURL: o.URL, OnLoopback: true, Logger: Silent,
		Policy: upkeep.Policy{SnapshotEvery: 1_000_000}}
	for _, f := range change {
		f(&o.Config)
	}
	if o.Config.Parts == nil {
		o.Config.Parts = ext.Parts()
	}
	if o.Config.Formats == nil {
		o.Config.Formats = ext.Formats()
	}
	o.start(at)
	t.Cleanup(func() {
		socket.Close()
		o.Stop()
	})
	return o
}

// Publishing starts a server with one collection, egov.
func Publishing(t testing.TB, doc string, change ...func(*server.Config)) *Origin {
	o := New(t, change...)
	o.Create("egov", doc)
	return o
}

// ChangesPerList closes change lists of ResourceSync of so many changes.
func ChangesPerList(n int) func(*server.Config) {
	return func(c *server.Config) {
		all, flags := ext.All(), pflag.NewFlagSet("", pflag.PanicOnError)
		extension.AddFlags(all, flags)
		_ = flags.Parse([]string{fmt.Sprint("--changes-per-list=", n)}) // it panics
		c.Parts = extension.Parts(all)
	}
}

// DocumentSize makes documents of feeds have so many entries.
func DocumentSize(n int) func(*server.Config) {
	return func(c *server.Config) { c.DocumentSize = n }
}

// Engine is how the engines of a test are set: with small buffers, but for benchmarks.
func Engine(t testing.TB) badger.Settings {
	if _, is := t.(*testing.B); is {
		return badger.Settings{}
	}
	return badger.Small
}

// Start puts the server on a data folder.
func (o *Origin) Start(dir string) { o.start(store.Options{Dir: dir}) }

func (o *Origin) start(at store.Options) {
	at.Logger, at.Now, at.Badger = cmp.Or(at.Logger, Silent), o.Config.Now, Engine(o.T)
	at.Indexes, at.Settings = o.Indexes, o.Settings
	db := stores.Open(o.T, at)
	o.Config.Store = db
	s, err := server.New(o.Config)
	require.NoError(o.T, err)
	if at.Access != store.Read {
		require.NoError(o.T, db.BeginOpening(o.T.Context())) // as Start of the server does
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Dir, o.DB, o.Server = at.Dir, db, s
}

// Stop closes the store.
func (o *Origin) Stop() {
	o.Server.Close()
	require.NoError(o.T, o.DB.Close())
}

// Rebuild puts a server on an empty database in the place of this one.
func (o *Origin) Rebuild() {
	o.Stop()
	o.Start(o.tempDir())
}

// Backup copies the data folder.
func (o *Origin) Backup() (dir string) {
	o.Stop()
	dir = o.tempDir()
	stores.Copy(o.T, o.Dir, dir)
	o.Start(o.Dir)
	return dir
}

// Restore continues with a copy of the data folder.
func (o *Origin) Restore(dir string) {
	o.Stop()
	o.Start(dir)
}

// ServeHTTP answers, through the faults.
func (o *Origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	s, f := o.Server, o.fault
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

// BreakWith makes faults from now on; nil ends them.
func (o *Origin) BreakWith(f faults.Fault) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault = f
}

// Seen returns the paths requested since its last call, without their common prefix. A conditional request is marked.
func (o *Origin) Seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.requests
	o.requests = nil
	return all
}

// Create imports a collection, and takes its first snapshot.
func (o *Origin) Create(name, doc string) { o.CreateWithPrefix(name, o.SP(name), doc) }

// CreateWithPrefix imports a collection that has another prefix than the default.
func (o *Origin) CreateWithPrefix(name, sp, doc string) {
	c := store.Collection{Name: name, SP: sp}
	_, err := o.Server.Import(context.Background(), c, strings.NewReader(doc), name+".xtm")
	require.NoError(o.T, err)
}

// SP returns the source locator prefix of a collection.
func (o *Origin) SP(name string) string { return server.DefaultPrefix(o.URL, name) }

// FeedURL returns the address of a collection's fragments feed.
func (o *Origin) FeedURL(name string) string { return o.URL + "/topicmaps/" + name + "/fragments" }

// RecordsURL returns the address of a collection's records in a form.
func (o *Origin) RecordsURL(name, form string) string { return o.URL + "/topicmaps/" + name + form }

// Put publishes a version of egov, over HTTP but not through the faults.
func (o *Origin) Put(doc string) publish.Published { return o.PutAs("egov", doc) }

// PutAs publishes a version of a collection.
func (o *Origin) PutAs(name, doc string) publish.Published {
	r := httptest.NewRequest(http.MethodPut, o.URL+"/topicmaps/"+name, strings.NewReader(doc))
	r.Header.Set("TMShare-Max-Delete", "all")
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	o.Server.ServeHTTP(w, r)
	require.Equal(o.T, http.StatusOK, w.Code, "%s", w.Body)
	var p publish.Published
	require.NoError(o.T, json.Unmarshal(w.Body.Bytes(), &p))
	return p
}

// TakeSnapshot takes a snapshot of egov.
func (o *Origin) TakeSnapshot() { o.TakeSnapshotOf("egov") }

// TakeSnapshotOf takes a snapshot of a collection.
func (o *Origin) TakeSnapshotOf(name string) {
	_, err := o.DB.TakeSnapshot(context.Background(), name, 3)
	require.NoError(o.T, err)
}

// Get returns the server's document, bypassing the faults.
func (o *Origin) Get(path string) string {
	r := httptest.NewRequest(http.MethodGet, o.URL+path, nil)
	w := httptest.NewRecorder()
	o.Server.ServeHTTP(w, r)
	require.Equal(o.T, http.StatusOK, w.Code, "%s: %s", path, w.Body)
	return w.Body.String()
}

// Source calls f with the records of a collection.
func (o *Origin) Source(name string, f func(*store.View, fragment.Source)) {
	require.NoError(o.T, o.DB.View(o.T.Context(), name, func(v *store.View) error {
		f(v, v.Source())
		return nil
	}))
}

// Ask makes a request as the server's administrator, not through the faults.
func (o *Origin) Ask(method, path, contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, o.URL+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1"
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	o.Server.ServeHTTP(w, r)
	return w
}

// Post replaces some topics, unless removed parts of them are used.
func (o *Origin) Post(collection, doc string) {
	w := o.Ask(http.MethodPost, "/topicmaps/"+collection+"/topics", "", doc)
	require.Contains(o.T, []int{http.StatusOK, http.StatusConflict}, w.Code, "%s", w.Body)
}

// Remove deletes a topic, if it exists and is not used.
func (o *Origin) Remove(collection, si string) {
	w := o.Ask(http.MethodDelete, "/topicmaps/"+collection+"/topics?si="+url.QueryEscape(si), "", "")
	require.Contains(o.T, []int{http.StatusOK, http.StatusNotFound, http.StatusConflict}, w.Code, "%s", w.Body)
}

// Delete deletes a collection.
func (o *Origin) Delete(collection string) {
	w := o.Ask(http.MethodDelete, "/topicmaps/"+collection, "", "")
	require.Equal(o.T, http.StatusOK, w.Code, "%s", w.Body)
}

// Offer changes the formats of records; none means all.
func (o *Origin) Offer(collection string, formats ...string) {
	b, err := json.Marshal(map[string]any{"recordFormats": append([]string{}, formats...)})
	require.NoError(o.T, err)
	w := o.Ask(http.MethodPut, "/topicmaps/"+collection, "application/json", string(b))
	require.Equal(o.T, http.StatusOK, w.Code, "%s", w.Body)
	_, err = o.DB.OfferRecordsAnew(context.Background(), collection)
	require.NoError(o.T, err)
}

// Resize changes the number of entries in a document of the feeds.
func (o *Origin) Resize(collection string, n int) {
	_, err := o.DB.ChangeSettings(o.T.Context(), collection, func(s *store.Settings) error {
		s.DocumentSize = n
		return nil
	})
	require.NoError(o.T, err)
}

// Prune takes a snapshot and gives up the history but for so many entries.
func (o *Origin) Prune(collection string, keep int) {
	w := o.Ask(http.MethodPost, "/topicmaps/"+collection+"/snapshots", "", "")
	require.Less(o.T, w.Code, 300, "%s", w.Body)
	o.CollectGarbage(collection, keep)
}

// CollectGarbage has the server give up the history but for so many entries.
func (o *Origin) CollectGarbage(collection string, keep int) {
	keeping := func(n int) {
		_, err := o.DB.ChangeSettings(o.T.Context(), collection, func(s *store.Settings) error {
			s.KeepEntries = uint64(n)
			return nil
		})
		require.NoError(o.T, err)
	}
	keeping(keep)
	defer keeping(0)
	w := o.Ask(http.MethodPost, "/topicmaps/"+collection+"/gc", "", "")
	require.Equal(o.T, http.StatusOK, w.Code, "%s", w.Body)
}

// The kinds of requests.

// IsRecent reports a request for the recent document of a fragments feed.
func IsRecent(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/fragments") }

// IsArchive reports a request for an archive document of any feed.
func IsArchive(r *http.Request) bool { return strings.Contains(r.URL.Path, "/archive/") }

// IsSnapshots reports a request for a snapshots feed.
func IsSnapshots(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/snapshots") }

// IsSnapshot reports a request for a snapshot.
func IsSnapshot(r *http.Request) bool { return strings.Contains(r.URL.Path, "/snapshots/") }

// IsFragment reports a request for a fragment.
func IsFragment(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/fragments/") && strings.HasSuffix(r.URL.Path, ".xtm21")
}

// IsRecord reports a request for a record.
func IsRecord(r *http.Request) bool { return strings.Contains(r.URL.Path, "/topics/") }

// IsRecordsFeed reports a request for a document that lists records.
func IsRecordsFeed(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/records") || strings.Contains(r.URL.Path, "/resourcesync/")
}

// Sign has checkpoints of a collection signed with a new key from now on, and returns the public one.
func (o *Origin) Sign(name string) (public string) {
	key, err := checkpoint.GenerateKey(filepath.Join(o.tempDir(), "key"), "maps.example.org")
	require.NoError(o.T, err)
	o.SignWith(name, key.Path)
	return key.Public
}

// SignWith has checkpoints of a collection signed with the key in a file; "" ends it.
func (o *Origin) SignWith(name, path string) {
	_, err := o.DB.ChangeSettings(context.Background(), name, func(s *store.Settings) error {
		s.Sign = path
		return nil
	})
	require.NoError(o.T, err)
}
