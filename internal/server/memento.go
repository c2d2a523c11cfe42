package server

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/resources"
	"github.com/tmshare/tmshare/internal/server/dataforms"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/xml/patch"
)

// The versions of a topic, as Memento has them (RFC 7089): the topic's URL is the original
// resource, the record forms of its entries are its mementos. The map as of now is an original resource as well,
// and its own TimeGate; its mementos are under the same URL with ?at=.

// addTimeLinks adds links from a topic to its TimeGate and TimeMap (RFC 7089 §4.2.1).
func (s *Server) addTimeLinks(h http.Header, c *store.Collection, e *store.Entry) {
	site := s.site(c)
	web.AddLink(h, site.TimeGateURL(e.TopicSI), "timegate")
	web.AddLink(h, site.TimeMapURL(e.TopicSI), "timemap", "type", linkFormat)
}

// memento answers with a version of a topic, and says when that was current (RFC 7089 §2.1.1,
// Memento-Datetime; §4.2.2).
func (s *Server) memento(w http.ResponseWriter, r *http.Request) error {
	return s.View(r, func(v *store.View) error {
		e, err := s.FindEntry(v, r)
		if err != nil {
			return err
		}
		w.Header().Set("Cache-Control", cacheForEver)
		return s.writeMemento(w, r, v, e)
	})
}

func (s *Server) writeMemento(w http.ResponseWriter, r *http.Request, v *store.View, e *store.Entry) error {
	h, c := w.Header(), &v.Collection
	h.Set("Memento-Datetime", web.HTTPTime(e.Updated))
	web.AddLink(h, s.URLs.Topic(c, e.TopicSI), "original")
	s.addTimeLinks(h, c, e)
	web.AddLink(h, s.URLs.Map(c), "collection")
	return web.Represent(s, w, r, mementoForms, version{v, e, s.keeper.Changes.Made(e.Updated)})
}

// topicAt answers with a topic as it was at a time. Unlike a memento, it is what the topic was, or an error that says why that
// is gone.
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
		h.Set("Cache-Control", cacheShortly)
		h.Set("Content-Location", s.URLs.Memento(&v.Collection, e)+web.Var(r, web.EndingVar))
		h.Set(recordVersion, feeds.FormatTime(e.Updated))
		return s.writeMemento(w, r, v, e)
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

// parseTime returns the time that the query gives under a name; nil where it gives none.
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

// acceptDatetime returns the time that a request negotiates for (RFC 7089 §2.1.1.1); the zero time where it does not.
func (s *Server) acceptDatetime(r *http.Request) (at time.Time, err error) {
	if given := r.Header.Get("Accept-Datetime"); given != "" {
		if at, err = http.ParseTime(given); err != nil {
			err = web.Problemf(http.StatusBadRequest, "Accept-Datetime is not a date such as %s (RFC 7089 §2.1.1.1)", web.HTTPTime(s.Now()))
		}
	}
	return at, err
}

const linkFormat = "application/link-format"

// timeGate leads to the version of a topic that was current at a time (RFC 7089 §4.2.1,
// pattern 2.1): to the last one where none is given, to the first one that is kept where that
// is later.
func (s *Server) timeGate(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Vary", "Accept-Datetime")
	at, err := s.acceptDatetime(r)
	if err != nil {
		return err
	}
	return s.View(r, func(v *store.View) error {
		e, err := LastEntry(v, r)
		if err != nil {
			return err
		}
		c := &v.Collection
		web.AddLink(h, s.URLs.Topic(c, e.TopicSI), "original")
		web.AddLink(h, s.site(c).TimeMapURL(e.TopicSI), "timemap", "type", linkFormat)
		if e.Seq <= v.Horizon {
			return s.Pruned(c, "the history of this topic")
		}
		for !at.IsZero() && e.Updated.Truncate(time.Second).After(at) {
			before, err := prior(v, e)
			if err != nil {
				return err
			}
			if before == nil {
				break
			}
			e = before
		}
		h.Set("Cache-Control", cacheShortly)
		h.Set("Location", s.URLs.Memento(c, e))
		w.WriteHeader(http.StatusFound)
		return nil
	})
}

// prior returns the entry of the topic before e, or nil where none is kept.
func prior(v *store.View, e *store.Entry) (*store.Entry, error) {
	if e.Prior == 0 {
		return nil, nil
	}
	before, err := v.Entry(e.Prior)
	if errors.Is(err, store.ErrGone) {
		return nil, nil
	}
	return before, err
}

// mementosOnPage is how many versions a page of a TimeMap lists.
const mementosOnPage = 1000

// timeMap lists the versions of a topic that are kept, the newest first (RFC 7089 §5). The
// page that goes on behind another has the sequence of its first entry in its URL.
func (s *Server) timeMap(w http.ResponseWriter, r *http.Request) error {
	return s.View(r, func(v *store.View) error {
		last, err := LastEntry(v, r)
		if err != nil {
			return err
		}
		c, site := &v.Collection, s.site(&v.Collection)
		start, self := last, site.TimeMapURL(last.TopicSI)
		if page := strings.TrimPrefix(web.Var(r, "page"), "-"); page != "" {
			seq, _ := strconv.ParseUint(page, 10, 64) // the route takes digits only
			if start, err = v.Entry(seq); errors.Is(err, store.ErrGone) {
				return s.Pruned(c, "this page of versions")
			}
			if err != nil || start.TopicSI != last.TopicSI {
				return web.Problemf(http.StatusNotFound, "there is no such page of the versions at %s", self)
			}
			self += "-" + page
		}
		links := []string{
			web.LinkValue(s.URLs.Topic(c, last.TopicSI), "original"),
			web.LinkValue(site.TimeGateURL(last.TopicSI), "timegate"),
			web.LinkValue(self, "self", "type", linkFormat),
		}
		at := start
		if at.Seq <= v.Horizon {
			at = nil
		}
		for n := 0; at != nil; n++ {
			if n == mementosOnPage {
				links = append(links, web.LinkValue(fmt.Sprintf("%s-%d", site.TimeMapURL(last.TopicSI), at.Seq), "timemap", "type", linkFormat))
				break
			}
			before, err := prior(v, at)
			if err != nil {
				return err
			}
			rel := "memento"
			if before == nil {
				rel = "first " + rel
			}
			if at == last {
				rel = "last " + rel
			}
			links = append(links, web.LinkValue(s.URLs.Memento(c, at), rel, "datetime", web.HTTPTime(at.Updated)))
			at = before
		}
		return s.Answers.WriteSmall(w, r, linkFormat, cacheShortly, func(to io.Writer) error {
			_, err := io.WriteString(to, strings.Join(links, ",\n")+"\n")
			return err
		})
	})
}

// mementoPatch answers with the patch that makes a version of a topic, in a form, of the version
// before (Z39.99 §14.4, Patch Content). It never changes, as versions do not.
func (s *Server) mementoPatch(w http.ResponseWriter, r *http.Request) error {
	return s.View(r, func(v *store.View) error {
		e, err := s.FindEntry(v, r)
		if err != nil {
			return err
		}
		version := store.Forms[slices.IndexFunc(mementoForms, func(p web.Representation[*Server, version]) bool { return p.Ending == web.Var(r, web.EndingVar) })] // the route has no others
		about, err := resources.RecordFormOf(v, e)
		if err != nil {
			return err
		}
		digest := about.PatchIn(version)
		if digest == nil {
			return web.Problemf(http.StatusNotFound, "no patch leads to this version; it is at %s", s.URLs.Memento(&v.Collection, e))
		}
		if e.Prior <= v.Horizon {
			return s.Pruned(&v.Collection, "the version that this patch leads from")
		}
		web.RecorderOf(r).Settled = s.keeper.Changes.Made(e.Updated)
		h := w.Header()
		h.Set("Vary", "Accept-Encoding")
		h.Set("Content-Type", patch.MediaType)
		return s.Answers.WriteBytes(w, r, hex.EncodeToString(digest.SHA256[:16]), cacheForEver, func() ([]byte, error) { return resources.Patch(v, e, version) })
	})
}

// current is the map as it is, or as it was.
type current struct {
	*store.View
	at *history.Moment // nil: as it is now
}

// currentSnapshot streams the map as it is now, or with ?at= as it was at a time, and says as of when. With Accept-Datetime it leads to the
// map as it was (RFC 7089 §4.1.1, pattern 1.1): to the last state where the time is later, to the first one that can be
// had where it is earlier.
func (s *Server) currentSnapshot(w http.ResponseWriter, r *http.Request) error {
	at, err := parseTime(r, "at")
	if err != nil {
		return err
	}
	gate, err := s.acceptDatetime(r)
	if err != nil {
		return err
	}
	return s.View(r, func(v *store.View) error {
		h, c := w.Header(), &v.Collection
		web.AddLink(h, s.URLs.Map(c), "collection")
		web.AddLink(h, s.URLs.Current(c), "original timegate")
		of := current{View: v}
		switch {
		case at != nil:
			m, err := history.Asked(v, *at, s.Now())
			if err != nil {
				return err
			}
			of.at = &m
		case !gate.IsZero():
			return s.leadToState(w, r, v, gate)
		default:
			web.AddLink(h, s.stateURL(r, c, history.Now(v)), "memento", "datetime", web.HTTPTime(v.Updated)) // RFC 7089 §2.2.4
			if err := setDigest(w, v); err != nil {
				return err
			}
		}
		return web.Represent(s, w, r, dataforms.Offered(currentForms, store.Forms[:], v.InRDF()), of)
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
	h.Set("Cache-Control", cacheShortly)
	h.Set("Location", s.stateURL(r, &v.Collection, m))
	w.WriteHeader(http.StatusFound)
	return nil
}

// stateURL is that of a state of a collection, in the form that a request for the present one names.
func (s *Server) stateURL(r *http.Request, c *store.Collection, m history.Moment) string {
	return s.URLs.Current(c) + web.Var(r, web.EndingVar) + "?at=" + feeds.FormatTime(m.Updated)
}

func (s *Server) writeCurrent(w http.ResponseWriter, r *http.Request, of current, in *formats.Format) error {
	v, h := of.View, w.Header()
	if of.at == nil {
		h.Add("Vary", "Accept-Datetime")
		made := s.asOfNow(w, r, v, StateOf(&v.Collection)+in.URLEnding)
		return s.Answers.WriteRendered(w, r, made, func(to io.Writer) error {
			if in.Statements != nil {
				return dataforms.WriteMap(to, in, v.SP, v.Source())
			}
			return v.WriteSnapshot(to, in.Stored)
		})
	}
	h.Set(currentVersion, feeds.FormatTime(of.at.Updated))
	h.Set("Memento-Datetime", web.HTTPTime(of.at.Updated))
	then, err := v.Past(of.at.Seq)
	if err != nil {
		return err
	}
	made := web.Validator{Tag: s.StateTag(r, fmt.Sprint(StateOf(&v.Collection), of.at.Seq, in.URLEnding)), Modified: web.RecorderOf(r).Settled}
	return s.Answers.WriteRendered(w, r, made, func(to io.Writer) error {
		if in.Statements != nil {
			return dataforms.WriteMap(to, in, v.SP, then)
		}
		return fragment.WriteSnapshot(to, then, fragment.Form{Version: in.Stored, SP: v.SP})
	})
}
