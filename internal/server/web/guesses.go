package web

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Guesses holds back those who try tokens: a wrong one is answered after a second, and eight at a time, at whatever
// address of the server it is given. Others are told to come again later. Requests with a right token, or without any,
// do not wait for them. It is safe for concurrent use.
type Guesses struct {
	Slowness time.Duration // how long it takes to be told that a token is wrong

	known  Tokens
	places chan struct{} // holds one for each wrong token that waits for its answer
	tried  atomic.Int64
}

// NewGuesses returns what holds back those who give a token that is none of the known ones.
func NewGuesses(known Tokens) *Guesses {
	return &Guesses{Slowness: time.Second, known: known, places: make(chan struct{}, 8)}
}

// Tried returns how many wrong tokens there were.
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

// Guard makes a handler of one whose answer depends on the token of the request. Each request is held back once.
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
