package resourcesync

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/xml/patch"
	"github.com/tmshare/tmshare/xtm"
)

// The versions of a topic, as Memento has them (RFC 7089): the topic's URL is the original
// resource, the record forms of its entries are its mementos.

// memento serves a version of a topic, with the time when that was current (RFC 7089 §2.1.1, Memento-Datetime; §4.2.2).
func (p *part) memento(w http.ResponseWriter, r *http.Request) error {
	return p.server.View(r, func(v *store.View) error {
		e, err := p.server.FindEntry(v, r)
		if err != nil {
			return err
		}
		w.Header().Set("Cache-Control", server.CacheForEver)
		return p.server.WriteVersion(w, r, v, e)
	})
}

// timeGate redirects to the version of a topic that was current at a time (RFC 7089 §4.2.1, pattern 2.1): to the last
// one without a time, to the first stored one if that is later.
func (p *part) timeGate(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Vary", "Accept-Datetime")
	at, err := p.server.AcceptDatetime(r)
	if err != nil {
		return err
	}
	return p.server.View(r, func(v *store.View) error {
		e, err := server.LastEntry(v, r)
		if err != nil {
			return err
		}
		c := &v.Collection
		web.AddLink(h, p.server.URLs.Topic(c, e.TopicSI), "original")
		web.AddLink(h, p.site(c).TimeMapURL(e.TopicSI), "timemap", "type", resources.LinkFormat)
		if e.Seq <= v.Horizon {
			return p.server.Pruned(c, "the history of this topic")
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
		h.Set("Cache-Control", server.CacheShortly)
		h.Set("Location", p.server.URLs.Memento(c, e))
		w.WriteHeader(http.StatusFound)
		return nil
	})
}

// prior returns the stored entry of the topic before e; nil if there is none.
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

// mementosOnPage is the number of versions on a page of a TimeMap.
const mementosOnPage = 1000

// timeMap serves the stored versions of a topic, the newest first (RFC 7089 §5). The URL of a later page has the
// sequence of its first entry.
func (p *part) timeMap(w http.ResponseWriter, r *http.Request) error {
	return p.server.View(r, func(v *store.View) error {
		last, err := server.LastEntry(v, r)
		if err != nil {
			return err
		}
		c, site := &v.Collection, p.site(&v.Collection)
		start, self := last, site.TimeMapURL(last.TopicSI)
		if page := strings.TrimPrefix(web.Var(r, "page"), "-"); page != "" {
			seq, _ := strconv.ParseUint(page, 10, 64) // the route takes digits only
			if start, err = v.Entry(seq); errors.Is(err, store.ErrGone) {
				return p.server.Pruned(c, "this page of versions")
			}
			if err != nil || start.TopicSI != last.TopicSI {
				return web.Problemf(http.StatusNotFound, "there is no such page of the versions at %s", self)
			}
			self += "-" + page
		}
		links := []string{
			web.LinkValue(p.server.URLs.Topic(c, last.TopicSI), "original"),
			web.LinkValue(site.TimeGateURL(last.TopicSI), "timegate"),
			web.LinkValue(self, "self", "type", resources.LinkFormat),
		}
		at := start
		if at.Seq <= v.Horizon {
			at = nil
		}
		for n := 0; at != nil; n++ {
			if n == mementosOnPage {
				next := fmt.Sprintf("%s-%d", site.TimeMapURL(last.TopicSI), at.Seq)
				links = append(links, web.LinkValue(next, "timemap", "type", resources.LinkFormat))
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
			links = append(links, web.LinkValue(p.server.URLs.Memento(c, at), rel, "datetime", web.HTTPTime(at.Updated)))
			at = before
		}
		return p.server.Answers.WriteSmall(w, r, resources.LinkFormat, server.CacheShortly, func(to io.Writer) error {
			_, err := io.WriteString(to, strings.Join(links, ",\n")+"\n")
			return err
		})
	})
}

// mementoPatch answers with the patch that makes a version of a topic, in a form, of the version
// before (Z39.99 §14.4, Patch Content). It never changes, as versions do not.
func (p *part) mementoPatch(w http.ResponseWriter, r *http.Request) error {
	return p.server.View(r, func(v *store.View) error {
		e, err := p.server.FindEntry(v, r)
		if err != nil {
			return err
		}
		var version xtm.Version
		for i, v := range store.Forms { // the route has no other endings
			if server.VersionForms[i].Ending == web.Var(r, web.EndingVar) {
				version = v
			}
		}
		about, err := resources.RecordFormOf(v, e)
		if err != nil {
			return err
		}
		digest := about.PatchIn(version)
		if digest == nil {
			return web.Problemf(http.StatusNotFound, "no patch leads to this version; it is at %s",
				p.server.URLs.Memento(&v.Collection, e))
		}
		if e.Prior <= v.Horizon {
			return p.server.Pruned(&v.Collection, "the version that this patch leads from")
		}
		web.RecorderOf(r).Settled = p.server.Made(e.Updated)
		h := w.Header()
		h.Set("Vary", "Accept-Encoding")
		h.Set("Content-Type", patch.MediaType)
		return p.server.Answers.WriteBytes(w, r, hex.EncodeToString(digest.SHA256[:16]), server.CacheForEver,
			func() ([]byte, error) {
				return resources.Patch(v, e, version)
			})
	})
}
