package records

import (
	"context"
	"errors"
	"iter"

	"github.com/tmshare/tmshare/fragment"
)

// aheadSize is about how many bytes of records are handed on at once.
const aheadSize = 64 << 10

// weight is about the size of a record in memory.
func weight(r fragment.Record) int {
	n := 100
	if r.Topic != nil {
		for i := range r.Topic.Names {
			n += 200 + len(r.Topic.Names[i].Value)
			for j := range r.Topic.Names[i].Variants {
				n += 200 + len(r.Topic.Names[i].Variants[j].Value)
			}
		}
		for i := range r.Topic.Occurrences {
			n += 200 + len(r.Topic.Occurrences[i].Value)
		}
	}
	if r.Association != nil {
		n += 200 * len(r.Association.Roles)
	}
	return n
}

// errLeft ends what reads ahead, as nobody wants the rest.
var errLeft = errors.New("the rest is not wanted")

// readAhead iterates over records on a goroutine of its own, some of them ahead:
// reading them costs about as much as writing them. When ctx ends, it
// ends with its cause.
func readAhead(ctx context.Context, records iter.Seq2[fragment.Record, error]) iter.Seq2[[]fragment.Record, error] {
	return func(yield func([]fragment.Record, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		ahead := make(chan []fragment.Record, 4)
		var failed error
		go func() {
			defer close(ahead)
			var list []fragment.Record
			size := 0
			send := func() {
				select {
				case ahead <- list:
				case <-ctx.Done():
					failed = context.Cause(ctx)
				}
				list, size = nil, 0
			}
			for r, err := range records {
				if failed = err; failed == nil {
					failed = context.Cause(ctx)
				}
				if failed == nil {
					list = append(list, r)
					if size += weight(r); size >= aheadSize {
						send()
					}
				}
				if failed != nil {
					return
				}
			}
			send()
		}()
		defer func() { // the reader of the records has ended when this has
			cancel(errLeft)
			for range ahead {
			}
		}()
		for list := range ahead {
			if !yield(list, nil) {
				return
			}
		}
		if failed != nil {
			yield(nil, failed)
		}
	}
}
