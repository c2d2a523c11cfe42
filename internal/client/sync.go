package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

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
	Entries    int       `json:"entries"`          // new entries that the mark moved over
	Applied    int       `json:"applied"`          // fragments applied for them
	Mark       time.Time `json:"mark"`             // the server's time up to which all is applied
	Error      string    `json:"error,omitempty"`  // for programs: why the round failed
}

// Sync does one round of the named subscription: a clean start where there is no
// state yet, then a partial update. Where partial updates cannot go on from the
// mark, it replaces the source by a clean start of its own, and says why in the
// result. An error leaves what was committed before it; nothing is skipped.
func (c *Client) Sync(ctx context.Context, name string) (*Round, error) {
	return c.syncUntil(ctx, name, time.Time{})
}

// AskedFor is the Reason of a round of Replace.
const AskedFor = "asked for"

// Replace does a clean replacement of the named subscription.
func (c *Client) Replace(ctx context.Context, name string) (*Round, error) {
	return c.round(ctx, name, func(s *store.Subscription, r *Round) error {
		r.Reason = AskedFor
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
		if r.Applied > 0 || r.CleanStart && failed == nil {
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
		switch {
		case errors.As(err, &history) && staged: // what was staged is too old by now
			staged = false
			continue
		case errors.As(err, &history):
			return fmt.Errorf("the newest snapshot does not fit the feed: %w", err)
		case err != nil:
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
	if err := c.stageSnapshot(ctx, s, home); err != nil {
		return err
	}
	// Last, since the state that is still shown belongs to the feed it came
	// from: without this a staged generation is not taken on, but made anew.
	return c.Store.UpdateSubscription(s.Name, func(kept *store.Subscription) { kept.FeedID = recent.ID })
}

func (c *Client) stageSnapshot(ctx context.Context, s *store.Subscription, home func(*url.URL) error) error {
	snapshot, err := c.newestSnapshot(ctx, s, home)
	if err != nil {
		return err
	}
	if snapshot == nil {
		c.Report(s.Name + ": no snapshot; reading the feed from its beginning")
		return c.Store.StageSource(s.Name, &merge.Memory{}, store.Mark{}, nil)
	}
	link, ok := dataLink(snapshot)
	if !ok {
		return noData(s.SnapshotsFeed, snapshot)
	}
	c.Report(fmt.Sprintf("%s: loading the snapshot of %s", s.Name, feeds.FormatTime(snapshot.Updated)))
	m, _, err := c.readMap(ctx, s, "snapshot", link.Href, home)
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

// readMap reads a whole map, and says how far it has come with what it is.
func (c *Client) readMap(ctx context.Context, s *store.Subscription, what, link string, home func(*url.URL) error) (*fragment.Map, *answer, error) {
	return fetch(ctx, c, request{url: link, accept: acceptXTM, max: c.MaxSnapshot, home: home}, func(a *answer) (*fragment.Map, error) {
		return fragment.ReadSnapshot(&progressReader{r: a.body, report: func(bytes int64) {
			c.Report(fmt.Sprintf("%s: %d MB of the %s read", s.Name, bytes>>20, what))
		}}, c.xtmOptions(s.SP, a.url))
	})
}

func (c *Client) xtmOptions(sp, uri string) xtm.Options {
	return xtm.Options{Base: tmdm.Locator(sp), URI: uri, Lenient: c.Lenient, Limits: c.Document, DropClashes: true}
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
		s.ETag = "" // until all of this document is applied
		if len(u.mark.Handled) == 0 && len(n.atMark) > 0 {
			// The snapshot contains them. They are kept, because a feed in which
			// they are missing one day is that of a server restored from a backup.
			u.mark.Handled = n.atMark
			if err := u.commit(ctx, nil, nil, nil); err != nil {
				return err
			}
		}
		err = u.apply(ctx, n.entries)
		var gone *goneError
		if errors.As(err, &gone) && gone.entry != missing {
			missing = gone.entry // a later entry for the topic should be there by now
			continue
		}
		if err == nil && until.IsZero() {
			s.ETag = n.etag
		}
		return err
	}
}
