package client

import (
	"context"
	"errors"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
)

// outcome is what came of fetching the fragment of one entry.
type outcome struct {
	at int // the entry's place
	received
	bad error
}

// received is the fragment of an entry.
type received struct {
	fragment *fragment.Fragment // nil where nothing is to be applied: a later entry stands for this one, or it is unchanged
	size     int64              // bytes
	digest   string             // of the bytes, where the entry is unsettled

	unchanged bool // since it was applied
}

// fetchAhead fetches the fragments of the wanted entries, several at a time,
// and yields them in order.
func (u *update) fetchAhead(ctx context.Context, wanted []int) iter.Seq[outcome] {
	return fetch.Ahead(ctx, u.Parallel, len(wanted), func(ctx context.Context, i int) (outcome, int64) {
		o := u.fetchOne(ctx, wanted[i])
		return o, o.size
	})
}

// fetchOne fetches the fragment of one entry. One that is gone is passed over
// where a later entry is of the same topic.
func (u *update) fetchOne(ctx context.Context, at int) outcome {
	r, err := u.fetchFragment(ctx, &u.chunk.entries[at])
	var answer *FetchError
	if errors.As(err, &answer) && answer.Gone() {
		if u.chunk.superseded[at] {
			return outcome{at: at}
		}
		err = &goneError{u.chunk.entries[at].ID, err}
	}
	return outcome{at: at, received: r, bad: err}
}
