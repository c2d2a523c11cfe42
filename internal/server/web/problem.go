package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Problem is an answer that describes an error (RFC 9457, Problem Details for HTTP APIs). Programs get it as JSON,
// people as text or as a page. A struct that embeds it has further members.
type Problem struct {
	Title     string   `json:"title"`
	Status    int      `json:"status"`
	Detail    string   `json:"detail"`
	RequestID string   `json:"requestId,omitempty"` // by which the log has it
	Lines     []string `json:"-"`                   // that people get below it
	// Origin is the URL of the fragments feed of the collection to write instead
	Origin string `json:"origin,omitempty"`

	Location   string        `json:"-"` // of what was asked for, with the status of a redirect
	RetryAfter time.Duration `json:"-"` // when to ask again; 0: not said
}

// Described is a [Problem], or a struct that embeds one.
type Described interface {
	error
	base() *Problem
}

func (p *Problem) Error() string { return p.Detail }

func (p *Problem) base() *Problem { return p }

// Problemf returns an answer with an HTTP status. The text has the reason and the remedy.
func Problemf(status int, format string, args ...any) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

func (f *Front) writeProblem(w http.ResponseWriter, r *http.Request, answer Described) {
	h := w.Header()
	// The headers of the answer that is replaced.
	for _, k := range append([]string{"ETag", "Last-Modified", "Content-Type", "Content-Encoding", "Content-Length",
		"Accept-Ranges", "Link"}, f.OwnHeaders...) {
		h.Del(k)
	}
	h.Set("Cache-Control", "no-store")
	p := answer.base()
	if p.Origin != "" {
		AddLink(h, p.Origin, "via")
	}
	if p.RetryAfter > 0 { // RFC 9110 §10.2.3, Retry-After
		h.Set("Retry-After", strconv.Itoa(int(p.RetryAfter.Seconds())))
	}
	if p.Location != "" {
		h.Set("Location", p.Location)
	}
	p.RequestID = RecorderOf(r).id
	if f.ShowProblem != nil && f.ShowProblem(w, r, p) {
		return
	}
	if !wantsText(r) {
		h.Set("Content-Type", "application/problem+json")
		w.WriteHeader(p.Status)
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		_ = e.Encode(answer)
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(p.Status)
	fmt.Fprintf(w, "%s: %s\n", p.Title, p.Detail)
	for _, line := range p.Lines {
		fmt.Fprintf(w, "  %s\n", line)
	}
	fmt.Fprintf(w, "(request %s)\n", p.RequestID)
}
