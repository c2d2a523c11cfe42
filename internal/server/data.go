package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/xtm"
)

// fragmentData is the Topic Map Fragment Data Service of TMShare.
func (s *Server) fragmentData(w http.ResponseWriter, r *http.Request) error {
	return s.View(r, func(v *store.View) error {
		e, err := s.FindEntry(v, r)
		if err != nil {
			return err
		}
		if err := available(v, e); err != nil {
			return err
		}
		h := w.Header()
		h.Set("Cache-Control", CacheForEver)
		web.AddLink(h, s.URLs.Topic(&v.Collection, e.TopicSI), "latest-version") // RFC 5829 §3.2
		web.AddLink(h, s.URLs.Map(&v.Collection), "collection")                  // RFC 6573 §2.2
		in, err := s.choose(w, r, store.Forms[:], v.OffersRDF(e.Seq), false)
		if err != nil {
			return err
		}
		return s.writeFragment(w, r, version{v, e, s.keeper.Changes.Made(e.Updated)}, in)
	})
}

// topicData serves the record of a topic: the record form of its last entry, in the offered forms. For a deleted topic,
// the answer states that. With ?at= it serves the topic of that time. With ?claims= it serves the present statements of
// a derived collection's inputs about the topic, in XTM 2.1 with the item identifiers of their sources.
func (s *Server) topicData(w http.ResponseWriter, r *http.Request) error {
	at, err := parseTime(r, "at")
	claims := r.URL.Query().Has("claims")
	switch {
	case err != nil:
		return err
	case claims && (at != nil || web.Var(r, web.EndingVar) != "" && web.Var(r, web.EndingVar) != formats.XTM21.URLEnding):
		return onlyClaims()
	case at != nil:
		return s.topicAt(w, r, *at)
	}
	return s.View(r, func(v *store.View) error {
		e, err := LastEntry(v, r)
		if err != nil {
			return err
		}
		if err := available(v, e); err != nil {
			return err
		}
		h := w.Header()
		web.AddLink(h, s.URLs.Map(&v.Collection), "collection")
		if claims && e.Lives() {
			return s.Answers.WriteSmall(w, r, formats.XTM21.MediaType(), CacheShortly, func(w io.Writer) error {
				return derive.WriteClaims(r.Context(), s.Store, &v.Collection, e.TopicSI, w)
			})
		}
		h.Set("Cache-Control", CacheShortly)
		h.Set(recordVersion, feeds.FormatTime(e.Updated))
		s.addFormLinks(h, r, &v.Collection, e)
		web.AddLink(h, s.URLs.Memento(&v.Collection, e), "memento", "datetime", web.HTTPTime(e.Updated)) // RFC 7089 §2.2.4
		s.addTopicLinks(h, &v.Collection, e)
		if e.Lives() {
			s.AddPartLinks(h, &v.Collection)
		}
		modified := web.RecorderOf(r).Settled
		if !modified.IsZero() {
			modified = e.Updated
		}
		in, err := s.choose(w, r, v.FormsOf(e), v.InRDF(), v.WasInRDF())
		if err != nil {
			return err
		}
		return s.writeRecord(w, r, version{v, e, modified}, in)
	})
}

// onlyClaims is the error if ?claims= is not alone.
func onlyClaims() error {
	return web.Problemf(http.StatusBadRequest,
		"?claims= is what the inputs say now, in XTM 2.1: leave out at=, and other endings of the address than %s",
		formats.XTM21.URLEnding)
}

// addFormLinks adds links from a topic to its forms, and from a form to the topic (RFC 6596,
// The Canonical Link Relation; Z39.99 §14.3, Alternate Representations).
func (s *Server) addFormLinks(h http.Header, r *http.Request, c *store.Collection, e *store.Entry) {
	topic := s.URLs.Topic(c, e.TopicSI)
	if web.Var(r, web.EndingVar) != "" {
		web.AddLink(h, topic, "canonical")
		return
	}
	all, _ := s.offered(c.FormsOf(e), c.InRDF())
	for _, f := range all {
		web.AddLink(h, topic+f.URLEnding, "alternate", "type", f.MediaType())
	}
}

// LastEntry returns the last entry of the topic key in the URL.
func LastEntry(v *store.View, r *http.Request) (*store.Entry, error) {
	key := web.Var(r, "key")
	e, err := v.Last(key)
	if err == nil && e == nil {
		err = web.Problemf(http.StatusNotFound,
			"there is no topic with the key %s in %s; ?si= at …/topics finds one by its subject identifier", key, v.Name)
	}
	return e, err
}

// findTopic leads from ?si= to the topic with that subject identifier.
func (s *Server) findTopic(w http.ResponseWriter, r *http.Request) error {
	at, err := parseTime(r, "at")
	if at != nil && r.URL.Query().Has("claims") {
		err = onlyClaims()
	}
	if err != nil {
		return err
	}
	return s.View(r, func(v *store.View) error {
		ref, err := Find(v, r, at != nil)
		if err != nil {
			return err
		}
		to, query := s.URLs.Topic(&v.Collection, ref), r.URL.Query()
		query.Del("si")
		if at != nil {
			query.Set("at", feeds.FormatTime(*at))
		}
		if len(query) > 0 { // such as ?claims=, or the language of a page
			to += "?" + query.Encode()
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusSeeOther)
		return nil
	})
}

// version is the version of a topic in an entry of the log.
type version struct {
	view     *store.View
	entry    *store.Entry
	modified time.Time // of stored data; zero: omitted
}

// writeFragment answers with the fragment of an entry.
func (s *Server) writeFragment(w http.ResponseWriter, r *http.Request, shown version, in *formats.Format) error {
	return s.writeShown(w, r, shown, in, "fragment", shown.view.ShowsNow(shown.entry), shown.view.WriteFragment)
}

// writeRecord serves the record form of the topic of an entry. If the topic exists, only its next entry changes its
// record in XTM. In RDF the record has blank nodes, which change independently.
func (s *Server) writeRecord(w http.ResponseWriter, r *http.Request, shown version, in *formats.Format) error {
	v, e := shown.view, shown.entry
	now := v.ShowsNow(e) && (v.Replica != nil || in.Exchange != nil || !e.Lives())
	return s.writeShown(w, r, shown, in, recordForm, now, v.WriteRecord)
}

// recordForm is the name of the record form of a topic for [Server.writeShown].
const recordForm = "record"

// writeShown serves a form of the map in the state of an entry, in XTM by inXTM. For the present map, caches must
// revalidate.
func (s *Server) writeShown(w http.ResponseWriter, r *http.Request, shown version, in *formats.Format, what string,
	now bool, inXTM func(io.Writer, *store.Entry, xtm.Version) error) error {
	v, e := shown.view, shown.entry
	write := func(to io.Writer) error {
		if in.Exchange == nil {
			return inXTM(to, e, in.Stored)
		}
		shown := formats.Shown{SP: v.SP, TopicSI: e.TopicSI, Record: what == recordForm}
		if e.Lives() {
			var err error
			if shown.State, _, err = v.Shown(e); err != nil {
				return err
			}
		}
		return in.Fragment(to, shown)
	}
	if err := canWrite(v, e); err != nil {
		return err
	}
	tag := web.Digest(fmt.Appendf(nil, "%s %s%s %d", what, v.ID(e), in.URLEnding, e.RenderedBy()))
	made, cache := web.Validator{Tag: tag, Modified: shown.modified}, w.Header().Get("Cache-Control")
	if now {
		made, cache = s.AsOfNow(w, r, v, StateOf(&v.Collection)+what+in.URLEnding), "no-cache"
	}
	err := s.Answers.WriteMade(w, r, made, cache, func() ([]byte, error) {
		var b rendered.Small
		if s.large.Expects(r, made.Tag) {
			return nil, rendered.ErrLarge
		}
		err := write(&b)
		return b.Bytes(), err
	})
	if !errors.Is(err, rendered.ErrLarge) {
		return err
	}
	return web.WriteKept(w, r, made, func(web.Coding) (web.File, error) {
		f, err := s.rendering(s.large, r, made.Tag, write)
		return f, problems.NoSpaceFor("this large "+what, "All feeds can be read, and smaller fragments and records", err)
	}, web.Gzipped)
}

// rendering opens a file that can be made again, and makes a missing one if the disk has space.
func (s *Server) rendering(among *web.Renderings, r *http.Request, name string,
	write func(io.Writer) error) (web.File, error) {
	return among.Open(r, name, func(to io.Writer) error {
		if err := s.Store.MayWrite(); durable.IsDiskFull(err) {
			return err
		}
		return write(to)
	})
}

// snapshotData serves a snapshot's file.
func (s *Server) snapshotData(w http.ResponseWriter, r *http.Request) error {
	l, err := s.latest(r)
	if err != nil {
		return err
	}
	snap, err := snapshotIn(l.Snapshots, r)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", CacheForEver)
	web.AddLink(w.Header(), s.URLs.Map(&l.Collection), "collection")
	in, err := s.choose(w, r, store.Forms[:], l.InRDF(), l.WasInRDF())
	if err != nil {
		return err
	}
	return s.writeSnapshotFile(w, r, l, snap, in)
}

// writeSnapshotFile answers with the file of a snapshot, or with one that is made of it in another form. Another
// program may write that in other bytes.
func (s *Server) writeSnapshotFile(w http.ResponseWriter, r *http.Request, latest *store.Latest, snap *store.Snapshot,
	in *formats.Format) error {
	made := web.Validator{Tag: snap.ID.String() + in.URLEnding, Modified: s.keeper.Changes.Made(snap.Updated)}
	stored := in.Stored == store.SnapshotForm
	if !stored {
		made.Tag = web.Digest([]byte(made.Tag + " " + s.program))
	}
	if in.Exchange != nil {
		w.Header().Set("Cache-Control", "no-cache")
	}
	return web.WriteKept(w, r, made, func(web.Coding) (web.File, error) {
		open := func() (web.File, error) { return latest.OpenSnapshot(r.Context(), snap) }
		var kept web.File
		var err error
		if stored {
			kept, err = open()
		} else {
			kept, err = s.rendering(s.renderings, r, made.Tag, func(to io.Writer) error {
				return writeConverted(to, in, latest.SP, open)
			})
		}
		if errors.Is(err, store.ErrLost) {
			err = s.snapshotWasLost(r.Context(), latest.Name, snap)
		}
		return kept, problems.NoSpaceFor("this form of the snapshot",
			"The snapshot is stored in XTM 2.1, and can be read in that", err)
	}, web.Gzipped)
}

// AsOfNow sets the time of the state in an answer made of the present collection, and returns its validator; state
// identifies all that the answer depends on.
func (s *Server) AsOfNow(w http.ResponseWriter, r *http.Request, v *store.View, state string) web.Validator {
	w.Header().Set(currentVersion, feeds.FormatTime(v.Updated))
	return web.Validator{Tag: s.StateTag(r, state), Modified: web.RecorderOf(r).Settled}
}
