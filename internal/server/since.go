package server

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// The fragments feed of SDShare 2012: the entries since a time, the oldest first,
// of each topic only the last. Where there are many, it is a paged feed (RFC 5005
// §3, Paged Feeds) whose next links bear a position rather than a page number, so
// that what is published meanwhile moves nothing: a topic that changes between
// two pages comes once more, or later, but is never missed.

// since is what is asked for: the entries not before a time, behind a position.
type since struct {
	from  time.Time // in whole microseconds, as times of entries are
	after uint64    // sequence of the last entry of the page before; 0: the first page
	epoch uuid.UUID // of the collection that gave the position out
}

// parseSince reads the query of the fragments feed. It returns nil for the feed
// as such.
func parseSince(query string) (*since, error) {
	q, err := url.ParseQuery(query)
	switch {
	case err != nil:
		return nil, web.Problemf(http.StatusBadRequest, "the query cannot be read: %s", err)
	case q.Has("page"):
		page, err := parsePage(q.Get("page"))
		if err != nil {
			return nil, web.Problemf(http.StatusBadRequest, "page is no position of this server; follow the next links, from ?since= on")
		}
		return page, nil
	case q.Has("since"):
		from, err := parseSinceTime(q.Get("since"))
		if err != nil {
			return nil, web.Problemf(http.StatusBadRequest, "since is not a date and time of RFC 3339 (as 2012-07-10T12:00:00Z): %s", err)
		}
		return &since{from: from}, nil
	}
	return nil, nil
}

// parseSinceTime reads a time in whole microseconds, as those of entries are.
func parseSinceTime(text string) (time.Time, error) {
	t, err := history.ParseTime(text)
	if err != nil {
		return t, err
	}
	if whole := t.Truncate(time.Microsecond); whole.Before(t) {
		t = whole.Add(time.Microsecond)
	}
	if !hasYear(t) {
		return t, errors.New("in UTC its year has not four digits")
	}
	return t, nil
}

func hasYear(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }

// page returns the position as it stands in URLs: epoch, time, and sequence.
func (p *since) page() string {
	b := append([]byte(nil), p.epoch[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(p.from.UnixMicro()))
	b = binary.BigEndian.AppendUint64(b, p.after)
	return base64.RawURLEncoding.EncodeToString(b)
}

func parsePage(text string) (*since, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 32 {
		return nil, errors.New("no position")
	}
	p := &since{after: binary.BigEndian.Uint64(b[24:])}
	copy(p.epoch[:], b)
	p.from = time.UnixMicro(int64(binary.BigEndian.Uint64(b[16:]))).UTC()
	if p.after == 0 || !hasYear(p.from) {
		return nil, errors.New("no position")
	}
	return p, nil
}

// sinceFeed returns one page.
func (s *Server) sinceFeed(v *store.View, p *since) (*feeds.Feed, error) {
	c := &v.Collection
	if p.after > 0 && p.epoch != c.Epoch {
		return nil, web.Problemf(http.StatusGone, "this page belongs to an earlier history of %s; the feed is at %s", c.Name, s.urls.Fragments(c))
	}
	first := since{from: p.from}
	self := first
	self.after, self.epoch = p.after, c.Epoch
	feed := s.fragmentsHead(c)
	feed.Title = name(c) + ": Fragments since " + feeds.FormatTime(p.from)
	feed.Updated = c.Updated
	feed.Links = append([]feeds.Link{
		atomLink("self", s.sinceURL(c, &self)), atomLink("first", s.sinceURL(c, &first)), atomLink("current", s.urls.Fragments(c)),
	}, s.fragmentsLinks(c)...)

	from := p.from
	if p.after >= v.Horizon && p.after > 0 && !from.After(v.HorizonTime) {
		from = v.HorizonTime.Add(time.Microsecond) // what was pruned since the last page stood on it or before
	}
	next := self
	for e, err := range v.Since(from, p.after) {
		if errors.Is(err, store.ErrGone) {
			return nil, s.pruned(c, "the history back to "+feeds.FormatTime(p.from))
		}
		if err != nil {
			return nil, err
		}
		if len(feed.Entries) == c.DocumentSize {
			feed.Links = append(feed.Links, atomLink("next", s.sinceURL(c, &next)))
			break
		}
		feed.Entries = append(feed.Entries, s.fragmentFeedEntry(c, &e))
		next.after = e.Seq
	}
	return feed, nil
}

// sinceURL is the URL of a page.
func (s *Server) sinceURL(c *store.Collection, p *since) string {
	if p.after == 0 {
		return s.urls.Fragments(c) + "?since=" + feeds.FormatTime(p.from)
	}
	return s.urls.Fragments(c) + "?page=" + p.page()
}
