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

	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/xml/patch"
	"github.com/tmshare/tmshare/xtm"
)

// The versions of a topic, as Memento has them (RFC 7089): the topic's URL is the original
// resource, the record forms of its entries are its mementos.

// addTimeLinks adds links from a topic to its TimeGate and TimeMap (RFC 7089 §4.2.1).
func (s *Server) addTimeLinks(h http.Header, c *store.Collection, e *store.Entry) {
	site := s.site(c)
	web.AddLink(h, site.TimeGateURL(e.TopicSI), "timegate")
	web.AddLink(h, site.TimeMapURL(e.TopicSI), "timemap", "type", linkFormat)
}

// memento answers with a version of a topic, and says when that was current (RFC 7089 §2.1.1,
// Memento-Datetime; §4.2.2).
func (s *Server) memento(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		e, err := s.findEntry(v, r)
		if err != nil {
			return err
		}
		h, c := w.Header(), &v.Collection
		h.Set("Cache-Control", cacheForEver)
		h.Set("Memento-Datetime", web.HTTPTime(e.Updated))
		web.AddLink(h, s.topicURL(c, e.TopicSI), "original")
		s.addTimeLinks(h, c, e)
		web.AddLink(h, s.mapURL(c), "collection")
		return web.Represent(s, w, r, topicForms, version{v, e, s.keeper.Changes.Made(e.Updated)})
	})
}

const linkFormat = "application/link-format"

// timeGate leads to the version of a topic that was current at a time (RFC 7089 §4.2.1,
// pattern 2.1): to the last one where none is given, to the first one that is kept where that
// is later.
func (s *Server) timeGate(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Vary", "Accept-Datetime")
	at := time.Time{}
	if given := r.Header.Get("Accept-Datetime"); given != "" {
		t, err := http.ParseTime(given)
		if err != nil {
			return web.Problemf(http.StatusBadRequest, "Accept-Datetime is not a date such as %s (RFC 7089 §2.1.1.1)", web.HTTPTime(s.Now()))
		}
		at = t
	}
	return s.view(r, func(v *store.View) error {
		e, err := lastEntry(v, r)
		if err != nil {
			return err
		}
		c := &v.Collection
		web.AddLink(h, s.topicURL(c, e.TopicSI), "original")
		web.AddLink(h, s.site(c).TimeMapURL(e.TopicSI), "timemap", "type", linkFormat)
		if e.Seq <= v.Horizon {
			return s.pruned(c, "the history of this topic")
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
		h.Set("Location", s.mementoURL(c, e))
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
	return s.view(r, func(v *store.View) error {
		last, err := lastEntry(v, r)
		if err != nil {
			return err
		}
		c, site := &v.Collection, s.site(&v.Collection)
		start, self := last, site.TimeMapURL(last.TopicSI)
		if page := strings.TrimPrefix(web.Var(r, "page"), "-"); page != "" {
			seq, _ := strconv.ParseUint(page, 10, 64) // the route takes digits only
			if start, err = v.Entry(seq); errors.Is(err, store.ErrGone) {
				return s.pruned(c, "this page of versions")
			}
			if err != nil || start.TopicSI != last.TopicSI {
				return web.Problemf(http.StatusNotFound, "there is no such page of the versions at %s", self)
			}
			self += "-" + page
		}
		links := []string{
			web.LinkValue(s.topicURL(c, last.TopicSI), "original"),
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
			links = append(links, web.LinkValue(s.mementoURL(c, at), rel, "datetime", web.HTTPTime(at.Updated)))
			at = before
		}
		return s.answers.WriteSmall(w, r, linkFormat, cacheShortly, func(to io.Writer) error {
			_, err := io.WriteString(to, strings.Join(links, ",\n")+"\n")
			return err
		})
	})
}

// mementoPatch answers with the patch that makes a version of a topic, in a form, of the version
// before (Z39.99 §14.4, Patch Content). It never changes, as versions do not.
func (s *Server) mementoPatch(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		e, err := s.findEntry(v, r)
		if err != nil {
			return err
		}
		version := store.Forms[slices.IndexFunc(store.Forms[:], func(v xtm.Version) bool { return ending(v) == web.Var(r, web.EndingVar) })] // the route has no others
		digest := e.PatchOf(version)
		if digest == nil {
			return web.Problemf(http.StatusNotFound, "no patch leads to this version; it is at %s", s.mementoURL(&v.Collection, e))
		}
		if e.Prior <= v.Horizon {
			return s.pruned(&v.Collection, "the version that this patch leads from")
		}
		web.RecorderOf(r).Settled = s.keeper.Changes.Made(e.Updated)
		h := w.Header()
		h.Set("Vary", "Accept-Encoding")
		h.Set("Content-Type", patch.MediaType)
		return s.answers.WriteBytes(w, r, hex.EncodeToString(digest.SHA256[:16]), cacheForEver, func() ([]byte, error) { return v.Patch(e, version) })
	})
}
