package server_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
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
	n.Idle()
	require.Equal(t, ids(first), taken(), "two changes are not enough")
	p := n.mustPut("small", small("Oslo", "Oslo 3"))
	n.Idle()
	e := n.feed("/topicmaps/small/snapshots").Entries
	assert.Equal(t, first[0].id(), e[1].id(), "the newest first")
	assert.Equal(t, p.LastChange, e[0].updated())
	assert.Equal(t, n.expected("small", small("Oslo", "Oslo 3")), canonical(t, n.mustGet(e[0].typed(t, "topicmapdata")[xtm21Type]).body, n.sp("small")))

	n.mustPut("small", small()) // one entry
	n.mustPut("small", small("Oslo", "A", "Bergen", "B", "Norway", "C"))
	n.Idle()
	assert.Equal(t, e[0].id(), taken()[1])
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
	assert.Empty(t, begun, "one snapshot at a time")
	close(finish)
	n.Idle()
	assert.Greater(t, len(n.feed("/topicmaps/small/snapshots").Entries), 1)
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
	n.Idle()
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
	testenv.Eventually(t, func() bool { return len(n.feed("/topicmaps/small/snapshots").Entries) == 2 })
	assert.Len(t, n.feed("/topicmaps/other/snapshots").Entries, 1, "it misses none")
}
