package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// watched is a store at which a test can look, and that it can make fail.
type watched struct {
	server.Store
	view     func() error
	publish  func()
	snapshot func(ctx context.Context) error
}

func (w *watched) View(name string, f func(*store.View) error) error {
	if w.view != nil {
		if err := w.view(); err != nil {
			return err
		}
	}
	return w.Store.View(name, f)
}

func (w *watched) Latest(name string) (*store.Latest, error) {
	if w.view != nil {
		if err := w.view(); err != nil {
			return nil, err
		}
	}
	return w.Store.Latest(name)
}

func (w *watched) Publish(ctx context.Context, name string, decide func(store.Collection, merge.State) (*fragment.Change, error)) (*store.Collection, error) {
	c, err := w.Store.Publish(ctx, name, decide)
	if w.publish != nil {
		w.publish()
	}
	return c, err
}

func (w *watched) TakeSnapshot(ctx context.Context, name string, keep int) (*store.Snapshot, error) {
	if w.snapshot != nil {
		if err := w.snapshot(ctx); err != nil {
			return nil, err
		}
	}
	return w.Store.TakeSnapshot(ctx, name, keep)
}

// watch starts a server on a watched store with a small map.
func watch(t *testing.T, configure ...func(*server.Config)) (*node, *watched) {
	t.Helper()
	w := &watched{}
	n := start(t, append(configure, func(c *server.Config) {
		w.Store = c.Store
		c.Store = w
	})...)
	n.publish("small", small())
	return n, w
}

// record asks a server without a socket.
func record(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// What is wrong with the server is for its log, not for those who ask.
func TestFailureOfTheStoreIsLoggedAndNotTold(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	w.view = func() error { return fmt.Errorf("cannot read /var/lib/secret.sst") }
	for _, accept := range []string{"*/*", "application/json"} {
		a := n.get("/topicmaps/small/fragments", "Accept", accept)
		assert.Equal(t, http.StatusInternalServerError, a.StatusCode)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		assert.NotContains(t, string(a.body), "secret")
	}
	assert.Contains(t, n.logs.String(), "/var/lib/secret.sst")
	assert.Contains(t, n.logs.String(), "path=/topicmaps/small/fragments")
}

func TestSnapshotWhoseFilesAreLostIsGone(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.publish("small", small())
	files, err := filepath.Glob(filepath.Join(n.Store.(*store.DB).Dir(), "snapshots", c.Epoch.String(), "*"))
	require.NoError(t, err)
	require.Len(t, files, 2, "one for each form")
	urls := n.feed("/topicmaps/small/snapshots").Entries[0].typed(t, "topicmapdata")
	for _, f := range files { // half a file: the plain answer is cut off
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(f, data[:len(data)/2], 0o600))
	}
	for _, url := range urls {
		res, err := n.http.Get(url)
		if err == nil { // the connection may end before or after the headers
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		assert.Error(t, err)
	}
	for _, f := range files {
		require.NoError(t, os.Remove(f))
	}
	for _, url := range urls {
		for _, coding := range []string{"identity", "gzip"} {
			a := n.get(url, "Accept-Encoding", coding)
			assert.Equal(t, http.StatusGone, a.StatusCode)
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		}
	}
}

// An answer that fails on the way is cut off, so that nobody takes it for whole.
func TestAnswerThatFailsOnTheWayIsCutOff(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	n.publish("hub", hub("Hub"))
	url := n.url("/topicmaps/hub/snapshots/current.xtm21")
	whole := n.mustGet(url)
	require.NoError(t, whole.err)
	after := errors.New("the disk is gone")
	w.Store = failingLate{w.Store, after}
	for _, coding := range []string{"identity", "gzip"} {
		a := n.get(url, "Accept-Encoding", coding)
		assert.Error(t, a.err, coding)
	}
	assert.Contains(t, n.logs.String(), "the disk is gone")
}

// failingLate fails when all is written.
type failingLate struct {
	server.Store
	err error
}

func (s failingLate) View(name string, f func(*store.View) error) error {
	return errors.Join(s.Store.View(name, f), s.err)
}
