package e2e_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/tmdm"
)

// BenchmarkPartialUpdate measures a partial update of one topic, including all HTTP and commits, on a map of 5,972
// topics relative to one of 677. It prints the ratio of the medians: the cost of a sync depends on the changes, not on
// the size of the map.
func BenchmarkPartialUpdate(b *testing.B) {
	large := newAlternating(b, "mondial", realMap(b, "mondial.xtm.gz"))
	small := newAlternating(b, "gcl", realMap(b, "GCL-2-1.xtm"))
	var times [2][]time.Duration
	for b.Loop() {
		for i, a := range []*alternating{large, small} {
			times[i] = append(times[i], a.round(b))
		}
	}
	l, s := median(times[0]), median(times[1])
	b.ReportMetric(float64(l.Microseconds())/1000, "mondial-ms")
	b.ReportMetric(float64(s.Microseconds())/1000, "gcl-ms")
	b.ReportMetric(float64(l)/float64(s), "mondial/gcl")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// alternating is a server that publishes two versions of a map in turn, which
// differ in one topic, and a client.
type alternating struct {
	server   *server.Server
	client   *node
	name     string
	versions [2][]byte
	next     int
}

func newAlternating(b *testing.B, name string, doc []byte) *alternating {
	a := &alternating{server: startServer(b, server.Config{Lenient: true, Policy: upkeep.Policy{SnapshotEvery: 1 << 30}}), client: newClient(b), name: name}
	sp := importMap(b, a.server, name, doc)
	for i, value := range []string{"one", "other"} {
		tm := readXTM(b, doc, sp, true)
		leaf(tm).AddName(value, nil)
		a.versions[i] = writeXTM(b, tm, sp)
	}
	put(b, a.server, name, a.versions[1])
	_, err := a.client.Subscribe(context.Background(), a.server.BaseURL+"/topicmaps/"+name, client.SubscribeOptions{})
	require.NoError(b, err)
	_, err = a.client.Sync(context.Background(), name)
	require.NoError(b, err)
	return a
}

// leaf returns a topic with few associations, so that the comparison is of the maps, not of two topics.
func leaf(tm *tmdm.TopicMap) *tmdm.Topic {
	for t := range tm.Topics() {
		if len(t.RolesPlayed()) == 3 {
			return t
		}
	}
	panic("no topic plays three roles")
}

// round publishes a change of one topic and returns the duration of the sync.
func (a *alternating) round(b *testing.B) time.Duration {
	require.Equal(b, 1, entries(put(b, a.server, a.name, a.versions[a.next%2])))
	a.next++
	start := time.Now()
	r, err := a.client.Sync(context.Background(), a.name)
	took := time.Since(start)
	require.NoError(b, err)
	require.Equal(b, 1, r.Applied)
	return took
}
