package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// postTopics publishes the statements of an XTM document about some topics, and keeps all others.
func (s *Server) postTopics(w http.ResponseWriter, r *http.Request) error {
	return s.publish(w, r, publish.Publication{
		Read: s.bodyOf(w, r),
		Decide: func(ctx context.Context, c store.Collection, prior merge.State, tm *tmdm.TopicMap) (*fragment.Change,
			error) {
			var named []fragment.Ref
			for _, given := range r.URL.Query()["topic"] {
				meant, err := tmdm.Named(given)
				if err != nil {
					return nil, web.Problemf(http.StatusBadRequest, "?topic=%s is no subject identifier: %s", given, err)
				}
				if tm.TopicBySubjectIdentifier(meant[0]) == nil {
					meant = meant[len(meant)-1:]
				}
				named = append(named, meant[0])
			}
			return fragment.Replace(ctx, prior, tm, c.SP, named...)
		},
	})
}

// deleteTopic makes a handler that deletes the topic which find returns, by an empty topic. Where exactly is set, one
// that has another TopicSI by now stays.
func (s *Server) deleteTopic(exactly bool,
	find func(*store.View, *http.Request) (fragment.Ref, error)) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var ref fragment.Ref
		err := s.View(r, func(v *store.View) (err error) { ref, err = find(v, r); return err })
		if err != nil {
			return err
		}
		return s.publish(w, r, publish.Publication{Decide: func(_ context.Context, _ store.Collection, prior merge.State,
			_ *tmdm.TopicMap) (*fragment.Change, error) {
			t, err := prior.Topic(ref)
			switch {
			case err != nil:
				return nil, err
			case t == nil: // a missing topic need not be deleted
				return &fragment.Change{}, nil
			case exactly && t.TopicSI() != ref:
				return nil, web.Problemf(http.StatusConflict, "the identifier %s belongs to topic %s now: delete that", ref,
					t.TopicSI())
			}
			mentions, err := prior.Mentions(t.TopicSI())
			if err != nil {
				return nil, err
			}
			return fragment.Delete(prior, t.TopicSI(), mentions)
		}})
	}
}

// byKey returns the TopicSI of the topic with the key in the URL.
func byKey(v *store.View, r *http.Request) (fragment.Ref, error) {
	e, err := LastEntry(v, r)
	if err != nil {
		return "", err
	}
	return e.TopicSI, nil
}

// byIdentifier returns the TopicSI of the topic that has, or had, the subject identifier ?si=.
func byIdentifier(v *store.View, r *http.Request) (fragment.Ref, error) { return Find(v, r, true) }

// Find returns the TopicSI of the topic that ?si= of a request means, or with former set that of one which was known by
// it.
func Find(v *store.View, r *http.Request, former bool) (fragment.Ref, error) {
	given := strings.Trim(r.URL.Query().Get("si"), " ")
	meant, err := tmdm.Named(given)
	switch {
	case given == "":
		return "", web.Problemf(http.StatusBadRequest,
			"the subject identifier of a topic is missing: give it as ?si=, an absolute IRI")
	case err != nil:
		return "", web.Problemf(http.StatusBadRequest,
			"%.200q is no subject identifier of a topic: write an absolute IRI, as in http://psi.example.org/topic", given)
	}
	ref, err := Identified(v, meant, former, false)
	if ref == "" && err == nil {
		err = web.Problemf(http.StatusNotFound, "no topic of %s has the subject identifier %s", v.Name, given)
	}
	return ref, err
}

// Identified returns the TopicSI of the topic with the first of some subject identifiers that a topic has; "": none.
// With former, a topic that had the identifier counts too, and with locators, one with that subject locator.
func Identified(v *store.View, meant []tmdm.Locator, former, locators bool) (fragment.Ref, error) {
	for _, l := range meant {
		t, err := v.Source().Topic(l)
		if t == nil && err == nil && locators {
			t, err = v.Source().TopicBySubjectLocator(l)
		}
		if err != nil {
			return "", err
		}
		if former && (t == nil || t.TopicSI() != l) {
			if last, err := v.LastOf(l); err != nil || last != nil {
				return l, err
			}
		}
		if t != nil {
			return t.TopicSI(), nil
		}
	}
	return "", nil
}

// revert publishes an earlier state: the topic ?si= of the time ?to=, or the map without the commit ?commit=. It is a
// change like any other, and the log keeps the reverted entries.
func (s *Server) revert(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	switch {
	case query.Has("si") && query.Has("to") && !query.Has("commit"):
		return s.revertTopic(w, r)
	case query.Has("commit") && !query.Has("si") && !query.Has("to"):
		return s.revertCommit(w, r)
	}
	return web.Problemf(http.StatusBadRequest,
		"say what to revert: ?si= and ?to= make a topic what it was at a time, ?commit= takes back a commit")
}

func (s *Server) revertTopic(w http.ResponseWriter, r *http.Request) error {
	to, err := parseTime(r, "to")
	if err != nil {
		return err
	}
	var ref fragment.Ref
	var was *fragment.Fragment
	err = s.View(r, func(v *store.View) (err error) {
		if ref, err = Find(v, r, true); err != nil {
			return err
		}
		m, err := history.Asked(v, *to, s.Now())
		if err == nil {
			was, err = history.Was(v, ref, m)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.publish(w, r, publish.Publication{
		Note: clip("Reverts "+ref.String()+" to "+feeds.FormatTime(*to), publish.MaxNote),
		Decide: func(ctx context.Context, c store.Collection, prior merge.State, _ *tmdm.TopicMap) (*fragment.Change, error) {
			return history.Back(ctx, c.SP, prior, ref, was)
		},
	})
}

// clip cuts text to a number of bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// revertCommit restores all records changed by a commit to their versions before. With ?force= it restores what is
// possible.
func (s *Server) revertCommit(w http.ResponseWriter, r *http.Request) error {
	commit, err := web.Number(r, "commit", 0)
	if err != nil || commit == 0 {
		return web.Problemf(http.StatusBadRequest, "?commit= is the number of a commit: write one that the log has")
	}
	limit, err := s.maxDelete(r)
	if err != nil {
		return err
	}
	force, err := web.Flag(r, "force")
	if err != nil {
		return err
	}
	err = s.View(r, func(v *store.View) error { // any entry of the commit identifies it
		_, err := v.Entry(commit)
		if err == nil {
			commit, err = v.CommitOf(commit)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.publish(w, r, publish.Publication{
		Note: fmt.Sprint("Reverts commit ", commit),
		Decide: func(ctx context.Context, c store.Collection, prior merge.State, _ *tmdm.TopicMap) (*fragment.Change, error) {
			return history.Undo(ctx, s.Store.ViewOf(c, prior), commit, history.Undone{Force: force, Limit: limit})
		},
	})
}

// minted matches the identifiers that a server gives to topics (see [fragment.NameTopics]), after the address of a map.
const minted = "{minted:(?:[0-9a-f]{12}/)?topic/.+}"

// mintedTopic leads from an identifier that the server gave to a topic to that topic.
func (s *Server) mintedTopic(w http.ResponseWriter, r *http.Request, v *store.View) error {
	addresses := []string{s.URLs.Map(&v.Collection)}
	if server, rest, is := strings.Cut(v.SP, "/topicmaps/"); is { // the map, or the server, may have had another name
		name, _, _ := strings.Cut(rest, "/")
		addresses = append(addresses, server+"/topicmaps/"+name)
	}
	_, path, _ := strings.Cut(r.URL.Path, "/topicmaps/"+v.Name)
	_, escaped, _ := strings.Cut(r.URL.EscapedPath(), "/topicmaps/"+v.Name)
	for i := range 2 * len(addresses) {
		below := path
		if i%2 == 1 { // an IRI, of which clients make a URI
			below = escaped
		}
		si, err := iri.Normalize(addresses[i/2] + below)
		if err != nil {
			continue
		}
		t, err := v.Source().Topic(fragment.Ref(si))
		if err != nil {
			return err
		}
		if t != nil {
			w.Header().Set("Cache-Control", "no-cache")
			http.Redirect(w, r, s.URLs.Topic(&v.Collection, t.TopicSI()), http.StatusSeeOther)
			return nil
		}
	}
	return web.Problemf(http.StatusNotFound, "no topic of %s has the subject identifier %s", v.Name,
		string(s.URLs)+r.URL.Path)
}
