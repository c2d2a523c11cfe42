package atompmh

import (
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Atom-PMH: the change log as feeds whose entries represent records. A record is a topic under the key of its TopicSI;
// the id of its entries identifies it forever, also when it is deleted and created again. When a new entry comes, the
// former one becomes a historical entry.
//
// The archived form keeps entries forever: pruning the log removes superseded entries only, and keeps the last one of
// each record, even a deletion, so that the remaining documents give the state of every record. It has no fh:complete,
// because it has deletion entries (Atom-PMH, Deletion entries).

type publisher struct{ *server.Server }

// serve makes the part of a server that offers records.
func serve(s *server.Server) (*server.Part, error) {
	p := publisher{s}
	feed := &server.LogFeed{URL: p.feed, Forms: server.FeedForms, Recent: p.recent, Archived: p.archived}
	return &server.Part{
		Routes: func(get func(string, web.Handler)) {
			get("/topicmaps/{map}/records", s.Waiting(s.RecentDocument(feed)))
			get("/topicmaps/{map}/records/archive/{history:[0-9a-f-]{36}}-{n:"+addresses.SeqPattern+"}", s.ArchiveDocument(feed))
			get("/topicmaps/{map}/records/complete", s.Waiting(p.complete))
			get("/topicmaps/{map}/topics/{key:[a-z2-7]{26}}.atom", p.last)
		},
		FeedLinks: func(c *store.Collection) []feeds.Link {
			return []feeds.Link{server.AtomLink(feeds.RelRecordsFeed, p.feed(c))}
		},
		Followed: func(c *store.Collection) []string {
			if offered(c) != nil {
				return nil
			}
			return []string{p.feed(c)}
		},
	}, nil
}

// feed returns the URL of the subscription document of the archived form, and completeFeed that of the complete form.
func (p publisher) feed(c *store.Collection) string         { return p.URLs.Map(c) + "/records" }
func (p publisher) completeFeed(c *store.Collection) string { return p.feed(c) + "/complete" }

// recent makes the subscription document of the archived form.
func (p publisher) recent(v *store.View, _ *store.Latest, from []feeds.Link) (*feeds.Feed, error) {
	c := &v.Collection
	n := c.OpenDocument()
	feed, err := p.document(v, n)
	if err != nil {
		return nil, err
	}
	via, err := addresses.Archive(v, p.feed(c), n)
	if err != nil {
		return nil, err
	}
	feed.Title = server.Title(c) + ": Records"
	feed.Language, feed.TitleLanguage = server.Languages(c)
	feed.Links = append(feed.Links,
		server.AtomLink("self", p.feed(c)), server.AtomLink("current", p.feed(c)), server.AtomLink("via", via),
		server.AtomLink("up", p.URLs.Map(c)), server.AtomLink(feeds.RelCompleteRecords, p.completeFeed(c)))
	feed.Links = slices.Concat(feed.Links, p.CurrentLinks(c), from)
	return feed, nil
}

// archived makes a document of the archived form under its permanent URL.
func (p publisher) archived(v *store.View, n uint64) (*feeds.Feed, error) {
	feed, err := p.document(v, n)
	if err != nil {
		return nil, err
	}
	return feed, server.MarkArchived(feed, v, n, p.feed(&v.Collection))
}

// offered returns an error if a collection does not know the state of all its records, because the origin of a replica
// did not keep its whole log.
func offered(c *store.Collection) error {
	if c.Replica == nil || !c.Replica.Partial {
		return nil
	}
	return web.Problemf(http.StatusNotFound,
		"this replica offers no records, as its origin had not kept the beginning of its log: follow the fragments feed, "+
			"or ask the origin, %s", c.Replica.Origin)
}

// document returns document n of the archived form: its entries, the newest first, and the common elements.
func (p publisher) document(v *store.View, n uint64) (*feeds.Feed, error) {
	c := &v.Collection
	if err := offered(c); err != nil {
		return nil, err
	}
	entries, before, err := v.RecordEntries(n)
	if err != nil {
		return nil, err
	}
	feed := &feeds.Feed{
		ID: server.DerivedID(c, "records"), Title: c.Name + ": Records", Author: server.Author, Updated: c.Created,
		ServerSrcLocatorPrefix: c.SP,
	}
	if before > 0 {
		prev, err := addresses.Archive(v, p.feed(c), before)
		if err != nil {
			return nil, err
		}
		feed.Links = append(feed.Links, server.AtomLink("prev-archive", prev))
	}
	for i := range entries {
		one, err := p.entry(v, &entries[i])
		if err != nil {
			return nil, err
		}
		feed.Entries = append(feed.Entries, one)
		feed.Updated = entries[i].Updated
	}
	slices.Reverse(feed.Entries)
	return feed, nil
}

// recordID returns the identifier of a record. It does not depend on the history, so a record keeps it when the
// collection is created again.
func recordID(c *store.Collection, topicSI fragment.Ref) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(c.SP+"\x00"+c.Name+"\x00"+string(topicSI))).URN()
}

// entry returns the entry of a record for an entry of the log: an active, a historical, or a deletion entry.
func (p publisher) entry(v *store.View, e *store.Entry) (feeds.Entry, error) {
	c := &v.Collection
	if err := v.SetTitle(e); err != nil {
		return feeds.Entry{}, err
	}
	href := p.URLs.Topic(c, e.TopicSI)
	out := feeds.Entry{
		ID: recordID(c, e.TopicSI), Title: e.Label(), Updated: e.Updated, TopicSI: []string{string(e.TopicSI)},
		State: feeds.StateLive, Links: []feeds.Link{server.AtomLink("self", href+".atom")},
	}
	if !e.Lives() {
		out.State, out.Content = feeds.StateDeleted, feeds.EmptyContent
		return out, nil
	}
	for _, version := range c.FormsOf(e) {
		f := formats.StoredAs(version)
		out.Links = append(out.Links, feeds.Link{Rel: "alternate", Type: f.MediaType(), Href: href + f.URLEnding})
	}
	return out, nil
}

// recordEntry is the last entry of a record.
func (p publisher) last(w http.ResponseWriter, r *http.Request) error {
	return p.WriteEntry(w, r, func(v *store.View) (feeds.Entry, error) {
		e, err := server.LastEntry(v, r)
		if err != nil {
			return feeds.Entry{}, err
		}
		return p.entry(v, e)
	})
}

// completeRecords is the complete form (RFC 5005 §2, Complete Feeds): one document with exactly the active entries of
// all records. It is a separate feed.
func (p publisher) complete(w http.ResponseWriter, r *http.Request) error {
	return p.View(r, func(v *store.View) error {
		c := &v.Collection
		if err := offered(c); err != nil {
			return err
		}
		from, err := inputs.Links(r.Context(), p.Store, c, p.URLs.Fragments)
		if err != nil {
			return err
		}
		feed := &feeds.Feed{
			ID: server.DerivedID(c, "records/complete"), Title: server.Title(c) + ": Records", Author: server.Author,
			Updated:                c.Updated,
			ServerSrcLocatorPrefix: c.SP, Complete: true,
			Links: slices.Concat([]feeds.Link{
				server.AtomLink("self", p.completeFeed(c)), server.AtomLink("up", p.URLs.Map(c)),
				server.AtomLink(feeds.RelRecordsFeed, p.feed(c)),
			}, p.CurrentLinks(c), from),
		}
		feed.Language, feed.TitleLanguage = server.Languages(c)
		p.AddPartLinks(w.Header(), c)
		// without pruned entries and other settings
		state := fmt.Sprint(c.Epoch, c.Run, c.Head, c.Updated.UnixMicro(), server.Title(c), feed.Language, inputs.State(from))
		if _, err := web.Choose(w, r, server.FeedForms); err != nil {
			return err
		}
		return p.Answers.WriteRendered(w, r, p.AsOfNow(w, r, v, state), func(to io.Writer) error {
			return feed.EncodeWith(to, p.activeEntries(v))
		})
	})
}

func (p publisher) activeEntries(v *store.View) iter.Seq2[feeds.Entry, error] {
	return func(yield func(feeds.Entry, error) bool) {
		for e, err := range v.Records() {
			if err != nil {
				yield(feeds.Entry{}, err)
				return
			}
			one, err := p.entry(v, &e)
			if !yield(one, err) || err != nil {
				return
			}
		}
	}
}
