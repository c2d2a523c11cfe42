package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Handler answers a request or returns the error to answer with.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Front handles each request first: it assigns an id, applies time limits to the client, turns errors into answers,
// logs and counts.
type Front struct {
	Logger            *slog.Logger
	Metrics           *Metrics
	SlowClientTimeout time.Duration // time limit for a client to send, or take, 64 KiB
	// requests that take longer, without waiting for a change, are logged as warnings; 0: none
	SlowRequest time.Duration

	// trustedProxies are the addresses of proxies, besides those of this machine, whose X-Forwarded-For the log uses
	// for the client's address.
	TrustedProxies []netip.Prefix

	// explain returns the answer for an error, and whether the server caused it.
	Explain func(*http.Request, error) (answer Described, serverFault bool)

	// ShowProblem answers browsers with a page about a problem, and reports whether it did. It may be nil.
	ShowProblem func(http.ResponseWriter, *http.Request, *Problem) bool

	OwnHeaders []string // headers of answers, besides those of HTTP, that errors lack
	Echo       Echo
	Quiet      []string // frequent routes, logged for debugging only
}

// record calls next with a request, and records the result.
func (f *Front) record(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	start := time.Now()
	x, r := newRecorder(w, r, f.SlowClientTimeout)
	r = f.Echo.take(x, r)
	x.firstHeaders(r)
	f.Metrics.running.Inc()
	defer func() {
		f.end(x, r, recover())
		f.Metrics.running.Dec()
		took := time.Since(start)
		f.Metrics.observe(x, r, took-x.Waited)
		f.logAccess(x, r, took, took-x.Waited)
		if x.truncated {
			panic(http.ErrAbortHandler) // net/http closes the connection
		}
	}()
	next(x, r)
}

// answer turns h into an http.Handler: the only place where errors become
// answers. route names the URLs that it is for.
func (f *Front) answer(route string, h Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := RecorderOf(r)
		x.route = route
		err := x.call(h, w, r)
		if err == nil {
			return
		}
		p, serverFault := f.Explain(r, err)
		if serverFault {
			if x.gone || r.Context().Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
				panic(http.ErrAbortHandler) // the client has gone; an empty answer would have status 200
			}
			x.Failure = err
		}
		if x.status != 0 {
			panic(http.ErrAbortHandler) // break off the answer, so that it does not seem complete
		}
		f.writeProblem(w, r, p)
	})
}

// end ends the answer as it should, also where the handler has panicked.
func (f *Front) end(x *Recorder, r *http.Request, cause any) {
	switch {
	case cause == nil && x.status == 0:
		x.WriteHeader(http.StatusOK)
	case cause == nil:
	case cause == http.ErrAbortHandler:
		x.truncated = true
	default:
		x.Failure = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		if x.truncated = x.status != 0; !x.truncated {
			p, _ := f.Explain(r, x.Failure)
			f.writeProblem(x, r, p)
		}
	}
}

// logAccess writes the log line of a request, without headers, because they may contain tokens. busy is the duration of
// the request without waiting.
func (f *Front) logAccess(x *Recorder, r *http.Request, took, busy time.Duration) {
	level, message := slog.LevelInfo, "request"
	switch {
	case x.Failure != nil:
		level = slog.LevelError
	case f.SlowRequest > 0 && busy > f.SlowRequest:
		level, message = slog.LevelWarn, "slow request"
	case slices.Contains(f.Quiet, x.route):
		level = slog.LevelDebug
	}
	if !f.Logger.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", cut(r.Method)), slog.String("path", cut(r.URL.Path)), slog.Int("status", x.status),
		slog.Int64("bytes", x.sent), slog.Duration("took", took), slog.String("remote", clientOf(r, f.TrustedProxies)),
		slog.String("request", x.id),
	}
	if x.truncated {
		attrs = append(attrs, slog.Bool("truncated", true))
	}
	if x.Failure != nil {
		attrs = append(attrs, slog.Any("error", x.Failure))
	}
	f.Logger.LogAttrs(r.Context(), level, message, attrs...)
}

// cut shortens a text for the log.
func cut(text string) string {
	const most = 1000
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
