package web

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Guesses slows down guessing of tokens: it answers a wrong one after a second, eight at a time, at any address of the
// server, and refuses further ones for now. Requests with a right token, or without any, never wait. It is safe for
// concurrent use.
type Guesses struct {
	Slowness time.Duration // delay of the answer to a wrong token

	known  Tokens
	places chan struct{} // holds one for each wrong token that waits for its answer
	tried  atomic.Int64
}

// NewGuesses returns the Guesses for the known tokens.
func NewGuesses(known Tokens) *Guesses {
	return &Guesses{Slowness: time.Second, known: known, places: make(chan struct{}, 8)}
}

// Tried returns the number of wrong tokens so far.
func (g *Guesses) Tried() int64 { return g.tried.Load() }

// Wrong returns when a wrong token may be answered, or the error that is the answer.
func (g *Guesses) Wrong(r *http.Request) error {
	g.tried.Add(1)
	return InTurn(r, g.places, g.Slowness, "wrong tokens", func() error {
		select {
		case <-time.After(g.Slowness):
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		}
	})
}

// Guard returns a handler for answers that depend on the token of the request. It delays each request once.
func (g *Guesses) Guard(h Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		x := RecorderOf(r)
		if token, ok := bearer(r); ok && len(g.known) > 0 && !x.guessed && g.known.Find(token) == nil {
			x.guessed = true
			if err := g.Wrong(r); err != nil {
				return err
			}
		}
		return h(w, r)
	}
}
