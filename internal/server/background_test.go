package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
)

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

// A crash or a full disk may have kept a snapshot from being taken: the next
// start makes up for it, with what was published meanwhile.
func TestMissingSnapshotsAreTakenAtTheNextStart(t *testing.T) {
	t.Parallel()
	n, w := watch(t, every(2))
	n.publish("other", small())
	w.snapshot = func(context.Context) error { return errors.New("the disk is full") }
	n.mustPut("small", small("Oslo", "A", "Bergen", "B"))
	n.Close()
	w.snapshot = nil
	next, err := server.New(n.Config)
	require.NoError(t, err)
	defer next.Close()
	require.NoError(t, next.Start())
	require.Eventually(t, func() bool { return len(n.feed("/topicmaps/small/snapshots").Entries) == 2 }, 10*time.Second, 5*time.Millisecond)
	assert.Len(t, n.feed("/topicmaps/other/snapshots").Entries, 1, "it misses none")
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
	require.Eventually(t, func() bool { return strings.Contains(n.logs.String(), "the disk is full") }, 10*time.Second, 5*time.Millisecond)
	failing.Store(false)
	n.mustPut("small", small("Oslo", "Oslo 2"))
	require.Eventually(t, func() bool { return len(n.feed("/topicmaps/small/snapshots").Entries) == 2 }, 10*time.Second, 5*time.Millisecond)
}
