package follow

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
)

// Chain reads the documents of a feed: the recent one, then older ones, along its archive documents (RFC 5005 §4,
// Archived Feeds), or its pages (§3, Paged Feeds). A complete feed (§2) is one document.
type Chain struct {
	Fetcher  *fetch.Fetcher
	Limits   feeds.Limits // of one document
	MaxDocs  int          // default 100,000
	MaxBytes int64        // of all documents, unpacked; default: no limit

	// Check is given each document before any of it is used. It may be nil.
	Check    func(*Document) error
	Progress func(documents int) // may be nil

	// Advice ends the message about a feed that cannot be read to its end.
	Advice string

	// Wants returns whether the fragments of a document are wanted, if the server offers it as a bundle. If so, Chain
	// reads the older documents as bundles at once. nil: they are not wanted.
	Wants func(*Document) bool
	Ahead bool // the next bundle is fetched while one is read

	id      string // of the feed
	bundles bool   // documents are read with the fragments in them
	failed  bool   // reading a bundle failed
	ahead   *ahead // the bundle that is prefetched; nil: none
}

// Document is one document of a feed.
type Document struct {
	*feeds.Feed // nil where it has not changed
	*fetch.Answer
	From  string // the URL that led to it
	Count int    // it is the one with this number, from 1
	Page  bool   // a page, whose content may move

	older string // the URL of the next older document, "" for none
	paged bool   // that is a page
}

// LeadsToPage reports whether the next older document is a page, whose content may move.
func (d *Document) LeadsToPage() bool { return d.paged && d.older != "" }

// IsLast reports whether there is no older document.
func (d *Document) IsLast() bool { return d.older == "" }

// BrokenError is the error for a document that cannot be fetched though another one links to it.
type BrokenError struct{ err error }

func (e *BrokenError) Error() string {
	return "the chain of the feed's documents is broken: " + e.err.Error()
}

// Unwrap returns why it cannot be fetched.
func (e *BrokenError) Unwrap() error { return e.err }

// Documents iterates over the documents from the one at a URL on, which is not read where its ETag is
// still the given one.
func (c *Chain) Documents(ctx context.Context, ref, etag string) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		seen := map[[sha256.Size]byte]bool{} // of the URLs, which may be long
		size := int64(0)
		defer func() { c.ahead.stop() }()
		d := &Document{older: ref}
		for d.older != "" {
			d = &Document{From: d.older, Count: d.Count + 1, Page: d.paged}
			digest := sha256.Sum256([]byte(d.From))
			var err error
			switch limit := cmp.Or(c.MaxDocs, 100_000); {
			case seen[digest]:
				err = fmt.Errorf("%s: the documents of the feed lead in a circle; %s", d.From, c.advice())
			case len(seen) == limit:
				err = fmt.Errorf("%s: the feed has more than %d documents that are new: its server may make them up; %s", ref,
					limit, c.advice())
			default:
				err = c.read(ctx, d, etag)
			}
			if err == nil && d.Feed != nil {
				if size += d.Body.Size(); c.MaxBytes > 0 && size > c.MaxBytes {
					err = fmt.Errorf(
						"%s: the documents of the feed that are new have more than %d MB: its server may make them up; %s", ref,
						c.MaxBytes>>20, c.advice())
				}
			}
			if !yield(d, err) || err != nil || d.Feed == nil {
				return
			}
			seen[digest], etag = true, ""
		}
	}
}

// read reads a document.
func (c *Chain) read(ctx context.Context, d *Document, etag string) (err error) {
	bundle := c.bundles && c.readBundle(ctx, d)
	if !bundle {
		d.Feed, d.Answer, err = Feed(ctx, c.Fetcher, c.Limits, d.From, etag)
	}
	switch {
	case err != nil && d.Count > 1 && ctx.Err() == nil:
		return &BrokenError{err}
	case err != nil:
		return err
	case d.NotModified:
		d.Feed = nil
		return nil
	}
	if c.Check != nil {
		if err := c.Check(d); err != nil {
			return err
		}
	}
	if c.Progress != nil {
		c.Progress(d.Count)
	}
	c.id = d.ID
	if _, offered := d.Feed.Link(feeds.RelBundle); offered && !bundle && !c.failed && c.Wants != nil && c.Wants(d) {
		c.addFragments(ctx, d)
	}
	if d.Complete { // it has all entries
		return nil
	}
	if l, ok := d.Feed.Link("prev-archive"); ok {
		d.older = l.Href
	} else if l, ok := d.Feed.Link("next"); ok && !d.Archive {
		d.older, d.paged = l.Href, true
	}
	return nil
}

func (c *Chain) advice() string { return cmp.Or(c.Advice, "tell the owner of the server") }
