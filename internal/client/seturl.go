package client

import (
	"context"
	"fmt"

	"github.com/tmshare/tmshare/internal/store"
)

// SetURL has a subscription follow its source at other addresses from now on, the authority first. All that is known of
// the source stays. The first address must lead to the feed that was followed, and have the entry at the mark; with
// accept only the source locator prefix must be the same.
func (c *Client) SetURL(ctx context.Context, name string, refs []string, accept bool) (*store.Subscription, error) {
	s, unlock, err := c.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if s.Protocol != store.TMShare {
		return nil, fmt.Errorf("%s: the address of a source that is followed by %s cannot be changed: unsubscribe, and "+
			"subscribe to the new one", name, ProtocolOf(s))
	}
	s.FragmentsFeed, s.Addresses, s.ETag = refs[0], nil, ""
	own, err := c.forSubscription(s)
	if err != nil {
		return nil, err
	}
	found, err := own.finder().Find(ctx, refs[0], ProtocolTMShare, "")
	if err != nil {
		return nil, err
	}
	if found.SP != s.SP {
		return nil, fmt.Errorf("%s is another source: its source locator prefix is %s, and that of %s is %s; "+
			"subscribe to it by itself", found.FragmentsFeed, found.SP, name, s.SP)
	}
	s.FragmentsFeed, s.SnapshotsFeed = found.FragmentsFeed, found.SnapshotsFeed
	if err := own.addAddresses(ctx, s, refs[1:]); err != nil {
		return nil, err
	}
	if !accept {
		err = own.look(ctx, s, store.Address{FragmentsFeed: s.FragmentsFeed, SnapshotsFeed: s.SnapshotsFeed}).err
		if err == nil && found.FeedID != s.FeedID {
			err = fmt.Errorf("its feed has the id %s, and the one that was followed %s", found.FeedID, s.FeedID)
		}
		if err != nil {
			return nil, fmt.Errorf("%s does not go on from what is held of %s: %w. Nothing was changed. If you know that it is "+
				"the same source, add --accept", s.FragmentsFeed, name, err)
		}
	}
	return s, c.Store.UpdateSubscription(ctx, name, func(kept *store.Subscription) {
		kept.FragmentsFeed, kept.SnapshotsFeed, kept.Addresses, kept.ETag = s.FragmentsFeed, s.SnapshotsFeed, s.Addresses, ""
	})
}
