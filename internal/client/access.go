package client

import (
	"slices"

	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
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
	own.HTTP, err = fetch.BearerFrom(c.HTTP, s.FragmentsFeed, s.TokenFile)
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
