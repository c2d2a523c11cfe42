package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/tmshare/tmshare/internal/store"
)

// The versions of a topic, as Memento has them (RFC 7089): the topic's URL is the original
// resource, the fragments of its entries are its mementos.

// addTimeLinks adds links from a topic to its TimeGate and TimeMap (RFC 7089 §4.2.1).
func (s *Server) addTimeLinks(h http.Header, c *store.Collection, e *store.Entry) {
	site := s.site(c)
	addLink(h, site.TimeGateURL(e.TopicSI), "timegate")
	addLink(h, site.TimeMapURL(e.TopicSI), "timemap", "type", linkFormat)
}

// addMementoHeaders says that a fragment is a version of a topic, and when that was current
// (RFC 7089 §2.1.1, Memento-Datetime; §4.2.2).
func (s *Server) addMementoHeaders(h http.Header, c *store.Collection, e *store.Entry) {
	h.Set("Memento-Datetime", httpTime(e.Updated))
	addLink(h, s.topicURL(c, e.TopicSI), "original")
	s.addTimeLinks(h, c, e)
}

const linkFormat = "application/link-format"

func httpTime(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

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
			return problem(http.StatusBadRequest, "Accept-Datetime is not a date such as %s (RFC 7089 §2.1.1.1)", httpTime(s.Now()))
		}
		at = t
	}
	return s.view(r, func(v *store.View) error {
		e, err := lastEntry(v, r)
		if err != nil {
			return err
		}
		c := &v.Collection
		addLink(h, s.topicURL(c, e.TopicSI), "original")
		addLink(h, s.site(c).TimeMapURL(e.TopicSI), "timemap", "type", linkFormat)
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
		h.Set("Location", s.fragmentURL(c, e.Seq))
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
		if page := strings.TrimPrefix(mux.Vars(r)["page"], "-"); page != "" {
			seq, _ := strconv.ParseUint(page, 10, 64) // the route takes digits only
			if start, err = v.Entry(seq); errors.Is(err, store.ErrGone) {
				return s.pruned(c, "this page of versions")
			}
			if err != nil || start.TopicSI != last.TopicSI {
				return problem(http.StatusNotFound, "there is no such page of the versions at %s", self)
			}
			self += "-" + page
		}
		links := []string{
			linkValue(s.topicURL(c, last.TopicSI), "original"),
			linkValue(site.TimeGateURL(last.TopicSI), "timegate"),
			linkValue(self, "self", "type", linkFormat),
		}
		at := start
		if at.Seq <= v.Horizon {
			at = nil
		}
		for n := 0; at != nil; n++ {
			if n == mementosOnPage {
				links = append(links, linkValue(fmt.Sprintf("%s-%d", site.TimeMapURL(last.TopicSI), at.Seq), "timemap", "type", linkFormat))
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
			links = append(links, linkValue(s.fragmentURL(c, at.Seq), rel, "datetime", httpTime(at.Updated)))
			at = before
		}
		return s.writeSmall(w, r, linkFormat, func(to io.Writer) error {
			_, err := io.WriteString(to, strings.Join(links, ",\n")+"\n")
			return err
		})
	})
}

// linkValue returns a link as Link headers and link-format documents have it (RFC 8288 §3,
// RFC 6690 §2).
func linkValue(href, rel string, params ...string) string {
	link := fmt.Sprintf(`<%s>; rel=%q`, href, rel)
	for i := 0; i < len(params); i += 2 {
		link += fmt.Sprintf(`; %s=%q`, params[i], params[i+1])
	}
	return link
}
