package fetch

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
)

// The limits of prefetched content that was not consumed yet.
const (
	maxAhead      = 16 << 20 // bytes, roughly
	maxAheadCount = 1000
)

// Ahead calls get for the numbers below n, for several concurrently, and yields the results in order. get also returns
// the approximate memory of a result, in bytes.
func Ahead[T any](ctx context.Context, parallel, n int, get func(ctx context.Context, i int) (T, int64)) iter.Seq[T] {
	type got struct {
		value T
		size  int64
	}
	return func(yield func(T) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var fetching sync.WaitGroup
		defer fetching.Wait()
		defer cancel()

		// The queue has finished and running fetches, in order; its length bounds the number of prefetched ones, slots
		// the number of running ones.
		queue := make(chan chan got, min(maxAheadCount, n))
		slots := make(chan struct{}, parallel)
		var waiting atomic.Int64 // bytes fetched, but not consumed
		taken := make(chan struct{}, 1)
		fetching.Go(func() {
			defer close(queue)
			for i := range n {
				for waiting.Load() > maxAhead {
					select {
					case <-taken:
					case <-ctx.Done():
						return
					}
				}
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return
				}
				next := make(chan got, 1)
				fetching.Go(func() {
					defer func() { <-slots }()
					value, size := get(ctx, i)
					waiting.Add(size)
					next <- got{value, size}
				})
				select {
				case queue <- next:
				case <-ctx.Done():
					return
				}
			}
		})
		for next := range queue {
			g := <-next
			waiting.Add(-g.size)
			select {
			case taken <- struct{}{}:
			default:
			}
			if !yield(g.value) {
				return
			}
		}
	}
}
