package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
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
	if s.Protocol != store.TMShare && !accept {
		return nil, fmt.Errorf("%s is followed by %s, and its records are called by their addresses: at another one they "+
			"are other records. Nothing was changed. To follow it there all the same, in doubt until that is confirmed, "+
			"add --accept", name, ProtocolOf(s))
	}
	s.FragmentsFeed, s.Addresses, s.ETag = refs[0], nil, ""
	own, err := c.forSubscription(s)
	if err != nil {
		return nil, err
	}
	found, err := own.finder().Find(ctx, refs[0], ProtocolOf(s), "")
	if err != nil {
		return nil, err
	}
	if found.SP != s.SP && !s.OwnSP {
		return nil, fmt.Errorf("%s is another source: its source locator prefix is %s, and that of %s is %s; "+
			"subscribe to it by itself", found.FragmentsFeed, found.SP, name, s.SP)
	}
	s.FragmentsFeed, s.SnapshotsFeed = found.FragmentsFeed, found.SnapshotsFeed
	if err := own.addAddresses(ctx, s, refs[1:]); err != nil {
		return nil, err
	}
	if !accept {
		err = own.look(ctx, s, sources.Address{FragmentsFeed: s.FragmentsFeed, SnapshotsFeed: s.SnapshotsFeed}).err
		if err == nil && found.FeedID != s.FeedID {
			err = fmt.Errorf("its feed has the id %s, and the one that was followed %s", found.FeedID, s.FeedID)
		}
		if err != nil {
			return nil, fmt.Errorf("%s does not go on from what is held of %s: %w. Nothing was changed. If you know that it is "+
				"the same source, add --accept", s.FragmentsFeed, name, err)
		}
	}
	return s, c.Store.MoveSubscription(ctx, name, func(kept *store.Subscription) {
		kept.FragmentsFeed, kept.SnapshotsFeed, kept.Addresses, kept.ETag = s.FragmentsFeed, s.SnapshotsFeed, s.Addresses, ""
	})
}

// ChangeAddresses adds addresses of replicas of a source, and removes others.
func (c *Client) ChangeAddresses(ctx context.Context, name string, add, remove []string) (*store.Subscription, error) {
	s, err := c.Subscription(ctx, name)
	if err != nil {
		return nil, err
	}
	refs := append(s.Feeds(), add...)
	for _, ref := range remove {
		at := slices.IndexFunc(refs, func(other string) bool {
			return iri.SameDocument(other, ref) || iri.SameDocument(other, strings.TrimSuffix(ref, "/")+"/fragments")
		})
		if at <= 0 {
			return nil, fmt.Errorf("%s is no address of a replica of %s: there are %s. The first address is changed by "+
				"\"source set-url\"", ref, name, cmp.Or(strings.Join(refs[1:], " "), "none"))
		}
		refs = slices.Delete(refs, at, at+1)
	}
	return c.SetURL(ctx, name, refs, false)
}

// Set changes settings of a subscription. nil leaves one as it is.
func (c *Client) Set(ctx context.Context, name string, caCert *string,
	change func(*store.Subscription)) (*store.Subscription, error) {
	if caCert != nil {
		if _, err := fetch.Trusting(http.DefaultClient, *caCert); err != nil {
			return nil, err
		}
	}
	err := c.Store.UpdateSubscription(ctx, name, func(s *store.Subscription) {
		if change(s); caCert != nil {
			s.CACert = *caCert
		}
	})
	if err != nil {
		return nil, err
	}
	return c.Subscription(ctx, name)
}

// moved records the address that an authority states as permanent. It is safe for concurrent use.
type moved struct {
	from  string
	mu    sync.Mutex
	where string
}

func (m *moved) note(from, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if from == m.from {
		m.where = to
	}
}

func (m *moved) to() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.where
}

// MovedForGood is the beginning of the message about a moved source. The command to follow it ends the message.
const MovedForGood = "the source says that it has moved for good. If its owner says so too: "

// acceptMove follows a source to the new address that it states as permanent: on the same server, or on any if that is
// accepted. No other server gets a token for it. Its error has the reason and the remedy.
func (c *Client) acceptMove(ctx context.Context, name, to string) error {
	s, err := c.Subscription(ctx, name)
	if err != nil {
		return err
	}
	if err := c.mayMove(s, to); err != nil {
		return err
	}
	refs := s.Feeds()
	refs[0] = to
	if _, err := c.SetURL(ctx, name, refs, false); err != nil {
		return err
	}
	c.Report(fmt.Sprintf("%s: the source has moved for good, and is followed at %s from now on", name, to))
	return nil
}

// mayMove returns an error, with the remedy, if a source may not be followed to its stated address.
func (c *Client) mayMove(s *store.Subscription, to string) error {
	from, unread := url.Parse(s.Authority())
	at, unfit := url.Parse(to)
	if unread != nil || unfit != nil {
		return fmt.Errorf("the source says that it is at %q for good, which is no URL", to)
	}
	here := from.Scheme == at.Scheme && iri.HostOf(from) == iri.HostOf(at)
	secured := from.Scheme == "http" && at.Scheme == "https" && from.Hostname() == at.Hostname()
	accepted := (s.AcceptMoves || c.AcceptMoves) && (s.TokenFile == "" || secured)
	switch {
	case s.Protocol != store.TMShare:
		to += " --accept"
		fallthrough
	case !here && !accepted:
		return fmt.Errorf(MovedForGood+"\"tmshare-client source set-url %s %s\"", s.Name, to)
	}
	return nil
}
