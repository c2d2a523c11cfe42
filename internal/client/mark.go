package client

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/store"
)

// How the mark of an update moves.

// moved moves the mark over the entries of the chunk up to the end.
func (u *update) moved(mark store.Mark, end int) {
	u.mark = mark
	u.r.Entries += end - u.done
	u.done = end
}

// maxHandled bounds the ids of the entries at one time, in bytes: each commit keeps those at
// the mark.
const maxHandled = 4 << 20

// markBehind returns the mark that is behind the entries of the chunk up to the end.
func (u *update) markBehind(end int) (store.Mark, error) {
	mark := store.Mark{Updated: u.mark.Updated, Handled: slices.Clone(u.mark.Handled)}
	for i := range u.chunk.Entries[u.done:end] {
		e := &u.chunk.Entries[u.done+i]
		if e.Updated.After(mark.Updated) {
			mark = store.Mark{Updated: e.Updated}
		}
		if _, again := u.settling.applied(e); !again {
			mark.Handled = append(mark.Handled, e.ID)
		}
	}
	mark.Unsettled = u.settling.unsettled(&mark)
	if u.relies && u.chunk.Before+end < u.entries.Total() {
		// If the newest entry is there the next time, so are those relied on.
		mark.Relied = u.entries.Newest()
	}
	return mark, u.checkHandled(&mark)
}

func (u *update) checkHandled(m *store.Mark) error {
	size := 0
	for _, id := range m.Handled {
		size += len(id)
	}
	return checkHandledSize(u.s, m.Updated, size)
}

// checkHandledSize fails where the ids of the entries at one time have too many bytes.
func checkHandledSize(s *store.Subscription, at time.Time, size int) error {
	if size <= maxHandled {
		return nil
	}
	return fmt.Errorf("%s: too many entries of the feed have one time (%s): their ids have more than %d MB. Ask the owner of the server for times that differ, or for a snapshot later than that, from which \"replace %s\" goes on", s.FragmentsFeed, feeds.FormatTime(at), maxHandled>>20, s.Name)
}

// handle moves the mark over entries that are contained in the state already.
func (u *update) handle(ctx context.Context, ids []string) error {
	u.mark.Handled = ids
	if err := u.checkHandled(&u.mark); err != nil {
		return err
	}
	return u.Store.ApplyEntries(ctx, u.s.Name, func(a *store.Applying) error {
		a.Mark = u.mark
		return nil
	})
}
