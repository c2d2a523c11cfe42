package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
)

// A source may have several addresses: its authority first, then replicas. An address is usable in a round if its log
// has the entry at the mark, under the same feed id. The round follows the usable one with the newest entry. Only the
// authority can state another history, because otherwise a replica that is behind, or was reset to an older state,
// would discard the data of others.

// UnusableError is the error for a source that cannot be followed at any of its addresses. Nothing was changed.
type UnusableError struct {
	Name    string
	Reasons []string // one for each address
}

func (e *UnusableError) Error() string {
	return fmt.Sprintf(
		"%s: no address of the source is usable, so the copy stays as it is:\n  %s\nThe next round tries again. \"replace "+
			"%[1]s\" starts afresh from the first address", e.Name, strings.Join(e.Reasons, "\n  "))
}

// candidate is an address as it was met.
type candidate struct {
	sources.Address
	head    time.Time // of its newest entry
	checked time.Time
	replica bool
	lost    bool  // its history is not the one of the mark
	err     error // why it is not usable; nil: it is
}

// choose makes a round follow the usable address with the newest entry; if the authority states another history, the
// authority.
func (c *Client) choose(ctx context.Context, s *store.Subscription) error {
	if len(s.Addresses) < 2 {
		return nil
	}
	var all []candidate
	for _, a := range s.Addresses {
		all = append(all, c.look(ctx, s, a))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	take := &all[0]
	if word := c.wordOf(s, take); !take.lost || word != nil {
		if word != nil {
			take.err = word
		}
		take = nil
		for i := range all {
			if a := &all[i]; a.err == nil && (take == nil || a.head.After(take.head)) {
				take = a
			}
		}
	}
	if take == nil {
		e := &UnusableError{Name: s.Name}
		for i := range all {
			e.Reasons = append(e.Reasons, fmt.Sprintf("%s: %v", all[i].FragmentsFeed, all[i].err))
		}
		return e
	}
	return c.use(ctx, s, take.Address)
}

// use makes a round, and those that continue its staged data, follow an address.
func (c *Client) use(ctx context.Context, s *store.Subscription, a sources.Address) error {
	if a.FragmentsFeed == s.FragmentsFeed {
		return nil
	}
	c.Report(fmt.Sprintf("%s: following %s", s.Name, a.FragmentsFeed))
	s.FragmentsFeed, s.SnapshotsFeed, s.ETag = a.FragmentsFeed, a.SnapshotsFeed, ""
	return c.Store.UpdateSubscription(ctx, s.Name, func(kept *store.Subscription) {
		kept.FragmentsFeed, kept.SnapshotsFeed, kept.ETag = s.FragmentsFeed, s.SnapshotsFeed, ""
	})
}

// wordOf returns nil if an authority's statement about its history is valid. An authority that is itself a replica may
// only be behind. So its statement is valid if it has synchronized with its origin after the entry at the mark was
// made, and after the copy here was last in step.
func (c *Client) wordOf(s *store.Subscription, a *candidate) error {
	p := s.Applied()
	if !a.lost || !a.replica || p == nil || a.checked.After(p.Mark.Updated) && a.checked.After(s.Checked) {
		return nil
	}
	return fmt.Errorf("it is a replica that is behind what is held here: it was last in step at %s, the copy at %s",
		feeds.FormatTime(a.checked), feeds.FormatTime(s.Checked))
}

// look finds out whether an address is usable.
func (c *Client) look(ctx context.Context, s *store.Subscription, a sources.Address) (met candidate) {
	met.Address = a
	p, etag := s.Applied(), ""
	if a.FragmentsFeed == s.FragmentsFeed && s.State != nil && s.Staging == nil {
		etag = s.ETag
	}
	recent, answer, err := c.getFeed(ctx, a.FragmentsFeed, etag)
	if err != nil {
		met.err = err
		return met
	}
	if met.checked, _ = answer.Checked(); recent == nil {
		met.head = p.Mark.Updated
		return met
	}
	_, met.replica = recent.Link(feeds.RelOrigin)
	met.head = newestOf(recent).Updated
	if p == nil {
		met.err = checkPrefix(s, recent.ServerSrcLocatorPrefix, a.FragmentsFeed, true)
		return met
	}
	at := *s
	at.FragmentsFeed, at.ETag = a.FragmentsFeed, ""
	u, err := c.fragmentsOf(ctx, &at)
	if err != nil {
		met.err = err
		return met
	}
	check := u.source.Check
	u.source.Check = func(f *feeds.Feed, from string, recent bool) error {
		if recent { // it is not accepted yet
			_, _, err := c.checkpointOf(ctx, &at, f)
			return errors.Join(whereOlder(err), checkPrefix(&at, f.ServerSrcLocatorPrefix, from, true))
		}
		return check(f, from, recent)
	}
	n, err := u.source.Delta(ctx, a.FragmentsFeed, follow.Look{Mark: u.mark}, nil)
	if n != nil {
		if err = errors.Join(err, n.Close()); err == nil && n.Loss != follow.LossNone {
			met.lost, err = true, &follow.HistoryError{Reason: n.Why}
		}
	}
	met.err = err
	return met
}

// addAddresses finds the feeds of the source of a subscription at further URLs.
func (c *Client) addAddresses(ctx context.Context, s *store.Subscription, refs []string) error {
	if len(refs) == 0 {
		return nil
	}
	if s.Protocol != store.TMShare {
		return fmt.Errorf("a source that is followed by %s has one address: leave out %s", ProtocolOf(s),
			strings.Join(refs, " "))
	}
	s.Addresses = []sources.Address{{FragmentsFeed: s.FragmentsFeed, SnapshotsFeed: s.SnapshotsFeed}}
	for _, ref := range refs {
		other, err := c.finder().Find(ctx, ref, ProtocolTMShare, "")
		switch {
		case err != nil:
			return err
		case other.FeedID != s.FeedID || other.SP != s.SP:
			return fmt.Errorf(
				"%s is no replica of %s: its feed has the id %s, not %s; subscribe to it by itself, or give the address "+
					"of a replica", ref, s.FragmentsFeed, other.FeedID, s.FeedID)
		}
		a := sources.Address{FragmentsFeed: other.FragmentsFeed, SnapshotsFeed: other.SnapshotsFeed}
		if slices.ContainsFunc(s.Addresses, func(o sources.Address) bool {
			return iri.SameDocument(o.FragmentsFeed, a.FragmentsFeed)
		}) {
			return fmt.Errorf("%s leads to the feed %s, which is named already: name each address once", ref, a.FragmentsFeed)
		}
		s.Addresses = append(s.Addresses, a)
	}
	return nil
}
