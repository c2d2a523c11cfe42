package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Part is the part of a server that an extension adds. Nil fields add nothing. Its functions are called concurrently.
type Part struct {
	// Routes adds paths with handlers for GET and HEAD. The server checks the permission to read before.
	Routes func(get func(path string, h web.Handler))
	// Forms adds paths with their methods. Their handlers check permissions.
	Forms func(handle func(path string, h web.Handler, methods ...string))

	// About returns the address of the page for people about a document of the server.
	About func(document string) string
	// Authenticate returns the token of a request without the header Authorization; nil: none.
	Authenticate func(*http.Request) *web.Token
	// Challenge redirects a client without a token for reading to a page that takes one, and reports whether it did.
	Challenge func(http.ResponseWriter, *http.Request) bool
	// Problem answers with a problem in a form for people, and reports whether it did.
	Problem func(http.ResponseWriter, *http.Request, *web.Problem) bool

	// Beside returns the handler for GET and HEAD in place of that of a document, which it may call.
	Beside func(Document, web.Handler) web.Handler
	// FollowLinks returns the links of the followed documents of a collection, for their headers, and for feeds.
	FollowLinks func(*store.Collection) []feeds.Link
	// Links returns the links of all that belongs to a collection, in headers and in the heads of pages. For a nil
	// collection they are those of the overview.
	Links func(*store.Collection) []feeds.Link
	// FeedLinks returns the links of the feed of a collection, and of its fragments feed, to other feeds.
	FeedLinks func(*store.Collection) []feeds.Link
	// TopicLinks returns the links of a topic, in headers.
	TopicLinks func(*store.Collection, *store.Entry) []feeds.Link
	// Followed returns the URLs of followed documents of a collection besides its feeds.
	Followed func(*store.Collection) []string

	// Elsewhere returns the handler for a request about a collection that another server has; nil: it is here, or
	// nowhere.
	Elsewhere func(*http.Request) web.Handler
	// Entries returns the entries of such collections for the overview, and a text that is another for others. The
	// server is told of changes by [Server.ChangedElsewhere].
	Entries func() (all []feeds.Entry, state string, err error)

	// InWords describes the changes of some entries, the newest first, in words for feed readers.
	InWords func(*store.View, []store.Entry) ([]string, error)

	// Jobs run in the background from Start to Close.
	Jobs []Job
	// Tasks are done for each collection that has changed.
	Tasks []upkeep.Task
	// Metrics are shown with those of the server.
	Metrics []prometheus.Collector
}

// elsewhere returns the handler for a request about a collection of another server; nil: it is here, or nowhere.
func (s *Server) elsewhere(r *http.Request) web.Handler {
	for _, p := range s.parts {
		if p.Elsewhere != nil {
			if h := p.Elsewhere(r); h != nil {
				return h
			}
		}
	}
	return nil
}

// Elsewhere returns the entries of the collections that other servers have, and a text that is another for others. An
// answer with any of them has no time of its last change, because that is not known here.
func (s *Server) Elsewhere(r *http.Request) (all []feeds.Entry, state string, err error) {
	for _, p := range s.parts {
		if p.Entries == nil {
			continue
		}
		some, own, err := p.Entries()
		if err != nil {
			return nil, "", err
		}
		all, state = append(all, some...), state+own
		web.RecorderOf(r).Settled = time.Time{}
	}
	return all, state, nil
}

// ChangedElsewhere has requests looked at again that wait for a change of the overview.
func (s *Server) ChangedElsewhere() { s.waiting.wake("", nil) }

// Document is a kind of documents of the server.
type Document int

// The documents that parts may answer for.
const (
	Overview Document = iota
	MapFeed
	SnapshotsFeed
	FragmentsFeed // the recent document
	FragmentsArchive
	Fragment
	TopicsFound
	Topic
	History
)

// beside returns the handler in place of that of a document: the first part's, around that of the second, and so on.
func (s *Server) beside(d Document, h web.Handler) web.Handler {
	for _, p := range slices.Backward(s.parts) {
		if p.Beside != nil {
			h = p.Beside(d, h)
		}
	}
	return h
}

// About returns the address of the page for people about a document; the document itself if there is none.
func (s *Server) About(document string) string {
	for _, p := range s.parts {
		if p.About != nil {
			return p.About(document)
		}
	}
	return document
}

// pageOf returns a link from an entry to the page for people.
func (s *Server) pageOf(document string) []feeds.Link {
	if page := s.About(document); page != document {
		return []feeds.Link{{Rel: "alternate", Type: "text/html", Href: page}}
	}
	return nil
}

// forPeople adds to the entries of a document of the fragments feed their pages and descriptions. Archive documents
// have none, because they never change, but other extensions or programs would write other texts.
func (s *Server) forPeople(v *store.View, feed *feeds.Feed) error {
	known, err := entriesOf(v, feed)
	if err != nil {
		return err
	}
	entries := make([]store.Entry, 0, len(known)) // the newest first
	for i := range feed.Entries {
		e := known[feed.Entries[i].ID]
		e.Commit = feed.Entries[i].Commit
		entries = append(entries, *e)
		links := &feed.Entries[i].Links // before the other alternates: some readers open the first one
		*links = slices.Insert(*links, 1, s.pageOf(s.URLs.Fragment(&v.Collection, e))...)
	}
	_, language := Languages(&v.Collection)
	for _, p := range s.parts {
		if p.InWords == nil {
			continue
		}
		words, err := p.InWords(v, entries)
		if err != nil {
			return err
		}
		for i := range words {
			e := &feed.Entries[i]
			if e.Changes = words[i]; e.Changes != "" && e.Summary == "" {
				e.SummaryLanguage = language
			}
		}
	}
	return nil
}

// authenticate returns the token of a request that a part recognises; nil if there is none.
func (s *Server) authenticate(r *http.Request) *web.Token {
	for _, p := range s.parts {
		if p.Authenticate != nil {
			if t := p.Authenticate(r); t != nil {
				return t
			}
		}
	}
	return nil
}

func (s *Server) challenge(w http.ResponseWriter, r *http.Request) bool {
	return slices.ContainsFunc(s.parts, func(p *Part) bool { return p.Challenge != nil && p.Challenge(w, r) })
}

func (s *Server) showProblem(w http.ResponseWriter, r *http.Request, problem *web.Problem) bool {
	return slices.ContainsFunc(s.parts, func(p *Part) bool { return p.Problem != nil && p.Problem(w, r, problem) })
}

// Job is work in the background. Where processes share the store, one of them does it.
type Job struct {
	Name string // unique among all jobs
	Run  func(context.Context)
}

// Followed returns the URLs of the followed documents of a collection; none if it needs a token, or cannot be read at
// present.
func (s *Server) Followed(c *store.Collection) (urls []string) {
	if !s.IsForAll(c) || canBeRead(c) != nil {
		return nil
	}
	urls = append(urls, s.URLs.Fragments(c))
	for _, p := range s.parts {
		if p.Followed != nil {
			urls = append(urls, p.Followed(c)...)
		}
	}
	return urls
}

// followLinks returns the links that parts add to the followed documents of a collection; none if it needs a token.
func (s *Server) followLinks(c *store.Collection) (links []feeds.Link) {
	if !s.IsForAll(c) {
		return nil
	}
	return s.linksOf(c, func(p *Part) func(*store.Collection) []feeds.Link { return p.FollowLinks })
}

// feedLinks returns the links that parts add to the feed of a collection, and to its fragments feed.
func (s *Server) feedLinks(c *store.Collection) []feeds.Link {
	return s.linksOf(c, func(p *Part) func(*store.Collection) []feeds.Link { return p.FeedLinks })
}

// Links returns the links that parts add to all that belongs to a collection; for a nil one, to the overview.
func (s *Server) Links(c *store.Collection) []feeds.Link {
	return s.linksOf(c, func(p *Part) func(*store.Collection) []feeds.Link { return p.Links })
}

func (s *Server) linksOf(c *store.Collection,
	linksOfPart func(*Part) func(*store.Collection) []feeds.Link) (links []feeds.Link) {
	for _, p := range s.parts {
		if add := linksOfPart(p); add != nil {
			links = append(links, add(c)...)
		}
	}
	return links
}

// AddPartLinks adds these links to a header.
func (s *Server) AddPartLinks(h http.Header, c *store.Collection) {
	for _, l := range s.Links(c) {
		web.AddLink(h, l.Href, string(l.Rel))
	}
}

// addTopicLinks adds the links of a topic to a header.
func (s *Server) addTopicLinks(h http.Header, c *store.Collection, e *store.Entry) {
	for _, p := range s.parts {
		if p.TopicLinks == nil {
			continue
		}
		for _, l := range p.TopicLinks(c, e) {
			if l.Type != "" {
				web.AddLink(h, l.Href, string(l.Rel), "type", l.Type)
			} else {
				web.AddLink(h, l.Href, string(l.Rel))
			}
		}
	}
}

// Run runs a job in the background, with a context that ends with Close. It is left undone, and false, when the server
// is closed.
func (s *Server) Run(job func(context.Context)) (begun bool) { return s.keeper.Run(job) }

// Changing calls a function of an extension that adds or removes a collection, and looks after that then.
func (s *Server) Changing(ctx context.Context, name string, change func() error) error {
	defer s.keeper.Changes.Begin(name)()
	if err := change(); err != nil {
		return err
	}
	s.keeper.Changed(&store.Collection{Name: name})
	return s.keeper.SweepTasks(context.WithoutCancel(ctx))
}

// Waiting makes requests wait for a change of a document, if they prefer to.
func (s *Server) Waiting(h web.Handler) web.Handler { return s.waiting.Handler(h) }

// Made returns the time at which an immutable document was made, for Last-Modified; zero if it is not known yet.
func (s *Server) Made(t time.Time) time.Time { return s.keeper.Changes.Made(t) }

// IsForAll reports whether everybody may read a collection.
func (s *Server) IsForAll(c *store.Collection) bool { return len(s.readers[c.Name]) == 0 }

// AddFollowLinks adds the links of a document that is followed to the header of a document, and one to itself. They are
// on one line, as some readers look at no other.
func (s *Server) AddFollowLinks(h http.Header, c *store.Collection, url string) {
	links := s.followLinks(c)
	if len(links) == 0 {
		return
	}
	values := make([]string, 0, len(links)+1)
	for _, l := range links {
		values = append(values, web.LinkValue(l.Href, string(l.Rel)))
	}
	h.Add("Link", strings.Join(append(values, web.LinkValue(url, "self")), ", "))
}
