package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Round says what one round of a subscription did.
type Round struct {
	Name       string    `json:"name"`
	CleanStart bool      `json:"cleanStart"`       // the map was loaded from a snapshot
	Reason     string    `json:"reason,omitempty"` // why it was loaded anew
	Entries    int       `json:"entries"`          // entries that were new
	Applied    int       `json:"applied"`          // fragments applied for them
	Mark       time.Time `json:"mark"`             // the server's time up to which all is applied
}

// Sync does one round of the named subscription: a clean start where there is no
// state yet, then a partial update. Where partial updates cannot go on from the
// mark, it replaces the source by a clean start of its own, and says why in the
// result. An error leaves what was committed before it; nothing is skipped.
func (c *Client) Sync(ctx context.Context, name string) (*Round, error) {
	return c.syncUntil(ctx, name, time.Time{})
}

// Replace does a clean replacement of the named subscription.
func (c *Client) Replace(ctx context.Context, name string) (*Round, error) {
	return c.round(ctx, name, func(s *store.Subscription, r *Round) error {
		r.Reason = "asked for"
		return c.replace(ctx, s, r, time.Time{})
	})
}

func (c *Client) syncUntil(ctx context.Context, name string, until time.Time) (*Round, error) {
	return c.round(ctx, name, func(s *store.Subscription, r *Round) error {
		if s.State == nil || s.Staging != nil {
			return c.replace(ctx, s, r, until)
		}
		err := c.partialUpdate(ctx, s, r, until)
		var history *historyError
		if errors.As(err, &history) {
			c.Report(fmt.Sprintf("%s: %s; replacing the source from a snapshot", name, history.reason))
			c.Logger.Warn("clean replacement", "subscription", name, "reason", history.reason)
			r.Reason = history.reason
			return c.replace(ctx, s, r, until)
		}
		return err
	})
}

// round runs f and keeps in the store how it went.
func (c *Client) round(ctx context.Context, name string, f func(*store.Subscription, *Round) error) (*Round, error) {
	s, err := c.subscription(name)
	if err != nil {
		return nil, err
	}
	r := &Round{Name: name}
	failed := f(s, r)
	now := c.Now().UTC()
	err = c.Store.UpdateSubscription(name, func(kept *store.Subscription) {
		kept.LastCheck = now
		kept.LastError = ""
		if failed != nil {
			kept.LastError, kept.LastErrorAt = failed.Error(), now
		}
		if r.Applied > 0 || r.CleanStart {
			kept.LastChange = now
		}
		kept.ETag = s.ETag
		if kept.State != nil {
			r.Mark = kept.State.Mark.Updated
		}
	})
	if failed != nil {
		return r, failed
	}
	return r, err
}

// replace makes a new generation of the source from the newest snapshot, brings
// it up to date and then switches to it. A staged generation that an earlier
// round has left is taken on.
func (c *Client) replace(ctx context.Context, s *store.Subscription, r *Round, until time.Time) error {
	r.CleanStart = true
	staged := s.Staging != nil && r.Reason == ""
	for {
		if !staged {
			if err := c.stage(ctx, s); err != nil {
				return err
			}
		}
		current, err := c.subscription(s.Name)
		if err != nil {
			return err
		}
		*s = *current
		s.ETag = ""
		err = c.partialUpdate(ctx, s, r, until)
		var history *historyError
		if errors.As(err, &history) && staged { // what was staged is too old by now
			staged = false
			continue
		}
		if err != nil {
			return err
		}
		return c.Store.UpdateSubscription(s.Name, func(kept *store.Subscription) {
			kept.State, kept.Staging = kept.Staging, nil
		})
	}
}

// stage loads the newest snapshot, or nothing where there is none.
func (c *Client) stage(ctx context.Context, s *store.Subscription) error {
	home, err := c.home(s.FragmentsFeed)
	if err != nil {
		return err
	}
	recent, _, err := c.getFeed(ctx, s.FragmentsFeed, "", home)
	if err != nil {
		return err
	}
	if recent.ServerSrcLocatorPrefix != s.SP {
		return &PrefixError{s.FragmentsFeed, s.SP, recent.ServerSrcLocatorPrefix}
	}
	if recent.ID != s.FeedID { // a new history: the state that it had is still shown until the switch
		s.FeedID = recent.ID
		if err := c.Store.UpdateSubscription(s.Name, func(kept *store.Subscription) { kept.FeedID = recent.ID }); err != nil {
			return err
		}
	}
	snapshot, err := c.newestSnapshot(ctx, s, home)
	if err != nil {
		return err
	}
	if snapshot == nil {
		c.Report(s.Name + ": no snapshot; reading the feed from its beginning")
		return c.Store.StageSource(s.Name, &merge.Memory{}, store.Mark{}, nil)
	}
	link, err := dataLink(snapshot)
	if err != nil {
		return fmt.Errorf("%s: %w", s.SnapshotsFeed, err)
	}
	c.Report(fmt.Sprintf("%s: loading the snapshot of %s", s.Name, feeds.FormatTime(snapshot.Updated)))
	m, err := c.readSnapshot(ctx, s.SP, link, home)
	if err != nil {
		return err
	}
	return c.Store.StageSource(s.Name, m, store.Mark{Updated: snapshot.Updated}, func(records int) {
		if records%100_000 == 0 {
			c.Report(fmt.Sprintf("%s: %d records stored", s.Name, records))
		}
	})
}

func (c *Client) newestSnapshot(ctx context.Context, s *store.Subscription, home func(*url.URL) error) (*feeds.Entry, error) {
	if s.SnapshotsFeed == "" {
		return nil, nil
	}
	feed, a, err := c.getFeed(ctx, s.SnapshotsFeed, "", home)
	if err != nil {
		return nil, err
	}
	if sp := feed.ServerSrcLocatorPrefix; sp != "" && sp != s.SP {
		return nil, &PrefixError{a.url, s.SP, sp}
	}
	var newest *feeds.Entry
	for i := range feed.Entries {
		if e := &feed.Entries[i]; newest == nil || e.Updated.After(newest.Updated) {
			newest = e
		}
	}
	return newest, nil
}

func (c *Client) readSnapshot(ctx context.Context, sp, link string, home func(*url.URL) error) (*fragment.Map, error) {
	m, _, err := fetch(ctx, c, request{url: link, accept: acceptXTM, max: c.MaxSnapshot, home: home}, func(a *answer) (*fragment.Map, error) {
		return fragment.ReadSnapshot(a.body, c.xtmOptions(sp, a.url))
	})
	return m, err
}

func (c *Client) xtmOptions(sp, uri string) xtm.Options {
	return xtm.Options{Base: tmdm.Locator(sp), URI: uri, Lenient: c.Lenient, Limits: c.Document}
}

// partialUpdate applies what the fragments feed has beyond the mark.
func (c *Client) partialUpdate(ctx context.Context, s *store.Subscription, r *Round, until time.Time) error {
	home, err := c.home(s.FragmentsFeed)
	if err != nil {
		return err
	}
	p := s.State
	if s.Staging != nil {
		p = s.Staging
	}
	u := update{Client: c, s: s, r: r, home: home, mark: p.Mark}
	missing := ""
	for {
		n, err := c.walk(ctx, s, u.mark, s.ETag, until, home)
		if err != nil || n.unchanged {
			return err
		}
		if len(u.mark.Handled) == 0 {
			u.mark.Handled = n.atMark // the snapshot contains them
		}
		r.Entries += len(n.entries)
		err = u.apply(ctx, n.entries)
		var gone *goneError
		if errors.As(err, &gone) && gone.entry != missing {
			missing, s.ETag = gone.entry, "" // a later entry for the topic should be there by now
			continue
		}
		if err == nil && until.IsZero() {
			s.ETag = n.etag
		}
		return err
	}
}

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
}

// apply fetches the fragments of entries ahead and applies them in order, some
// to a commit. With an error, what came before is applied.
func (u *update) apply(ctx context.Context, entries []feeds.Entry) error {
	wanted := latest(entries)
	done := 0 // entries that the mark is past
	for len(wanted) > 0 {
		batch := wanted[:min(u.Batch, len(wanted))]
		fragments, failed := u.fetchAll(ctx, entries, batch)
		if n := len(fragments); n > 0 {
			// Entries that were passed over have a later one of the same topic,
			// which is still to come.
			end := batch[n-1] + 1
			if err := u.commit(ctx, fragments, entries[done:end]); err != nil {
				return err
			}
			done, wanted = end, wanted[n:]
			u.r.Applied += n
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

// commit applies fragments and moves the mark over the entries that they stand
// for.
func (u *update) commit(ctx context.Context, fragments []*fragment.Fragment, done []feeds.Entry) error {
	mark := store.Mark{Updated: u.mark.Updated, Handled: append([]string(nil), u.mark.Handled...)}
	for i := range done {
		if done[i].Updated.After(mark.Updated) {
			mark = store.Mark{Updated: done[i].Updated}
		}
		mark.Handled = append(mark.Handled, done[i].ID)
	}
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
	}
	return err
}

// fetchAll fetches the fragments of the wanted entries, several at a time. With
// an error it returns those before the first that failed.
func (u *update) fetchAll(ctx context.Context, entries []feeds.Entry, wanted []int) ([]*fragment.Fragment, error) {
	fragments := make([]*fragment.Fragment, len(wanted))
	errs := make([]error, len(wanted))
	var group errgroup.Group
	group.SetLimit(u.Parallel)
	for i, at := range wanted {
		group.Go(func() error {
			fragments[i], errs[i] = u.fetchFragment(ctx, &entries[at])
			return nil
		})
	}
	_ = group.Wait()
	for i, err := range errs {
		var failed *FetchError
		if errors.As(err, &failed) && failed.gone() {
			err = &goneError{entries[wanted[i]].ID, err}
		}
		if err != nil {
			return fragments[:i], err
		}
	}
	return fragments, nil
}

func (u *update) fetchFragment(ctx context.Context, e *feeds.Entry) (*fragment.Fragment, error) {
	if len(e.TopicSI) == 0 {
		return nil, fmt.Errorf("%s: the entry %s (%q) has no TopicSI", u.s.FragmentsFeed, e.ID, e.Title)
	}
	link, err := dataLink(e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.s.FragmentsFeed, err)
	}
	f, _, err := fetch(ctx, u.Client, request{url: link, accept: acceptXTM, max: u.MaxFragment, home: u.home}, func(a *answer) (*fragment.Fragment, error) {
		return fragment.Read(a.body, u.xtmOptions(u.s.SP, a.url), tmdm.Locator(e.TopicSI[0]))
	})
	if err == nil && e.State != "" {
		f.Deleted = e.State == feeds.StateDeleted
	}
	return f, err
}

// dataLink chooses the link to the data of an entry.
func dataLink(e *feeds.Entry) (string, error) {
	link, err := dataLinkOf(append(e.Find(feeds.RelTopicMapData), e.Find("alternate")...))
	if err != nil {
		return "", fmt.Errorf("the entry %s (%q): %w", e.ID, e.Title, err)
	}
	return link, nil
}

// dataLinkOf chooses the link to the XTM that we like best: XTM 2.1, which loses
// nothing, then XTM 1.0, then whatever may be XTM.
func dataLinkOf(links []feeds.Link) (string, error) {
	best, rank := "", 0
	for _, l := range links {
		if r := rankType(l.Type); r > rank {
			best, rank = l.Href, r
		}
	}
	if best == "" {
		return "", errors.New("has no link to XTM data")
	}
	return best, nil
}
