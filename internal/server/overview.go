package server

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/dated"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// topicMapsFeed is the Topic Maps Feed of TMShare.
func (s *Server) topicMapsFeed(w http.ResponseWriter, r *http.Request) error {
	all, err := s.visible(r)
	if err != nil {
		return err
	}
	feed := &feeds.Feed{
		ID:       uuid.NewSHA1(uuid.NameSpaceURL, []byte(s.urls.Overview())).URN(),
		Title:    "Topic Maps managed by " + strings.TrimPrefix(strings.TrimPrefix(s.BaseURL, "https://"), "http://"),
		Author:   author,
		Updated:  time.Unix(0, 0), // for a server without any
		Links:    []feeds.Link{atomLink("self", s.urls.Overview())},
		Complete: true,
	}
	conditions, advice, err := inputs.Conditions(r.Context(), s.Store)
	if err != nil {
		return err
	}
	for i := range all {
		e := s.collectionEntry(&all[i])
		if e.Condition = conditions[all[i].Name]; e.Condition != "" {
			e.Summary = e.Condition + ": " + advice[all[i].Name]
		}
		feed.Entries = append(feed.Entries, e)
		if all[i].Updated.After(feed.Updated) {
			feed.Updated = all[i].Updated
		}
	}
	return s.writeAtom(w, r, feed, cacheShortly)
}

func (s *Server) collectionEntry(c *store.Collection) feeds.Entry {
	href := s.urls.Map(c)
	summary := c.Summary
	if strings.TrimSpace(summary) == "" {
		summary = strconv.Itoa(c.Topics) + " topics"
	}
	return feeds.Entry{
		ID: derived(c, "topicmap"), Title: name(c), Updated: c.Updated, Summary: summary,
		Links: append([]feeds.Link{atomLink("self", href+".atom"), atomLink("alternate", href)}, atomLinks(href, collectionFeedRels...)...),
	}
}

func (s *Server) topicMapEntry(w http.ResponseWriter, r *http.Request) error {
	return s.overviewOf(w, r, func(c *store.Collection) atomDocument { return authored(s.collectionEntry(c)) })
}

// topicMapFeed is the Topic Map Feed of TMShare: exactly two entries.
func (s *Server) topicMapFeed(w http.ResponseWriter, r *http.Request) error {
	return s.overviewOf(w, r, func(c *store.Collection) atomDocument { return s.topicMapDocument(c) })
}

// overviewOf answers with a document that says where the feeds of a collection are. It is there while the collection is being filled.
func (s *Server) overviewOf(w http.ResponseWriter, r *http.Request, document func(*store.Collection) atomDocument) error {
	name := web.Var(r, "map")
	web.RecorderOf(r).Settled = s.keeper.Changes.Settled(r.Context(), name)
	l, checked, err := s.Store.LatestAt(r.Context(), name)
	if err != nil {
		return err
	}
	dated.State(r, checked)
	s.addSourceLink(w.Header(), &l.Collection)
	return s.writeAtom(w, r, document(&l.Collection), cacheShortly)
}

func (s *Server) topicMapDocument(c *store.Collection) *feeds.Feed {
	return &feeds.Feed{
		ID: derived(c, "topicmap"), Title: name(c), Subtitle: cmp.Or(strings.TrimSpace(c.Summary), "Feeds around the "+name(c)),
		Author: author, Updated: c.Updated, Complete: true,
		Links:   []feeds.Link{atomLink("self", s.urls.Map(c)), atomLink("up", s.urls.Overview()), atomLink(feeds.RelRecordsFeed, s.urls.Records(c))},
		Entries: []feeds.Entry{s.fragmentsEntry(c), s.snapshotsEntry(c)},
	}
}

func (s *Server) fragmentsEntry(c *store.Collection) feeds.Entry {
	href := s.urls.Fragments(c)
	return feeds.Entry{
		ID: derived(c, "fragments"), Title: name(c) + ": Fragments", Updated: c.Updated,
		Links: append([]feeds.Link{atomLink("self", href+".atom"), atomLink("alternate", href)}, atomLinks(href, fragmentsFeedRels...)...),
	}
}

func (s *Server) snapshotsEntry(c *store.Collection) feeds.Entry {
	href := s.urls.Snapshots(c)
	return feeds.Entry{
		ID: derived(c, "snapshots"), Title: name(c) + ": Snapshots", Updated: c.Updated,
		Links: append([]feeds.Link{atomLink("self", href+".atom"), atomLink("alternate", href)}, atomLinks(href, snapshotsFeedRels...)...),
	}
}

func (s *Server) fragmentsFeedEntry(w http.ResponseWriter, r *http.Request) error {
	return s.overviewOf(w, r, func(c *store.Collection) atomDocument { return authored(s.fragmentsEntry(c)) })
}

func (s *Server) snapshotsFeedEntry(w http.ResponseWriter, r *http.Request) error {
	return s.overviewOf(w, r, func(c *store.Collection) atomDocument { return authored(s.snapshotsEntry(c)) })
}
