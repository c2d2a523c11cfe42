// Package seq iterates over sequences of items. An error in the place of an item ends a sequence.
package seq

import (
	"errors"
	"iter"
)

// The function of [Map] returns this value in place of an item.
var (
	ErrSkip = errors.New("the item is left out")
	ErrStop = errors.New("there are no more items")
)

// Map iterates over the results of f for the items of a sequence, until the first error of either.
func Map[A, B any](items iter.Seq2[A, error], f func(A) (B, error)) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		for a, err := range items {
			var b B
			if err == nil {
				b, err = f(a)
			}
			switch {
			case err == ErrSkip:
				continue
			case err == ErrStop || !yield(b, err) || err != nil:
				return
			}
		}
	}
}

// Each calls f with the items of a sequence, until the first error of either, which it returns.
func Each[T any](items iter.Seq2[T, error], f func(T) error) error {
	for item, err := range items {
		if err == nil {
			err = f(item)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Of iterates over some items.
func Of[T any](items ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// Pair has the items of two sequences with equal keys. A or B is nil if its sequence has none.
type Pair[A, B any] struct {
	A *A
	B *B
}

// Pairs iterates over the items of two sorted sequences, in their order. compare orders an item of one and an item of
// the other. An item need be valid only until the next one of its sequence. Both end when it ends.
func Pairs[A, B any](
	as iter.Seq2[A, error], bs iter.Seq2[B, error], compare func(A, B) int,
) iter.Seq2[Pair[A, B], error] {
	return func(yield func(Pair[A, B], error) bool) {
		next, stop := iter.Pull2(bs)
		defer stop()
		b, err, more := next()
		// give yields an item of b, with the one of a at its place, and goes on to the next.
		give := func(a *A) bool {
			if !yield(Pair[A, B]{a, &b}, nil) {
				return false
			}
			b, err, more = next()
			return true
		}
		for a, failed := range as {
			for failed == nil && err == nil && more && compare(a, b) > 0 {
				if !give(nil) {
					return
				}
			}
			switch {
			case failed != nil || err != nil:
				if failed == nil {
					failed = err
				}
				yield(Pair[A, B]{}, failed)
				return
			case more && compare(a, b) == 0:
				if !give(&a) {
					return
				}
			case !yield(Pair[A, B]{A: &a}, nil):
				return
			}
		}
		for more && err == nil {
			if !give(nil) {
				return
			}
		}
		if err != nil {
			yield(Pair[A, B]{}, err)
		}
	}
}
