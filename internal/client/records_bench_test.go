package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// recordsBench is a server with many topics, and a client.
type recordsBench struct {
	tb       testing.TB
	url      string // of the collection
	sp       string
	server   *server.Server
	client   *client.Client
	db       *store.DB
	feeds    atomic.Int64 // requested documents of feeds
	records  atomic.Int64
	versions int
}

func newRecordsBench(tb testing.TB, count int) *recordsBench {
	n := &recordsBench{tb: tb}
	open := func() *store.DB {
		db, err := store.Open(tb.Context(), store.Options{Dir: tb.TempDir(), Logger: silent})
		require.NoError(tb, err)
		tb.Cleanup(func() { db.Close() })
		return db
	}
	published := open()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isRecord(r) || isFragment(r):
			n.records.Add(1)
		default:
			n.feeds.Add(1)
		}
		n.server.ServeHTTP(w, r)
	}))
	tb.Cleanup(h.Close)
	var err error
	n.server, err = server.New(server.Config{Parts: ext.Parts(), Store: published, BaseURL: h.URL, OnLoopback: true, Logger: silent, Policy: upkeep.Policy{SnapshotEvery: 1 << 30}})
	require.NoError(tb, err)
	tb.Cleanup(n.server.Close)
	n.url, n.sp = h.URL+"/topicmaps/m", server.DefaultPrefix(h.URL, "m")
	_, err = n.server.Import(context.Background(), store.Collection{Name: "m", SP: n.sp}, strings.NewReader(doc(topics(count, "v0")...)), "m")
	require.NoError(tb, err)
	n.db = open()
	n.client, err = client.New(client.Config{Protocols: ext.Protocols(), Store: n.db, Logger: silent})
	require.NoError(tb, err)
	return n
}

// inStep makes a source that follows the records hold them all, without fetching each.
func (n *recordsBench) inStep(form string) {
	tb, ctx := n.tb, context.Background()
	require.Eventually(tb, func() bool { // the lists of many resources are made in the background
		a, err := http.Get(n.url + form)
		require.NoError(tb, err)
		require.NoError(tb, a.Body.Close())
		return a.StatusCode == http.StatusOK
	}, 10*time.Minute, 100*time.Millisecond)
	s, err := n.client.Subscribe(ctx, n.url+form, client.SubscribeOptions{Name: "m"})
	require.NoError(tb, err)
	fetcher, err := fetch.Fetcher{Logger: silent}.WithDefaults().From(s.FragmentsFeed)
	require.NoError(tb, err)
	source, err := follow.ProtocolNamed(ext.Protocols(), string(s.Protocol)).Open(&follow.Access{
		Fetcher: fetcher, URL: s.FragmentsFeed, Temp: tb.TempDir(), Subjects: true,
		Check: func(string, string) error { return nil },
	})
	require.NoError(tb, err)
	news, err := source.Delta(ctx, s.FragmentsFeed, follow.Look{}, nothing{})
	require.NoError(tb, err)
	a, err := http.Get(n.url + "/snapshots/current.xtm21")
	require.NoError(tb, err)
	defer a.Body.Close()
	m, err := fragment.ReadSnapshot(ctx, a.Body, xtm.Options{Base: tmdm.Locator(n.sp)})
	require.NoError(tb, err)
	require.NoError(tb, n.db.StageSource(ctx, "m", fragment.Records(m), store.Mark{Updated: news.Mark.Updated}, nil))
	mark, err := json.Marshal(news.Mark)
	require.NoError(tb, err)
	var all []follow.Record
	for r, err := range news.Records(ctx) {
		require.NoError(tb, err)
		all = append(all, r)
	}
	require.NoError(tb, news.Close())
	for some := range slices.Chunk(all, 5000) {
		require.NoError(tb, n.db.ApplyEntries(ctx, "m", func(a *store.Applying) error {
			a.Records = mark
			for _, r := range some {
				if err := a.Hold(store.Held{ID: r.ID, Updated: r.Updated, TopicSI: tmdm.Locator(r.TopicSI[0]), Named: true}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	kept, err := n.db.Subscriptions(ctx)
	require.NoError(tb, err)
	require.NoError(tb, n.db.SwitchSource(ctx, "m", kept[0].Staging.Generation, ""))
	r, err := n.client.Sync(ctx, "m")
	require.NoError(tb, err)
	require.Equal(tb, client.Round{Name: "m", Mark: r.Mark}, *r, "there is nothing to do")
	n.asked()
}

// nothing is an empty value.
type nothing struct{}

func (nothing) Versions(context.Context, []string) (map[string]time.Time, error) { return nil, nil }
func (nothing) Each(context.Context, func(string) error) error                   { return nil }

// asked returns the number of requests since its last call.
func (n *recordsBench) asked() (feeds, records int64) { return n.feeds.Swap(0), n.records.Swap(0) }

// change publishes another version of ten topics.
func (n *recordsBench) change() {
	n.versions++
	r := httptest.NewRequest(http.MethodPost, n.url+"/topics", strings.NewReader(doc(topics(10, fmt.Sprint("v", n.versions))...)))
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	n.server.ServeHTTP(w, r)
	require.Equal(n.tb, http.StatusOK, w.Code, "%s", w.Body)
}

// Of ten changed records, ten are fetched, for any number of others; and of an archived feed only the last documents
// are read.
func TestPartialUpdateOfRecordsAsksForTheChangeAlone(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	sizes := []int{100, 1000}
	for _, form := range forms {
		for _, size := range sizes {
			n := newRecordsBench(t, size)
			n.inStep(form)
			for range 3 {
				n.change()
				r, err := n.client.Sync(context.Background(), "m")
				require.NoError(t, err)
				assert.Equal(t, 10, r.Applied)
				feeds, records := n.asked()
				assert.EqualValues(t, 10, records, "%s of %d", form, size)
				assert.LessOrEqual(t, feeds, int64(2), "%s of %d", form, size)
			}
		}
	}
}

// BenchmarkPartialUpdateOfRecords measures a round with ten changed records of 1,000 and of 100,000: "×time-of-1000" is
// their ratio.
func BenchmarkPartialUpdateOfRecords(b *testing.B) {
	for _, form := range []string{archived, lists} {
		b.Run(path.Base(form), func(b *testing.B) { benchmarkPartialUpdate(b, form) })
	}
}

func benchmarkPartialUpdate(b *testing.B, form string) {
	took := map[int]time.Duration{} // the medians: during the first rounds the database still works on the load
	sizes := []int{1000, 100_000}
	if testing.Short() {
		sizes[1] = 5000
	}
	const rounds = 20
	for _, size := range sizes {
		n := newRecordsBench(b, size)
		n.inStep(form)
		var all []time.Duration
		for range rounds {
			n.change()
			begin := time.Now()
			r, err := n.client.Sync(context.Background(), "m")
			all = append(all, time.Since(begin))
			require.NoError(b, err)
			require.Equal(b, 10, r.Applied)
		}
		slices.Sort(all)
		took[size] = all[rounds/2]
	}
	for range b.N { //nolint:revive // measured above
	}
	for _, size := range sizes {
		b.ReportMetric(float64(took[size].Microseconds())/1000, fmt.Sprintf("ms/round-of-%d", size))
	}
	b.ReportMetric(float64(took[sizes[1]])/float64(took[sizes[0]]), "×time-of-1000")
}

// BenchmarkBaselineOfRecords measures the first round of a source of 5,000 records, by their feed and by the lists and
// packages of ResourceSync, relative to a source that follows the fragments feed of the same map from its beginning.
func BenchmarkBaselineOfRecords(b *testing.B) {
	const size = 5000
	took := map[string]time.Duration{}
	n := newRecordsBench(b, size)
	ctx := context.Background()
	for range b.N {
		for what, at := range map[string]string{"records": archived, "lists": lists, "fragments": "/fragments"} {
			s, err := n.client.Subscribe(ctx, n.url+at, client.SubscribeOptions{Name: what})
			require.NoError(b, err)
			require.NoError(b, n.db.UpdateSubscription(ctx, s.Name, func(s *store.Subscription) { s.SnapshotsFeed = "" }))
			begin := time.Now()
			r, err := n.client.Sync(ctx, what)
			took[what] += time.Since(begin)
			require.NoError(b, err)
			require.GreaterOrEqual(b, r.Applied, size)
			require.NoError(b, n.client.Unsubscribe(ctx, what))
		}
	}
	for what, t := range took {
		b.ReportMetric(float64(b.N*size)/t.Seconds(), what+"/s")
	}
	b.ReportMetric(float64(took["records"])/float64(took["fragments"]), "×records-beside-fragments")
	b.ReportMetric(float64(took["lists"])/float64(took["fragments"]), "×lists-beside-fragments")
}
