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

	"github.com/tmshare/tmshare/internal/client/status"
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
// programs that ask for it, /status.json, /node.json, /healthz, /readyz and /metrics.
func (w *Watcher) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.Collector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	routes := http.NewServeMux()
	routes.HandleFunc("GET /{$}", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/status", http.StatusFound) })
	w.AddStatus(routes)
	routes.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "ok") })
	routes.HandleFunc("GET /readyz", func(rw http.ResponseWriter, _ *http.Request) {
		if err := w.Ready(); err != nil {
			http.Error(rw, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(rw, "ready")
	})
	routes.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	return plain(routes.ServeHTTP)
}

// AddStatus adds /status, /status.json and /node.json to routes. They are for whoever may see all that the node
// publishes and follows.
func (w *Watcher) AddStatus(routes *http.ServeMux) {
	routes.Handle("GET /status", plain(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Vary", "Accept")
		w.serveStatus(r.Context(), rw, wantsJSON(r.Header.Values("Accept")))
	}))
	routes.Handle("GET /status.json", plain(func(rw http.ResponseWriter, r *http.Request) { w.serveStatus(r.Context(), rw, true) }))
	routes.Handle("GET /node.json", plain(func(rw http.ResponseWriter, r *http.Request) {
		n, err := status.OfNode(r.Context(), w.Store, w.client.Now())
		if err != nil {
			w.unreadable(rw, err)
			return
		}
		writeJSON(rw, n)
	}))
}

// plain lets h answer with what is as of now, and is what it says it is.
func plain(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Cache-Control", "no-store")
		rw.Header().Set("X-Content-Type-Options", "nosniff")
		h(rw, r)
	})
}

func (w *Watcher) unreadable(rw http.ResponseWriter, err error) {
	w.client.Logger.Error("the status cannot be read", "error", err)
	http.Error(rw, "the store cannot be read; the log says why", http.StatusServiceUnavailable)
}

func writeJSON(rw http.ResponseWriter, value any) {
	rw.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(rw)
	e.SetIndent("", "  ")
	_ = e.Encode(value) // who is gone need not know
}

func (w *Watcher) serveStatus(ctx context.Context, rw http.ResponseWriter, asJSON bool) {
	all, err := w.Status(ctx)
	if err != nil {
		w.unreadable(rw, err)
		return
	}
	if asJSON {
		writeJSON(rw, all)
		return
	}
	n, err := status.OfNode(ctx, w.Store, w.client.Now())
	if err != nil {
		w.unreadable(rw, err)
		return
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	if err := statusPage.Execute(rw, map[string]any{"Sources": all, "Node": n, "Now": w.client.Now()}); err != nil {
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
