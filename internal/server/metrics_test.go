package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// sample returns the value of a time series in the text format of Prometheus, or
// fails; the labels are as there.
func sample(t testing.TB, text, series string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(text)
	require.NotNil(t, m, "no %s in\n%s", series, text)
	v, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	return v
}

func TestMetricsSayWhatPrometheusWants(t *testing.T) {
	t.Parallel()
	now := served.NewClock()
	n := startAt(t, now)
	c := n.Publish("small", served.Small())
	now.Advance(time.Minute)
	n.MustPut("small", served.Small("Oslo", "Christiania", "Bergen", "Bjørgvin"))
	now.Advance(time.Hour)
	n.Get("/topicmaps/small/fragments", "If-None-Match", "*")
	n.Get(strings.TrimSuffix(n.Feed("/topicmaps/small/fragments").Entries[0].Link(t, "self"), ".atom") + ".xtm21")
	n.Get("/nowhere/1")
	n.Get("/nowhere/2")
	n.Do("BREW", "/topicmaps", nil)
	n.lines("method=BREW")
	a := n.MustGet("/metrics")
	assert.Contains(t, a.Header.Get("Content-Type"), "text/plain")
	assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	text := string(a.Bytes)
	for series, want := range map[string]float64{
		`tmshare_http_requests_total{code="200",method="PUT",route="/topicmaps/{map}"}`:                     1,
		`tmshare_http_requests_total{code="304",method="GET",route="/topicmaps/{map}/fragments"}`:           1,
		`tmshare_http_requests_total{code="200",method="GET",route="/topicmaps/{map}/fragments/{id}{ext}"}`: 1,
		`tmshare_http_requests_total{code="404",method="GET",route="none"}`:                                 2,
		`tmshare_http_requests_total{code="501",method="other",route="none"}`:                               1,
		`tmshare_http_request_duration_seconds_count{method="PUT",route="/topicmaps/{map}"}`:                1,
		`tmshare_http_requests_running`:                                  1, // this one
		`tmshare_collection_topics{collection="small"}`:                  float64(c.Topics),
		`tmshare_collection_entries{collection="small"}`:                 float64(c.Head + 2),
		`tmshare_collection_published_entries_total{collection="small"}`: float64(c.Head + 2),
		`tmshare_collection_snapshots{collection="small"}`:               1,
		`tmshare_collection_snapshot_lag_entries{collection="small"}`:    2,
		`tmshare_collection_snapshot_age_seconds{collection="small"}`:    3660,
		`tmshare_collection_change_age_seconds{collection="small"}`:      3600,
	} {
		assert.InDelta(t, want, sample(t, text, series), 0.01, series)
	}
	assert.Positive(t, sample(t, text, `tmshare_store_bytes{part="snapshots"}`))
	sample(t, text, `tmshare_store_bytes{part="records"}`)
	assert.Positive(t, sample(t, text, `tmshare_http_sent_bytes_total`))
	assert.Positive(t, sample(t, text, `go_goroutines`))
	assert.NotContains(t, text, "nowhere", "whoever asks does not choose labels")
	assert.NotContains(t, text, "BREW")
}

func TestMetricsOfGuardedMapsAreNotForAll(t *testing.T) {
	t.Parallel()
	n := served.Guarded(t)
	text := string(n.MustGet("/metrics").Bytes)
	sample(t, text, `tmshare_collection_topics{collection="open"}`)
	assert.NotContains(t, text, "secret")
	w := httptest.NewRecorder()
	n.MetricsHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	sample(t, w.Body.String(), `tmshare_collection_topics{collection="secret"}`)
}

func TestMetricsElsewhereAreNotHere(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.MetricsElsewhere = true })
	assert.Equal(t, http.StatusNotFound, n.Get("/metrics").StatusCode)
}

// Two servers in one process have metrics of their own.
func TestMetricsAreTheServersOwn(t *testing.T) {
	t.Parallel()
	a, b := start(t), start(t)
	a.Get("/topicmaps")
	a.lines("path=/topicmaps ")
	sample(t, string(a.MustGet("/metrics").Bytes), `tmshare_http_requests_total{code="200",method="GET",route="/topicmaps"}`)
	assert.NotContains(t, string(b.MustGet("/metrics").Bytes), `route="/topicmaps"`)
}

func TestReadinessIsOfTheStoreAndEndsWithTheServer(t *testing.T) {
	t.Parallel()
	n := start(t)
	a := n.MustGet("/readyz")
	assert.Equal(t, "ready\n", string(a.Bytes))
	assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	n.Stopping()
	a = n.Get("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	assert.Contains(t, string(a.Bytes), "stopping")
	n.MustGet("/healthz")
	n.MustGet("/topicmaps")

	w := &failingOverview{}
	n = start(t, func(c *server.Config) {
		w.Store = c.Store
		c.Store = w
	})
	a = n.Get("/readyz", "X-Request-Id", "unready")
	assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	assert.NotContains(t, string(a.Bytes), "/var/lib")
	assert.Contains(t, n.lines("request=unready")[0], "/var/lib/tmshare is gone")
	assert.Contains(t, string(n.MustGet("/metrics").Bytes), "tmshare_http_requests_total", "what can be told is told")
	assert.Len(t, strings.Split(strings.TrimSpace(string(n.MustGet("/healthz").Bytes)), "\n"), 1)
}

type failingOverview struct{ server.Store }

func (failingOverview) Collections(context.Context) ([]store.Collection, error) {
	return nil, errors.New("/var/lib/tmshare is gone")
}

// A collection that follows a file has a metric that shows whether the file can be published.
func TestMetricsShowFilesThatAreBroken(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.WatchEvery = time.Millisecond })
	n.Publish("small", served.Small())
	const series = `tmshare_collection_file_broken{collection="small"}`
	assert.NotContains(t, string(n.MustGet("/metrics").Bytes), series)
	file := filepath.Join(t.TempDir(), "map.xtm")
	require.NoError(t, os.WriteFile(file, served.Small(), 0o600))
	n.Watch([]publish.Watched{{Collection: "small", File: file}})
	assert.Zero(t, sample(t, string(n.MustGet("/metrics").Bytes), series))
	require.NoError(t, os.Remove(file))
	n.lines("file not published")
	assert.Equal(t, 1.0, sample(t, string(n.MustGet("/metrics").Bytes), series))
}
