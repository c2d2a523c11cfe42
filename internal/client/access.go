package client

import (
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/store"
)

// on returns a client for the requests of one subscription: it knows the format
// to ask for, and the token to show.
func (c *Client) on(s *store.Subscription) (*Client, error) {
	own := *c
	own.format = s.Format
	var err error
	own.HTTP, err = fetch.BearerFrom(c.HTTP, s.FragmentsFeed, s.TokenFile)
	return &own, err
}

// accept returns the Accept header for XTM.
func (c *Client) accept() string {
	switch c.format {
	case FormatXTM1:
		return "application/xtm1+xml, text/xtm1+xml;q=0.9, application/x-tm+xml;version=1.0;q=0.9, application/xml;q=0.5, text/xml;q=0.5"
	case FormatXTM21:
		return "application/x-tm+xml;version=2.1, application/x-tm+xml;q=0.8, application/xml;q=0.5, text/xml;q=0.5"
	}
	return acceptXTM
}
