package follow

import (
	"context"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/iri"
)

// Bundles are documents of a fragments feed with the fragments in them. All that they bring is available otherwise: so
// each is tried once, and no others after one has failed.

// readBundle reads an archive document as a bundle, and reports whether it could. It refuses other documents of the
// feed, because a cache may return old ones without the latest entries.
func (c *Chain) readBundle(ctx context.Context, d *Document) bool {
	feed, a := c.bundle(ctx, d, true)
	if feed == nil || !feed.Archive || feed.ID != c.id {
		return false
	}
	if self, _ := feed.Link("self"); !iri.SameDocument(self.Href, d.From) {
		return false
	}
	d.Feed, d.Answer = feed, a
	return true
}

// addFragments adds the fragments of a bundle to the entries of a document. The document's entries are authoritative,
// because the server may have published meanwhile, or a cache may have an older bundle.
func (c *Chain) addFragments(ctx context.Context, d *Document) {
	feed, _ := c.bundle(ctx, d, false)
	if feed == nil {
		return
	}
	found := make(map[string][]byte, len(feed.Entries))
	for i := range feed.Entries {
		e := &feed.Entries[i]
		found[Key(e.ID, e.Updated)] = e.Fragment
	}
	for i := range d.Entries {
		e := &d.Entries[i]
		e.Fragment = found[Key(e.ID, e.Updated)]
	}
}

// bundle returns a document with its fragments; nil if it is not available. With more, it may fetch the next one while
// this one is read.
func (c *Chain) bundle(ctx context.Context, d *Document, more bool) (*feeds.Feed, *fetch.Answer) {
	now := c.ahead
	if c.ahead = nil; now == nil || now.url != d.From {
		now.stop()
		now = c.begin(ctx, d.From)
	}
	defer now.cancel()
	for older := now.older; ; older = nil { // sent once
		select {
		case url := <-older:
			if more && c.Ahead {
				c.ahead = c.begin(ctx, url)
			}
			continue
		case <-now.done:
		}
		if c.bundles, c.failed = now.err == nil, now.err != nil; c.failed {
			return nil, nil
		}
		return now.feed, now.answer
	}
}

// ahead is a bundle that is being fetched.
type ahead struct {
	url    string
	cancel context.CancelFunc
	older  chan string   // the URL of the next older document, once known
	done   chan struct{} // closed when the rest is there

	feed   *feeds.Feed
	answer *fetch.Answer
	err    error
}

func (c *Chain) begin(ctx context.Context, url string) *ahead {
	a := &ahead{url: url, older: make(chan string, 1), done: make(chan struct{})}
	ctx, a.cancel = context.WithCancel(ctx)
	once := *c.Fetcher
	once.Tries = 1
	go func() {
		defer close(a.done)
		a.feed, a.answer, a.err = bundle(ctx, &once, c.Limits, url, func(head *feeds.Feed) {
			if l, ok := head.Link("prev-archive"); ok {
				a.older <- l.Href
			}
		})
	}()
	return a
}

// stop ends it. It may be nil.
func (a *ahead) stop() {
	if a != nil {
		a.cancel()
		<-a.done
	}
}
