package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// topicMapsFeed is the Topic Maps Feed of TMShare.
func (s *Server) topicMapsFeed(w http.ResponseWriter, r *http.Request) error {
	node, err := s.listing(r)
	if err != nil {
		return err
	}
	hidden := s.hidden(r)
	broken, _ := s.watcher.AllBroken()
	others, state, err := s.Elsewhere(r)
	if err != nil {
		return err
	}
	tag, document, err := s.overviews.Get(node, fmt.Sprint(hidden, broken, state), func() ([]byte, error) {
		return encoded(s.overview(node, hidden, broken, others))
	})
	if err != nil {
		return err
	}
	return s.writeFeed(w, r, tag, document)
}

// BeingMoved is the condition of a collection that moves to another server, which may have it already.
const BeingMoved = "being moved"

// overview makes the Topic Maps Feed without the collections of some names, and with the entries of others that other
// servers have. The files of some are broken.
func (s *Server) overview(node *store.Listing, without, broken []string, others []feeds.Entry) *feeds.Feed {
	all := node.Except(without)
	feed := &feeds.Feed{
		ID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(s.URLs.Overview())).URN(),
		Title: "Topic Maps managed by " +
			cmp.Or(s.Config.Name, strings.TrimPrefix(strings.TrimPrefix(s.BaseURL, "https://"), "http://")),
		Author:   Author,
		Updated:  time.Unix(0, 0), // for a server without any
		Links:    []feeds.Link{AtomLink("self", s.URLs.Overview())},
		Complete: true, Entries: make([]feeds.Entry, 0, len(all)),
	}
	for i := range all {
		e := s.collectionEntry(&all[i])
		var advice string
		e.Condition, advice = inputs.Condition(node, &all[i])
		if e.Condition == "" && slices.Contains(broken, all[i].Name) {
			e.Condition = "file not published"
			advice = "it is missing, broken, or would lose too many topics; \"tmshare-server doctor\" says more"
		}
		if e.Condition == "" && all[i].Replica != nil {
			if f := node.Followed(all[i].Name); f != nil && f.LastError != "" {
				e.Condition, advice = "not in step", "its last round failed; \"tmshare-server doctor\" says why"
			}
		}
		if all[i].Leaving != nil {
			e.Condition, advice = BeingMoved, "it is not written meanwhile; \"collections move\" completes that, or ends it"
		}
		if e.Condition != "" {
			e.Summary = e.Condition + ": " + advice
			_, e.SummaryLanguage = Languages(&all[i])
		}
		for _, former := range all[i].Former {
			if !slices.Contains(without, former) {
				e.Links = append(e.Links, AtomLink(string(feeds.RelFormer), s.URLs.Overview()+"/"+former))
			}
		}
		feed.Entries = append(feed.Entries, e)
		if all[i].Updated.After(feed.Updated) {
			feed.Updated = all[i].Updated
		}
	}
	for i := range others {
		if others[i].Updated.After(feed.Updated) {
			feed.Updated = others[i].Updated
		}
	}
	if len(others) > 0 {
		feed.Entries = append(feed.Entries, others...)
		slices.SortFunc(feed.Entries, func(a, b feeds.Entry) int {
			one, _ := a.Link("alternate")
			other, _ := b.Link("alternate")
			return strings.Compare(one.Href, other.Href)
		})
	}
	return feed
}

func (s *Server) collectionEntry(c *store.Collection) feeds.Entry {
	href := s.URLs.Map(c)
	summary, language, words := summaryOf(c, strconv.Itoa(c.Topics)+" topics")
	return feeds.Entry{
		ID: DerivedID(c, "topicmap"), Title: Title(c), Updated: c.Updated, Summary: summary,
		Language: language, SummaryLanguage: words,
		Links: append([]feeds.Link{AtomLink("self", href+".atom"), AtomLink("alternate", href)},
			atomLinks(href, collectionFeedRels...)...),
	}
}

// summaryOf returns the summary of a collection, or another text; the language of titles, and that of the text.
func summaryOf(c *store.Collection, otherwise string) (summary, language, words string) {
	language, words = Languages(c)
	if strings.TrimSpace(c.Summary) != "" {
		return c.Summary, language, ""
	}
	return otherwise, language, words
}

// entryOf is a handler that answers with an entry of such a document.
func (s *Server) entryOf(entry func(*store.Collection) feeds.Entry) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return s.overviewOf(w, r, func(c *store.Collection) atomDocument { return authored(entry(c)) })
	}
}

// topicMapFeed is the Topic Map Feed of TMShare: exactly two entries.
func (s *Server) topicMapFeed(w http.ResponseWriter, r *http.Request) error {
	return s.overviewOf(w, r, func(c *store.Collection) atomDocument { return s.topicMapDocument(c) })
}

// overviewOf serves a document with the addresses of a collection's feeds, also while the collection is being filled.
func (s *Server) overviewOf(w http.ResponseWriter, r *http.Request,
	document func(*store.Collection) atomDocument) error {
	l, err := s.latestOf(r)
	if err != nil {
		return err
	}
	s.AddPartLinks(w.Header(), &l.Collection)
	return s.writeAtom(w, r, document(&l.Collection))
}

func (s *Server) topicMapDocument(c *store.Collection) *feeds.Feed {
	subtitle, language, words := summaryOf(c, "Feeds around the "+Title(c))
	return &feeds.Feed{
		ID: DerivedID(c, "topicmap"), Title: Title(c), Subtitle: subtitle, Language: language, SubtitleLanguage: words,
		Author: Author, Updated: c.Updated, Complete: true,
		Links:   append([]feeds.Link{AtomLink("self", s.URLs.Map(c)), AtomLink("up", s.URLs.Overview())}, s.feedLinks(c)...),
		Entries: []feeds.Entry{s.fragmentsEntry(c), s.snapshotsEntry(c)},
	}
}

func (s *Server) fragmentsEntry(c *store.Collection) feeds.Entry {
	return feedEntry(c, "fragments", "Fragments", s.URLs.Fragments(c), fragmentsFeedRels)
}

func (s *Server) snapshotsEntry(c *store.Collection) feeds.Entry {
	return feedEntry(c, "snapshots", "Snapshots", s.URLs.Snapshots(c), snapshotsFeedRels)
}

// feedEntry is the entry of a feed of the collection.
func feedEntry(c *store.Collection, what, title, href string, rels []feeds.Rel) feeds.Entry {
	_, words := Languages(c)
	return feeds.Entry{
		Language: words, ID: DerivedID(c, what), Title: Title(c) + ": " + title, Updated: c.Updated,
		Links: append([]feeds.Link{AtomLink("self", href+".atom"), AtomLink("alternate", href)}, atomLinks(href, rels...)...),
	}
}
