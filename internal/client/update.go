package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// update applies the entries of one walk.
type update struct {
	*Client
	s    *store.Subscription
	r    *Round
	home func(*url.URL) error
	mark store.Mark // moves with each commit

	// relies says that entries were passed over for the sake of later ones.
	relies bool
	// missing is the entry whose fragment was gone though no later entry for its
	// topic was known; the feed has been read again since.
	missing string

	large  chan struct{} // held by the fetch of a large fragment: one at a time
	faults int           // fragments in a row that failed as if the server were out of order
}

// maxFaults is how many fragments in a row may fail, as if the server were out
// of order, before it is taken to be.
const maxFaults = 5

// maxCommit bounds, roughly, the bytes of fragments that are applied in one
// commit.
const maxCommit = 8 << 20

// apply fetches the fragments of entries ahead and applies them in order, some
// to a commit. What cannot be had goes into quarantine; an error is one of the
// server, or of the round, and what came before it is applied.
func (u *update) apply(ctx context.Context, entries []feeds.Entry) error {
	wanted := latest(entries)
	u.relies = len(wanted) < len(entries)
	done := 0 // entries that the mark is past
	for len(wanted) > 0 {
		n, err := u.applyAhead(ctx, entries, wanted, &done)
		wanted = wanted[n:]
		if err == nil {
			continue
		}
		if u.outOfOrder(ctx, u.s, u.home, err, &u.faults, n > 0) {
			return err
		}
		// The server is there, so this fragment is at fault.
		if err := u.commit(ctx, entries, []outcome{{at: wanted[0], bad: err}}, &done); err != nil {
			return err
		}
		wanted = wanted[1:]
	}
	return nil
}

// applyAhead applies the wanted entries as long as nothing suggests that the
// server is out of order. It returns how many the mark is past.
func (u *update) applyAhead(ctx context.Context, entries []feeds.Entry, wanted []int, done *int) (int, error) {
	var batch []outcome
	var size int64
	passed := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := u.commit(ctx, entries, batch, done); err != nil {
			return err
		}
		passed += len(batch)
		u.Progress(Progress{u.s.Name, "applying changes", int64(*done), int64(len(entries)), Fragments})
		batch, size = batch[:0], 0
		return nil
	}
	for o := range u.fetchAhead(ctx, entries, wanted) {
		if ctx.Err() != nil {
			return passed, ctx.Err()
		}
		var gone *goneError
		if errors.As(o.bad, &gone) && gone.entry != u.missing || serverFault(o.bad) || tooMany(o.bad) {
			if err := flush(); err != nil {
				return passed, err
			}
			return passed, o.bad
		}
		u.relies = u.relies || o.bad == nil && o.fragment == nil
		batch = append(batch, o)
		if size += o.size; len(batch) == u.Batch || size > maxCommit {
			if err := flush(); err != nil {
				return passed, err
			}
		}
	}
	err := flush()
	return passed, err
}

// outOfOrder reports whether an error ends the round: it is not one of a document alone.
// faults counts the documents in a row that fail as if the server were out of order;
// progress says that others were fetched since the last one.
func (c *Client) outOfOrder(ctx context.Context, s *store.Subscription, home func(*url.URL) error, err error, faults *int, progress bool) bool {
	if *faults++; progress {
		*faults = 1
	}
	if ctx.Err() != nil || tooMany(err) || !serverFault(err) || *faults == maxFaults {
		return true
	}
	if s.Protocol == store.ResourceSync {
		_, err = c.findSet(ctx, s.FragmentsFeed)
	} else {
		_, _, err = c.getFeed(ctx, s.FragmentsFeed, s.ETag, home)
	}
	return err != nil
}

// commit applies what was fetched and moves the mark over the entries for which
// it stands; done is how many of entries the mark is past.
func (u *update) commit(ctx context.Context, entries []feeds.Entry, batch []outcome, done *int) error {
	// Entries that were passed over have a later one of the same topic, which
	// is still to come.
	end := batch[len(batch)-1].at + 1
	mark := store.Mark{Updated: u.mark.Updated, Handled: slices.Clone(u.mark.Handled)}
	for i := range entries[*done:end] {
		e := &entries[*done+i]
		if e.Updated.After(mark.Updated) {
			mark = store.Mark{Updated: e.Updated}
		}
		mark.Handled = append(mark.Handled, e.ID)
	}
	if u.relies && end < len(entries) {
		// If the newest entry is there the next time, so are those relied on.
		mark.Relied = key(&entries[len(entries)-1])
	}
	applied := 0
	err := u.Store.ApplyEntries(ctx, u.s.Name, func(a *store.Applying) (err error) {
		if applied, err = u.applyBatch(a, entries, batch); err != nil {
			return err
		}
		a.Mark = mark
		a.Applied += applied
		return nil
	})
	if err == nil {
		u.mark = mark
		u.r.Entries += end - *done
		u.r.Applied += applied
		*done = end
	}
	return err
}

// applyBatch applies what was fetched, puts what could not be had into quarantine,
// and notes what was done. It returns how many fragments it has applied.
func (u *update) applyBatch(a *store.Applying, entries []feeds.Entry, batch []outcome) (int, error) {
	var told notes
	for _, o := range batch {
		e := &entries[o.at]
		entry := store.ActivityEntry{TopicSI: topicOf(e), Title: e.Title, State: string(e.State), Updated: e.Updated}
		if o.bad != nil {
			entry.Error = o.bad.Error()
			told.quarantined = append(told.quarantined, entry)
			if err := a.Quarantine(u.quarantined(e, o.bad)); err != nil {
				return 0, err
			}
			continue
		}
		if o.fragment == nil {
			continue
		}
		if err := merge.Apply(a.State, o.fragment); err != nil {
			return 0, fmt.Errorf("applying the fragment of %s: %w", o.fragment.TopicSI, err)
		}
		told.applied = append(told.applied, entry)
		was, err := a.Release(entry.TopicSI, e.Updated)
		if err != nil {
			return 0, err
		}
		if was {
			told.released = append(told.released, entry)
		}
	}
	return len(told.applied), told.keep(a)
}

// notes are what is to be kept of a commit for people.
type notes struct {
	applied, released, quarantined []store.ActivityEntry
	unusable                       int // records that are in no format of use
}

func (n *notes) keep(a *store.Applying) error {
	for _, note := range []store.Activity{
		{Kind: store.ActivityApplied, Entries: n.applied},
		{Kind: store.ActivityReleased, Entries: n.released},
		{Kind: store.ActivityQuarantined, Entries: n.quarantined},
	} {
		if len(note.Entries) > 0 {
			if err := a.Note(note); err != nil {
				return err
			}
		}
	}
	return nil
}

// handle moves the mark over entries that are contained in the state already.
func (u *update) handle(ctx context.Context, ids []string) error {
	u.mark.Handled = ids
	return u.Store.ApplyEntries(ctx, u.s.Name, func(a *store.Applying) error {
		a.Mark = u.mark
		return nil
	})
}

// topicOf names the topic of an entry, for people and for the quarantine.
func topicOf(e *feeds.Entry) string {
	for _, names := range [][]string{e.TopicSI, e.TopicSL, e.TopicII} {
		if len(names) > 0 {
			return names[0]
		}
	}
	return e.ID
}

func (u *update) quarantined(e *feeds.Entry, err error) store.Quarantined {
	q := store.Quarantined{TopicSI: topicOf(e), Entry: e.ID, Title: e.Title, State: string(e.State), Updated: e.Updated, Error: err.Error()}
	if link, ok := u.dataLink(e); ok {
		q.Link = link.Href
	}
	return q
}

// fetchFragment fetches what an entry says of its topic.
func (u *update) fetchFragment(ctx context.Context, e *feeds.Entry) (*fragment.Fragment, int64, error) {
	topic := fragment.Identity{SubjectIdentifiers: locators(e.TopicSI), SubjectLocators: locators(e.TopicSL)}
	if len(e.TopicSI)+len(e.TopicSL) == 0 {
		return nil, 0, fmt.Errorf("%s: the entry %s (%q) names no topic (TopicSI)", u.s.FragmentsFeed, e.ID, e.Title)
	}
	link, ok := u.dataLink(e)
	if !ok {
		return nil, 0, noData(u.s.FragmentsFeed, e)
	}
	r := fetch.Request{URL: link.Href, Accept: u.accept(), Max: u.MaxFragment, Home: u.home, Within: u.MaxTime}
	f, a, err := fetch.Do(ctx, u.fetcher(), r, func(a *fetch.Answer) (*fragment.Fragment, error) {
		body := &oneLarge{body: a.Body, ctx: ctx, room: u.large}
		defer body.leave()
		return fragment.ReadAs(body, u.xtmOptions(u.s.SP, a.URL), topic)
	})
	if err != nil {
		return nil, 0, err
	}
	if e.State != "" {
		f.Deleted = e.State == feeds.StateDeleted
	}
	return f, a.Body.Size(), nil
}

func locators(texts []string) []tmdm.Locator {
	out := make([]tmdm.Locator, len(texts))
	for i, text := range texts {
		out[i] = tmdm.Locator(text)
	}
	return out
}
