package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
)

// Feed fetches a feed document, unless its ETag is still the given one.
func Feed(ctx context.Context, f *fetch.Fetcher, limits feeds.Limits, ref, etag string, allowURL func(*url.URL) error) (*feeds.Feed, *fetch.Answer, error) {
	r := fetch.Request{URL: ref, Accept: acceptAtom, ETag: etag, Max: cmp.Or(limits.MaxBytes, 64<<20) + 1, AllowURL: allowURL, Within: f.MaxTime}
	return fetch.Do(ctx, f, r, func(a *fetch.Answer) (*feeds.Feed, error) {
		feed, err := feeds.Decode(a.Body, a.URL, limits)
		switch {
		case errors.As(err, new(*feeds.LimitError)):
			err = fetch.Permanent(err)
		case errors.As(err, new(*feeds.InvalidError)):
			err = fmt.Errorf("%s: %w", a.URL, err)
		case errors.As(err, new(*feeds.SyntaxError)):
			err = fmt.Errorf("cannot be read as an Atom feed (Content-Type %q): %w", a.ContentType, err)
		}
		return feed, err
	})
}

const acceptAtom = feeds.MediaTypeAtom + ", application/xml;q=0.5, text/xml;q=0.5"
