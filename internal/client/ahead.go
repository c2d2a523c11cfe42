package client

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
)

// outcome is what came of fetching the fragment of one entry.
type outcome struct {
	at       int                // the entry's place
	fragment *fragment.Fragment // nil where bad is not, or where a later entry stands for this one
	size     int64              // bytes
	bad      error
}

// Of what is fetched ahead, this much waits to be applied at most.
const (
	maxAhead      = 16 << 20 // bytes, roughly
	maxAheadCount = 1000
)

// fetchAhead fetches the fragments of the wanted entries, several at a time,
// and yields them in order.
func (u *update) fetchAhead(ctx context.Context, entries []feeds.Entry, wanted []int) iter.Seq[outcome] {
	return func(yield func(outcome) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var fetching sync.WaitGroup
		defer fetching.Wait()
		defer cancel()

		// The queue has what is fetched or being fetched, in order; its length
		// bounds the number that are ahead, room the number that are under way.
		queue := make(chan chan outcome, min(maxAheadCount, len(wanted)))
		room := make(chan struct{}, u.Parallel)
		var waiting atomic.Int64 // bytes fetched and not yet taken
		taken := make(chan struct{}, 1)
		fetching.Go(func() {
			defer close(queue)
			for _, at := range wanted {
				for waiting.Load() > maxAhead {
					select {
					case <-taken:
					case <-ctx.Done():
						return
					}
				}
				select {
				case room <- struct{}{}:
				case <-ctx.Done():
					return
				}
				next := make(chan outcome, 1)
				fetching.Go(func() {
					defer func() { <-room }()
					o := u.fetchOne(ctx, entries, at)
					waiting.Add(o.size)
					next <- o
				})
				select {
				case queue <- next:
				case <-ctx.Done():
					return
				}
			}
		})
		for next := range queue {
			o := <-next
			waiting.Add(-o.size)
			select {
			case taken <- struct{}{}:
			default:
			}
			if !yield(o) {
				return
			}
		}
	}
}

// fetchOne fetches the fragment of one entry. One that is gone is passed over
// where a later entry is of the same topic.
func (u *update) fetchOne(ctx context.Context, entries []feeds.Entry, at int) outcome {
	f, size, err := u.fetchFragment(ctx, &entries[at])
	var answer *FetchError
	if errors.As(err, &answer) && answer.Gone() {
		if superseded(entries, at) {
			return outcome{at: at}
		}
		err = &goneError{entries[at].ID, err}
	}
	return outcome{at: at, fragment: f, size: size, bad: err}
}

// superseded reports whether a later entry is of the same topic.
func superseded(entries []feeds.Entry, at int) bool {
	for i := range entries[at+1:] {
		if e := &entries[at+1+i]; len(e.TopicSI) > 0 && e.TopicSI[0] == entries[at].TopicSI[0] {
			return true
		}
	}
	return false
}
