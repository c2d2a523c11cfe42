// Package since is an extension: the fragments feed of SDShare 2012, which begins at a time and has pages.
package since

import (
	"errors"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/ext/since/position"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Extension returns it.
func Extension() extension.Extension {
	return extension.Extension{Name: "since", Serve: func(s *server.Server) (*server.Part, error) {
		return &server.Part{Beside: pages{s}.beside}, nil
	}}
}

// The fragments feed of SDShare 2012: the last entry of each topic since a time, the oldest first. A long one is a
// paged feed (RFC 5005 §3, Paged Feeds) whose next links contain a position instead of a page number, so that new
// entries do not move others: a topic that changes between two pages comes once more, or later, but is never missed.

type pages struct{ *server.Server }

// beside answers requests for the fragments feed with ?since= or ?page=.
func (s pages) beside(d server.Document, feed web.Handler) web.Handler {
	if d != server.FragmentsFeed {
		return feed
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		p, err := position.Parse(r.URL.RawQuery)
		if err != nil {
			return err
		}
		if p == nil {
			return feed(w, r)
		}
		return s.WriteFeed(w, r, func(v *store.View) (*feeds.Feed, error) { return s.feed(v, p) })
	}
}

// feed returns one page.
func (s pages) feed(v *store.View, p *position.Position) (*feeds.Feed, error) {
	c := &v.Collection
	if p.After > 0 && p.Epoch != c.Epoch {
		return nil, web.Problemf(http.StatusGone, "this page belongs to an earlier history of %s; the feed is at %s", c.Name,
			s.URLs.Fragments(c))
	}
	first := position.Position{From: p.From}
	self := first
	self.After, self.Epoch = p.After, c.Epoch
	feed := s.FragmentsHead(c)
	feed.Title = server.Title(c) + ": Fragments since " + feeds.FormatTime(p.From)
	feed.Language, feed.TitleLanguage = server.Languages(c)
	feed.Updated = c.Updated
	feed.Links = append([]feeds.Link{
		server.AtomLink("self", s.url(c, &self)), server.AtomLink("first", s.url(c, &first)),
		server.AtomLink("current", s.URLs.Fragments(c)),
	}, s.FragmentsLinks(c)...)

	from := p.From
	if p.After >= v.Horizon && p.After > 0 && !from.After(v.HorizonTime) {
		from = v.HorizonTime.Add(time.Microsecond) // all pruned since the last page was before it or on it
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
			feed.Links = append(feed.Links, server.AtomLink("next", s.url(c, &next)))
			break
		}
		entries = append(entries, e)
		next.After = e.Seq
	}
	return feed, s.AddEntries(v, feed, entries)
}

// url is the URL of a page.
func (s pages) url(c *store.Collection, p *position.Position) string {
	if p.After == 0 {
		return s.URLs.Fragments(c) + "?since=" + feeds.FormatTime(p.From)
	}
	return s.URLs.Fragments(c) + "?page=" + p.Page()
}
