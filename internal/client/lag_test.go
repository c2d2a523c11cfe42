package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/client/watch"
)

// The lag of a copy counts from when it was last in step, also after rounds that have failed, and however long the source
// has not changed: for commands, for a watcher with its metrics and pages, and in the history.
func TestLagCountsFromTheLastGoodRound(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.Create("egov", doc(topic("oslo", "Oslo")))
	begin := time.Now()
	now := begin
	s := newSubscriber(t, func(c *client.Config) { c.Tries, c.Now = 1, func() time.Time { return now } })
	_, err := s.Subscribe(t.Context(), o.FeedURL("egov"), client.SubscribeOptions{})
	require.NoError(t, err)
	s.sync()
	now = begin.Add(10 * 24 * time.Hour)
	s.sync()
	o.BreakWith(outOfOrder)
	good := now
	for _, failing := range []time.Duration{10 * time.Minute, 20 * time.Minute} {
		now = good.Add(failing)
		_, err := s.syncFails()
		require.Error(t, err)
	}
	now = good.Add(time.Hour)
	all, err := status.Named(t.Context(), s.db, now)
	require.NoError(t, err)
	require.Equal(t, status.RoundFailed, all[0].State)
	require.NotNil(t, all[0].Lag)
	assert.InDelta(t, 3600, *all[0].Lag, 1)
	require.NoError(t, status.AddHistory(t.Context(), s.db, all))
	last := all[0].History[len(all[0].History)-1]
	assert.InDelta(t, 1200, *last.Lag, 1, "as of that round")

	w, err := watch.New(s.Client, watch.Options{Store: s.db, Interval: time.Hour})
	require.NoError(t, err)
	watched, err := w.Status(t.Context())
	require.NoError(t, err)
	assert.Equal(t, *all[0].Lag, *watched[0].Lag, "metrics and pages")

	o.BreakWith(nil)
	s.sync()
	all, err = status.Named(t.Context(), s.db, now)
	require.NoError(t, err)
	assert.Zero(t, *all[0].Lag)
}
