package server

import (
	"fmt"
	"net/url"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
)

// The URLs of a collection's documents. Nobody else builds them: readers follow
// links.

func (s *Server) overviewURL() string { return s.BaseURL + "/topicmaps" }

func (s *Server) mapURL(c *store.Collection) string {
	return s.overviewURL() + "/" + url.PathEscape(c.Name)
}

func (s *Server) snapshotsURL(c *store.Collection) string { return s.mapURL(c) + "/snapshots" }

func (s *Server) snapshotURL(c *store.Collection, id uuid.UUID) string {
	return s.snapshotsURL(c) + "/" + id.String()
}

func (s *Server) currentURL(c *store.Collection) string { return s.snapshotsURL(c) + "/current" }

func (s *Server) fragmentsURL(c *store.Collection) string { return s.mapURL(c) + "/fragments" }

func (s *Server) fragmentURL(c *store.Collection, seq uint64) string {
	return s.fragmentsURL(c) + "/" + c.ID(seq).String()
}

func (s *Server) topicURL(c *store.Collection, topicSI fragment.Ref) string {
	return s.mapURL(c) + "/topics/" + url.PathEscape(fragment.Key(topicSI))
}

func (s *Server) archiveURL(c *store.Collection, n uint64) string {
	return fmt.Sprintf("%s/archive/%s-%d", s.fragmentsURL(c), c.Epoch, n)
}

func (s *Server) recordsURL(c *store.Collection) string { return s.mapURL(c) + "/records" }

func (s *Server) completeRecordsURL(c *store.Collection) string { return s.recordsURL(c) + "/complete" }

func (s *Server) recordsArchiveURL(c *store.Collection, n uint64) string {
	return fmt.Sprintf("%s/archive/%s-%d", s.recordsURL(c), c.Epoch, n)
}

// DefaultPrefix is the source locator prefix of a collection for which none is
// given.
func DefaultPrefix(baseURL, name string) string {
	return baseURL + "/topicmaps/" + url.PathEscape(name) + "/"
}

func atomLink(rel, href string) feeds.Link {
	return feeds.Link{Rel: rel, Type: feeds.MediaTypeAtom, Href: href}
}

// dataLinks returns the links to both forms of a fragment or a snapshot: as
// TMShare and SDShare name them, and as alternates for feed readers.
func dataLinks(href, sdshareRel string) []feeds.Link {
	var links []feeds.Link
	for _, v := range store.Forms {
		for _, rel := range []string{feeds.RelTopicMapData, sdshareRel, "alternate"} {
			links = append(links, feeds.Link{Rel: rel, Type: mediaType(v), Href: href + extension(v)})
		}
	}
	return links
}
