package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/mux"
	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// fragmentData is the Topic Map Fragment Data Service of TMShare.
func (s *Server) fragmentData(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		e, err := s.findEntry(v, r)
		if err != nil {
			return err
		}
		h := w.Header()
		h.Set("Cache-Control", cacheForEver)
		addLink(h, s.topicURL(&v.Collection, e.TopicSI), "latest-version") // RFC 5829 §3.2
		s.addMementoHeaders(h, &v.Collection, e)
		version, err := s.prepare(w, r, &v.Collection, store.Forms[:])
		if err != nil {
			return err
		}
		return s.writeFragment(w, r, v, e, version, s.sinceThen(e.Updated))
	})
}

// topicData answers with the record of a topic: the fragment of its last entry, in
// the forms in which it is offered. Where the topic is deleted, that says so.
func (s *Server) topicData(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		e, err := lastEntry(v, r)
		if err != nil {
			return err
		}
		version, err := s.prepare(w, r, &v.Collection, v.FormsOf(e))
		if err != nil {
			return err
		}
		h := w.Header()
		h.Set("Cache-Control", cacheShortly)
		h.Set(recordVersion, feeds.FormatTime(e.Updated))
		s.addFormLinks(h, r, &v.Collection, e)
		addLink(h, s.fragmentURL(&v.Collection, e.Seq), "memento", "datetime", e.Updated.UTC().Format(http.TimeFormat)) // RFC 7089 §2.2.4
		s.addTimeLinks(h, &v.Collection, e)
		if e.Lives() {
			s.addSourceLink(h, &v.Collection)
		}
		modified := exchangeOf(r).settled
		if !modified.IsZero() {
			modified = e.Updated
		}
		return s.writeFragment(w, r, v, e, version, modified)
	})
}

// addFormLinks adds links from a topic to its forms, and from a form to the topic (RFC 6596,
// The Canonical Link Relation; Z39.99 §14.3, Alternate Representations).
func (s *Server) addFormLinks(h http.Header, r *http.Request, c *store.Collection, e *store.Entry) {
	topic := s.topicURL(c, e.TopicSI)
	if mux.Vars(r)["ext"] != "" {
		addLink(h, topic, resourcesync.RelCanonical)
		return
	}
	for _, version := range c.FormsOf(e) {
		addLink(h, topic+extension(version), resourcesync.RelAlternate, "type", mediaType(version))
	}
}

// lastEntry returns the last entry of the topic key in the URL.
func lastEntry(v *store.View, r *http.Request) (*store.Entry, error) {
	key := mux.Vars(r)["key"]
	e, err := v.Last(key)
	if err == nil && e == nil {
		err = problem(http.StatusNotFound, "there is no topic with the key %s in %s", key, v.Name)
	}
	return e, err
}

// findTopic leads from ?si= to the topic with that subject identifier.
func (s *Server) findTopic(w http.ResponseWriter, r *http.Request) error {
	si, err := iri.Normalize(r.URL.Query().Get("si"))
	if err != nil {
		return problem(http.StatusBadRequest, "name a topic by its subject identifier: ?si=…")
	}
	return s.view(r, func(v *store.View) error {
		t, err := v.Source().Topic(fragment.Ref(si))
		if err != nil {
			return err
		}
		if t == nil {
			return problem(http.StatusNotFound, "no topic of %s has the subject identifier %s", v.Name, si)
		}
		w.Header().Set("Location", s.topicURL(&v.Collection, t.TopicSI()))
		w.WriteHeader(http.StatusSeeOther)
		return nil
	})
}

// writeFragment answers with the fragment of an entry, as it is stored or, where
// it is not, as the map is now.
func (s *Server) writeFragment(w http.ResponseWriter, r *http.Request, v *store.View, e *store.Entry, version xtm.Version, modified time.Time) error {
	if !e.Stored {
		if r.Method == http.MethodHead { // there may be none any more
			if there, err := v.Renders(e); err != nil {
				return err
			} else if !there {
				return fmt.Errorf("%w: topic %s has a later entry", store.ErrGone, e.TopicSI)
			}
		}
		return s.writeRendered(w, r, v, stateOf(&v.Collection)+extension(version), func(to io.Writer) error { return v.RenderFragment(to, e, version) })
	}
	data, err := v.StoredFragment(e, version)
	if err != nil {
		return err
	}
	return writeStored(w, r, validator{digest(data), modified}, func() (packed, error) {
		return packed{bytes.NewReader(data), io.NopCloser(nil), int64(len(data))}, nil
	})
}

// prepare chooses the form of an answer with XTM among those offered, and sets what all
// of them have in common.
func (s *Server) prepare(w http.ResponseWriter, r *http.Request, c *store.Collection, offered []xtm.Version) (xtm.Version, error) {
	h := w.Header()
	h.Set("Vary", "Accept, Accept-Encoding")
	version, err := negotiateXTM(r, mux.Vars(r)["ext"], offered)
	if err != nil {
		return "", err
	}
	h.Set("Content-Type", mediaType(version))
	addLink(h, s.mapURL(c), "collection") // RFC 6573 §2.2
	return version, nil
}

// addLink adds a link with parameters to the header (RFC 8288 §3, Link
// Serialisation in HTTP Headers).
func addLink(h http.Header, href, rel string, params ...string) {
	h.Add("Link", linkValue(href, rel, params...))
}

// sinceThen returns when something was made that never changes, once its second
// is over.
func (s *Server) sinceThen(t time.Time) time.Time {
	if !secondIsOver(t, s.Now()) {
		return time.Time{}
	}
	return t
}

// snapshotData serves a snapshot's file.
func (s *Server) snapshotData(w http.ResponseWriter, r *http.Request) error {
	name := mux.Vars(r)["map"]
	exchangeOf(r).settled = s.changes.settled(name)
	l, err := s.Store.Latest(name)
	if err != nil {
		return err
	}
	version, err := s.prepare(w, r, &l.Collection, store.Forms[:])
	if err != nil {
		return err
	}
	snap, err := snapshotIn(l.Snapshots, r)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", cacheForEver)
	return writeStored(w, r, validator{snap.ID.String() + extension(version), s.sinceThen(snap.Updated)}, func() (packed, error) {
		f, err := l.OpenSnapshot(snap, version)
		if err != nil {
			return packed{}, err
		}
		info, err := f.Stat()
		if err != nil {
			f.Close()
			return packed{}, err
		}
		return packed{f, f, info.Size()}, nil
	})
}

// currentSnapshot streams the map as it is now and says as of when.
func (s *Server) currentSnapshot(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		version, err := s.prepare(w, r, &v.Collection, store.Forms[:])
		if err != nil {
			return err
		}
		return s.writeRendered(w, r, v, stateOf(&v.Collection)+extension(version), func(to io.Writer) error { return v.WriteSnapshot(to, version) })
	})
}

// writeRendered streams what is made of the collection as it is now; state says all that
// it depends on. Caches ask each time, but need not fetch it again.
func (s *Server) writeRendered(w http.ResponseWriter, r *http.Request, v *store.View, state string, render func(io.Writer) error) error {
	c, err := negotiateCoding(r, zstd1, gzipped)
	if err != nil {
		return err
	}
	tag := s.stateTag(r, state)
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set(currentVersion, feeds.FormatTime(v.Updated))
	setCoding(h, c)
	if done, err := unchanged(w, r, validator{tag, exchangeOf(r).settled}, c); done || err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		return nil
	}
	return few(w, r, s.renders, s.Patience/3, "large answers", func() error { return s.packers.pack(w, c, render) })
}

// packed is what is kept packed, and its size.
type packed struct {
	io.ReadSeeker
	io.Closer
	size int64
}

// writeStored answers with what is kept packed. It is opened only for those who do
// not have it. Ranges are served of that coding only; without a coding it is
// unpacked on the way.
func writeStored(w http.ResponseWriter, r *http.Request, v validator, open func() (packed, error)) error {
	c, err := negotiateCoding(r, gzipped)
	if err != nil {
		return err
	}
	h := w.Header()
	setCoding(h, c)
	if done, err := unchanged(w, r, v, c); done || err != nil {
		return err
	}
	p, err := open()
	if err != nil {
		return err
	}
	defer p.Close()
	if c != identity {
		h.Set("Content-Length", strconv.FormatInt(p.size, 10)) // ranges have one of their own
		ranged := &rangeWriter{ResponseWriter: w}
		http.ServeContent(ranged, r, "", v.modified, p.ReadSeeker)
		if ranged.failed {
			return problem(http.StatusRequestedRangeNotSatisfiable, "the range %q is not among the %d bytes that there are", r.Header.Get("Range"), p.size)
		}
		return nil
	}
	z, err := gzip.NewReader(p)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		return nil
	}
	_, err = io.Copy(w, z)
	return err
}

// rangeWriter keeps back the answer of http.ServeContent to a range that cannot
// be served, but for its headers.
type rangeWriter struct {
	http.ResponseWriter
	failed bool
}

func (w *rangeWriter) WriteHeader(status int) {
	if w.failed = status == http.StatusRequestedRangeNotSatisfiable; !w.failed {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.failed {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

func (w *rangeWriter) ReadFrom(from io.Reader) (int64, error) {
	if w.failed {
		return io.Copy(io.Discard, from)
	}
	return io.Copy(w.ResponseWriter, from)
}
