package server

import (
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/store"
)

const (
	author         = "TMShare Server"
	cacheShortly   = "public, max-age=5"
	cacheForEver   = "public, max-age=31536000, immutable"
	recordVersion  = "TMShare-Record-Updated" // header: the last modified time of the record that is the answer
	currentVersion = "TMShare-Updated"        // header: the time of the last change that an answer contains
)

// view calls f with the state of the collection that the URL names.
func (s *Server) view(r *http.Request, f func(*store.View) error) error {
	name := mux.Vars(r)["map"]
	exchangeOf(r).settled = s.changes.settled(name)
	return s.Store.View(name, f)
}

// quickly calls f with the collection as it is, and without a view. Where that does
// not do, f returns errNeedsView, and is called again with a view.
func (s *Server) quickly(r *http.Request, f func(*store.Collection, *store.View) error) error {
	name := mux.Vars(r)["map"]
	exchangeOf(r).settled = s.changes.settled(name)
	l, err := s.Store.Latest(name)
	if err != nil {
		return err
	}
	if err = f(&l.Collection, nil); err != errNeedsView {
		return err
	}
	return s.view(r, func(v *store.View) error { return f(&v.Collection, v) })
}

var errNeedsView = errors.New("server: a view is needed")

// feedWith answers with the feed that f makes of the collection.
func (s *Server) feedWith(w http.ResponseWriter, r *http.Request, f func(*store.View) (*feeds.Feed, error)) error {
	return s.view(r, func(v *store.View) error {
		feed, err := f(v)
		if err != nil {
			return err
		}
		s.addSourceLink(w.Header(), &v.Collection)
		return s.writeAtom(w, r, feed, cacheShortly)
	})
}

// addSourceLink adds the link from what belongs to a topic map to its Capability List (Z39.99
// §6.3.3, Link).
func (s *Server) addSourceLink(h http.Header, c *store.Collection) {
	if !c.NoResourceSync {
		addLink(h, s.site(c).CapabilityListURL(), resourcesync.RelResourceSync)
	}
}

// entryWith answers with an entry document.
func (s *Server) entryWith(w http.ResponseWriter, r *http.Request, f func(*store.View) (feeds.Entry, error)) error {
	return s.view(r, func(v *store.View) error {
		e, err := f(v)
		if err != nil {
			return err
		}
		e.Author = author
		return s.writeAtom(w, r, &e, cacheShortly)
	})
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
