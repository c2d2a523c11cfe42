package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/store"
)

const (
	author         = "TMShare Server"
	cacheShortly   = "public, max-age=5"
	cacheForEver   = "public, max-age=31536000, immutable"
	currentVersion = "TMShare-Updated" // header: the time of the last change that an answer contains
)

// view calls f with the state of the collection that the URL names.
func (s *Server) view(r *http.Request, f func(*store.View) error) error {
	return s.Store.View(mux.Vars(r)["map"], f)
}

// feedWith answers with the feed that f makes of the collection.
func (s *Server) feedWith(w http.ResponseWriter, r *http.Request, f func(*store.View) (*feeds.Feed, error)) error {
	return s.view(r, func(v *store.View) error {
		feed, err := f(v)
		if err != nil {
			return err
		}
		return writeAtom(w, r, feed, cacheShortly)
	})
}

// entryWith answers with an entry document.
func (s *Server) entryWith(w http.ResponseWriter, r *http.Request, f func(*store.View) (feeds.Entry, error)) error {
	return s.view(r, func(v *store.View) error {
		e, err := f(v)
		if err != nil {
			return err
		}
		e.Author = author
		return writeAtom(w, r, &e, cacheShortly)
	})
}

// writeAtom answers with an Atom document and a strong ETag over its bytes.
func writeAtom(w http.ResponseWriter, r *http.Request, document interface{ Encode(io.Writer) error }, cache string) error {
	if err := acceptsAtom(r); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := document.Encode(&b); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", feeds.MediaTypeAtom)
	h.Set("Cache-Control", cache)
	h.Set("Vary", "Accept")
	h.Set("ETag", etag(b.Bytes()))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b.Bytes()))
	return nil
}

func etag(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// name returns the title of a collection.
func name(c *store.Collection) string {
	if strings.TrimSpace(c.Title) != "" {
		return c.Title
	}
	return c.Name
}

// derived returns the Atom id of something about the collection, from its epoch.
func derived(c *store.Collection, what string) string {
	return uuid.NewSHA1(c.Epoch, []byte(what)).URN()
}

// topicMapsFeed is the Topic Maps Feed of TMShare.
func (s *Server) topicMapsFeed(w http.ResponseWriter, r *http.Request) error {
	all, err := s.Store.Collections()
	if err != nil {
		return err
	}
	feed := &feeds.Feed{
		ID:       uuid.NewSHA1(uuid.NameSpaceURL, []byte(s.overviewURL())).URN(),
		Title:    "Topic maps at " + s.BaseURL,
		Author:   author,
		Updated:  time.Unix(0, 0), // for a server without any
		Links:    []feeds.Link{atomLink("self", s.overviewURL())},
		Complete: true,
	}
	for i := range all {
		feed.Entries = append(feed.Entries, s.collectionEntry(&all[i]))
		if all[i].Updated.After(feed.Updated) {
			feed.Updated = all[i].Updated
		}
	}
	return writeAtom(w, r, feed, cacheShortly)
}

func (s *Server) collectionEntry(c *store.Collection) feeds.Entry {
	href := s.mapURL(c)
	return feeds.Entry{
		ID: derived(c, "topicmap"), Title: name(c), Updated: c.Updated,
		Summary: strconv.Itoa(c.Topics) + " topics",
		Links: []feeds.Link{
			atomLink("self", href+".atom"), atomLink("alternate", href),
			atomLink(feeds.RelTopicMapFeed, href), atomLink(feeds.RelSDShareCollectionFeed, href),
		},
	}
}

func (s *Server) topicMapEntry(w http.ResponseWriter, r *http.Request) error {
	return s.entryWith(w, r, func(v *store.View) (feeds.Entry, error) { return s.collectionEntry(&v.Collection), nil })
}

// topicMapFeed is the Topic Map Feed of TMShare: exactly two entries.
func (s *Server) topicMapFeed(w http.ResponseWriter, r *http.Request) error {
	return s.feedWith(w, r, func(v *store.View) (*feeds.Feed, error) {
		c := &v.Collection
		return &feeds.Feed{
			ID: derived(c, "topicmap"), Title: name(c), Subtitle: "The feeds of this topic map",
			Author: author, Updated: c.Updated, Complete: true,
			Links:   []feeds.Link{atomLink("self", s.mapURL(c)), atomLink("up", s.overviewURL())},
			Entries: []feeds.Entry{s.fragmentsEntry(c), s.snapshotsEntry(c)},
		}, nil
	})
}

func (s *Server) fragmentsEntry(c *store.Collection) feeds.Entry {
	href := s.fragmentsURL(c)
	return feeds.Entry{
		ID: derived(c, "fragments"), Title: name(c) + ": Fragments", Updated: c.Updated,
		Links: []feeds.Link{
			atomLink("self", href+".atom"), atomLink("alternate", href),
			atomLink(feeds.RelFragmentFeed, href), atomLink(feeds.RelSDShareFragmentsFeed, href),
		},
	}
}

func (s *Server) snapshotsEntry(c *store.Collection) feeds.Entry {
	href := s.snapshotsURL(c)
	return feeds.Entry{
		ID: derived(c, "snapshots"), Title: name(c) + ": Snapshots", Updated: c.Updated,
		Links: []feeds.Link{
			atomLink("self", href+".atom"), atomLink("alternate", href),
			atomLink(feeds.RelSnapshotFeed, href), atomLink(feeds.RelSDShareSnapshotsFeed, href),
		},
	}
}

func (s *Server) fragmentsFeedEntry(w http.ResponseWriter, r *http.Request) error {
	return s.entryWith(w, r, func(v *store.View) (feeds.Entry, error) { return s.fragmentsEntry(&v.Collection), nil })
}

func (s *Server) snapshotsFeedEntry(w http.ResponseWriter, r *http.Request) error {
	return s.entryWith(w, r, func(v *store.View) (feeds.Entry, error) { return s.snapshotsEntry(&v.Collection), nil })
}

// snapshotsFeed is the Snapshots Feed of TMShare, the newest first.
func (s *Server) snapshotsFeed(w http.ResponseWriter, r *http.Request) error {
	return s.feedWith(w, r, func(v *store.View) (*feeds.Feed, error) {
		c := &v.Collection
		all, err := v.Snapshots()
		if err != nil {
			return nil, err
		}
		feed := &feeds.Feed{
			ID: derived(c, "snapshots"), Title: name(c) + ": Snapshots", Author: author,
			Updated: c.Created, Complete: true, ServerSrcLocatorPrefix: c.SP,
			Links: append([]feeds.Link{atomLink("self", s.snapshotsURL(c)), atomLink("up", s.mapURL(c))}, s.currentLinks(c)...),
		}
		for i := range all {
			feed.Entries = append(feed.Entries, s.snapshotFeedEntry(c, &all[i]))
		}
		if len(all) > 0 {
			feed.Updated = all[0].Updated
		}
		return feed, nil
	})
}

// currentLinks returns the links to the map as of now.
func (s *Server) currentLinks(c *store.Collection) []feeds.Link {
	var links []feeds.Link
	for _, v := range store.Forms {
		links = append(links, feeds.Link{Rel: feeds.RelCurrentSnapshot, Type: mediaType(v), Href: s.currentURL(c) + extension(v)})
	}
	return links
}

func (s *Server) snapshotFeedEntry(c *store.Collection, snap *store.Snapshot) feeds.Entry {
	href := s.snapshotURL(c, snap.ID)
	return feeds.Entry{
		ID: snap.ID.URN(), Title: "Snapshot of " + snap.Updated.Format(time.DateTime) + " UTC", Updated: snap.Updated,
		Summary: strconv.Itoa(snap.Topics) + " topics",
		Links:   append([]feeds.Link{atomLink("self", href+".atom")}, dataLinks(href, feeds.RelSDShareSnapshot)...),
	}
}

func (s *Server) snapshotEntry(w http.ResponseWriter, r *http.Request) error {
	return s.entryWith(w, r, func(v *store.View) (feeds.Entry, error) {
		snap, err := findSnapshot(v, r)
		if err != nil {
			return feeds.Entry{}, err
		}
		return s.snapshotFeedEntry(&v.Collection, snap), nil
	})
}

func findSnapshot(v *store.View, r *http.Request) (*store.Snapshot, error) {
	all, err := v.Snapshots()
	if err != nil {
		return nil, err
	}
	id := mux.Vars(r)["id"]
	for i := range all {
		if all[i].ID.String() == id {
			return &all[i], nil
		}
	}
	return nil, problem(http.StatusNotFound, "there is no snapshot %s (any more); the snapshots feed lists those that are kept", id)
}

// The fragments feed is an archived feed (RFC 5005 §4, Archived Feeds) whose
// documents hold a fixed number of entries each. The last one is open: it is what
// subscribers read, and must always have the most recent entries. So a full one
// is closed when the next entry comes.

// openDocument returns the number of the open document; the first is 1.
func openDocument(c *store.Collection) uint64 {
	return (max(c.Head, 1)-1)/uint64(c.DocumentSize) + 1
}

// fragmentsFeed is the recent document of the Topic Map Fragments Feed of TMShare.
func (s *Server) fragmentsFeed(w http.ResponseWriter, r *http.Request) error {
	return s.feedWith(w, r, func(v *store.View) (*feeds.Feed, error) {
		c := &v.Collection
		n := openDocument(c)
		feed, err := s.fragmentsDocument(v, n)
		if err != nil {
			return nil, err
		}
		feed.Links = append(feed.Links,
			atomLink("self", s.fragmentsURL(c)), atomLink("via", s.archiveURL(c, n)),
			atomLink("up", s.mapURL(c)), atomLink(feeds.RelSnapshotFeed, s.snapshotsURL(c)))
		feed.Links = append(feed.Links, s.currentLinks(c)...)
		return feed, nil
	})
}

// archiveDocument is a document of the fragments feed under its permanent URL.
func (s *Server) archiveDocument(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		c := &v.Collection
		if epoch := mux.Vars(r)["epoch"]; epoch != c.Epoch.String() {
			return problem(http.StatusGone, "this document belongs to an earlier history of %s; the feed is at %s", c.Name, s.fragmentsURL(c))
		}
		n, err := strconv.ParseUint(mux.Vars(r)["n"], 10, 64)
		open := openDocument(c)
		if err != nil || n == 0 || n > open {
			return problem(http.StatusNotFound, "the fragments feed has the documents 1 to %d", open)
		}
		feed, err := s.fragmentsDocument(v, n)
		if err != nil {
			return err
		}
		feed.Links = append(feed.Links, atomLink("self", s.archiveURL(c, n)), atomLink("current", s.fragmentsURL(c)))
		cache := cacheShortly
		if n < open {
			feed.Archive = true
			if n+1 < open {
				feed.Links = append(feed.Links, atomLink("next-archive", s.archiveURL(c, n+1)))
				cache = cacheForEver
			}
		}
		return writeAtom(w, r, feed, cache)
	})
}

// fragmentsDocument returns document n of the fragments feed with the entries,
// the newest first, and what all documents have.
func (s *Server) fragmentsDocument(v *store.View, n uint64) (*feeds.Feed, error) {
	c := &v.Collection
	feed := &feeds.Feed{
		ID: c.Epoch.URN(), Title: name(c) + ": Fragments", Author: author,
		Updated: c.Created, ServerSrcLocatorPrefix: c.SP,
	}
	if n > 1 {
		feed.Links = append(feed.Links, atomLink("prev-archive", s.archiveURL(c, n-1)))
	}
	size := uint64(c.DocumentSize)
	first := (n-1)*size + 1
	entries := make([]feeds.Entry, 0, size)
	for e, err := range v.Entries(first) {
		if err != nil {
			return nil, err
		}
		if e.Seq >= first+size {
			break
		}
		entries = append(entries, s.fragmentFeedEntry(c, &e))
		feed.Updated = e.Updated
	}
	for i := len(entries) - 1; i >= 0; i-- {
		feed.Entries = append(feed.Entries, entries[i])
	}
	return feed, nil
}

func (s *Server) fragmentFeedEntry(c *store.Collection, e *store.Entry) feeds.Entry {
	href := s.fragmentURL(c, e.Seq)
	state := feeds.StateLive
	if e.Deleted {
		state = feeds.StateDeleted
	}
	return feeds.Entry{
		ID: c.ID(e.Seq).URN(), Title: title(e), Updated: e.Updated,
		TopicSI: []string{string(e.TopicSI)}, State: state,
		Links: append([]feeds.Link{atomLink("self", href+".atom")}, dataLinks(href, feeds.RelSDShareFragment)...),
	}
}

// maxTitle is the number of characters after which titles are cut off: names can
// be longer than what readers take of a feed.
const maxTitle = 200

// title returns something to show for an entry, whatever the topic is called.
func title(e *store.Entry) string {
	t := strings.TrimSpace(e.Title)
	if t == "" {
		t = string(e.TopicSI)
	}
	n := 0
	for i := range t {
		if n++; n > maxTitle {
			return t[:i] + "…"
		}
	}
	return t
}

func (s *Server) fragmentEntry(w http.ResponseWriter, r *http.Request) error {
	return s.entryWith(w, r, func(v *store.View) (feeds.Entry, error) {
		e, err := findEntry(v, r)
		if err != nil {
			return feeds.Entry{}, err
		}
		return s.fragmentFeedEntry(&v.Collection, e), nil
	})
}

func findEntry(v *store.View, r *http.Request) (*store.Entry, error) {
	id, err := uuid.Parse(mux.Vars(r)["id"])
	seq := v.Seq(id)
	if err != nil || seq == 0 {
		return nil, problem(http.StatusNotFound, "there is no fragment %s", mux.Vars(r)["id"])
	}
	return v.Entry(seq)
}
