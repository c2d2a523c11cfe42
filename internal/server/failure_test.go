package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	"github.com/tmshare/tmshare/merge"
)

// watched is a store at which a test can look, and that it can make fail.
type watched struct {
	server.Store
	view     func() error
	publish  func()
	snapshot func(ctx context.Context) error
	mayWrite error
	drop     atomic.Pointer[error] // of DropLostSnapshots, also while the server works
}

func (w *watched) DropLostSnapshots(ctx context.Context, name string) ([]store.Snapshot, error) {
	if err := w.drop.Load(); err != nil {
		return nil, *err
	}
	return w.Store.DropLostSnapshots(ctx, name)
}

func (w *watched) MayWrite() error { return errors.Join(w.mayWrite, w.Store.MayWrite()) }

func (w *watched) View(ctx context.Context, name string, f func(*store.View) error) error {
	if w.view != nil {
		if err := w.view(); err != nil {
			return err
		}
	}
	return w.Store.View(ctx, name, f)
}

func (w *watched) Latest(ctx context.Context, name string) (*store.Latest, error) {
	if w.view != nil {
		if err := w.view(); err != nil {
			return nil, err
		}
	}
	return w.Store.Latest(ctx, name)
}

func (w *watched) LatestAt(ctx context.Context, name string) (*store.Latest, time.Time, error) {
	l, err := w.Latest(ctx, name)
	return l, time.Now(), err
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
	n.Publish("small", served.Small())
	return n, w
}

// Faults of the server are logged, and not shown to clients.
func TestFailureOfTheStoreIsLoggedAndNotTold(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	w.view = func() error { return fmt.Errorf("cannot read /var/lib/secret.sst") }
	for _, accept := range []string{"*/*", "application/json"} {
		a := n.Get("/topicmaps/small/fragments", "Accept", accept)
		assert.Equal(t, http.StatusInternalServerError, a.StatusCode)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		assert.NotContains(t, string(a.Bytes), "secret")
	}
	assert.Contains(t, n.Logs.String(), "/var/lib/secret.sst")
	assert.Contains(t, n.Logs.String(), "path=/topicmaps/small/fragments")
}

// A full disk is no fault of the program: the message says so, because the operator can free some space.
func TestAFullDiskIsToldSo(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	for what, full := range map[string]error{
		"nearly":     fmt.Errorf("/var/lib/secret: %w", syscall.ENOSPC),
		"in a write": &os.PathError{Op: "write", Path: "/var/lib/secret", Err: syscall.ENOSPC},
		"quota":      &os.PathError{Op: "write", Path: "/var/lib/secret", Err: syscall.EDQUOT},
	} {
		w.snapshot = func(context.Context) error { return full }
		n.MustPut("small", served.Small("Oslo", what))
		a := n.Do("POST", "/topicmaps/small/snapshots", nil)
		assert.Equal(t, http.StatusInsufficientStorage, a.StatusCode, what)
		assert.Contains(t, string(a.Bytes), "Free some space on the disk", what)
		assert.NotContains(t, string(a.Bytes), "secret", what)
	}
	assert.Contains(t, n.Logs.String(), "/var/lib/secret")
}

// For readers, a full disk is not reported as a failed change: the message names what could not be made, and what can
// be read.
func TestReadersAreToldWhatAFullDiskHasNoSpaceFor(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	w.mayWrite = fmt.Errorf("/var/lib/secret: %w", syscall.ENOSPC)
	snapshot := n.Feed("/topicmaps/small/snapshots").Entries[0].Typed(t, "topicmapdata")[served.XTM1Type]
	for url, says := range map[string][]string{
		snapshot: {"no space to make this form of the snapshot", "can be read in that"},
		n.URL("/topicmaps/small/resourcesync/resourcelist.xml"):   {"no space to make the lists of small", "can be read"},
		n.URL("/topicmaps/small/resourcesync/capabilitylist.xml"): {"no space to make the lists of small"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			a := n.Do(method, url, nil)
			assert.Equal(t, http.StatusInsufficientStorage, a.StatusCode, url)
			if method == http.MethodHead {
				continue
			}
			for _, text := range append(says, "Free some space on the disk", "ask again") {
				assert.Contains(t, string(a.Bytes), text, url)
			}
			assert.NotContains(t, string(a.Bytes), "changed", url)
			assert.NotContains(t, string(a.Bytes), "secret", url)
		}
	}
	assert.Equal(t, http.StatusOK, n.Get(strings.TrimSuffix(snapshot, ".xtm1")+".xtm21").StatusCode)
	assert.Contains(t, n.Logs.String(), "/var/lib/secret")
}

// A snapshot with a damaged file is not served as a whole.
func TestSnapshotWhoseFileIsDamagedIsCutOff(t *testing.T) {
	stores.InFolders(t)
	t.Parallel()
	n := start(t)
	c := n.Publish("small", served.Small())
	files, err := filepath.Glob(filepath.Join(n.Store.(*store.DB).Dir(), "snapshots", c.Epoch.String(), "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		clear(data[len(data)/2 : len(data)-8])
		require.NoError(t, os.WriteFile(f, data, 0o600))
	}
	for _, url := range n.Feed("/topicmaps/small/snapshots").Entries[0].Typed(t, "topicmapdata") {
		res, err := n.HTTP.Get(url)
		if err == nil { // the connection may end before or after the headers
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		assert.True(t, err != nil || res.StatusCode == http.StatusInternalServerError, url) // no conversion has begun
	}
}

// An answer that fails after its beginning is aborted, so that clients detect it.
func TestAnswerThatFailsOnTheWayIsCutOff(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	n.Publish("hub", hub("Hub"))
	url := n.URL("/topicmaps/hub/snapshots/current.xtm21")
	whole := n.MustGet(url)
	require.NoError(t, whole.Err)
	after := errors.New("the disk is gone")
	w.Store = failingLate{w.Store, after}
	for _, coding := range []string{"identity", "gzip"} {
		a := n.Get(url, "Accept-Encoding", coding)
		assert.Error(t, a.Err, coding)
	}
	assert.Contains(t, n.Logs.String(), "the disk is gone")
}

// failingLate fails when all is written.
type failingLate struct {
	server.Store
	err error
}

func (s failingLate) View(ctx context.Context, name string, f func(*store.View) error) error {
	return errors.Join(s.Store.View(ctx, name, f), s.err)
}
