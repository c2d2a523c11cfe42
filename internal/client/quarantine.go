package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// revisit retries changes in quarantine: those of the given topics, or all. If the source publishes closing entries,
// available ones are applied late, after the round's new changes: see Retry. Other sources may state the fate of a
// topic in an entry of another topic. So the mark goes back to before the change, and the walk applies it and all later
// ones. Changes that the server no longer has are checked afterwards: see checkKept.
func (c *Client) revisit(ctx context.Context, s *store.Subscription, topics ...string) error {
	all, err := c.Store.Quarantine(ctx, s.Name)
	if err != nil {
		return err
	}
	if len(topics) > 0 {
		known := make([]string, len(all))
		for i := range all {
			known[i] = all[i].TopicSI
		}
		for _, topic := range topics {
			if !slices.Contains(known, topic) {
				return fmt.Errorf("%s: the topic %s is not in quarantine", s.Name, topic)
			}
		}
		all = slices.DeleteFunc(all, func(q store.Quarantined) bool { return !slices.Contains(topics, q.TopicSI) })
	}
	if len(all) == 0 || s.Protocol != store.TMShare { // records in quarantine are retried during the round
		return nil
	}
	once := *c
	once.Tries = 1 // it has failed before
	u, err := once.fragmentsOf(ctx, s)
	if err != nil {
		return err
	}
	failed := u.tryAll(ctx, len(all), func(i int) *follow.Record { return changeOf(&all[i]) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	left, err := u.retryRestated(ctx, all, failed)
	if err != nil {
		return err
	}
	var back time.Time
	for i := range all {
		var answer *fetch.Error
		switch moved := slices.ContainsFunc(left, func(q store.Quarantined) bool { return q.Entry == all[i].Entry }); {
		case errors.As(failed[i], &answer) && answer.Gone():
			c.unkept = append(c.unkept, all[i])
		case failed[i] != nil:
		case all[i].State != "" && !moved:
			c.late = append(c.late, all[i])
		case back.IsZero() || all[i].Updated.Before(back):
			back = all[i].Updated
		}
	}
	err = c.Store.ApplyEntries(ctx, s.Name, func(a *store.Applying) error {
		for _, q := range left {
			if _, err := a.Release(q.TopicSI, q.Updated); err != nil {
				return err
			}
		}
		for i, q := range all {
			if failed[i] == nil {
				continue
			}
			q.Error = failed[i].Error()
			if err := a.Quarantine(q); err != nil {
				return err
			}
		}
		if !back.IsZero() && !back.After(a.Mark.Updated) {
			a.Mark = store.Mark{Updated: back.Add(-time.Microsecond), Relied: a.Mark.Relied}
			c.memory.Span.Forget(back)
			if err := keepSpan(a, c.memory.Span); err != nil {
				return err
			}
		}
		s.State = a.Progress
		return nil
	})
	if err == nil && !back.IsZero() {
		s.ETag = "" // the feed is to be read though it has not changed
		c.Report(fmt.Sprintf("%s: going back to %s, since what was in quarantine can be had by now", s.Name,
			feeds.FormatTime(back)))
	}
	return err
}

// Retry implements [follow.Sink]: after the new changes, it returns those to apply late. Later entries of a topic have
// replaced its changes in quarantine.
func (u *fragments) Retry(ctx context.Context, _ *follow.Plan, _ bool) (late []follow.Record, err error) {
	if !u.source.Until.IsZero() { // later entries may be of the same topics
		return nil, nil
	}
	if len(u.late) > 0 {
		left, err := u.Store.Quarantine(ctx, u.s.Name)
		if err != nil {
			return nil, err
		}
		for _, q := range left {
			if q.State != "" && slices.ContainsFunc(u.late, q.Same) {
				r := changeOf(&q)
				r.Change.Late = true
				late = append(late, *r)
			}
		}
		slices.SortFunc(late, func(a, b follow.Record) int { return a.Updated.Compare(b.Updated) })
		u.late = nil // once in a round
	}
	owed, err := u.owed(ctx)
	slices.SortFunc(owed, func(a, b follow.Record) int { return a.Updated.Compare(b.Updated) })
	return append(late, owed...), err
}

// commitLate applies changes from the quarantine. The mark is already after them.
func (u *fragments) commitLate(ctx context.Context, batch []follow.Result[received]) error {
	applied := 0
	err := u.Store.ApplyEntries(ctx, u.s.Name, func(a *store.Applying) (err error) {
		applied, err = u.applyBatch(a, batch)
		a.Proof, a.Applied = nil, a.Applied+applied
		return err
	})
	if err == nil {
		u.r.Applied, u.r.Entries = u.r.Applied+applied, u.r.Entries+applied
	}
	return err
}

// tryAll tries to fetch the fragments of n changes, and returns the error of each.
func (u *fragments) tryAll(ctx context.Context, n int, change func(i int) *follow.Record) []error {
	type try struct{ err error }
	var failed []error
	for t := range fetch.Ahead(ctx, u.Parallel, n, func(ctx context.Context, i int) (try, int64) {
		_, _, err := u.fetchFragment(ctx, change(i))
		return try{err}, 0
	}) {
		failed = append(failed, t.err)
	}
	return failed
}

// checkKept returns an [*unmendableError] if the server no longer has the data of an entry in quarantine, so that it
// will never be available, but its newest snapshot includes the entry. It is called when the feed continues from the
// mark, and all new changes are applied.
func (c *Client) checkKept(ctx context.Context, s *store.Subscription) error {
	if len(c.unkept) == 0 {
		return nil
	}
	left, err := c.Store.Quarantine(ctx, s.Name)
	if err != nil {
		return err
	}
	var gone time.Time // the time of the last such entry
	for _, q := range c.unkept {
		if q.Updated.After(gone) && slices.ContainsFunc(left, q.Same) {
			gone = q.Updated
		}
	}
	if gone.IsZero() { // later entries have the state of the topics
		return nil
	}
	snapshot, err := c.newestSnapshot(ctx, s)
	if err != nil || snapshot == nil || snapshot.Updated.Before(gone) {
		return err
	}
	return &unmendableError{"the server does not keep what was in quarantine any more"}
}

// quarantineCount counts the changes of a source in quarantine, which is bounded because each round retries them all.
type quarantineCount struct {
	known bool
	n     int
}

// add counts the changes that a commit will put into quarantine, and fails if they are too many.
func (q *quarantineCount) add(ctx context.Context, c *Client, s *store.Subscription, bad []error) error {
	if len(bad) == 0 {
		return nil
	}
	q.n += len(bad)
	if !q.known || q.n > c.MaxQuarantine { // some may have been there before
		all, err := c.Store.Quarantine(ctx, s.Name)
		if err != nil {
			return err
		}
		q.known, q.n = true, len(all)+len(bad)
	}
	if q.n <= c.MaxQuarantine {
		return nil
	}
	return fmt.Errorf(
		"%s: more than %d topics of the source cannot be had, the last one: %w. Tell the owner of the server; \"replace "+
			"%s\" starts afresh, \"forget %s --all\" gives them up", s.Name, c.MaxQuarantine, bad[len(bad)-1], s.Name, s.Name)
}

// changeOf returns the change that is in quarantine.
func changeOf(q *store.Quarantined) *follow.Record {
	names := []string{q.TopicSI}
	r := &follow.Record{ID: q.Entry, Title: q.Title, Updated: q.Updated, TopicSI: names, TopicSL: names,
		Change: &follow.Change{State: feeds.State(q.State), SDShare: q.SDShare, TopicII: names}}
	if q.Link != "" {
		r.Representations = []follow.Representation{{URL: q.Link}}
	}
	return r
}

// quarantined returns the quarantine entry of a change.
func quarantined(r *follow.Record, err error) store.Quarantined {
	q := store.Quarantined{TopicSI: r.Topic(), Entry: r.ID, Title: r.Title, State: string(r.Change.State),
		SDShare: r.Change.SDShare, Updated: r.Updated, Document: r.Change.Document}
	if err != nil {
		q.Error = err.Error()
	}
	if len(r.Representations) > 0 {
		q.Link = r.Representations[0].URL
	}
	return q
}
