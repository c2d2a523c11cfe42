package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/store"
)

// latency is added to each request by a proxy.
const latency = 50 * time.Millisecond

// BenchmarkLatency measures the additional time for catching up on many changes if each request takes 50 ms longer, and
// the number of requests. The documents of the feed must be requested one after the other, and include the fragments:
// the latency of these requests is the reference. Many are 1,000, and 10,000 if -topics is more than 50,000.
func BenchmarkLatency(b *testing.B) {
	changes := 1000
	if mapSize() > 50_000 {
		changes = 10_000
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
			waiting := latency.Seconds() * (float64(documents) + float64(fragments)/32)
			if long-short < least {
				least = long - short
				lacking = waiting
			}
			b.ReportMetric(short.Seconds(), "s/near")
			b.ReportMetric(long.Seconds(), "s/far")
			b.ReportMetric(float64(documents+fragments), "requests")
			b.ReportMetric(float64(changes), "changes")
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
	db, err := store.Open(b.Context(), store.Options{Dir: b.TempDir(), Indexes: ext.Indexes(), Logger: logger})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	transport := &http.Transport{Proxy: http.ProxyURL(at), MaxIdleConnsPerHost: 64}
	b.Cleanup(transport.CloseIdleConnections)
	f.Client, err = client.New(client.Config{Protocols: ext.Protocols(), Store: db, Logger: logger, HTTP: &http.Client{Transport: transport}})
	require.NoError(b, err)
	_, err = f.Subscribe(context.Background(), origin.url+"/topicmaps/"+collection, client.SubscribeOptions{})
	require.NoError(b, err)
	return f
}

// sync does a round and returns its duration and the number of requests.
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

// changesPerUpdate is the number of changed topics in a round of BenchmarkPartialUpdate.
const changesPerUpdate = 10

// BenchmarkPartialUpdate measures a job of cron: a process of tmshare-client that fetches and applies the fragments of
// ten changed topics, from its start to its exit, on a copy of 1,000 topics and on one of -topics, or with -million of
// a million, in turn. The cost must depend on the change only, so the ratio of the medians must be near 1. It also
// reports the peak of anonymous memory of these processes.
func BenchmarkPartialUpdate(b *testing.B) {
	program := build(b, "tmshare-client")
	n := mapSize()
	if *million {
		n = 1_000_000
	}
	large, small := newUpdated(b, program, n), newUpdated(b, program, 1000)
	for b.Loop() {
		for range 5 * rounds() {
			large.update()
			small.update()
		}
	}
	b.ReportMetric(0, "ns/op")
	l, s := median(large.took), median(small.took)
	b.ReportMetric(float64(l.Microseconds())/1000, "ms/large")
	b.ReportMetric(float64(s.Microseconds())/1000, "ms/1k-topics")
	b.ReportMetric(median(large.cpu).Seconds()*1000, "cpu-ms/large")
	b.ReportMetric(median(small.cpu).Seconds()*1000, "cpu-ms/1k-topics")
	b.ReportMetric(float64(n), "topics")
	ratio(b, l.Seconds(), s.Seconds(), "time-of-1k-topics")
	if large.peak > 0 { // /proc is available
		b.ReportMetric(large.peak/1e6, "peak-MB/large")
		b.ReportMetric(small.peak/1e6, "peak-MB/1k-topics")
	}
}

// updated is a server in a process of its own, and a copy that a program updates.
type updated struct {
	*node
	program, place string
	fragments      []string // of single topics; their names change
	round          int
	took, cpu      []time.Duration
	peak           float64 // bytes
}

func newUpdated(b *testing.B, program string, topics int) *updated {
	c := synthesize(b, topics)
	origin := importInto(b, c)
	require.NoError(b, os.Remove(c.file))
	u := &updated{node: serve(b, origin), program: program, place: newPlace(b)}
	u.client("subscribe", u.url+"/topicmaps/"+collection)
	u.client("sync")
	for k := range 100 {
		i := k * 7919 % topics
		name := fmt.Sprintf(">Topic %d<", i)
		si := fmt.Sprintf("%st/%d", synthetic.Base, i)
		_, fragment := u.do("GET", "/topics?si="+url.QueryEscape(si), nil, http.StatusOK, "Accept", "application/x-tm+xml;version=2.1")
		require.Contains(b, string(fragment), name)
		u.fragments = append(u.fragments, strings.ReplaceAll(string(fragment), name, fmt.Sprintf(">Topic %d, round %%d<", i)))
	}
	return u
}

// client runs the program and returns its duration, by the clock and in processor time, and its output.
func (u *updated) client(args ...string) (took, cpu time.Duration, output string) {
	u.b.Helper()
	cmd := exec.Command(u.program, append(args, at(u.place)...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	require.NoError(u.b, cmd.Start())
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		took = time.Since(begin)
		ended <- err
	}()
	samples := time.NewTicker(2 * time.Millisecond)
	defer samples.Stop()
	for {
		select {
		case err := <-ended:
			require.NoError(u.b, err, "%s", out.String())
			return took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), out.String()
		case <-samples.C:
			if args[0] == "sync" && len(u.fragments) > 0 { // not the clean start
				u.peak = max(u.peak, anonymous(cmd.Process.Pid))
			}
		}
	}
}

// update publishes changes and measures the round that brings them.
func (u *updated) update() {
	u.round++
	for i := range changesPerUpdate {
		document := fmt.Sprintf(u.fragments[(u.round*changesPerUpdate+i)%len(u.fragments)], u.round)
		u.do("POST", "/topics", strings.NewReader(document), http.StatusOK)
	}
	took, cpu, output := u.client("sync", "--json")
	require.Contains(u.b, output, fmt.Sprintf(`"applied": %d`, changesPerUpdate))
	u.took, u.cpu = append(u.took, took), append(u.cpu, cpu)
}
