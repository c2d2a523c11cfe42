package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client/entries"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// update applies the entries of one walk.
type update struct {
	*Client
	s        *store.Subscription
	r        *Round
	allowURL func(*url.URL) error
	mark     store.Mark // moves with each commit

	settling settling

	entries *entries.Queue // of the walk
	chunk   *entries.Chunk // of these
	done    int            // entries of the chunk that the mark is past

	// relies says that entries were passed over for the sake of later ones.
	relies bool
	// missing is the entry whose fragment was gone though no later entry for its
	// topic was known; the feed has been read again since, for so many such entries.
	missing string
	rereads int

	inQuarantine quarantineCount

	large  chan struct{} // held by the fetch of a large fragment: one at a time
	health follow.Health
}

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

// maxCommit bounds, roughly, the bytes of fragments that are applied in one
// commit.
const maxCommit = 8 << 20

// follow handles what a walk has found. What cannot be had goes into quarantine; an
// error is one of the server, or of the round, and what came before it is applied.
func (u *update) follow(ctx context.Context, n *news) error {
	if len(n.contained) > 0 {
		// They are kept, because a feed in which they are missing one day is that
		// of a server restored from a backup.
		if err := u.handle(ctx, n.contained); err != nil {
			return err
		}
	}
	u.entries = n.entries
	u.relies = n.entries.LastSuffices() && n.entries.Superseded() > 0
	for c, err := range n.entries.Chunks() {
		if err == nil {
			err = u.apply(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply fetches the fragments of entries ahead and applies them in order, some
// to a commit.
func (u *update) apply(ctx context.Context, c *entries.Chunk) error {
	u.chunk, u.done = c, 0
	wanted := u.wanted()
	for len(wanted) > 0 {
		n, err := u.applyAhead(ctx, wanted)
		wanted = wanted[n:]
		if err == nil {
			continue
		}
		if err := u.health.EndsRound(ctx, err, n > 0); err != nil {
			return err
		}
		// The server is there, so this fragment is at fault.
		if err := u.commit(ctx, []outcome{{at: wanted[0], bad: err}}); err != nil {
			return err
		}
		wanted = wanted[1:]
	}
	// Behind the last that was wanted there may be others. The next commit keeps the mark.
	mark, err := u.markBehind(len(c.Entries))
	if err == nil {
		u.moved(mark, len(c.Entries))
	}
	return err
}

// wanted returns the places of the entries of the chunk to apply: the last for each topic
// where that is enough, else all.
func (u *update) wanted() []int {
	var wanted []int
	for i := range u.chunk.Entries {
		if !u.entries.LastSuffices() || !u.chunk.Superseded[i] {
			wanted = append(wanted, i)
		}
	}
	return wanted
}

// applyAhead applies the wanted entries as long as nothing suggests that the
// server is out of order. It returns how many the mark is past.
func (u *update) applyAhead(ctx context.Context, wanted []int) (int, error) {
	var batch []outcome
	var size int64
	passed := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := u.commit(ctx, batch); err != nil {
			return err
		}
		passed += len(batch)
		u.Progress(Progress{u.s.Name, "applying changes", int64(u.chunk.Before + u.done), int64(u.entries.Total()), Fragments})
		batch, size = batch[:0], 0
		return nil
	}
	for o := range u.fetchAhead(ctx, wanted) {
		if ctx.Err() != nil {
			return passed, ctx.Err()
		}
		var gone *goneError
		if errors.As(o.bad, &gone) && u.mayReread(gone) || follow.IsServerFault(o.bad) || follow.WantsPause(o.bad) {
			if err := flush(); err != nil {
				return passed, err
			}
			return passed, o.bad
		}
		u.settling.compare(&u.chunk.Entries[o.at], &o)
		u.relies = u.relies || o.bad == nil && o.fragment == nil && !o.unchanged
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
	r, err := u.fetchFragment(ctx, &u.chunk.Entries[at])
	var answer *FetchError
	if errors.As(err, &answer) && answer.Gone() {
		if u.chunk.Superseded[at] {
			return outcome{at: at}
		}
		err = &goneError{u.chunk.Entries[at].ID, err}
	}
	return outcome{at: at, received: r, bad: err}
}

// maxRereads is how often a round reads the feed again for entries whose fragments are gone.
const maxRereads = 3

// mayReread reports whether the feed may have a later entry for the topic of one whose
// fragment is gone, if it is read again.
func (u *update) mayReread(gone *goneError) bool {
	return gone.entry != u.missing && u.rereads < maxRereads
}

// commit applies what was fetched and moves the mark over the entries for which
// it stands. Entries that were passed over have a later one of the same topic, which
// is still to come.
func (u *update) commit(ctx context.Context, batch []outcome) error {
	end := batch[len(batch)-1].at + 1
	for i := range batch {
		u.settling.note(&u.chunk.Entries[batch[i].at], &batch[i])
	}
	mark, err := u.markBehind(end)
	if err == nil {
		err = u.inQuarantine.add(ctx, u.Client, u.s, badOf(batch))
	}
	if err != nil {
		return err
	}
	applied := 0
	err = u.Store.ApplyEntries(ctx, u.s.Name, func(a *store.Applying) (err error) {
		if applied, err = u.applyBatch(a, batch); err != nil {
			return err
		}
		a.Mark = mark
		a.Applied += applied
		return nil
	})
	if err == nil {
		u.r.Applied += applied
		u.r.Entries -= unchanged(batch)
		u.moved(mark, end)
	}
	return err
}

func badOf(batch []outcome) (bad []error) {
	for _, o := range batch {
		if o.bad != nil {
			bad = append(bad, o.bad)
		}
	}
	return bad
}

// applyBatch applies what was fetched, puts what could not be had into quarantine,
// and notes what was done. It returns how many fragments it has applied.
func (u *update) applyBatch(a *store.Applying, batch []outcome) (int, error) {
	var told notes
	for _, o := range batch {
		e := &u.chunk.Entries[o.at]
		entry := store.ActivityEntry{TopicSI: topicOf(e), Title: e.Title, State: string(e.State), Updated: e.Updated}
		if o.bad != nil {
			entry.Error = o.bad.Error()
			told.quarantined = append(told.quarantined, entry)
			if err := a.Quarantine(u.quarantined(e, u.chunk.Documents[o.at], o.bad)); err != nil {
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

// topicOf names the topic of an entry, for people and for the quarantine.
func topicOf(e *feeds.Entry) string {
	for _, names := range [][]string{e.TopicSI, e.TopicSL, e.TopicII} {
		if len(names) > 0 {
			return names[0]
		}
	}
	return e.ID
}

func (u *update) quarantined(e *feeds.Entry, document string, err error) store.Quarantined {
	q := store.Quarantined{TopicSI: topicOf(e), Entry: e.ID, Title: e.Title, State: string(e.State), SDShare: e.SDShare, Updated: e.Updated, Document: document, Error: err.Error()}
	if link, ok := u.dataLink(e); ok {
		q.Link = link.Href
	}
	return q
}

// fetchFragment fetches what an entry says of its topic.
func (u *update) fetchFragment(ctx context.Context, e *feeds.Entry) (received, error) {
	topic := fragment.Named{
		Identity:        fragment.Identity{SubjectIdentifiers: locators(e.TopicSI), SubjectLocators: locators(e.TopicSL)},
		ItemIdentifiers: locators(e.TopicII), EmptyDeletes: e.SDShare,
	}
	if len(e.TopicSI)+len(e.TopicSL)+len(e.TopicII) == 0 {
		return received{}, fmt.Errorf("%s: the entry %s (%q) names no topic (TopicSI)", u.s.FragmentsFeed, e.ID, e.Title)
	}
	link, ok := u.dataLink(e)
	if !ok {
		return received{}, noData(u.s.FragmentsFeed, e)
	}
	r := fetch.Request{URL: link.Href, Accept: u.accept(), Max: u.MaxFragment, AllowURL: u.allowURL, Within: u.MaxTime}
	got, a, err := fetch.Do(ctx, u.fetcher(), r, func(a *fetch.Answer) (got received, err error) {
		body := &oneLarge{body: a.Body, ctx: ctx, room: u.large}
		defer body.leave()
		digest := u.settling.digest(e)
		got.fragment, err = fragment.ReadAs(ctx, digest.of(body), u.xtmOptions(u.s.SP, a.URL), topic)
		got.digest = digest.sum()
		return got, limitsLast(err)
	})
	if err != nil {
		return received{}, err
	}
	if e.State != "" {
		got.fragment.Deleted = e.State == feeds.StateDeleted
	}
	got.size = a.Body.Size()
	return got, nil
}

func locators(texts []string) []tmdm.Locator {
	out := make([]tmdm.Locator, len(texts))
	for i, text := range texts {
		out[i] = tmdm.Locator(text)
	}
	return out
}
