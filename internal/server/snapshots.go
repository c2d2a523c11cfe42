package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store"
)

// snapshotsFeed is the Snapshots Feed of TMShare, the newest first.
func (s *Server) snapshotsFeed(w http.ResponseWriter, r *http.Request) error {
	l, err := s.latest(r)
	if err != nil {
		return err
	}
	c := &l.Collection
	feed := &feeds.Feed{
		ID: DerivedID(c, "snapshots"), Title: Title(c) + ": Snapshots", Author: Author,
		Updated: c.Created, Complete: true, ServerSrcLocatorPrefix: c.SP,
		Links: append([]feeds.Link{AtomLink("self", s.URLs.Snapshots(c)), AtomLink("up", s.URLs.Map(c))},
			s.CurrentLinks(c)...),
	}
	feed.Language, feed.TitleLanguage = Languages(c)
	for i := range l.Snapshots {
		feed.Entries = append(feed.Entries, s.snapshotFeedEntry(c, &l.Snapshots[i]))
	}
	if len(l.Snapshots) > 0 {
		feed.Updated = l.Snapshots[0].Updated
	}
	s.AddPartLinks(w.Header(), c)
	return s.writeAtom(w, r, feed)
}

// CurrentLinks returns the links to the map as of now.
func (s *Server) CurrentLinks(c *store.Collection) []feeds.Link {
	var links []feeds.Link
	all, _ := s.offered(store.Forms[:], c.InRDF())
	for _, f := range all {
		links = append(links,
			feeds.Link{Rel: feeds.RelCurrentSnapshot, Type: f.MediaType(), Href: s.URLs.Current(c) + f.URLEnding})
	}
	return links
}

func (s *Server) snapshotFeedEntry(c *store.Collection, snap *store.Snapshot) feeds.Entry {
	href := s.URLs.Snapshot(c, snap.ID)
	_, words := Languages(c)
	return feeds.Entry{
		ID: snap.ID.URN(), Title: "Snapshot of " + snap.Updated.Format(time.DateTime) + " UTC", Updated: snap.Updated,
		Language: words, Summary: strconv.Itoa(snap.Topics) + " topics", Digest: snap.Digest, Commit: snap.Commit,
		Links: slices.Concat([]feeds.Link{AtomLink("self", href+".atom")}, s.pageOf(href),
			s.formLinks(href, c.InRDF(), feeds.RelSDShareSnapshot, feeds.RelCWASnapshot)),
	}
}

func (s *Server) snapshotEntry(w http.ResponseWriter, r *http.Request) error {
	return s.WriteEntry(w, r, func(v *store.View) (feeds.Entry, error) {
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
	return snapshotIn(all, r)
}

// snapshotIn returns the snapshot with the id in the URL.
func snapshotIn(all []store.Snapshot, r *http.Request) (*store.Snapshot, error) {
	id := web.Var(r, "id")
	for i := range all {
		if all[i].ID.String() == id {
			return &all[i], nil
		}
	}
	return nil, noSnapshot(id)
}

// snapshotWasLost is the answer to a request for a snapshot without its file. By then another
// one has been taken, which the feed lists.
func (s *Server) snapshotWasLost(ctx context.Context, name string, snap *store.Snapshot) error {
	taken, err := s.keeper.ReplaceLost(ctx, name)
	if err != nil {
		return err
	}
	select {
	case <-taken:
	case <-ctx.Done():
	}
	return noSnapshot(snap.ID.String())
}

func noSnapshot(id string) error {
	return web.Problemf(http.StatusNotFound,
		"there is no snapshot %s (any more); the snapshots feed lists those that are kept", id)
}

// setDigest sets the state digest of the map in the header.
func setDigest(w http.ResponseWriter, v *store.View) error {
	root, err := v.DigestNode(nil)
	if err == nil {
		w.Header().Set(currentDigest, root.Digest().String())
		w.Header().Set(currentVersion, feeds.FormatTime(v.Updated))
	}
	return err
}

// digestNode answers with a node of the tree of the state digest.
func (s *Server) digestNode(w http.ResponseWriter, r *http.Request) error {
	path, ok := statedigest.ParsePath(web.Var(r, "path"))
	if !ok {
		return web.Problemf(http.StatusNotFound, "there is no such node of the state digest: its path is too long")
	}
	return s.View(r, func(v *store.View) error {
		node, err := v.DigestNode(path)
		if err == nil {
			err = setDigest(w, v)
		}
		if err != nil {
			return err
		}
		return web.WriteJSON(w, http.StatusOK, node.Document())
	})
}
