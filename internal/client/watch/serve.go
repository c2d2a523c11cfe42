package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tmshare/tmshare/internal/client/status"
)

// Part is the part that an extension adds to a watcher's pages. Nil fields add nothing.
type Part struct {
	// Routes adds addresses for clients that may see everything that the node publishes and follows.
	Routes func(*http.ServeMux)
	// Run works in the background while the watcher does, until its context ends.
	Run func(context.Context, *slog.Logger)
	// Metrics are shown with those of the watcher.
	Metrics []prometheus.Collector
	// Status answers requests for the status that do not accept JSON.
	Status http.HandlerFunc
}

// Handler answers GET requests: /status, /status.json, /healthz, /readyz, /metrics, and the addresses of parts.
func (w *Watcher) Handler(parts ...*Part) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.Collector(), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tmshare_store_free_bytes",
		Help: "Space that is left on the disk of the data folder."}, func() float64 {
		sizes, err := w.Store.Sizes()
		if err != nil {
			return math.NaN() // the value of Prometheus for unknown
		}
		return float64(sizes.Free)
	}))
	for _, p := range parts {
		registry.MustRegister(p.Metrics...)
	}
	for reason := range w.Store.Refusals() {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "tmshare_store_refuses_changes",
			Help:        "Whether nothing is written, as the data folder is damaged, was moved, or its disk is full.",
			ConstLabels: prometheus.Labels{"reason": reason},
		}, func() float64 {
			if w.Store.Refusals()[reason] {
				return 1
			}
			return 0
		}))
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /{$}", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "/status", http.StatusFound)
	})
	w.AddStatus(routes, parts...)
	routes.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "ok") })
	routes.HandleFunc("GET /readyz", func(rw http.ResponseWriter, _ *http.Request) {
		if err := w.Ready(); err != nil {
			http.Error(rw, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(rw, "ready")
	})
	routes.Handle("GET /metrics",
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	return plain(routes.ServeHTTP)
}

// AddStatus adds /status, /status.json and the addresses of parts to routes. They are for clients that may see
// everything that the node follows.
func (w *Watcher) AddStatus(routes *http.ServeMux, parts ...*Part) {
	asJSON := func(rw http.ResponseWriter, r *http.Request) { w.serveStatus(r.Context(), rw) }
	other := http.HandlerFunc(asJSON)
	for _, p := range parts {
		if p.Routes != nil {
			p.Routes(routes)
		}
		if p.Status != nil {
			other = p.Status
		}
	}
	routes.Handle("GET /status", plain(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Vary", "Accept")
		if wantsJSON(r.Header.Values("Accept")) {
			asJSON(rw, r)
			return
		}
		other(rw, r)
	}))
	routes.Handle("GET /status.json", plain(asJSON))
}

// Watched returns the observations of a subscription; nil if it is not followed.
func (w *Watcher) Watched(name string) *status.Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.followers[name]
	if f == nil {
		return nil
	}
	seen := f.all()
	return &seen
}

// plain makes the answers of h uncacheable, and prevents guesses of their type.
func plain(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Cache-Control", "no-store")
		rw.Header().Set("X-Content-Type-Options", "nosniff")
		h(rw, r)
	})
}

func (w *Watcher) unreadable(rw http.ResponseWriter, err error) {
	w.Client.Logger.Error("the status cannot be read", "error", err)
	http.Error(rw, "the store cannot be read; the log says why", http.StatusServiceUnavailable)
}

func writeJSON(rw http.ResponseWriter, value any) {
	rw.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(rw)
	e.SetIndent("", "  ")
	_ = e.Encode(value) // the client has gone: nothing to report
}

func (w *Watcher) serveStatus(ctx context.Context, rw http.ResponseWriter) {
	all, err := w.Status(ctx)
	if err != nil {
		w.unreadable(rw, err)
		return
	}
	writeJSON(rw, all)
}

// wantsJSON reports whether a request prefers JSON to HTML.
func wantsJSON(accept []string) bool {
	best := map[string]float64{}
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			q, _ = strconv.ParseFloat(text, 64)
		}
		best[kind] = max(best[kind], q)
	}
	return best["application/json"] > max(best["text/html"], best["application/xhtml+xml"])
}
