package server

import (
	"context"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/hub"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/server/replicas"
	"github.com/tmshare/tmshare/internal/store"
)

// followable returns the links from the feeds that are followed to what belongs to them: what the collection is derived from, and the
// hubs that are told of its changes.
func (s *Server) followable(ctx context.Context, c *store.Collection) ([]feeds.Link, error) {
	from, err := inputs.Links(ctx, s.Store, c, s.urls.Fragments)
	return append(from, hub.Links(s.hubsOf(c))...), err
}

// hubsOf returns the hubs that are told of changes of a collection: of one that only some may read, none is.
func (s *Server) hubsOf(c *store.Collection) []string {
	if len(s.readers[c.Name]) > 0 {
		return nil
	}
	return s.Hubs
}

// topics returns the documents that hubs are told of.
func (s *Server) topics(c *store.Collection) (urls []string) {
	if len(s.hubsOf(c)) == 0 || inputs.CanBeRead(c) != nil {
		return nil
	}
	urls = append(urls, s.urls.Fragments(c))
	if replicas.HasRecords(c) == nil {
		urls = append(urls, s.urls.Records(c))
	}
	if !c.NoResourceSync {
		urls = append(urls, s.site(c).ChangeListURL())
	}
	return urls
}

func atomLink(rel, href string) feeds.Link {
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
		links[i] = atomLink(rel, href)
	}
	return links
}

// What the dialects call the feeds (protocol: TMShare, SDShare 2012, SDShare of the CWA era).
var (
	collectionFeedRels = []feeds.Rel{feeds.RelTopicMapFeed, feeds.RelSDShareCollectionFeed, feeds.RelCWACollectionFeed}
	fragmentsFeedRels  = []feeds.Rel{feeds.RelFragmentFeed, feeds.RelSDShareFragmentsFeed, feeds.RelCWAFragmentsFeed}
	snapshotsFeedRels  = []feeds.Rel{feeds.RelSnapshotFeed, feeds.RelSDShareSnapshotsFeed, feeds.RelCWASnapshotsFeed}
)
