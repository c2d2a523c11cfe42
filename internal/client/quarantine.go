package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client/entries"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/store"
)

// revisit tries again to get what is in quarantine: that of the given topics, or
// all. An entry is never applied by itself when later ones have been (it could
// undo what they say): where one can be had by now, the mark goes back to before
// it, and the walk that follows applies it and all that came after it. It returns a
// [*historyError] where only a clean replacement can bring what is in quarantine.
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
	if len(all) == 0 || s.Protocol != store.TMShare { // what records are in quarantine is tried as the round goes on
		return nil
	}
	allowURL, err := c.fetcher().AllowURL(s.FragmentsFeed)
	if err != nil {
		return err
	}
	once := *c
	once.Tries = 1 // it has failed before
	u := update{Client: &once, s: s, allowURL: allowURL, large: make(chan struct{}, 1)}
	failed := make([]error, len(all))
	for o := range fetch.Ahead(ctx, c.Parallel, len(all), func(ctx context.Context, i int) (outcome, int64) {
		_, err := u.fetchFragment(ctx, entryOf(&all[i]))
		return outcome{at: i, bad: err}, 0
	}) {
		failed[o.at] = o.bad
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := c.checkKept(ctx, s, all, failed, allowURL); err != nil {
		return err
	}
	left, err := u.retryRestated(ctx, all, failed)
	if err != nil {
		return err
	}
	var back time.Time
	for i := range all {
		if failed[i] == nil && (back.IsZero() || all[i].Updated.Before(back)) {
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
			a.Mark = store.Mark{Updated: back.Add(-time.Microsecond), Relied: reliedOn(a.Mark, all)}
		}
		s.State = a.Progress
		return nil
	})
	if err == nil && !back.IsZero() {
		s.ETag = "" // the feed is to be read though it has not changed
		c.Report(fmt.Sprintf("%s: going back to %s, since what was in quarantine can be had by now", s.Name, feeds.FormatTime(back)))
	}
	return err
}

// reliedOn returns the entry by which a feed shows, once the mark has gone back, that its history is
// still the one that was applied: else a server that was restored from a backup meanwhile would go
// unnoticed. On servers that do not state the state of each entry, entries may move.
func reliedOn(mark store.Mark, quarantined []store.Quarantined) string {
	if mark.Relied != "" || len(mark.Handled) == 0 || quarantined[0].State == "" {
		return mark.Relied
	}
	return entries.Key(&feeds.Entry{ID: mark.Handled[0], Updated: mark.Updated})
}

// checkKept returns a [*historyError] where the data of an entry in quarantine are
// not kept by the server any more, and so will never be available, but its newest snapshot
// has what the entry says.
func (c *Client) checkKept(ctx context.Context, s *store.Subscription, all []store.Quarantined, failed []error, allowURL func(*url.URL) error) error {
	var gone time.Time // the time of the last such entry
	for i := range all {
		var answer *FetchError
		if errors.As(failed[i], &answer) && answer.Gone() && all[i].Updated.After(gone) {
			gone = all[i].Updated
		}
	}
	if gone.IsZero() {
		return nil
	}
	snapshot, err := c.newestSnapshot(ctx, s, allowURL)
	if err != nil || snapshot == nil || snapshot.Updated.Before(gone) {
		return err
	}
	return &historyError{"the server does not keep what was in quarantine any more"}
}

// quarantineCount counts what is in quarantine of a source: all of it is tried again in each
// round, so that it is bounded.
type quarantineCount struct {
	known bool
	n     int
}

// add counts what a commit is to put into quarantine, and fails where that is too much.
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
	return fmt.Errorf("%s: more than %d topics of the source cannot be had, the last one: %w. Tell the owner of the server; \"replace %s\" starts afresh, \"forget %s --all\" gives them up", s.Name, c.MaxQuarantine, bad[len(bad)-1], s.Name, s.Name)
}

// entryOf returns the entry that is in quarantine.
func entryOf(q *store.Quarantined) *feeds.Entry {
	e := &feeds.Entry{ID: q.Entry, Title: q.Title, Updated: q.Updated, State: feeds.State(q.State), TopicSI: []string{q.TopicSI}, TopicSL: []string{q.TopicSI}, TopicII: []string{q.TopicSI}, SDShare: q.SDShare}
	if q.Link != "" {
		e.Links = []feeds.Link{{Rel: feeds.RelTopicMapData, Href: q.Link}}
	}
	return e
}
