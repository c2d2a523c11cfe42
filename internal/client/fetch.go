package client

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client/discover"
	"github.com/tmshare/tmshare/internal/client/links"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// forSubscription returns a client for the requests of one subscription: it knows the format
// to ask for, the token to show, the hosts to follow links to, and how XTM is read.
func (c *Client) forSubscription(s *store.Subscription) (*Client, error) {
	own := *c
	own.format, own.tolerated = nil, &tolerated{}
	own.Hosts = slices.Concat(c.Hosts, s.Hosts)
	if s.Strict != nil {
		own.Lenient = !*s.Strict
	}
	var err error
	if s.Format != "" {
		if own.format, err = formats.ServedNamed(s.Format); err != nil {
			return nil, err
		}
	}
	own.HTTP, err = fetch.BearerFrom(c.HTTP, s.Authority(), s.TokenFile)
	return &own, err
}

// sameFormat compares the names of two formats, of which each may be an alias.
func sameFormat(a, b string) bool {
	if a == b {
		return true
	}
	of, errA := formats.Named(a)
	other, errB := formats.Named(b)
	return errA == nil && errB == nil && of == other
}

// acceptXTM is the Accept header for XTM, what we like best first.
const acceptXTM = feeds.MediaTypeXTM21 + ", " + feeds.MediaTypeXTM1 + ";q=0.8, text/xtm1+xml;q=0.8, application/x-tm+xml;q=0.7, application/xml;q=0.5, text/xml;q=0.5"

// links returns what chooses links to XTM.
func (c *Client) links() links.Choice { return links.Choice{Format: c.format} }

// accept returns the Accept header for XTM.
func (c *Client) accept() string {
	switch c.format {
	case formats.XTM10:
		return "application/xtm1+xml, text/xtm1+xml;q=0.9, application/x-tm+xml;version=1.0;q=0.9, application/xml;q=0.5, text/xml;q=0.5"
	case formats.XTM21:
		return "application/x-tm+xml;version=2.1, application/x-tm+xml;q=0.8, application/xml;q=0.5, text/xml;q=0.5"
	}
	return acceptXTM
}

// fetcher is what c says of fetching.
func (c *Config) fetcher() *fetch.Fetcher {
	return &fetch.Fetcher{
		HTTP: c.HTTP, Hosts: c.Hosts, Tries: c.Tries, Backoff: c.Backoff, Stall: c.Stall, MinRate: c.MinRate, MaxTime: c.MaxTime,
		Logger: c.Logger, Now: c.Now,
	}
}

// limitsLast marks an error that says that a document goes beyond a limit as one that
// another try does not mend.
func limitsLast(err error) error {
	if errors.Is(err, xtm.ErrLimit) {
		return fetch.Permanent(err)
	}
	return err
}

// getFeed fetches a feed document; nil means that it has not changed.
func (c *Client) getFeed(ctx context.Context, ref, etag string, allowURL func(*url.URL) error) (*feeds.Feed, *fetch.Answer, error) {
	return follow.Feed(ctx, c.fetcher(), c.Feed, ref, etag, allowURL)
}

// recentDocument fetches the recent document of what a subscription follows, and returns what its links may lead to.
func (c *Client) recentDocument(ctx context.Context, s *store.Subscription) (*feeds.Feed, func(*url.URL) error, error) {
	allowURL, err := c.fetcher().AllowURL(s.FragmentsFeed)
	if err != nil {
		return nil, nil, err
	}
	f, _, err := c.getFeed(ctx, s.FragmentsFeed, "", allowURL)
	return f, allowURL, err
}

// finder finds what can be subscribed to.
func (c *Client) finder() discover.Finder {
	return discover.Finder{Fetcher: c.fetcher(), Limits: c.Feed, MaxDocs: c.MaxDocs, Report: c.Report}
}

// healthOf returns what tells whether the server of a subscription is out of order.
func (c *Client) healthOf(s *store.Subscription, allowURL func(*url.URL) error) follow.Health {
	return follow.Health{Alive: func(ctx context.Context) (err error) {
		if s.Protocol == store.ResourceSync {
			_, err = c.finder().Set(ctx, s.FragmentsFeed)
		} else {
			_, _, err = c.getFeed(ctx, s.FragmentsFeed, s.ETag, allowURL)
		}
		return err
	}}
}
