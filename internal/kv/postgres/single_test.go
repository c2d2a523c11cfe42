package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// BenchmarkSinglePosts publishes one changed topic with each POST: in a large map, then in one of a thousand topics. It
// reports the ratios of the medians and of the slowest hundredths, and what the large map takes in the database: for each topic
// after the load, and for each POST after that.
func BenchmarkSinglePosts(b *testing.B) {
	const few = 1000
	many, posts := 100_000, 500
	if testing.Short() {
		many, posts = 3000, 50
	}
	s := pgserver.Start(b)
	small := measure(b, store.Options{Engine: pgserver.Open(b, s.Store(b))}, few)
	raw, err := pgx.Connect(b.Context(), s.URL())
	require.NoError(b, err)
	defer raw.Close(context.Background())
	size := func() (n int64) {
		require.NoError(b, raw.QueryRow(b.Context(), "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relname LIKE 'tm\\_%' AND relkind = 'r'").Scan(&n))
		return n
	}
	before := size()
	large := measure(b, store.Options{Engine: pgserver.Open(b, s.Store(b))}, many)
	loaded := size()
	var ofSmall, ofLarge []time.Duration
	timed := func(m *measured, took *[]time.Duration, topic, round int) {
		body := document(topic, 1, round)
		start := time.Now()
		m.post(body)
		*took = append(*took, time.Since(start))
	}
	var grown int64
	for b.Loop() {
		beginning := size()
		for range posts {
			round := len(ofLarge) + 1
			timed(large, &ofLarge, round*7919%many, round)
		}
		grown += size() - beginning
		for range posts {
			round := len(ofSmall) + 1
			timed(small, &ofSmall, round*7919%few, round)
		}
	}
	slices.Sort(ofSmall)
	slices.Sort(ofLarge)
	at := func(took []time.Duration, percent int) float64 { return took[len(took)*percent/100].Seconds() * 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(at(ofLarge, 50), "ms/p50")
	b.ReportMetric(at(ofLarge, 99), "ms/p99")
	b.ReportMetric(at(ofLarge, 50)/at(ofSmall, 50), "×p50-of-1k-topics")
	b.ReportMetric(at(ofLarge, 99)/at(ofSmall, 99), "×p99-of-1k-topics")
	b.ReportMetric(float64(loaded-before)/float64(many), "B-in-database/topic")
	b.ReportMetric(float64(grown)/float64(len(ofLarge)), "B-in-database/change")
}
