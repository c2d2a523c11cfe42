package bench_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
)

// latency is what a proxy adds to each request.
const latency = 50 * time.Millisecond

// BenchmarkLatency measures how much longer it takes to catch up on many changes
// where each request takes 50 ms longer. The documents of the feed must be asked for
// one after the other, and of the fragments 32 are under way at a time: what they
// wait for if nothing is lost is the reference. Many are 1,000, and 5,000 where
// -topics is more than 50,000.
func BenchmarkLatency(b *testing.B) {
	changes := 1000
	if mapSize() > 50_000 {
		changes = 5000
	}
	c := synthesize(b, changes)
	origin := serve(b, importInto(b, c))
	b.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	original, err := os.ReadFile(c.file)
	require.NoError(b, err)
	near, far := newFollower(b, origin, 0), newFollower(b, origin, latency)
	near.sync(b)
	far.sync(b)
	least := never
	var lacking float64
	round := 0
	for b.Loop() {
		for range rounds() {
			round++
			changed := strings.ReplaceAll(string(original), ">Topic ", fmt.Sprintf(">Round %d, topic ", round))
			origin.do("PUT", "", strings.NewReader(changed), http.StatusOK)
			short, _, _ := near.sync(b)
			long, documents, fragments := far.sync(b)
			require.GreaterOrEqual(b, fragments, int64(changes))
			waiting := latency.Seconds() * (float64(documents) + float64(fragments)/32)
			if long-short < least {
				least = long - short
				lacking = waiting
			}
			b.ReportMetric(short.Seconds(), "s/near")
			b.ReportMetric(long.Seconds(), "s/far")
			b.ReportMetric(float64(documents), "documents")
			b.ReportMetric(float64(fragments), "fragments")
		}
	}
	b.ReportMetric(0, "ns/op")
	ratio(b, least.Seconds(), lacking, "latency-of-requests")
}

// follower is a client that reaches a server through a proxy.
type follower struct {
	*client.Client
	documents, fragments atomic.Int64 // requests
}

func newFollower(b *testing.B, origin *node, delay time.Duration) *follower {
	f := &follower{}
	forward := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/fragments/") && strings.Contains(r.URL.Path, ".xtm") {
			f.fragments.Add(1)
		} else {
			f.documents.Add(1)
		}
		time.Sleep(delay)
		forward.ServeHTTP(w, r)
	}))
	b.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	require.NoError(b, err)
	logger := slog.New(slog.DiscardHandler)
	db, err := store.Open(b.Context(), store.Options{Dir: b.TempDir(), Logger: logger})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	transport := &http.Transport{Proxy: http.ProxyURL(at), MaxIdleConnsPerHost: 64}
	b.Cleanup(transport.CloseIdleConnections)
	f.Client, err = client.New(client.Config{Store: db, Logger: logger, HTTP: &http.Client{Transport: transport}})
	require.NoError(b, err)
	_, err = f.Subscribe(context.Background(), origin.url+"/topicmaps/"+collection, client.SubscribeOptions{})
	require.NoError(b, err)
	return f
}

// sync does a round and returns what it takes, and how many requests.
func (f *follower) sync(b *testing.B) (took time.Duration, documents, fragments int64) {
	f.documents.Store(0)
	f.fragments.Store(0)
	begin := time.Now()
	r, err := f.Sync(context.Background(), collection)
	took = time.Since(begin)
	require.NoError(b, err)
	require.Zero(b, r.Quarantined)
	return took, f.documents.Load(), f.fragments.Load()
}
