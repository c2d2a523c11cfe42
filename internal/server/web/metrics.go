package web

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts requests and their answers for Prometheus.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	running  prometheus.Gauge
	counts   sync.Map // kind → *counted
	sent     prometheus.Counter
}

// NewMetrics returns metrics without requests.
func NewMetrics() *Metrics {
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tmshare_http_requests_total", Help: "Requests answered.",
		}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tmshare_http_request_duration_seconds", Help: "Time from the request's header to the end of the answer.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60, 300},
		}, []string{"route", "method"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tmshare_http_requests_running",
			Help: "Requests under way."}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{Name: "tmshare_http_sent_bytes_total",
			Help: "Bytes of the bodies of answers."}),
	}
}

// Register has a registry show the metrics.
func (m *Metrics) Register(r prometheus.Registerer) {
	r.MustRegister(m.requests, m.seconds, m.running, m.sent)
}

// observe counts a request that is answered.
func (m *Metrics) observe(x *Recorder, r *http.Request, took time.Duration) {
	route, method := x.route, r.Method
	if route == "" {
		route = "none"
	}
	if !slices.Contains(methods, method) {
		method = "other" // clients must not choose labels
	}
	c := m.counted(kind{route, method, x.status})
	c.requests.Inc()
	c.seconds.Observe(took.Seconds())
	m.sent.Add(float64(x.sent))
}

// kind holds the labels by which requests are counted.
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

func (m *Metrics) counted(k kind) *counted {
	if c, ok := m.counts.Load(k); ok {
		return c.(*counted)
	}
	c, _ := m.counts.LoadOrStore(k, &counted{
		m.requests.WithLabelValues(k.route, k.method, strconv.Itoa(k.status)), m.seconds.WithLabelValues(k.route, k.method),
	})
	return c.(*counted)
}
