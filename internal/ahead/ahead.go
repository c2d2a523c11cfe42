// Package ahead lets one goroutine make things some time before another one uses them, so that
// both work at once. Things are handed over in batches, of which there are few: what is ahead
// takes little memory, and that can be used again.
package ahead

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrStopped is the error of work that stops because no more things are wanted.
var ErrStopped = errors.New("no more is wanted")

// Queue hands things over in the order in which they are made. Add is for the goroutine that
// makes them, Next and Stop are for the one that uses them.
type Queue[T any] struct {
	made  chan *batch[T]
	used  chan *batch[T] // to be filled again
	stop  chan struct{}
	reuse func(T)

	filling *batch[T] // by the goroutine that makes things
	using   *batch[T] // by the other
	at      int       // the thing that is next in it
}

type batch[T any] struct {
	things   []T
	weight   int64
	err      error // behind the things, in the last batch
	panicked string
}

// One batch is in use, one is being filled, and the others are in between.
const (
	batches    = 4
	mostThings = 128 // of one batch
)

// Heavy is the weight of a batch that is handed over at once.
const Heavy = 128 << 10

// New returns a queue. Things that are not used any more are given to reuse, in the goroutine
// that makes things.
func New[T any](reuse func(T)) *Queue[T] {
	q := &Queue[T]{
		made: make(chan *batch[T], batches), used: make(chan *batch[T], batches), stop: make(chan struct{}),
		reuse: reuse, filling: &batch[T]{}, using: &batch[T]{},
	}
	for range batches - 2 {
		q.used <- &batch[T]{}
	}
	return q
}

// Run calls work, which adds things, and is itself called in a goroutine of its own. The error of
// work, which is not nil, and a panic become those of Next. The caller of Next stops the queue.
func (q *Queue[T]) Run(work func() error) {
	err := ErrStopped // by runtime.Goexit
	defer func() {
		if p := recover(); p != nil {
			q.filling.panicked = fmt.Sprintf("%v, in a goroutine that works ahead\n\n%s", p, debug.Stack())
		}
		q.filling.err = err
		q.made <- q.filling
		close(q.made)
	}()
	err = work()
}

// Add adds a thing to the queue. Its weight is its approximate size in memory, in bytes. It reports whether more things
// are wanted.
func (q *Queue[T]) Add(thing T, weight int64) bool {
	b := q.filling
	b.things, b.weight = append(b.things, thing), b.weight+weight
	if len(b.things) < mostThings && b.weight < Heavy {
		return true
	}
	q.made <- b
	select {
	case <-q.stop:
		q.filling = &batch[T]{}
		return false
	case b = <-q.used:
	}
	for _, thing := range b.things {
		q.reuse(thing)
	}
	clear(b.things)
	b.things, b.weight = b.things[:0], 0
	q.filling = b
	return true
}

// Stopped reports whether Stop was called.
func (q *Queue[T]) Stopped() bool {
	select {
	case <-q.stop:
		return true
	default:
		return false
	}
}

// Next returns the next thing, which holds until Next is called again. Behind the last one it
// returns the error of the work, or panics as the work did.
func (q *Queue[T]) Next() (thing T, err error) {
	for q.at == len(q.using.things) {
		b := q.using
		switch {
		case b.panicked != "":
			panic(b.panicked)
		case b.err != nil:
			return thing, b.err
		}
		q.used <- b
		q.using, q.at = <-q.made, 0
	}
	q.at++
	return q.using.things[q.at-1], nil
}

// Stop ends the work, and returns when it has ended. It is called once.
func (q *Queue[T]) Stop() {
	close(q.stop)
	for range q.made {
	}
}
