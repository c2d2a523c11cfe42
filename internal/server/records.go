package server

import (
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Atom-PMH: the change log once more, as feeds whose entries stand for records. A
// record is a topic under the key of its TopicSI; the id of its entries identifies it for
// life, also when it is deleted and created again. What was its last entry becomes a
// historical one when another comes.
//
// The archived form keeps its entries for ever: where the log is pruned, all that are
// superseded go, and the others stay, those of deletion too, so that the documents that
// are left say of every record what has become of it. It bears no fh:complete, as it has
// deletion entries (Atom-PMH, Deletion entries).

// recordsFeed is the subscription document of the archived form.
func (s *Server) recordsFeed(w http.ResponseWriter, r *http.Request) error {
	return s.withLatest(r, func(l *store.Latest, v *store.View) error {
		c := &l.Collection
		if v == nil { // the first time
			s.addPartLinks(w.Header(), c)
			s.AddFollowLinks(w.Header(), c, s.URLs.Records(c))
		}
		from, err := s.followable(r.Context(), c)
		if err != nil {
			return err
		}
		return s.writeAtomOf(w, r, feedForms, CacheShortly, StateOf(c)+inputs.State(from), v, func(v *store.View) (*feeds.Feed, error) {
			n := c.OpenDocument()
			feed, err := s.recordsDocument(v, n)
			if err != nil {
				return nil, err
			}
			via, err := addresses.Archive(v, s.URLs.Records(c), n)
			if err != nil {
				return nil, err
			}
			feed.Title = Title(c) + ": Records"
			feed.Links = append(feed.Links,
				AtomLink("self", s.URLs.Records(c)), AtomLink("current", s.URLs.Records(c)), AtomLink("via", via),
				AtomLink("up", s.URLs.Map(c)), AtomLink(feeds.RelCompleteRecords, s.URLs.CompleteRecords(c)))
			feed.Links = slices.Concat(feed.Links, s.currentLinks(c), from)
			return feed, nil
		})
	})
}

// recordsArchiveDocument is a document of the archived form under its permanent URL.
func (s *Server) recordsArchiveDocument(w http.ResponseWriter, r *http.Request) error {
	return s.documentOf(w, r, archivedFeed{url: s.URLs.Records, forms: feedForms, build: func(v *store.View, n uint64) (*feeds.Feed, error) {
		feed, err := s.recordsDocument(v, n)
		if err != nil {
			return nil, err
		}
		return feed, markArchived(feed, v, n, s.URLs.Records(&v.Collection))
	}})
}

// recordsDocument returns document n of the archived form with its entries, the newest
// first, and what all documents have.
func (s *Server) recordsDocument(v *store.View, n uint64) (*feeds.Feed, error) {
	c := &v.Collection
	if err := HasRecords(c); err != nil {
		return nil, err
	}
	entries, before, err := v.RecordEntries(n)
	if err != nil {
		return nil, err
	}
	feed := &feeds.Feed{
		ID: derived(c, "records"), Title: c.Name + ": Records", Author: author, Updated: c.Created, ServerSrcLocatorPrefix: c.SP,
	}
	if before > 0 {
		prev, err := addresses.Archive(v, s.URLs.Records(c), before)
		if err != nil {
			return nil, err
		}
		feed.Links = append(feed.Links, AtomLink("prev-archive", prev))
	}
	for i := range entries {
		entry, err := s.recordFeedEntry(v, &entries[i])
		if err != nil {
			return nil, err
		}
		feed.Entries = append(feed.Entries, entry)
		feed.Updated = entries[i].Updated
	}
	slices.Reverse(feed.Entries)
	return feed, nil
}

// recordID returns the identifier of a record. It does not depend on the history, so
// that a record keeps it when the collection is created anew.
func recordID(c *store.Collection, topicSI fragment.Ref) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(c.SP+"\x00"+c.Name+"\x00"+string(topicSI))).URN()
}

// recordFeedEntry returns what an entry of the log says of a record: an active entry, or
// a historical one, or a deletion entry.
func (s *Server) recordFeedEntry(v *store.View, e *store.Entry) (feeds.Entry, error) {
	c := &v.Collection
	if err := v.SetTitle(e); err != nil {
		return feeds.Entry{}, err
	}
	href := s.URLs.Topic(c, e.TopicSI)
	out := feeds.Entry{
		ID: recordID(c, e.TopicSI), Title: e.Label(), Updated: e.Updated, TopicSI: []string{string(e.TopicSI)},
		State: feeds.StateLive, Links: []feeds.Link{AtomLink("self", href+".atom")},
	}
	if !e.Lives() {
		out.State, out.Content = feeds.StateDeleted, feeds.EmptyContent
		return out, nil
	}
	all, _ := s.offered(c.FormsOf(e), false)
	for _, f := range all {
		out.Links = append(out.Links, feeds.Link{Rel: "alternate", Type: f.MediaType(), Href: href + f.URLEnding})
	}
	return out, nil
}

// recordEntry is the last entry of a record.
func (s *Server) recordEntry(w http.ResponseWriter, r *http.Request) error {
	return s.entryWith(w, r, func(v *store.View) (feeds.Entry, error) {
		e, err := LastEntry(v, r)
		if err != nil {
			return feeds.Entry{}, err
		}
		return s.recordFeedEntry(v, e)
	})
}

// completeRecords is the complete form (RFC 5005 §2, Complete Feeds): one document with
// the active entries of all records, and no others. It is a feed of its own.
func (s *Server) completeRecords(w http.ResponseWriter, r *http.Request) error {
	return s.View(r, func(v *store.View) error {
		c := &v.Collection
		if err := HasRecords(c); err != nil {
			return err
		}
		from, err := inputs.Links(r.Context(), s.Store, c, s.URLs.Fragments)
		if err != nil {
			return err
		}
		feed := &feeds.Feed{
			ID: derived(c, "records/complete"), Title: Title(c) + ": Records", Author: author, Updated: c.Updated,
			ServerSrcLocatorPrefix: c.SP, Complete: true,
			Links: slices.Concat([]feeds.Link{
				AtomLink("self", s.URLs.CompleteRecords(c)), AtomLink("up", s.URLs.Map(c)), AtomLink(feeds.RelRecordsFeed, s.URLs.Records(c)),
			}, s.currentLinks(c), from),
		}
		s.addPartLinks(w.Header(), c)
		state := fmt.Sprint(c.Epoch, c.Run, c.Head, c.Updated.UnixMicro(), Title(c), inputs.State(from)) // not what is pruned, nor other settings
		if _, err := web.Choose(w, r, feedForms); err != nil {
			return err
		}
		return s.Answers.WriteRendered(w, r, s.asOfNow(w, r, v, state), func(to io.Writer) error { return feed.EncodeWith(to, s.activeEntries(v)) })
	})
}

func (s *Server) activeEntries(v *store.View) iter.Seq2[feeds.Entry, error] {
	return func(yield func(feeds.Entry, error) bool) {
		for e, err := range v.Records() {
			if err != nil {
				yield(feeds.Entry{}, err)
				return
			}
			entry, err := s.recordFeedEntry(v, &e)
			if !yield(entry, err) || err != nil {
				return
			}
		}
	}
}
