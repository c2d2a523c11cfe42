package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	x, r := newExchange(w, r, s.Patience)
	x.Header().Set("X-Content-Type-Options", "nosniff")
	x.Header().Set("X-Request-Id", x.id)
	s.metrics.running.Inc()
	defer func() {
		cause := recover()
		x.end(r, cause)
		s.metrics.running.Dec()
		took := time.Since(start)
		s.metrics.observe(x, r, took)
		s.logAccess(x, r, took)
		if x.truncated {
			panic(http.ErrAbortHandler) // net/http closes the connection
		}
	}()
	s.handler.ServeHTTP(x, r)
}

// end ends the answer as it should, also where the handler has panicked.
func (x *exchange) end(r *http.Request, cause any) {
	switch {
	case cause == nil && x.status == 0:
		x.WriteHeader(http.StatusOK)
	case cause == nil:
	case cause == http.ErrAbortHandler:
		x.truncated = true
	default:
		x.failure = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		if x.truncated = x.status != 0; !x.truncated {
			writeProblem(x, r, serverFailed())
		}
	}
}

// logAccess writes the one line of the log that each request has. It says
// nothing of headers, as they may have tokens in them.
func (s *Server) logAccess(x *exchange, r *http.Request, took time.Duration) {
	level := slog.LevelInfo
	switch {
	case x.failure != nil:
		level = slog.LevelError
	case x.route == "/healthz" || x.route == "/readyz" || x.route == "/metrics":
		level = slog.LevelDebug // they are asked for all the time
	}
	if !s.Logger.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", cut(r.Method)), slog.String("path", cut(r.URL.Path)), slog.Int("status", x.status),
		slog.Int64("bytes", x.sent), slog.Duration("took", took), slog.String("remote", r.RemoteAddr), slog.String("request", x.id),
	}
	if x.truncated {
		attrs = append(attrs, slog.Bool("truncated", true))
	}
	if x.failure != nil {
		attrs = append(attrs, slog.Any("error", x.failure))
	}
	s.Logger.LogAttrs(r.Context(), level, "request", attrs...)
}

// cut keeps lines of the log readable, whatever is asked for.
func cut(text string) string {
	const most = 1000
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
