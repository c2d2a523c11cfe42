package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// goneError says that the fragment of an entry is not kept any more, and that
// no later entry for its topic was known.
type goneError struct {
	entry string
	err   error
}

func (e *goneError) Error() string {
	return e.err.Error() + ", and the feed has no later entry for its topic"
}
func (e *goneError) Unwrap() error { return e.err }

// update applies the entries of one walk.
type update struct {
	*Client
	s    *store.Subscription
	r    *Round
	home func(*url.URL) error
	mark store.Mark // moves with each commit

	// relies says that entries were passed over for the sake of later ones.
	relies bool
	ahead  atomic.Int64 // bytes of fragments fetched for the next commit
}

// maxAhead bounds, roughly, the bytes of fragments that are fetched for one
// commit.
const maxAhead = 8 << 20

// apply fetches the fragments of entries ahead and applies them in order, some
// to a commit. With an error, what came before is applied.
func (u *update) apply(ctx context.Context, entries []feeds.Entry) error {
	wanted := latest(entries)
	u.relies = len(wanted) < len(entries)
	done := 0 // entries that the mark is past
	for len(wanted) > 0 {
		batch := wanted[:min(u.Batch, len(wanted))]
		fragments, failed := u.fetchAll(ctx, entries, batch)
		if n := len(fragments); n > 0 {
			// Entries that were passed over have a later one of the same topic,
			// which is still to come.
			end := batch[n-1] + 1
			if err := u.commit(ctx, fragments, entries[done:end], entries[end:]); err != nil {
				return err
			}
			done, wanted = end, wanted[n:]
			if len(wanted) > 0 && u.r.Applied%1000 < n {
				u.Report(fmt.Sprintf("%s: %d fragments applied, %d to go", u.s.Name, u.r.Applied, len(wanted)))
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// commit applies fragments, leaving out those that are nil, and moves the mark
// over the entries that they stand for.
func (u *update) commit(ctx context.Context, fragments []*fragment.Fragment, done, rest []feeds.Entry) error {
	mark := store.Mark{Updated: u.mark.Updated, Handled: slices.DeleteFunc(slices.Clone(u.mark.Handled), isKey)}
	for i := range done {
		if done[i].Updated.After(mark.Updated) {
			mark = store.Mark{Updated: done[i].Updated}
		}
		mark.Handled = append(mark.Handled, done[i].ID)
	}
	if u.relies && len(rest) > 0 {
		// If the newest entry is there the next time, so are those relied on.
		mark.Handled = append(mark.Handled, key(&rest[len(rest)-1]))
	}
	fragments = slices.DeleteFunc(fragments, func(f *fragment.Fragment) bool { return f == nil })
	err := u.Store.ApplyEntries(ctx, u.s.Name, func(state merge.State, p *store.Progress) error {
		for _, f := range fragments {
			if err := merge.Apply(state, f); err != nil {
				return fmt.Errorf("applying the fragment of %s: %w", f.TopicSI, err)
			}
		}
		p.Mark = mark
		p.Applied += len(fragments)
		return nil
	})
	if err == nil {
		u.mark = mark
		u.r.Entries += len(done)
		u.r.Applied += len(fragments)
	}
	return err
}

// fetchAll fetches the fragments of the wanted entries, several at a time, and
// returns those of the first of them: as many as fit into memory, and with an
// error those before the first that failed. A fragment that is gone is nil where
// a later entry is of the same topic.
func (u *update) fetchAll(ctx context.Context, entries []feeds.Entry, wanted []int) ([]*fragment.Fragment, error) {
	fragments := make([]*fragment.Fragment, len(wanted))
	errs := make([]error, len(wanted))
	var failed atomic.Bool
	var group errgroup.Group
	group.SetLimit(u.Parallel)
	started := 0
	u.ahead.Store(0)
	for i, at := range wanted {
		if failed.Load() || u.ahead.Load() > maxAhead { // those that come later are not wanted yet
			break
		}
		started++
		group.Go(func() error {
			fragments[i], errs[i] = u.fetchFragment(ctx, &entries[at])
			var answer *FetchError
			if errors.As(errs[i], &answer) && answer.gone() {
				errs[i] = &goneError{entries[at].ID, errs[i]}
				if superseded(entries, at) {
					errs[i] = nil
				}
			}
			if errs[i] != nil {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = group.Wait()
	for i, err := range errs[:started] {
		if err != nil {
			return fragments[:i], err
		}
		u.relies = u.relies || fragments[i] == nil
	}
	return fragments[:started], nil
}

// superseded reports whether a later entry is of the same topic.
func superseded(entries []feeds.Entry, at int) bool {
	return slices.ContainsFunc(entries[at+1:], func(e feeds.Entry) bool {
		return len(e.TopicSI) > 0 && e.TopicSI[0] == entries[at].TopicSI[0]
	})
}

func (u *update) fetchFragment(ctx context.Context, e *feeds.Entry) (*fragment.Fragment, error) {
	if len(e.TopicSI) == 0 {
		return nil, fmt.Errorf("%s: the entry %s (%q) has no TopicSI", u.s.FragmentsFeed, e.ID, e.Title)
	}
	link, ok := dataLink(e)
	if !ok {
		return nil, noData(u.s.FragmentsFeed, e)
	}
	f, _, err := fetch(ctx, u.Client, request{url: link.Href, accept: acceptXTM, max: u.MaxFragment, home: u.home}, func(a *answer) (*fragment.Fragment, error) {
		defer func() { u.ahead.Add(a.body.size()) }()
		return fragment.Read(a.body, u.xtmOptions(u.s.SP, a.url), tmdm.Locator(e.TopicSI[0]))
	})
	if err == nil && e.State != "" {
		f.Deleted = e.State == feeds.StateDeleted
	}
	return f, err
}
