package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client/discover"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// forSubscription returns a client for the requests of one subscription, with its format, its token, its allowed hosts,
// and its options for reading XTM.
func (c *Client) forSubscription(s *store.Subscription) (*Client, error) {
	own := *c
	own.format, own.tolerated, own.moved = nil, &tolerated{}, &moved{from: s.Authority()}
	own.Hosts = slices.Concat(c.Hosts, s.Hosts)
	for _, feed := range s.Feeds() { // entries in quarantine may have another address than the present one
		own.Hosts = append(own.Hosts, serverOf(feed))
	}
	if s.Strict != nil {
		own.Lenient = !*s.Strict
	}
	var err error
	if s.Format != "" {
		if own.format, err = c.Formats.Served().Named(s.Format); err != nil {
			return nil, fmt.Errorf("%s asks for %q, which needs an extension that this program does not have", s.Name, s.Format)
		}
	}
	if own.HTTP, err = fetch.Trusting(c.HTTP, s.CACert); err == nil {
		own.HTTP, err = fetch.BearerFrom(own.HTTP, s.Authority(), s.TokenFile)
	}
	if err == nil {
		own.from, err = own.fetcher().From(s.FragmentsFeed)
	}
	return &own, err
}

// links returns the choice among links to XTM.
func (c *Client) links() linkChoice { return linkChoice{Format: c.format, Formats: c.Formats} }

// fetcher returns a fetcher with the configuration.
func (c *Config) fetcher() *fetch.Fetcher {
	return &fetch.Fetcher{
		HTTP: c.HTTP, Hosts: c.Hosts, Tries: c.Tries, Backoff: c.Backoff, Stall: c.Stall, MinRate: c.MinRate,
		MaxTime: c.MaxTime,
		Logger:  c.Logger, Now: c.Now,
	}
}

// limitsLast marks an error for an exceeded limit as one that a retry does not help.
func limitsLast(err error) error {
	if errors.Is(err, xtm.ErrLimit) {
		return fetch.Permanent(err)
	}
	return err
}

// Wait lets a server answer when a source has changes, or after some time. It reports whether there may be changes, and
// whether the server supports waiting; otherwise callers poll later.
func (c *Client) Wait(ctx context.Context, name string) (changed, waited bool, err error) {
	s, err := c.Subscription(ctx, name)
	if err != nil {
		return false, false, err
	}
	ref, etag := s.FragmentsFeed, s.ETag
	if s.Protocol != store.TMShare {
		mark, err := markOfRecords(s)
		if err != nil {
			return false, false, err
		}
		ref, etag = cmp.Or(mark.Document, ref), mark.ETag
	}
	if etag == "" {
		return false, false, nil
	}
	own, err := c.forSubscription(s)
	if err != nil {
		return false, false, err
	}
	return follow.Wait(ctx, own.fetcher(), ref, etag)
}

// getFeed fetches a feed document; nil means that it has not changed.
func (c *Client) getFeed(ctx context.Context, ref, etag string) (*feeds.Feed, *fetch.Answer, error) {
	return follow.Feed(ctx, c.fetcher(), c.Feed, ref, etag)
}

// finder returns a finder of sources to subscribe to.
func (c *Client) finder() discover.Finder {
	return discover.Finder{Fetcher: c.fetcher(), Limits: c.Feed, MaxDocs: c.MaxDocs, Report: c.Report,
		Protocols: c.Protocols}
}

// finding returns the protocol that finds a source; nil if the source is a feed.
func (c *Client) finding(s *store.Subscription) (*follow.Protocol, error) {
	if s.Protocol == store.TMShare {
		return nil, nil
	}
	p, err := c.protocolOf(s)
	if err != nil || p.Find == nil {
		return nil, err
	}
	return p, nil
}

// found finds a source again. It returns nil if the source is a feed.
func (c *Client) found(ctx context.Context, s *store.Subscription) (*follow.Found, error) {
	p, err := c.finding(s)
	if p == nil || err != nil {
		return nil, err
	}
	return p.Find(ctx, &follow.Access{Fetcher: c.fetcher(), MaxDocs: c.MaxDocs}, s.FragmentsFeed)
}

// fetcher returns the fetcher of the round.
func (c *Client) fetcher() *fetch.Fetcher {
	f := c.Config.fetcher()
	if c.moved != nil {
		f.Moved = c.moved.note
	}
	if c.from != nil {
		f.Allow = c.from.Allow
	}
	if c.asking {
		return f.Asking()
	}
	return f
}

// healthOf returns the check whether the server of a subscription is out of order.
func (c *Client) healthOf(s *store.Subscription) follow.Health {
	return follow.Health{Alive: func(ctx context.Context) (err error) {
		if found, err := c.found(ctx, s); found != nil || err != nil {
			return err
		}
		_, _, err = c.getFeed(ctx, s.FragmentsFeed, s.ETag)
		return err
	}}
}
