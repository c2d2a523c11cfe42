package server

import (
	"context"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/store"
)

// followable returns the links from the followed feeds to related documents: the inputs of a derived collection, and
// those that parts add.
func (s *Server) followable(ctx context.Context, c *store.Collection) ([]feeds.Link, error) {
	from, err := inputs.Links(ctx, s.Store, c, s.URLs.Fragments)
	return append(from, s.followLinks(c)...), err
}

// AtomLink returns a link to an Atom document.
func AtomLink(rel, href string) feeds.Link {
	return feeds.Link{Rel: rel, Type: feeds.MediaTypeAtom, Href: href}
}

// bundleLink leads from a document of the fragments feed to the same one with the fragments in it.
func bundleLink(document string) feeds.Link {
	return feeds.Link{Rel: feeds.RelBundle, Type: feeds.MediaTypeBundle, Href: document + bundleEnding}
}

// atomLinks returns the links with one meaning, as each dialect calls it.
func atomLinks(href string, rels ...feeds.Rel) []feeds.Link {
	links := make([]feeds.Link, len(rels))
	for i, rel := range rels {
		links[i] = AtomLink(rel, href)
	}
	return links
}

// What the dialects call the feeds (protocol: TMShare, SDShare 2012, SDShare of the CWA era).
var (
	collectionFeedRels = []feeds.Rel{feeds.RelTopicMapFeed, feeds.RelSDShareCollectionFeed, feeds.RelCWACollectionFeed}
	fragmentsFeedRels  = []feeds.Rel{feeds.RelFragmentFeed, feeds.RelSDShareFragmentsFeed, feeds.RelCWAFragmentsFeed}
	snapshotsFeedRels  = []feeds.Rel{feeds.RelSnapshotFeed, feeds.RelSDShareSnapshotsFeed, feeds.RelCWASnapshotsFeed}
)
