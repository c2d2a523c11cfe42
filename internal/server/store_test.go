package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

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

func every(n int) func(*server.Config) { return func(c *server.Config) { c.SnapshotEvery = n } }

func TestSnapshotIsTakenAfterSoManyChanges(t *testing.T) {
	t.Parallel()
	n := start(t, every(3), func(c *server.Config) { c.SnapshotsKept = 2 })
	c := n.publish("small", small())
	first := n.feed("/topicmaps/small/snapshots").Entries
	require.Len(t, first, 1, "creating a collection publishes a snapshot")
	assert.Equal(t, feedTime(c), first[0].updated())

	taken := func() []string { return ids(n.feed("/topicmaps/small/snapshots").Entries) }
	n.mustPut("small", small("Oslo", "Oslo 1"))
	n.mustPut("small", small("Oslo", "Oslo 2"))
	time.Sleep(50 * time.Millisecond)
	require.Equal(t, ids(first), taken(), "two changes are not enough")
	p := n.mustPut("small", small("Oslo", "Oslo 3"))
	require.Eventually(t, func() bool { return len(taken()) == 2 }, 10*time.Second, 5*time.Millisecond)
	e := n.feed("/topicmaps/small/snapshots").Entries
	assert.Equal(t, first[0].id(), e[1].id(), "the newest first")
	assert.Equal(t, p.LastChange, e[0].updated())
	assert.Equal(t, n.expected("small", small("Oslo", "Oslo 3")), canonical(t, n.mustGet(e[0].typed(t, "topicmapdata")[xtm21Type]).body, n.sp("small")))

	n.mustPut("small", small()) // one entry
	n.mustPut("small", small("Oslo", "A", "Bergen", "B", "Norway", "C"))
	require.Eventually(t, func() bool { return taken()[1] == e[0].id() }, 10*time.Second, 5*time.Millisecond)
	assert.Len(t, taken(), 2, "as many as are kept")
	assert.Equal(t, http.StatusNotFound, n.get(first[0].typed(t, "topicmapdata")[xtm21Type]).StatusCode)
	assert.Equal(t, http.StatusNotFound, n.get(first[0].link(t, "self")).StatusCode)
}

func TestSnapshotsInTheBackgroundHoldNobodyUp(t *testing.T) {
	t.Parallel()
	n, w := watch(t, every(1))
	begun, finish := make(chan bool, 10), make(chan bool)
	w.snapshot = func(ctx context.Context) error {
		begun <- true
		<-finish
		return nil
	}
	n.mustPut("small", small("Oslo", "Oslo 1"))
	<-begun
	n.mustPut("small", small("Oslo", "Oslo 2"))
	assert.Contains(t, n.current("small"), "Oslo 2")
	select {
	case <-begun:
		t.Error("two snapshots at a time")
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	require.Eventually(t, func() bool { return len(n.feed("/topicmaps/small/snapshots").Entries) > 1 }, 10*time.Second, 5*time.Millisecond)
}

func TestCloseStopsASnapshotAndWaitsForIt(t *testing.T) {
	t.Parallel()
	n, w := watch(t, every(1))
	begun := make(chan bool)
	var done atomic.Bool
	w.snapshot = func(ctx context.Context) error {
		close(begun)
		<-ctx.Done() // fails the test by its timeout where Close does not stop it
		time.Sleep(50 * time.Millisecond)
		done.Store(true)
		return ctx.Err()
	}
	n.mustPut("small", small("Oslo", "Oslo 1"))
	<-begun
	n.Close()
	assert.True(t, done.Load(), "Close has waited")
	assert.NotContains(t, n.logs.String(), "level=ERROR", "to be stopped is no failure")
	n.Close() // once more does no harm
}

// Close may come while a request is being answered: what that leaves to do must
// not begin on a store that is about to be closed.
func TestNothingBeginsInTheBackgroundAfterClose(t *testing.T) {
	t.Parallel()
	n, w := watch(t, every(1))
	reached, goOn := make(chan bool), make(chan bool)
	w.publish = func() {
		close(reached)
		<-goOn
	}
	var begun atomic.Bool
	w.snapshot = func(context.Context) error {
		begun.Store(true)
		return nil
	}
	answered := make(chan answer)
	go func() { answered <- n.put("small", small("Oslo", "Oslo 1")) }()
	<-reached
	n.Close()
	close(goOn)
	assert.Equal(t, http.StatusOK, (<-answered).StatusCode)
	time.Sleep(100 * time.Millisecond)
	assert.False(t, begun.Load(), "a snapshot was begun after Close")
}

func TestSnapshotThatFailsIsLoggedAndTriedAgain(t *testing.T) {
	t.Parallel()
	n, w := watch(t, every(1))
	var failing atomic.Bool
	failing.Store(true)
	w.snapshot = func(context.Context) error {
		if failing.Load() {
			return errors.New("the disk is full")
		}
		return nil
	}
	n.mustPut("small", small("Oslo", "Oslo 1"))
	require.Eventually(t, func() bool { return len(n.logs.String()) > 0 && contains(n.logs.String(), "the disk is full") }, 10*time.Second, 5*time.Millisecond)
	failing.Store(false)
	n.mustPut("small", small("Oslo", "Oslo 2"))
	require.Eventually(t, func() bool { return len(n.feed("/topicmaps/small/snapshots").Entries) == 2 }, 10*time.Second, 5*time.Millisecond)
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
