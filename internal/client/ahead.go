package client

import (
	"context"
	"errors"
	"iter"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
)

// outcome is what came of fetching the fragment of one entry.
type outcome struct {
	at       int                // the entry's place
	fragment *fragment.Fragment // nil where bad is not, or where a later entry stands for this one
	size     int64              // bytes
	bad      error
}

// fetchAhead fetches the fragments of the wanted entries, several at a time,
// and yields them in order.
func (u *update) fetchAhead(ctx context.Context, entries []feeds.Entry, wanted []int) iter.Seq[outcome] {
	return fetch.Ahead(ctx, u.Parallel, len(wanted), func(ctx context.Context, i int) (outcome, int64) {
		o := u.fetchOne(ctx, entries, wanted[i])
		return o, o.size
	})
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
