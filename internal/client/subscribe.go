package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
)

// Subscribe subscribes to the collection at a URL: that of an overview with one
// collection, a topic map feed or a fragments feed. as names the subscription;
// "" takes the name from the URL. An overview with several collections is a
// [*ChoiceError] that lists them.
func (c *Client) Subscribe(ctx context.Context, ref, as string) (*store.Subscription, error) {
	s, err := c.discover(ctx, ref)
	if err != nil {
		return nil, err
	}
	if s.Name = as; as == "" {
		s.Name = nameFrom(s.FragmentsFeed)
	}
	if err := c.Store.AddSubscription(*s); err != nil {
		if errors.Is(err, store.ErrExists) {
			return nil, fmt.Errorf("there is a subscription %q already; choose another name with --as", s.Name)
		}
		return nil, err
	}
	return s, nil
}

// nameFrom makes a name for a subscription from the URL of its fragments feed.
func nameFrom(ref string) string {
	u, err := url.Parse(ref)
	if err != nil {
		return "source"
	}
	name := path.Base(strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/fragments"))
	if name == "/" || name == "." {
		return u.Hostname()
	}
	return name
}

// discover follows the feeds from the URL to the fragments feed.
func (c *Client) discover(ctx context.Context, ref string) (*store.Subscription, error) {
	home, err := c.home(ref)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	snapshots := ""
	for at := ref; ; {
		if seen[at] {
			return nil, fmt.Errorf("%s: the feeds lead in a circle", at)
		}
		seen[at] = true
		feed, a, err := c.getFeed(ctx, at, "", home)
		if err != nil {
			return nil, err
		}
		if l, ok := feed.Link(feeds.RelSnapshotFeed); ok {
			snapshots = l.Href
		}
		if isFragmentsFeed(feed) {
			if l, ok := feed.Link("current"); ok && l.Href != a.url && !seen[l.Href] { // an archive document was given
				at = l.Href
				continue
			}
			return subscriptionTo(feed, a.url, snapshots)
		}
		for i := range feed.Entries { // a topic map feed knows both
			if l, ok := feed.Entries[i].Link(feeds.RelSnapshotFeed); ok {
				snapshots = l.Href
			}
		}
		if at, err = down(feed, a.url); err != nil {
			return nil, err
		}
	}
}

// isFragmentsFeed tells a fragments feed by its prefix and by what it links to;
// a snapshots feed has a prefix too.
func isFragmentsFeed(f *feeds.Feed) bool {
	for i := range f.Entries {
		e := &f.Entries[i]
		if len(e.TopicSI) > 0 {
			return true
		}
		if _, ok := e.Link(feeds.RelTopicMapData); ok {
			return false
		}
	}
	for _, rel := range []feeds.Rel{"prev-archive", "current", feeds.RelSnapshotFeed} {
		if _, ok := f.Link(rel); ok && f.ServerSrcLocatorPrefix != "" {
			return true
		}
	}
	return false
}

// down returns the URL of the next feed on the way to a fragments feed.
func down(f *feeds.Feed, at string) (string, error) {
	var offers []Offer
	for i := range f.Entries {
		e := &f.Entries[i]
		if l, ok := e.Link(feeds.RelFragmentFeed); ok {
			return l.Href, nil
		}
		if l, ok := e.Link(feeds.RelTopicMapFeed); ok {
			offers = append(offers, Offer{e.Title, l.Href})
		}
	}
	switch {
	case len(offers) == 1:
		return offers[0].URL, nil
	case len(offers) > 1:
		return "", &ChoiceError{at, offers}
	}
	if l, ok := f.Link("up"); ok && f.ServerSrcLocatorPrefix != "" { // a snapshots feed
		return l.Href, nil
	}
	return "", fmt.Errorf("%s: this Atom feed is neither an overview of topic maps, nor the feed of a topic map, nor a fragments feed with entries; there is nothing to subscribe to", at)
}

func subscriptionTo(feed *feeds.Feed, at, snapshots string) (*store.Subscription, error) {
	if feed.ServerSrcLocatorPrefix == "" {
		return nil, fmt.Errorf("%s: the feed has no ServerSrcLocatorPrefix, so its statements could not be told from those of others", at)
	}
	if err := fragment.ValidatePrefix(feed.ServerSrcLocatorPrefix); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return &store.Subscription{FragmentsFeed: at, SnapshotsFeed: snapshots, SP: feed.ServerSrcLocatorPrefix, FeedID: feed.ID}, nil
}
