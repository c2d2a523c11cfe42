package web

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// A handler reads a state of the store, and a database has few open states at a time, one per connection. So no handler
// keeps one open while waiting for a client to take an answer that is complete, or for a place.

// turn requests a place for a handler. As an error it means that none is free: the handler is called again with one.
type turn struct {
	places  chan struct{}
	wait    time.Duration
	what    string          // has the places
	outlast context.Context // not nil: the handler continues after the client has gone, until this ends
}

func (t *turn) Error() string { return "all places of " + t.what + " are taken; wait for one" }

// inTurn does the work of a handler at once, if it has a place or one is free. Else its error has the handler called
// again.
func (x *Recorder) inTurn(t *turn, work func() error) error {
	if x.place == t.places {
		return work()
	}
	select {
	case t.places <- struct{}{}:
		defer func() { <-t.places }()
		return work()
	default:
		return t
	}
}

// call calls a handler, waits for its place, and sends its output.
func (x *Recorder) call(h Handler, w http.ResponseWriter, r *http.Request) error {
	err := h(w, r)
	if full, ok := errors.AsType[*turn](err); ok {
		err = InTurn(r, full.places, full.wait, full.what, func() error {
			x.place = full.places
			defer func() { x.place = nil }()
			clear(w.Header()) // of the first call
			x.firstHeaders(r)
			if full.outlast == nil {
				return h(w, r)
			}
			ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
			defer cancel()
			defer context.AfterFunc(full.outlast, cancel)()
			return h(w, r.WithContext(ctx))
		})
	}
	if err == nil && x.later != nil {
		err = x.later()
	}
	return err
}

// InTurn does the work when a place is free; if that takes too long, the client gets the answer to retry later.
func InTurn(r *http.Request, places chan struct{}, wait time.Duration, what string, work func() error) error {
	inPlace := func() error {
		defer func() { <-places }()
		return work()
	}
	select {
	case places <- struct{}{}: // prefer a free place to the end of the wait
		return inPlace()
	default:
	}
	tooLong := time.NewTimer(wait)
	defer tooLong.Stop()
	select {
	case places <- struct{}{}:
		return inPlace()
	case <-tooLong.C:
		p := Problemf(http.StatusServiceUnavailable,
			"the server is busy with %d %s, as many as it takes at a time; try again", cap(places), what)
		p.RetryAfter = 10 * time.Second
		return p
	case <-r.Context().Done():
		return r.Context().Err()
	}
}
