package server

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
)

const (
	Author         = "TMShare Server"
	CacheShortly   = "public, max-age=5"
	CacheForEver   = "public, max-age=31536000, immutable"
	recordVersion  = "TMShare-Record-Updated" // header: the last modified time of the record that is the answer
	currentVersion = "TMShare-Updated"        // header: the time of the last change that an answer contains
	currentDigest  = "TMShare-Digest"         // header: the state digest after that change
)

// canBeRead returns an error for an incomplete collection, because new followers would take a part for the whole.
func canBeRead(c *store.Collection) error {
	if !c.Hidden {
		return nil
	}
	p := web.Problemf(http.StatusServiceUnavailable,
		"%s is being filled from what it is derived from, and has %d topics so far: ask again in a few seconds",
		c.Name, c.Topics)
	p.RetryAfter = 5 * time.Second
	return p
}

// View calls f with the state of the collection that the URL names.
func (s *Server) View(r *http.Request, f func(*store.View) error) error {
	name := web.Var(r, "map")
	web.RecorderOf(r).Settled = s.keeper.Changes.Settled(r.Context(), name)
	return s.Store.View(r.Context(), name, func(v *store.View) error {
		if err := canBeRead(&v.Collection); err != nil {
			return err
		}
		checked, err := v.Checked()
		if err != nil {
			return err
		}
		noteState(r, checked)
		return f(v)
	})
}

// Viewed makes a handler of one that answers from the state of the collection that the URL names.
func (s *Server) Viewed(f func(http.ResponseWriter, *http.Request, *store.View) error) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return s.View(r, func(v *store.View) error { return f(w, r, v) })
	}
}

// withLatest calls f with the latest state of the collection, from memory and without a view.
// An f that needs a view returns errNeedsView, and is called again with one.
func (s *Server) withLatest(r *http.Request, f func(*store.Latest, *store.View) error) error {
	l, err := s.latest(r)
	if err != nil {
		return err
	}
	if err = f(l, nil); err == errNeedsView {
		err = s.View(r, func(v *store.View) error {
			opened, err := v.Opened()
			if err != nil {
				return err
			}
			return f(&store.Latest{Collection: v.Collection, Openings: opened}, v)
		})
	}
	return err
}

// latest returns the latest state of the collection that the URL names, from memory.
func (s *Server) latest(r *http.Request) (*store.Latest, error) {
	l, err := s.latestOf(r)
	if err == nil {
		err = canBeRead(&l.Collection)
	}
	return l, err
}

// latestOf is latest, also for an incomplete collection.
func (s *Server) latestOf(r *http.Request) (*store.Latest, error) {
	name := web.Var(r, "map")
	web.RecorderOf(r).Settled = s.keeper.Changes.Settled(r.Context(), name)
	l, checked, err := s.Store.LatestAt(r.Context(), name)
	if err == nil {
		noteState(r, checked)
	}
	return l, err
}

var errNeedsView = errors.New("server: a view is needed")

// WriteFeed answers with the feed that f makes of the collection.
func (s *Server) WriteFeed(w http.ResponseWriter, r *http.Request, f func(*store.View) (*feeds.Feed, error)) error {
	return s.View(r, func(v *store.View) error {
		feed, err := f(v)
		if err != nil {
			return err
		}
		s.AddPartLinks(w.Header(), &v.Collection)
		return s.writeAtom(w, r, feed)
	})
}

// WriteEntry answers with an entry document.
func (s *Server) WriteEntry(w http.ResponseWriter, r *http.Request, f func(*store.View) (feeds.Entry, error)) error {
	return s.View(r, func(v *store.View) error {
		e, err := f(v)
		if err != nil {
			return err
		}
		return s.writeAtom(w, r, authored(e))
	})
}

// authored returns an entry that stands alone.
func authored(e feeds.Entry) *feeds.Entry {
	e.Author = cmp.Or(e.Author, Author)
	return &e
}

// Title returns the title of a collection.
func Title(c *store.Collection) string {
	if strings.TrimSpace(c.Title) != "" {
		return titles.Closed(c.Title)
	}
	return c.Name
}

// Languages returns the language of the titles of a collection's topics in feeds, and that of the server's own texts.
// Both are "" if the collection has none.
func Languages(c *store.Collection) (titles, words string) {
	if called := c.Languages(); len(called) > 0 {
		return called[0], "en"
	}
	return "", ""
}

// DerivedID returns the Atom id of something about the collection, from its epoch.
func DerivedID(c *store.Collection, what string) string {
	return uuid.NewSHA1(c.Epoch, []byte(what)).URN()
}

// atomDocument is a feed or an entry.
type atomDocument interface{ Encode(io.Writer) error }

// writeAtom answers with an Atom document. Its ETag is made of its bytes.
func (s *Server) writeAtom(w http.ResponseWriter, r *http.Request, document atomDocument) error {
	b, err := encoded(document)
	if err != nil {
		return err
	}
	return s.writeFeed(w, r, web.Digest(b), func() ([]byte, error) { return b, nil })
}

// writeFeed serves an Atom document that has one form.
func (s *Server) writeFeed(w http.ResponseWriter, r *http.Request, tag string, encode func() ([]byte, error)) error {
	if _, err := web.Choose(w, r, FeedForms); err != nil {
		return err
	}
	return s.Answers.WriteBytes(w, r, tag, CacheShortly, encode)
}

// writeDocument serves the document of a feed of the log that build makes of a state, in one of the forms. It is made
// only if the client does not have it, and it was not made lately: then it needs a view. finish completes a document
// without the fragments; it may be nil.
func (s *Server) writeDocument(w http.ResponseWriter, r *http.Request, f *LogFeed, cache, state string, v *store.View,
	build func() (*feeds.Feed, error), finish func(*store.View, *feeds.Feed) error) error {
	i, err := web.Choose(w, r, f.Forms)
	if err != nil {
		return err
	}
	tag := s.StateTag(r, state)
	if f.Forms[i].Ending == bundleEnding {
		tag, finish = tag+"-bundle", fillBundle
	}
	return s.Answers.WriteBytes(w, r, tag, cache, func() ([]byte, error) {
		if v == nil {
			return nil, errNeedsView
		}
		feed, err := build()
		if err == nil && finish != nil {
			err = finish(v, feed)
		}
		if err != nil {
			return nil, err
		}
		return encoded(feed)
	})
}

func encoded(document atomDocument) ([]byte, error) {
	var b bytes.Buffer
	err := document.Encode(&b)
	return b.Bytes(), err
}
