package watch

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed statuspage.html
var statusPageHTML string

var statusPage = template.Must(template.New("status").Funcs(template.FuncMap{
	"at": func(t *time.Time) string {
		if t == nil {
			return "never"
		}
		return t.UTC().Format("2006-01-02 15:04:05Z")
	},
	"seconds": func(s *float64) string {
		if s == nil {
			return "?"
		}
		return time.Duration(*s * float64(time.Second)).Round(time.Second).String()
	},
	"time": func(t time.Time) string { return t.UTC().Format("15:04:05Z") },
}).Parse(statusPageHTML))

// Handler answers GET requests: /status, a page for people and JSON for
// programs that ask for it, /status.json, /healthz, /readyz and /metrics.
func (w *Watcher) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.Collector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	routes := http.NewServeMux()
	routes.HandleFunc("GET /{$}", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/status", http.StatusFound) })
	routes.HandleFunc("GET /status", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Vary", "Accept")
		w.serveStatus(r.Context(), rw, wantsJSON(r.Header.Values("Accept")))
	})
	routes.HandleFunc("GET /status.json", func(rw http.ResponseWriter, r *http.Request) { w.serveStatus(r.Context(), rw, true) })
	routes.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "ok") })
	routes.HandleFunc("GET /readyz", func(rw http.ResponseWriter, _ *http.Request) {
		if err := w.Ready(); err != nil {
			http.Error(rw, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(rw, "ready")
	})
	routes.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Cache-Control", "no-store")
		rw.Header().Set("X-Content-Type-Options", "nosniff")
		routes.ServeHTTP(rw, r)
	})
}

func (w *Watcher) serveStatus(ctx context.Context, rw http.ResponseWriter, asJSON bool) {
	all, err := w.Status(ctx)
	if err != nil {
		w.client.Logger.Error("the status cannot be read", "error", err)
		http.Error(rw, "the store cannot be read; the log says why", http.StatusServiceUnavailable)
		return
	}
	if asJSON {
		rw.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(rw)
		e.SetIndent("", "  ")
		_ = e.Encode(all) // who is gone need not know
		return
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	if err := statusPage.Execute(rw, map[string]any{"Sources": all, "Now": w.client.Now()}); err != nil {
		w.client.Logger.Debug("the status page was not written", "error", err)
	}
}

// wantsJSON reports whether JSON is asked for before HTML.
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
