package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
)

// Accept headers, what we like best first.
const (
	acceptAtom = feeds.MediaTypeAtom + ", application/xml;q=0.5, text/xml;q=0.5"
	acceptXTM  = feeds.MediaTypeXTM21 + ", " + feeds.MediaTypeXTM1 + ";q=0.8, text/xtm1+xml;q=0.8, application/x-tm+xml;q=0.7, application/xml;q=0.5, text/xml;q=0.5"
)

// fetcher is what c says of fetching.
func (c *Config) fetcher() *fetch.Fetcher {
	return &fetch.Fetcher{
		HTTP: c.HTTP, Hosts: c.Hosts, Tries: c.Tries, Backoff: c.Backoff, Stall: c.Stall, MaxTime: c.MaxTime,
		Logger: c.Logger, Now: c.Now,
	}
}

// getFeed fetches a feed document; nil means that it has not changed.
func (c *Client) getFeed(ctx context.Context, ref, etag string, home func(*url.URL) error) (*feeds.Feed, *fetch.Answer, error) {
	r := fetch.Request{URL: ref, Accept: acceptAtom, ETag: etag, Max: 64 << 20, Home: home, Within: c.MaxTime}
	if c.Feed.MaxBytes > 0 {
		r.Max = c.Feed.MaxBytes
	}
	return fetch.Do(ctx, c.fetcher(), r, func(a *fetch.Answer) (*feeds.Feed, error) {
		feed, err := feeds.Decode(a.Body, a.URL, c.Feed)
		switch {
		case errors.As(err, new(*feeds.LimitError)):
			err = fetch.Permanent(err)
		case errors.As(err, new(*feeds.SyntaxError)):
			err = fmt.Errorf("cannot be read as an Atom feed (Content-Type %q): %w", a.ContentType, err)
		}
		return feed, err
	})
}
