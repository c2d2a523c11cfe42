package client

import (
	"context"
	"net/url"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/harvest"
)

// acceptXTM is the Accept header for XTM, what we like best first.
const acceptXTM = feeds.MediaTypeXTM21 + ", " + feeds.MediaTypeXTM1 + ";q=0.8, text/xtm1+xml;q=0.8, application/x-tm+xml;q=0.7, application/xml;q=0.5, text/xml;q=0.5"

// fetcher is what c says of fetching.
func (c *Config) fetcher() *fetch.Fetcher {
	return &fetch.Fetcher{
		HTTP: c.HTTP, Hosts: c.Hosts, Tries: c.Tries, Backoff: c.Backoff, Stall: c.Stall, MaxTime: c.MaxTime,
		Logger: c.Logger, Now: c.Now,
	}
}

// getFeed fetches a feed document; nil means that it has not changed.
func (c *Client) getFeed(ctx context.Context, ref, etag string, home func(*url.URL) error) (*feeds.Feed, *fetch.Answer, error) {
	return harvest.Feed(ctx, c.fetcher(), c.Feed, ref, etag, home)
}
