package server

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tmshare/tmshare/internal/store"
)

// metrics are what Prometheus gets to see.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	running  prometheus.Gauge
	counts   sync.Map // kind → *counted
	sent     prometheus.Counter

	public, all http.Handler // without the collections that have read tokens, and with them
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tmshare_http_requests_total", Help: "Requests answered.",
		}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tmshare_http_request_duration_seconds", Help: "Time from the request's header to the end of the answer.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60, 300},
		}, []string{"route", "method"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tmshare_http_requests_running", Help: "Requests under way."}),
		sent:    prometheus.NewCounter(prometheus.CounterOpts{Name: "tmshare_http_sent_bytes_total", Help: "Bytes of the bodies of answers."}),
	}
	sizes := &cachedSizes{s: s}
	handler := func(shown func(collection string) bool) http.Handler {
		r := prometheus.NewRegistry()
		r.MustRegister(m.requests, m.seconds, m.running, m.sent,
			collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
			&storeCollector{s, sizes, shown})
		return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, ErrorLog: metricsLog{s}})
	}
	m.public = handler(func(collection string) bool { return len(s.readers[collection]) == 0 })
	m.all = handler(func(string) bool { return true })
	return m
}

// observe counts a request that is answered.
func (m *metrics) observe(x *exchange, r *http.Request, took time.Duration) {
	route, method := x.route, r.Method
	if route == "" {
		route = "none"
	}
	if !slices.Contains(methods, method) {
		method = "other" // whoever asks must not choose our labels
	}
	c := m.counted(kind{route, method, x.status})
	c.requests.Inc()
	c.seconds.Observe(took.Seconds())
	m.sent.Add(float64(x.sent))
}

// kind is what requests are counted by.
type kind struct {
	route, method string
	status        int
}

// counted are the metrics of one kind. To find them by their labels costs more than
// to count.
type counted struct {
	requests prometheus.Counter
	seconds  prometheus.Observer
}

func (m *metrics) counted(k kind) *counted {
	if c, ok := m.counts.Load(k); ok {
		return c.(*counted)
	}
	c, _ := m.counts.LoadOrStore(k, &counted{
		m.requests.WithLabelValues(k.route, k.method, strconv.Itoa(k.status)), m.seconds.WithLabelValues(k.route, k.method),
	})
	return c.(*counted)
}

// publicMetrics does not show the collections that only some may read.
func (s *Server) publicMetrics(w http.ResponseWriter, r *http.Request) error {
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
	all, err := c.s.Store.Collections()
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
		err := c.s.Store.View(name, func(v *store.View) error {
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
		if broken, follows := c.s.watched.of(name); broken {
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
