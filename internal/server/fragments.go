package server

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rendered"
)

// The fragments feed is an archived feed (RFC 5005 §4, Archived Feeds) whose documents hold a fixed number of entries
// each. The last one is open: subscribers read it, and it must always have the most recent entries. So a full one is
// closed when the next entry comes. A closed document never changes, except for the next-archive link that the newest
// of them gains when its successor closes: before, there is no closed document to link to. It contains nothing that the
// owner of a map may change, such as its title.

// fragmentsFeed is the Topic Map Fragments Feed of TMShare.
func (s *Server) fragmentsFeed() *LogFeed {
	return &LogFeed{
		URL: s.URLs.Fragments, Forms: fragmentsFeedForms, Ready: CanBeFollowed,
		State: func(l *store.Latest) string {
			c := &l.Collection
			return keyState(c.Sign) + inputs.State(s.feedLinks(c)) + replicaState(c) + strings.Join(l.Openings, "")
		},
		Recent: s.recentDocument, ForPeople: s.forPeople, Archived: s.archived,
		Pruned: func(c *store.Collection) error { return s.Pruned(c, "this document of the fragments feed") },
	}
}

// recentDocument makes the document with data besides the log, because archive documents never change.
func (s *Server) recentDocument(v *store.View, l *store.Latest, from []feeds.Link) (*feeds.Feed, error) {
	c := &v.Collection
	n := c.OpenDocument()
	feed, err := s.fragmentsDocument(v, n)
	if err != nil {
		return nil, err
	}
	via, err := addresses.Archive(v, s.URLs.Fragments(c), n)
	if err != nil {
		return nil, err
	}
	feed.Title = Title(c) + ": Fragments"
	feed.Language, feed.TitleLanguage = Languages(c)
	feed.Links = slices.Concat(feed.Links, []feeds.Link{AtomLink("self", s.URLs.Fragments(c)), AtomLink("via", via),
		bundleLink(s.URLs.Fragments(c))}, s.FragmentsLinks(c), replicaLinks(c), from)
	if feed.Openings = l.Openings; len(l.Openings) > 0 {
		feed.Links = append(feed.Links,
			feeds.Link{Rel: feeds.RelOpenings, Type: "application/json", Href: s.URLs.Openings(c)})
	}
	if statesCheckpoint(c) {
		signed, err := checkpointOf(v)
		if err != nil { // followers that require a checkpoint would take its absence for a forgery
			s.Logger.Error("the fragments feed is not served", "error", err)
			return nil, web.Problemf(http.StatusServiceUnavailable,
				"the log of %s cannot be signed now; the server's log says why", c.Name)
		}
		feed.Checkpoint, feed.Key = signed.Note, signed.Key
		feed.Links = append(feed.Links, feeds.Link{Rel: feeds.RelCheckpoint, Type: "text/plain", Href: s.URLs.Checkpoint(c)})
	}
	return feed, nil
}

// FragmentsLinks returns the links from the fragments feed to related documents.
func (s *Server) FragmentsLinks(c *store.Collection) []feeds.Link {
	return slices.Concat(
		atomLinks(s.URLs.Map(c), "up"), atomLinks(s.URLs.Snapshots(c), snapshotsFeedRels...),
		s.CurrentLinks(c), s.feedLinks(c),
		[]feeds.Link{{Rel: feeds.RelStateDigest, Type: "application/json", Href: s.URLs.Digest(c)}})
}

// LogFeed is an archived feed of the log: a recent document that is followed, and documents with permanent URLs.
type LogFeed struct {
	URL   func(*store.Collection) string // of the recent document
	Forms []web.Form

	Ready func(*store.Latest) error  // returns an error if new followers cannot begin; nil: they can
	State func(*store.Latest) string // returns data besides the log that the recent document depends on; nil: none
	// Recent makes the recent document. from are the links to related documents.
	Recent func(v *store.View, l *store.Latest, from []feeds.Link) (*feeds.Feed, error)

	// ForPeople adds data for feed readers, but not for subscribers, who use bundles; nil: none.
	ForPeople func(*store.View, *feeds.Feed) error

	Archived func(v *store.View, n uint64) (*feeds.Feed, error) // makes the document n
	// Pruned returns the error for documents before the horizon; nil: the feed has none.
	Pruned func(*store.Collection) error
}

// RecentDocument answers with the recent document of a feed.
func (s *Server) RecentDocument(f *LogFeed) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return s.withLatest(r, func(l *store.Latest, v *store.View) error {
			c := &l.Collection
			if v == nil { // the first time
				if f.Ready != nil {
					if err := f.Ready(l); err != nil {
						return err
					}
				}
				s.AddPartLinks(w.Header(), c)
				s.AddFollowLinks(w.Header(), c, f.URL(c))
			}
			from, err := s.followable(r.Context(), c)
			if err != nil {
				return err
			}
			state := StateOf(c) + inputs.State(from)
			if f.State != nil {
				state += f.State(l)
			}
			return s.writeDocument(w, r, f, CacheShortly, state, v, func() (*feeds.Feed, error) {
				return f.Recent(v, l, from)
			}, f.ForPeople)
		})
	}
}

// ArchiveDocument answers with the document of a feed that the URL names.
func (s *Server) ArchiveDocument(f *LogFeed) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return s.withLatest(r, func(l *store.Latest, v *store.View) error { return s.archiveDocument(w, r, f, l, v) })
	}
}

func (s *Server) archiveDocument(w http.ResponseWriter, r *http.Request, feed *LogFeed, l *store.Latest,
	v *store.View) error {
	c := &l.Collection
	n, err := AskedDocument(w, r, c, v, feed.URL(c))
	if n == 0 || err != nil {
		return err
	}
	open := c.OpenDocument()
	first, _ := c.Document(n)
	if first <= c.Horizon && feed.Pruned != nil {
		return feed.Pruned(c)
	}
	cache, state := CacheShortly, "closed" // to gain its next-archive
	switch {
	case first <= c.Horizon || n == open:
		state = StateOf(c)
	case n+1 < open && feed.Pruned == nil: // until pruning rewrites it
		state = "finished"
	case n+1 < open:
		cache, state = CacheForEver, "finished"
	}
	return s.writeDocument(w, r, feed, cache, state, v, func() (*feeds.Feed, error) {
		return feed.Archived(v, n)
	}, nil)
}

// AskedDocument returns the number of the document in a URL below that of a feed. It returns 0 if it redirected to the
// document's present URL, which requires a view; v may be nil.
func AskedDocument(w http.ResponseWriter, r *http.Request, c *store.Collection, v *store.View,
	feed string) (n uint64, err error) {
	earlier := func() error {
		return web.Problemf(http.StatusGone, "this document belongs to an earlier history of %s; the feed is at %s",
			c.Name, feed)
	}
	history, err := uuid.Parse(web.Var(r, "history"))
	run, ok := c.RunOf(history)
	if err != nil || !ok {
		return 0, earlier()
	}
	n, err = strconv.ParseUint(web.Var(r, "n"), 10, 64)
	if open := c.OpenDocument(); err != nil || n == 0 || n > open {
		return 0, web.Problemf(http.StatusNotFound, "the feed has the documents 1 to %d", open)
	}
	if v != nil { // the ETag of another answer is of this URL, too, and so of the same run
		last, known, err := v.DocumentRun(n)
		if err != nil {
			return 0, err
		}
		if known && last != run {
			return 0, leadTo(w, v, n, run, feed, earlier)
		}
	}
	return n, nil
}

// leadTo redirects from the URL that document n had in an earlier run to its present one. If it had none in that run,
// it returns the error of none.
func leadTo(w http.ResponseWriter, v *store.View, n uint64, run uint32, feed string, none func() error) error {
	written, err := v.WrittenIn(n, run)
	if err != nil {
		return err
	}
	if !written {
		return none()
	}
	now, err := addresses.Archive(v, feed, n)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", CacheShortly)
	w.Header().Set("Location", now)
	w.WriteHeader(http.StatusFound)
	return nil
}

// archived returns document n of the fragments feed as it stands under its
// permanent URL.
func (s *Server) archived(v *store.View, n uint64) (*feeds.Feed, error) {
	c := &v.Collection
	feed, err := s.fragmentsDocument(v, n)
	if err != nil {
		return nil, err
	}
	if err := MarkArchived(feed, v, n, s.URLs.Fragments(c)); err != nil {
		return nil, err
	}
	self, _ := feed.Link("self")
	feed.Links = append(feed.Links, bundleLink(self.Href))
	return feed, nil
}

// MarkArchived adds the elements of a permanent document to document n of an archived feed (RFC 5005 §4, Archived
// Feeds). current is the URL of the feed.
func MarkArchived(feed *feeds.Feed, v *store.View, n uint64, current string) error {
	self, err := addresses.Archive(v, current, n)
	if err != nil {
		return err
	}
	feed.Links = append(feed.Links, AtomLink("self", self), AtomLink("current", current))
	open := v.OpenDocument()
	if feed.Archive = n < open; n+1 < open {
		next, err := addresses.Archive(v, current, n+1)
		if err != nil {
			return err
		}
		feed.Links = append(feed.Links, AtomLink("next-archive", next))
	}
	return nil
}

// Pruned returns the error for data removed by retention. Links to it remain (RFC 5005 §4.1: archive documents need not
// all be available).
func (s *Server) Pruned(c *store.Collection, what string) error {
	return web.Problemf(http.StatusGone,
		"%s is no longer kept; readers that lack its entries start again from the newest snapshot at %s and go on "+
			"with the later entries at %s",
		what, s.URLs.Snapshots(c), s.URLs.Fragments(c))
}

// fragmentsDocument returns document n of the fragments feed: its entries, the newest first, and the common elements.
// It links to its predecessor even if that is pruned, because only the first document is the end of the archive.
func (s *Server) fragmentsDocument(v *store.View, n uint64) (*feeds.Feed, error) {
	c := &v.Collection
	feed := s.FragmentsHead(c)
	if n > 1 {
		prev, err := addresses.Archive(v, s.URLs.Fragments(c), n-1)
		if err != nil {
			return nil, err
		}
		feed.Links = append(feed.Links, AtomLink("prev-archive", prev))
	}
	first, size := c.Document(n)
	var entries []store.Entry
	for e, err := range v.Entries(first) {
		if err != nil {
			return nil, err
		}
		if e.Seq >= first+size {
			break
		}
		entries = append(entries, e)
		feed.Updated = e.Updated
	}
	if err := s.AddEntries(v, feed, entries); err != nil {
		return nil, err
	}
	for i := range entries {
		feed.Entries[i].Covered = entries[i].Covered // only here: it requires reading all entries
	}
	slices.Reverse(feed.Entries)
	return feed, nil
}

// AddEntries adds entries to a document, the oldest first.
func (s *Server) AddEntries(v *store.View, feed *feeds.Feed, entries []store.Entry) error {
	if err := v.SetCommits(entries); err != nil {
		return err
	}
	for i := range entries {
		entry, err := s.fragmentFeedEntry(v, &entries[i])
		if err != nil {
			return err
		}
		feed.Entries = append(feed.Entries, entry)
	}
	return nil
}

// FragmentsHead returns the common elements of all documents with fragments.
func (s *Server) FragmentsHead(c *store.Collection) *feeds.Feed {
	return &feeds.Feed{
		ID: c.Epoch.URN(), Title: c.Name + ": Fragments", Author: Author,
		Updated: c.Created, ServerSrcLocatorPrefix: c.SP, Rendering: rendered.Version,
	}
}

func (s *Server) fragmentFeedEntry(v *store.View, e *store.Entry) (feeds.Entry, error) {
	c := &v.Collection
	href := s.URLs.Fragment(c, e)
	state := feeds.StateLive
	if e.Deleted {
		state = feeds.StateDeleted
	}
	links := append([]feeds.Link{AtomLink("self", href+".atom")},
		s.formLinks(href, c.OffersRDF(e.Seq), feeds.RelSDShareFragment, feeds.RelCWAFragment)...)
	for _, via := range e.Via {
		if !iri.IsAbsolute(via) {
			via = s.URLs.Overview() + "/" + via + formats.XTM21.URLEnding
		}
		links = append(links, feeds.Link{Rel: "via", Href: via}) // of the same form wherever the entry is served on
	}
	err := v.SetTitle(e)
	return feeds.Entry{
		ID: c.ID(e).URN(), Title: e.Label(), Updated: e.Updated, Author: e.Author, Summary: e.Note,
		TopicSI: []string{string(e.TopicSI)}, State: state, Digest: e.Digest, Commit: e.Commit, Rendering: e.RenderedBy(),
		Omits: c.LeavesOut(e),
		Links: links,
	}, err
}

func (s *Server) fragmentEntry(w http.ResponseWriter, r *http.Request) error {
	return s.WriteEntry(w, r, func(v *store.View) (feeds.Entry, error) {
		e, err := s.FindEntry(v, r)
		if err != nil {
			return feeds.Entry{}, err
		}
		one := []store.Entry{*e}
		if err := v.SetCommits(one); err != nil {
			return feeds.Entry{}, err
		}
		made, err := s.fragmentFeedEntry(v, &one[0])
		if err != nil {
			return made, err
		}
		alone := &feeds.Feed{Entries: []feeds.Entry{made}}
		err = s.forPeople(v, alone)
		return alone.Entries[0], err
	})
}

func (s *Server) FindEntry(v *store.View, r *http.Request) (*store.Entry, error) {
	id, err := uuid.Parse(web.Var(r, "id"))
	if err != nil {
		return nil, web.Problemf(http.StatusNotFound, "there is no fragment %s", web.Var(r, "id"))
	}
	e, err := v.EntryOf(id)
	switch {
	case errors.Is(err, store.ErrGone):
		return nil, s.Pruned(&v.Collection, "this fragment")
	case errors.Is(err, store.ErrNotFound):
		return nil, web.Problemf(http.StatusNotFound, "there is no fragment %s", id)
	}
	return e, err
}
