package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// handler answers a request or says why it cannot.
type handler func(w http.ResponseWriter, r *http.Request) error

// Problem is an answer that says what is wrong (RFC 9457, Problem Details for
// HTTP APIs). Programs that ask for JSON get it as such, people as text.
type Problem struct {
	Title  string   `json:"title"`
	Status int      `json:"status"`
	Detail string   `json:"detail"`
	Users  []string `json:"users,omitempty"` // what uses a topic that cannot be deleted
}

func (p *Problem) Error() string { return p.Detail }

func problem(status int, format string, args ...any) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// asProblem is the one table of errors and statuses. It returns nil for errors
// that say something about this server rather than the request.
func asProblem(err error) *Problem {
	var (
		known   *Problem
		syntax  *xtm.SyntaxError
		inUse   *fragment.InUseError
		tooBig  *http.MaxBytesError
		missing = errors.Is(err, store.ErrNotFound)
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &tooBig):
		return problem(http.StatusRequestEntityTooLarge, "the body is larger than the limit of %d bytes", tooBig.Limit)
	case errors.As(err, &syntax):
		return problem(http.StatusUnprocessableEntity, "%s", err)
	case errors.As(err, &inUse):
		p := problem(http.StatusConflict, "the topic still types, scopes or reifies something")
		p.Users = inUse.Users
		return p
	case missing:
		return problem(http.StatusNotFound, "%s", strings.TrimPrefix(err.Error(), "store: "))
	case errors.Is(err, store.ErrGone):
		return problem(http.StatusGone, "%s", strings.TrimPrefix(err.Error(), "store: "))
	}
	return nil
}

// handle turns h into an http.Handler: the only place where errors become
// answers.
func (s *Server) handle(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tracked := &trackingWriter{ResponseWriter: w}
		err := h(tracked, r)
		if err == nil {
			return
		}
		p := asProblem(err)
		if p == nil {
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // the client has gone; an empty answer would say 200
			}
			s.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
			p = problem(http.StatusInternalServerError, "the server failed; its log says why")
		}
		if tracked.started {
			panic(http.ErrAbortHandler) // cut the answer off, so that nobody takes it for whole
		}
		writeProblem(w, r, p)
	})
}

func writeProblem(w http.ResponseWriter, r *http.Request, p *Problem) {
	h := w.Header()
	takeBack(h)
	if strings.Contains(r.Header.Get("Accept"), "json") {
		h.Set("Content-Type", "application/problem+json")
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(p)
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(p.Status)
	fmt.Fprintf(w, "%s: %s\n", p.Title, p.Detail)
	for _, u := range p.Users {
		fmt.Fprintf(w, "  %s\n", u)
	}
}

// takeBack removes what the headers say of an answer that is not given after all.
func takeBack(h http.Header) {
	for _, k := range []string{"ETag", "Content-Type", "Content-Encoding", "Content-Length", currentVersion} {
		h.Del(k)
	}
	h.Set("Cache-Control", "no-store")
}

// trackingWriter knows whether the answer has begun.
type trackingWriter struct {
	http.ResponseWriter
	started bool
}

func (t *trackingWriter) WriteHeader(status int) {
	t.started = true
	if status == http.StatusPreconditionFailed { // from http.ServeContent, which leaves the data's headers
		takeBack(t.Header())
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *trackingWriter) Write(p []byte) (int, error) {
	t.started = true
	return t.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (t *trackingWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
