package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tmshare/tmshare/internal/server/web"
)

// metrics are the metrics for Prometheus.
type metrics struct {
	http        *web.Metrics
	public, all http.Handler // without the collections that have read tokens, and with them
}

func newMetrics(s *Server) *metrics {
	m := &metrics{http: web.NewMetrics()}
	sizes := &sizeGauges{Sizes: s.Store.Sizes}
	handler := func(shown func(collection string) bool) http.Handler {
		r := prometheus.NewRegistry()
		m.http.Register(r)
		r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
			&CollectionGauges{Store: s.Store, Sizes: sizes, Now: s.Now, Broken: s.watcher.Broken, Shown: shown})
		r.MustRegister(s.Collectors...)
		for _, p := range s.parts {
			r.MustRegister(p.Metrics...)
		}
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tmshare_http_requests_waiting",
			Help: "Requests that wait for a change, as they prefer."}, func() float64 {
			return float64(s.waiting.Waiting())
		}))
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "tmshare_wrong_tokens_total",
			Help: "Wrong tokens that were given, in requests and at the form to sign in."}, func() float64 {
			return float64(s.Guesses.Tried())
		}))
		return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, ErrorLog: metricsLog{s}})
	}
	m.public = handler(func(collection string) bool { return len(s.readers[collection]) == 0 })
	m.all = handler(func(string) bool { return true })
	return m
}

// publicMetrics omits the collections that need a token. It serves programs on this machine, and clients that may
// write, because others have no need for it.
func (s *Server) publicMetrics(w http.ResponseWriter, r *http.Request) error {
	if !web.IsLocal(r) && !s.Writers.Holds(r) {
		return web.Problemf(http.StatusForbidden,
			"metrics are for programs on the server's own machine, and with a write token; --metrics-listen gives them an "+
				"address of their own")
	}
	w.Header().Set("Cache-Control", "no-store")
	s.metrics.public.ServeHTTP(w, r)
	return nil
}

// MetricsHandler answers with the metrics of all collections, for a listener that
// is not open to all.
func (s *Server) MetricsHandler() http.Handler { return s.metrics.all }

// metricsLog logs errors of collecting metrics.
type metricsLog struct{ s *Server }

func (l metricsLog) Println(what ...any) { l.s.Logger.Error("metrics not complete", "error", what) }
