package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// handler answers a request or says why it cannot.
type handler func(w http.ResponseWriter, r *http.Request) error

// Problem is an answer that says what is wrong (RFC 9457, Problem Details for
// HTTP APIs). Programs get it as JSON, people as text.
type Problem struct {
	Title  string   `json:"title"`
	Status int      `json:"status"`
	Detail string   `json:"detail"`
	Users  []string `json:"users,omitempty"` // what uses a topic that cannot be deleted

	RequestID string `json:"requestId,omitempty"` // by which the log has it
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
		refused *fragment.DocumentError
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
	case errors.As(err, &refused):
		return problem(http.StatusUnprocessableEntity, "%s", refused.Reason)
	case errors.As(err, &inUse):
		p := problem(http.StatusConflict, "the topic %s still types, scopes or reifies something", inUse.Topic)
		p.Users = inUse.Users
		return p
	case missing:
		return problem(http.StatusNotFound, "%s", strings.TrimPrefix(err.Error(), "store: "))
	case errors.Is(err, store.ErrExists):
		return problem(http.StatusConflict, "%s", strings.TrimPrefix(err.Error(), "store: "))
	case errors.Is(err, store.ErrGone):
		return problem(http.StatusGone, "%s", strings.TrimPrefix(err.Error(), "store: "))
	}
	return nil
}

func serverFailed() *Problem {
	return problem(http.StatusInternalServerError, "the server failed; its log says why")
}

// handle turns h into an http.Handler: the only place where errors become
// answers. route names the URLs that it is for.
func (s *Server) handle(route string, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r)
		x.route = route
		err := h(w, r)
		if err == nil {
			return
		}
		p := asProblem(err)
		if p == nil {
			if r.Context().Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
				panic(http.ErrAbortHandler) // the client has gone; an empty answer would say 200
			}
			x.failure = err
			p = serverFailed()
		}
		if x.status != 0 {
			panic(http.ErrAbortHandler) // cut the answer off, so that nobody takes it for whole
		}
		writeProblem(w, r, p)
	})
}

func writeProblem(w http.ResponseWriter, r *http.Request, p *Problem) {
	h := w.Header()
	takeBack(h)
	told := *p
	told.RequestID = exchangeOf(r).id
	if !wantsText(r) {
		h.Set("Content-Type", "application/problem+json")
		w.WriteHeader(p.Status)
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		_ = e.Encode(told)
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(p.Status)
	fmt.Fprintf(w, "%s: %s\n", p.Title, p.Detail)
	for _, u := range p.Users {
		fmt.Fprintf(w, "  %s\n", u)
	}
	fmt.Fprintf(w, "(request %s)\n", told.RequestID)
}

// takeBack removes what the headers say of an answer that is not given after all.
func takeBack(h http.Header) {
	for _, k := range []string{"ETag", "Last-Modified", "Content-Type", "Content-Encoding", "Content-Length", "Accept-Ranges", "Link", currentVersion, recordVersion} {
		h.Del(k)
	}
	h.Set("Cache-Control", "no-store")
}
