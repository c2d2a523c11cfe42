package records

import (
	"context"
	"io"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ahead"
)

// weight is about the size of a record in memory.
func weight(r fragment.Record) int64 {
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
	return int64(n)
}

// readAhead iterates over records that a separate goroutine reads ahead, because reading costs about as much as
// writing. If ctx ends, the error is its cause.
func readAhead(ctx context.Context, records iter.Seq2[fragment.Record, error]) iter.Seq2[fragment.Record, error] {
	return func(yield func(fragment.Record, error) bool) {
		queue := ahead.New(func(fragment.Record) {})
		defer queue.Stop() // the reader of the records has ended then
		go queue.Run(func() error {
			for r, err := range records {
				if err == nil {
					err = context.Cause(ctx)
				}
				if err != nil {
					return err
				}
				if !queue.Add(r, weight(r)) {
					return ahead.ErrStopped
				}
			}
			return io.EOF
		})
		for r, err := queue.Next(); err != io.EOF; r, err = queue.Next() {
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
