package bench_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
)

// The interval of commits in BenchmarkPush, and its duration, which is short with -short.
const (
	pushEvery = 10 * time.Millisecond
	pushFor   = 5 * time.Second
)

// BenchmarkPush measures the time from a commit of one topic at a server to its commit at a follower that waits for
// changes, over the loopback interface, with 100 commits a second. Server and follower share the process. The reference
// is the interval between two commits: a much longer time shows that the follower lags behind.
func BenchmarkPush(b *testing.B) {
	silent := slog.New(slog.DiscardHandler)
	published, err := openStore(b.Context(), importInto(b, synthesize(b, 1000)), silent)
	require.NoError(b, err)
	defer published.Close()
	h := httptest.NewServer(nil)
	defer h.Close()
	s, err := server.New(server.Config{Store: published, BaseURL: h.URL, OnLoopback: true, Logger: silent, MaxWaiting: 10, Policy: upkeep.Policy{SnapshotEvery: 1 << 30}})
	require.NoError(b, err)
	defer s.Close()
	h.Config.Handler = s

	db, err := openStore(b.Context(), newPlace(b), silent)
	require.NoError(b, err)
	defer db.Close()
	c, err := client.New(client.Config{Store: db, Logger: silent, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}})
	require.NoError(b, err)
	_, err = c.Subscribe(b.Context(), h.URL+"/topicmaps/"+collection, client.SubscribeOptions{})
	require.NoError(b, err)
	_, err = c.Sync(b.Context(), collection)
	require.NoError(b, err)

	var mu sync.Mutex
	type commit struct{ entry, done time.Time }
	var pending []commit
	var took []time.Duration
	w, err := watch.New(c, watch.Options{Store: db, Interval: time.Hour, Done: func(_ string, r *client.Round, err error) {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		for err == nil && len(pending) > 0 && !pending[0].entry.After(r.Mark) {
			took = append(took, now.Sub(pending[0].done))
			pending = pending[1:]
		}
	}})
	require.NoError(b, err)
	ctx, end := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	time.Sleep(time.Second) // until it waits

	length := pushFor
	if testing.Short() {
		length /= 10
	}
	round := 0
	for b.Loop() {
		ticker := time.NewTicker(pushEvery)
		for begin := time.Now(); time.Since(begin) < length; <-ticker.C {
			round++
			entry := rename(b, published, fmt.Sprintf("%st/%d", synthetic.Base, round*7919%1000), round)
			mu.Lock()
			pending = append(pending, commit{entry, time.Now()})
			mu.Unlock()
		}
		ticker.Stop()
	}
	require.Eventually(b, func() bool { mu.Lock(); defer mu.Unlock(); return len(pending) == 0 }, 10*time.Second, time.Millisecond)
	end()
	require.NoError(b, <-ended)
	slices.Sort(took)
	require.Len(b, took, round)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/median")
	p99 := took[len(took)*99/100]
	b.ReportMetric(float64(p99.Microseconds())/1000, "ms/p99")
	b.ReportMetric(float64(round)/b.Elapsed().Seconds(), "commits/s")
	ratio(b, p99.Seconds(), pushEvery.Seconds(), "interval-of-commits")
}
