package server

import (
	"errors"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/since"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// The fragments feed of SDShare 2012: the entries since a time, the oldest first,
// of each topic only the last. Where there are many, it is a paged feed (RFC 5005
// §3, Paged Feeds) whose next links bear a position rather than a page number, so
// that what is published meanwhile moves nothing: a topic that changes between
// two pages comes once more, or later, but is never missed.

// sinceFeed returns one page.
func (s *Server) sinceFeed(v *store.View, p *since.Position) (*feeds.Feed, error) {
	c := &v.Collection
	if p.After > 0 && p.Epoch != c.Epoch {
		return nil, web.Problemf(http.StatusGone, "this page belongs to an earlier history of %s; the feed is at %s", c.Name, s.URLs.Fragments(c))
	}
	first := since.Position{From: p.From}
	self := first
	self.After, self.Epoch = p.After, c.Epoch
	feed := s.fragmentsHead(c)
	feed.Title = name(c) + ": Fragments since " + feeds.FormatTime(p.From)
	feed.Updated = c.Updated
	feed.Links = append([]feeds.Link{
		atomLink("self", s.sinceURL(c, &self)), atomLink("first", s.sinceURL(c, &first)), atomLink("current", s.URLs.Fragments(c)),
	}, s.fragmentsLinks(c)...)

	from := p.From
	if p.After >= v.Horizon && p.After > 0 && !from.After(v.HorizonTime) {
		from = v.HorizonTime.Add(time.Microsecond) // what was pruned since the last page stood on it or before
	}
	next := self
	var entries []store.Entry
	for e, err := range v.Since(from, p.After) {
		if errors.Is(err, store.ErrGone) {
			return nil, s.Pruned(c, "the history back to "+feeds.FormatTime(p.From))
		}
		if err != nil {
			return nil, err
		}
		if len(entries) == c.DocumentSize {
			feed.Links = append(feed.Links, atomLink("next", s.sinceURL(c, &next)))
			break
		}
		entries = append(entries, e)
		next.After = e.Seq
	}
	return feed, s.addEntries(v, feed, entries)
}

// sinceURL is the URL of a page.
func (s *Server) sinceURL(c *store.Collection, p *since.Position) string {
	if p.After == 0 {
		return s.URLs.Fragments(c) + "?since=" + feeds.FormatTime(p.From)
	}
	return s.URLs.Fragments(c) + "?page=" + p.Page()
}
