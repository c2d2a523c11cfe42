package server

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Authorized lets h answer requests that may write.
func (s *Server) Authorized(h web.Handler) web.Handler {
	return s.Guesses.Guard(func(w http.ResponseWriter, r *http.Request) error {
		if len(s.Writers) > 0 {
			if !s.Writers.Holds(r) {
				return web.Refused(w, r, "writing")
			}
		} else if err := s.MayWriteHere(r); err != nil {
			return err
		}
		return h(w, r)
	})
}

// isWriter reports whether a request may write.
func (s *Server) isWriter(r *http.Request) bool {
	return s.Writers.Holds(r) || len(s.Writers) == 0 && s.MayWriteHere(r) == nil
}

// readable passes requests to h that may read the collection in their URL: any request if it has no read tokens;
// writers may also read.
func (s *Server) readable(h web.Handler) web.Handler {
	read := func(w http.ResponseWriter, r *http.Request) error {
		if collection := web.Var(r, "map"); collection != "" && !s.MayRead(r, collection) {
			if s.challenge(w, r) {
				return nil
			}
			return web.Refused(w, r, "reading this map")
		}
		return h(w, r.WithContext(store.Once(r.Context())))
	}
	guarded := s.Guesses.Guard(read)
	return func(w http.ResponseWriter, r *http.Request) error {
		collection := web.Var(r, "map")
		x := web.RecorderOf(r)
		if x.Private = len(s.readers[collection]) > 0 || collection == "" && len(s.readers) > 0; x.Private {
			return guarded(w, r)
		}
		return read(w, r)
	}
}

// MayRead reports whether a request may read a collection.
func (s *Server) MayRead(r *http.Request, collection string) bool {
	readers := s.readers[collection]
	if len(readers) == 0 || readers.Holds(r) || s.Writers.Holds(r) {
		return true
	}
	t := s.authenticate(r)
	return readers.Has(t) || s.Writers.Has(t)
}

// Visible returns the collections that the request may read. The others are not
// so much as named. They are shared and must not be changed.
func (s *Server) Visible(r *http.Request) ([]store.Collection, error) {
	node, err := s.listing(r)
	if err != nil {
		return nil, err
	}
	return node.Except(s.hidden(r)), nil
}

// listing returns all that the node has, from memory.
func (s *Server) listing(r *http.Request) (*store.Listing, error) {
	web.RecorderOf(r).Settled = s.keeper.Changes.Settled(r.Context(), "")
	_, at, err := s.Store.VersionAt(r.Context())
	if err != nil {
		return nil, err
	}
	noteState(r, at)
	return s.Store.Listing(r.Context())
}

// hidden returns the names of collections that the request may not read, in their order.
func (s *Server) hidden(r *http.Request) (names []string) {
	for name := range s.readers {
		if !s.MayRead(r, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// MayWriteHere reports whether a request may write to a server without tokens.
func (s *Server) MayWriteHere(r *http.Request) error {
	base, err := url.Parse(s.BaseURL)
	if err != nil || !s.OnLoopback || !web.FromLoopback(r) || !web.IsLoopback(base.Host) || !web.IsLoopback(r.Host) {
		return web.Problemf(http.StatusForbidden,
			"this server has no write tokens (--token-file), so only requests from its own machine, to a loopback address, "+
				"may write; its --base-url must be such an address too")
	}
	if name := web.PassedOn(r); name != "" {
		return web.Problemf(http.StatusForbidden,
			"this server has no write tokens (--token-file), so requests with a header %s, from a browser or through a "+
				"proxy, may not write", name)
	}
	return nil
}
