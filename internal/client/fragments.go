package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/follow/tmshare"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/merge"
)

// fragments is a source of fragments in the store, as a [follow.Sink]. A fragment is one change of the
// map: each is applied in its turn, and each commit moves the mark.
type fragments struct {
	*Client
	follow.NoRecords
	source *tmshare.Source
	s      *store.Subscription
	r      *Round
	mark   follow.Mark // moves with each commit

	log      *follow.Log // of the look
	done     int         // changes of the log that the mark is past
	keepMark bool        // see [follow.Delta]
	kept     string      // the state digest of the mark, as it is kept
	relies   bool        // changes were passed over for the sake of later ones
	settling settling

	inQuarantine quarantineCount

	suspect map[string]bool // topics with something in quarantine, by which it is there: their covered changes are fetched
	owes    bool            // something is owed, see Owe of [store.Applying]

	places chan struct{} // of Parallel places: one for each fragment that is being fetched, ahead or in its turn

	large chan struct{} // held by the fetch of a large fragment: one at a time
}

// received is the fetched content of a change.
type received struct {
	applied func(merge.State) error // by a format that is not applied as XTM is; nil: it is XTM
	// fragment is nil if nothing is to be applied, because a later change replaces this one, or it is unchanged
	fragment  *fragment.Fragment
	digest    string // of the bytes, where the change is unsettled
	unchanged bool   // since it was applied
	lasting   bool   // the source never changes it
}

// maxCommit bounds, roughly, the bytes of fragments that are applied in one commit.
const maxCommit = 8 << 20

// maxGone is the number of changes of a round with missing fragments that may wait for another reading of the feed.
const maxGone = 3

// followFragments applies the changes after the mark, up to a time unless that is zero.
func (c *Client) followFragments(ctx context.Context, s *store.Subscription, r *Round, until time.Time) error {
	u, err := c.fragmentsOf(ctx, s)
	if err != nil {
		return err
	}
	u.r, u.source.Until = r, until
	e := follow.Engine[received]{
		Source: u.source, URL: s.FragmentsFeed, Sink: u,
		Parallel: c.Parallel, Batch: c.Batch, BatchBytes: maxCommit, MaxWaiting: maxGone, Health: c.healthOf(s),
		Progress: func(done, total int) {
			c.Progress(Progress{s.Name, "applying changes", int64(done), int64(total), Fragments})
		},
	}
	if s.Staging != nil { // data staged by an earlier round may be in quarantine
		if c.late, err = c.Store.Quarantine(ctx, s.Name); err != nil {
			return err
		}
	}
	u.judged(&e.Judging, s)
	run := func() error { return e.Run(ctx) }
	if err := run(); err != nil {
		return err
	}
	if err := u.provenOrRepaired(ctx, run); err != nil {
		return err
	}
	if p := s.Applied().Proof; p != nil && p.Equal {
		p.Reason = u.unsigned()
		p.Equal, p.Differs = p.Reason == "", p.Reason != ""
	}
	return u.contradicted()
}

func (c *Client) fragmentsOf(ctx context.Context, s *store.Subscription) (*fragments, error) {
	u := &fragments{Client: c, s: s, large: make(chan struct{}, 1),
		places: make(chan struct{}, c.Parallel), mark: follow.Mark{Feed: s.FeedID, ETag: s.ETag}}
	if p := s.Applied(); p != nil {
		m := p.Mark
		u.kept = p.Mark.Digest
		u.mark.Updated, u.mark.At, u.mark.Relied, u.mark.Unsettled, u.mark.Digest = m.Updated, m.Handled, m.Relied,
			m.Unsettled, m.Digest
	}
	if s.Language == nil { // it is in the document that has not changed
		u.mark.ETag = ""
	}
	u.source = &tmshare.Source{
		Fetcher: c.fetcher(), Limits: c.Feed, MaxDocs: c.MaxDocs, MaxBytes: c.MaxFeed, Scratch: c.scratch(s),
		Link: c.links().Data, Bundles: !c.NoBundles, Ahead: c.Parallel > 1,
		Covers: func(mediaType string) bool { return c.links().FormatOf(mediaType, "") == nil },
		Check: func(f *feeds.Feed, at string, recent bool) error {
			if err := checkPrefix(s, f.ServerSrcLocatorPrefix, at, recent); err != nil || !recent {
				return err
			}
			err := c.acceptRecent(ctx, s, f)
			if s.State != nil && s.Staging == nil {
				err = whereOlder(err)
			}
			return err
		},
		Progress: func(documents int) {
			c.Progress(Progress{s.Name, "reading the feed", int64(documents), 0, Documents})
		},
		Advice: fmt.Sprintf("\"replace %s\" starts afresh from the server's newest snapshot", s.Name),
	}
	return u, nil
}

// checkPrefix compares the prefix that a document declares, or "", with the one that was
// pinned. Of feeds only the recent document must declare it.
func checkPrefix(s *store.Subscription, sp, at string, must bool) error {
	if sp == s.SP || sp == "" && (s.OwnSP || !must) {
		return nil
	}
	again := s.FragmentsFeed
	if p := ProtocolOf(s); p != ProtocolTMShare {
		again = "--protocol " + p + " " + again
	}
	if s.Key != "" {
		again = "--key " + s.Key + " " + again
	}
	return &PrefixError{at, s.SP, sp, s.Name, again}
}

// Mark implements [follow.Sink].
func (u *fragments) Mark() follow.Mark { return u.mark }

// Memory implements [follow.Sink].
func (u *fragments) Memory() *follow.Memory { return u.memoryOf(u.s) }

// Begin implements [follow.Sink].
func (u *fragments) Begin(ctx context.Context, n *follow.Delta, mark follow.Mark) error {
	if n.Unchanged {
		return nil
	}
	u.s.ETag = "" // until all of this document is applied
	u.keepMark = n.KeepMark
	u.settling = newSettling(n.AsOf, u.mark)
	u.log, u.done, u.relies = n.Log, 0, n.Log.Passes()
	if err := u.findSuspects(ctx); err != nil {
		return err
	}
	contained := len(mark.At) > len(u.mark.At) // entries that the snapshot has are handled
	if u.mark = mark; !contained {
		return nil
	}
	return u.Store.ApplyEntries(ctx, u.s.Name, func(a *store.Applying) error {
		a.Mark = storedMark(mark)
		return nil
	})
}

// End implements [follow.Sink]: the feed need not be read until it changes.
func (u *fragments) End(ctx context.Context, n *follow.Delta) error {
	checked := n.Checked
	if checked.IsZero() && u.Memory().Checked.IsZero() { // else the answer may be a cache's
		checked = n.AsOf
	}
	if checked.After(u.s.Checked) { // the clock of the origin may have been set back
		u.s.Checked = checked
	}
	if u.reading = &n.Reading; n.Unchanged {
		return nil
	}
	u.s.Openings = n.Openings
	u.settling.end()
	u.mark.Unsettled = u.settling.unsettled()
	if n.Span != nil || u.mark.Digest != u.kept { // the one that is kept was wrong, or missing
		if err := u.keepSpan(ctx, n.Span); err != nil {
			return err
		}
	}
	if u.source.Until.IsZero() && len(u.mark.Unsettled) == 0 {
		u.s.ETag = n.Mark.ETag
	}
	return nil
}

// Commit implements [follow.Sink]: it applies fetched changes and moves the mark. A skipped change has a later one of
// the same topic, which will follow.
func (u *fragments) Commit(ctx context.Context, batch []follow.Result[received],
	_ func(*follow.Record) bool) ([]*follow.Record, error) {
	if batch[0].Change.Late {
		return nil, u.commitLate(ctx, batch)
	}
	var bad []error
	unchanged := 0
	for i := range batch {
		o := &batch[i]
		u.fetchCovered(ctx, o)
		if o.Err != nil {
			bad = append(bad, o.Err)
		}
		if u.settling.compare(o); o.Content.unchanged {
			unchanged++
		}
		u.settling.note(o)
		u.relies = u.relies || o.Err == nil && o.Content.fragment == nil && !o.Content.unchanged
	}
	mark, err := u.markBehind(batch)
	if err == nil {
		err = u.inQuarantine.add(ctx, u.Client, u.s, bad)
	}
	if err != nil {
		return nil, err
	}
	applied := 0
	err = u.Store.ApplyEntries(ctx, u.s.Name, func(a *store.Applying) (err error) {
		if applied, err = u.applyBatch(a, batch); err != nil {
			return err
		}
		a.Mark, a.Proof = storedMark(mark), nil
		if u.s.Replica {
			a.Entries = logged(batch)
		}
		if u.owes && u.done+len(batch) == u.log.Total() {
			if err := u.forgive(a); err != nil {
				return err
			}
		}
		a.Applied += applied
		return nil
	})
	if err == nil {
		for i := range batch {
			if r := batch[i].Record; r.Updated.After(mark.Updated) || u.keepMark {
				u.Memory().Handle(follow.Key(r.ID, r.Updated))
			}
		}
		u.mark, u.done, u.kept = mark, u.done+len(batch), mark.Digest
		u.r.Applied += applied
		u.r.Entries += len(batch) - unchanged
	}
	return nil, err
}

// markBehind returns the mark after some changes.
func (u *fragments) markBehind(batch []follow.Result[received]) (follow.Mark, error) {
	mark := follow.Mark{Feed: u.mark.Feed, Updated: u.mark.Updated, At: append([]string(nil), u.mark.At...)}
	for i := range batch {
		r := batch[i].Record
		// later entries may have an earlier time
		if u.keepMark || r.Change.State == "" && r.Updated.After(u.settling.asOf.Add(follow.Grace)) {
			continue
		}
		if r.Updated.After(mark.Updated) {
			mark.Updated, mark.At = r.Updated, nil
		}
		if _, again := u.settling.applied(r); !again && r.Updated.Equal(mark.Updated) {
			mark.At = append(mark.At, r.ID)
		}
		if mark.Digest = r.Change.Digest; batch[i].Content.applied != nil {
			mark.Digest = "" // it is of a map in XTM, which has more
		}
	}
	mark.Unsettled = u.settling.unsettled()
	if u.relies && u.done+len(batch) < u.log.Total() {
		// If the newest entry is there the next time, so are those relied on.
		mark.Relied = u.log.Newest()
	}
	size := 0
	for _, id := range mark.At {
		size += len(id)
	}
	return mark, u.source.CheckAtOnce(mark.Updated, size)
}

// logged returns the entries of the log that some changes are.
func logged(batch []follow.Result[received]) []store.Logged {
	all := make([]store.Logged, len(batch))
	for i := range batch {
		all[i] = entryOf(batch[i].Record)
		all[i].Applied, all[i].Lasting = batch[i].Content.fragment, batch[i].Content.lasting
	}
	return all
}

// entryOf returns the entry of the log of a source that a change is.
func entryOf(r *follow.Record) store.Logged {
	l := store.Logged{ID: r.ID, Updated: r.Updated, Title: r.Title, Author: r.Change.Author, Note: r.Change.Note,
		Via: r.Change.Via, Digest: r.Change.Digest, Deleted: r.Change.State == feeds.StateDeleted,
		Superseded: r.Change.Superseded, Covered: r.Change.Covered, Commit: r.Change.Commit, Rendering: r.Change.Rendering,
		Omits: r.Change.Omits, RDF: r.Change.RDF}
	if len(r.Representations) > 0 {
		l.Link = r.Representations[0].URL
	}
	if len(r.TopicSI) == 1 {
		l.TopicSI = fragment.Ref(r.TopicSI[0])
	}
	return l
}

func storedMark(m follow.Mark) store.Mark {
	return store.Mark{Updated: m.Updated, Handled: m.At, Relied: m.Relied, Unsettled: m.Unsettled, Digest: m.Digest}
}

// applyBatch applies fetched changes, puts failed ones into quarantine, and notes the activity. It returns the number
// of applied fragments.
func (u *fragments) applyBatch(a *store.Applying, batch []follow.Result[received]) (int, error) {
	var noted notes
	for i := range batch {
		o := &batch[i]
		entry := sources.ActivityEntry{TopicSI: o.Topic(), Title: o.Title, State: string(o.Change.State), Updated: o.Updated}
		if o.Err != nil {
			entry.Error = o.Err.Error()
			noted.quarantined = append(noted.quarantined, entry)
			if err := errors.Join(a.Quarantine(quarantined(o.Record, o.Err)), a.Pay(o.Topic())); err != nil {
				return 0, err
			}
			continue
		}
		if o.Content.fragment == nil {
			if o.Change.Covered && !o.Change.Superseded {
				if err := a.Owe(quarantined(o.Record, nil)); err != nil {
					return 0, err
				}
				u.owes = true
			}
			continue
		}
		a.From(entry.TopicSI, o.Representations[0].URL)
		if err := o.Content.apply(a.State, o.Change.Late); err != nil {
			return 0, fmt.Errorf("applying the fragment of %s: %w", o.Content.fragment.TopicSI, err)
		}
		noted.applied = append(noted.applied, entry)
		was, err := a.Release(entry.TopicSI, o.Updated)
		if u.owes && err == nil {
			err = a.Pay(entry.TopicSI)
		}
		if err != nil {
			return 0, err
		}
		if was {
			noted.released = append(noted.released, entry)
		}
	}
	return len(noted.applied), noted.keep(a)
}

func (c *received) apply(s merge.State, late bool) error {
	switch {
	case c.applied != nil:
		return c.applied(s)
	case late:
		return merge.ApplyLate(s, c.fragment)
	}
	return merge.Apply(s, c.fragment)
}

// notes are the records of a commit for people.
type notes struct {
	applied, released, quarantined []sources.ActivityEntry
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
