package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// A past state has the address of the present one, with ?at=. The present map is an original resource (RFC 7089), and
// its own TimeGate; its mementos have the same URL with ?at=.

// WriteVersion serves the version of a topic in an entry, with the time when that was current (RFC 7089 §2.1.1,
// Memento-Datetime; §4.2.2).
func (s *Server) WriteVersion(w http.ResponseWriter, r *http.Request, v *store.View, e *store.Entry) error {
	h, c := w.Header(), &v.Collection
	h.Set("Memento-Datetime", web.HTTPTime(e.Updated))
	web.AddLink(h, s.URLs.Topic(c, e.TopicSI), "original")
	s.addTopicLinks(h, c, e)
	web.AddLink(h, s.URLs.Map(c), "collection")
	in, err := s.choose(w, r, store.Forms[:], false, false)
	if err != nil {
		return err
	}
	return s.writeRecord(w, r, version{v, e, s.keeper.Changes.Made(e.Updated)}, in)
}

// topicAt serves a topic as it was at a time. Unlike a memento, it is the topic of that time, or an error with the
// reason why that is gone.
func (s *Server) topicAt(w http.ResponseWriter, r *http.Request, at time.Time) error {
	return s.View(r, func(v *store.View) error {
		m, err := history.Asked(v, at, s.Now())
		if err != nil {
			return err
		}
		e, err := history.Version(v, web.Var(r, "key"), m)
		if err != nil {
			return err
		}
		if _, err := v.Past(m.Seq); err != nil {
			return err
		}
		h := w.Header()
		h.Set("Cache-Control", CacheShortly)
		h.Set("Content-Location", s.URLs.Memento(&v.Collection, e)+web.Var(r, web.EndingVar))
		h.Set(recordVersion, feeds.FormatTime(e.Updated))
		return s.WriteVersion(w, r, v, e)
	})
}

// parseTimes reads the times that the query gives under a name.
func parseTimes(r *http.Request, name string) (all []time.Time, err error) {
	for _, text := range r.URL.Query()[name] {
		t, err := history.ParseTime(text)
		if err != nil {
			return nil, web.Problemf(http.StatusBadRequest, "?%s=: %s", name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// parseTime returns the time in a query parameter; nil if it is missing.
func parseTime(r *http.Request, name string) (*time.Time, error) {
	all, err := parseTimes(r, name)
	switch {
	case err != nil || len(all) == 0:
		return nil, err
	case len(all) > 1:
		return nil, web.Problemf(http.StatusBadRequest, "?%s= is given %d times; give one time", name, len(all))
	}
	return &all[0], nil
}

// AcceptDatetime returns the time that a request negotiates for (RFC 7089 §2.1.1.1); the zero time if it does not.
func (s *Server) AcceptDatetime(r *http.Request) (at time.Time, err error) {
	if given := r.Header.Get("Accept-Datetime"); given != "" {
		if at, err = http.ParseTime(given); err != nil {
			err = web.Problemf(http.StatusBadRequest, "Accept-Datetime is not a date such as %s (RFC 7089 §2.1.1.1)",
				web.HTTPTime(s.Now()))
		}
	}
	return at, err
}

// currentSnapshot streams the present map, or with ?at= that of a time, with the time of its state. With
// Accept-Datetime it redirects to the map of that time (RFC 7089 §4.1.1, pattern 1.1): to the last state for a later
// time, to the first available one for an earlier time.
func (s *Server) currentSnapshot(w http.ResponseWriter, r *http.Request) error {
	at, err := parseTime(r, "at")
	if err != nil {
		return err
	}
	gate, err := s.AcceptDatetime(r)
	if err != nil {
		return err
	}
	return s.View(r, func(v *store.View) error {
		h, c := w.Header(), &v.Collection
		web.AddLink(h, s.URLs.Map(c), "collection")
		web.AddLink(h, s.URLs.Current(c), "original timegate")
		var then *history.Moment // nil: as it is now
		switch {
		case at != nil:
			m, err := history.Asked(v, *at, s.Now())
			if err != nil {
				return err
			}
			then = &m
		case !gate.IsZero():
			return s.leadToState(w, r, v, gate)
		default:
			web.AddLink(h, s.stateURL(r, c, history.Now(v)), "memento", "datetime", web.HTTPTime(v.Updated)) // RFC 7089 §2.2.4
			if err := setDigest(w, v); err != nil {
				return err
			}
		}
		in, err := s.choose(w, r, store.Forms[:], v.InRDF(), v.WasInRDF())
		if err != nil {
			return err
		}
		return s.writeCurrent(w, r, v, then, in)
	})
}

// leadToState redirects to the map as it was at the end of a second.
func (s *Server) leadToState(w http.ResponseWriter, r *http.Request, v *store.View, second time.Time) error {
	m, err := history.At(v, second.Add(time.Second-time.Nanosecond))
	first, firstErr := history.First(v)
	if firstErr != nil {
		return firstErr
	}
	switch {
	case errors.Is(err, store.ErrGone), errors.Is(err, store.ErrNotFound), err == nil && m.Seq < first.Seq:
		m = first
	case err != nil:
		return err
	}
	h := w.Header()
	h.Set("Vary", "Accept-Datetime")
	h.Set("Cache-Control", CacheShortly)
	h.Set("Location", s.stateURL(r, &v.Collection, m))
	w.WriteHeader(http.StatusFound)
	return nil
}

// stateURL is that of a state of a collection, in the form that a request for the present one names.
func (s *Server) stateURL(r *http.Request, c *store.Collection, m history.Moment) string {
	return s.URLs.Current(c) + web.Var(r, web.EndingVar) + "?at=" + feeds.FormatTime(m.Updated)
}

func (s *Server) writeCurrent(w http.ResponseWriter, r *http.Request, v *store.View, then *history.Moment,
	in *formats.Format) error {
	h := w.Header()
	if then == nil {
		h.Add("Vary", "Accept-Datetime")
		made := s.AsOfNow(w, r, v, StateOf(&v.Collection)+in.URLEnding)
		return s.Answers.WriteRendered(w, r, made, func(to io.Writer) error {
			return writeMap(to, in, v.SP, v.Source())
		})
	}
	h.Set(currentVersion, feeds.FormatTime(then.Updated))
	h.Set("Memento-Datetime", web.HTTPTime(then.Updated))
	past, err := v.Past(then.Seq)
	if err != nil {
		return err
	}
	made := web.Validator{Tag: s.StateTag(r, fmt.Sprint(StateOf(&v.Collection), then.Seq, in.URLEnding)),
		Modified: web.RecorderOf(r).Settled}
	return s.Answers.WriteRendered(w, r, made, func(to io.Writer) error {
		return writeMap(to, in, v.SP, past)
	})
}

// writeMap writes a map in a format.
func writeMap(to io.Writer, in *formats.Format, sp string, src fragment.Source) error {
	if in.Exchange != nil {
		return in.Snapshot(to, sp, fragment.Records(src))
	}
	return fragment.WriteSnapshot(to, src, fragment.Form{Version: in.Stored, SP: sp})
}
