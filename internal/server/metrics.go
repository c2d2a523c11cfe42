package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// metrics are what Prometheus gets to see.
type metrics struct {
	http        *web.Metrics
	public, all http.Handler // without the collections that have read tokens, and with them
}

func newMetrics(s *Server) *metrics {
	m := &metrics{http: web.NewMetrics()}
	sizes := &cachedSizes{s: s}
	handler := func(shown func(collection string) bool) http.Handler {
		r := prometheus.NewRegistry()
		m.http.Register(r)
		r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &storeCollector{s, sizes, shown})
		r.MustRegister(s.Collectors...)
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tmshare_http_requests_waiting", Help: "Requests that wait for a change, as they prefer."}, func() float64 { return float64(s.waiting.Waiting()) }))
		return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, ErrorLog: metricsLog{s}})
	}
	m.public = handler(func(collection string) bool { return len(s.readers[collection]) == 0 })
	m.all = handler(func(string) bool { return true })
	return m
}

// publicMetrics does not show the collections that only some may read. It is for programs on this
// machine, and for those who may write: what a server does is nobody else's business.
func (s *Server) publicMetrics(w http.ResponseWriter, r *http.Request) error {
	if !web.IsLocal(r) && !s.writers.Holds(r) {
		return web.Problemf(http.StatusForbidden, "metrics are for programs on the server's own machine, and with a write token; --metrics-listen gives them an address of their own")
	}
	w.Header().Set("Cache-Control", "no-store")
	s.metrics.public.ServeHTTP(w, r)
	return nil
}

// MetricsHandler answers with the metrics of all collections, for a listener that
// is not open to all.
func (s *Server) MetricsHandler() http.Handler { return s.metrics.all }

// storeCollector reads the store when it is asked.
type storeCollector struct {
	s     *Server
	sizes *cachedSizes
	shown func(collection string) bool
}

func perCollection(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("tmshare_collection_"+name, help, []string{"collection"}, nil)
}

var (
	topicsDesc      = perCollection("topics", "Topics of the map.")
	entriesDesc     = perCollection("entries", "Entries of the fragments feed that are kept.")
	headDesc        = perCollection("head", "Sequence of the last entry of the fragments feed.")
	unchangedDesc   = perCollection("seconds_since_change", "Time since the last entry of the fragments feed.")
	snapshotsDesc   = perCollection("snapshots", "Snapshots that are kept.")
	snapshotAgeDesc = perCollection("snapshot_age_seconds", "Time since the last change in the newest snapshot.")
	snapshotLagDesc = perCollection("snapshot_lag_entries", "Entries that are later than the newest snapshot.")
	fileBrokenDesc  = perCollection("file_broken", "Whether the file that the collection follows cannot be published.")
	bytesDesc       = prometheus.NewDesc("tmshare_store_bytes", "Size of the store on disk.", []string{"part"}, nil)
)

// Describe implements [prometheus.Collector].
func (c *storeCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{topicsDesc, entriesDesc, headDesc, unchangedDesc, snapshotsDesc, snapshotAgeDesc, snapshotLagDesc, fileBrokenDesc, bytesDesc} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *storeCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, label string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, label)
	}
	if sizes, err := c.sizes.read(); err != nil {
		out <- prometheus.NewInvalidMetric(bytesDesc, err)
	} else {
		gauge(bytesDesc, float64(sizes.Records), "records")
		gauge(bytesDesc, float64(sizes.Snapshots), "snapshots")
	}
	all, err := c.s.Store.Collections(context.Background()) // a collector is given none
	if err != nil {
		out <- prometheus.NewInvalidMetric(headDesc, err)
	}
	now := c.s.Now()
	for i := range all {
		name := all[i].Name
		if !c.shown(name) {
			continue
		}
		var snapshots []store.Snapshot
		err := c.s.Store.View(context.Background(), name, func(v *store.View) error {
			all[i] = v.Collection // of one state with the snapshots
			var err error
			snapshots, err = v.Snapshots()
			return err
		})
		if err != nil {
			out <- prometheus.NewInvalidMetric(snapshotsDesc, err)
			continue
		}
		gauge(topicsDesc, float64(all[i].Topics), name)
		gauge(entriesDesc, float64(all[i].Head-all[i].Horizon), name)
		gauge(headDesc, float64(all[i].Head), name)
		gauge(unchangedDesc, now.Sub(all[i].Updated).Seconds(), name)
		gauge(snapshotsDesc, float64(len(snapshots)), name)
		if broken, follows := c.s.watcher.Broken(name); broken {
			gauge(fileBrokenDesc, 1, name)
		} else if follows {
			gauge(fileBrokenDesc, 0, name)
		}
		if len(snapshots) > 0 {
			gauge(snapshotAgeDesc, now.Sub(snapshots[0].Updated).Seconds(), name)
			gauge(snapshotLagDesc, float64(all[i].Head-snapshots[0].Seq), name)
		}
	}
}

// cachedSizes are the sizes of the store, which walks a folder to tell them.
type cachedSizes struct {
	s *Server

	mu   sync.Mutex
	last store.Sizes
	at   time.Time
}

const sizesFor = 10 * time.Second

func (c *cachedSizes) read() (store.Sizes, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < sizesFor {
		return c.last, nil
	}
	sizes, err := c.s.Store.Sizes()
	if err == nil {
		c.last, c.at = sizes, time.Now()
	}
	return sizes, err
}

// metricsLog takes what goes wrong while metrics are collected.
type metricsLog struct{ s *Server }

func (l metricsLog) Println(what ...any) { l.s.Logger.Error("metrics not complete", "error", what) }
