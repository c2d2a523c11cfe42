// Package pairs goes through two sorted sequences side by side.
package pairs

import "iter"

// Pair is what stands at one place of two sequences. A or B is nil where a sequence has nothing there.
type Pair[A, B any] struct {
	A *A
	B *B
}

// Of iterates over what two sequences have, in their order. compare says how an item of one stands to an item of the
// other. An item need be valid only until the next one of its sequence. Both sequences are ended when it ends.
func Of[A, B any](as iter.Seq2[A, error], bs iter.Seq2[B, error], compare func(A, B) int) iter.Seq2[Pair[A, B], error] {
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
