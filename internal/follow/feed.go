package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
)

// Feed fetches a feed document, unless its ETag is still the given one.
func Feed(ctx context.Context, f *fetch.Fetcher, limits feeds.Limits,
	ref, etag string) (*feeds.Feed, *fetch.Answer, error) {
	return fetchFeed(ctx, f, limits, ref, etag, acceptAtom, feeds.Decode)
}

// bundle fetches a document of a fragments feed as a bundle, if the server offers it. It calls head with the feed
// before the entries are read.
func bundle(ctx context.Context, f *fetch.Fetcher, limits feeds.Limits, ref string,
	head func(*feeds.Feed)) (*feeds.Feed, *fetch.Answer, error) {
	decode := func(r io.Reader, uri string, limits feeds.Limits) (*feeds.Feed, error) {
		return feeds.DecodeBundle(r, uri, limits, head)
	}
	return fetchFeed(ctx, f, limits, ref, "", acceptBundle, decode)
}

func fetchFeed(ctx context.Context, f *fetch.Fetcher, limits feeds.Limits, ref, etag, accept string,
	decode func(io.Reader, string, feeds.Limits) (*feeds.Feed, error)) (*feeds.Feed, *fetch.Answer, error) {
	r := fetch.Request{URL: ref, Accept: accept, ETag: etag, Max: cmp.Or(limits.MaxBytes, 64<<20) + 1, Within: f.MaxTime}
	return fetch.Do(ctx, f, r, func(a *fetch.Answer) (*feeds.Feed, error) {
		limits.ContentType = a.ContentType
		feed, err := decode(a.Body, a.URL, limits)
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

// ErrHeadMoved is the error for a feed that changed while its documents were read, so that entries may have moved.
var ErrHeadMoved = errors.New("the feed changes faster than its documents can be read: the next round tries again")

// MaxReadAgain is the number of times that a feed is read again if it changes meanwhile.
const MaxReadAgain = 5

// Recent is the recent document of a feed, as it was when a walk began.
type Recent struct {
	URL, ETag string
	Entries   map[string]bool // by key
}

// Stands returns [ErrHeadMoved] where the document has other entries by now.
func (r *Recent) Stands(ctx context.Context, f *fetch.Fetcher, limits feeds.Limits) error {
	now, _, err := Feed(ctx, f, limits, r.URL, r.ETag)
	if err != nil || now == nil {
		return err
	}
	keys := map[string]bool{}
	for i := range now.Entries {
		keys[Key(now.Entries[i].ID, now.Entries[i].Updated)] = true
	}
	if !maps.Equal(keys, r.Entries) {
		return ErrHeadMoved
	}
	return nil
}

const (
	acceptAtom   = feeds.MediaTypeAtom + ", application/xml;q=0.5, text/xml;q=0.5"
	acceptBundle = feeds.MediaTypeBundle + ", " + feeds.MediaTypeAtom + ";q=0.5"
)
