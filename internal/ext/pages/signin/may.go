package signin

import (
	"net/http"

	"github.com/tmshare/tmshare/internal/server/web"
)

// MayRead reports whether a request may read what needs one of some tokens, by its session. Who may write, may read.
func (s *Sessions) MayRead(r *http.Request, readers web.Tokens) bool {
	t := s.Of(r)
	return readers.Has(t) || s.Writers.Has(t)
}

// MayEdit says why a request may not use forms: they take the session of a token that may write, or a browser on this
// machine where the server has no such token.
func (s *Sessions) MayEdit(r *http.Request) error {
	if len(s.Writers) == 0 {
		without := *r
		without.Header = r.Header.Clone()
		without.Header.Del("Origin") // browsers send it with forms; it is compared with that of the server
		return s.Local(&without)
	}
	if !s.Writers.Has(s.Of(r)) {
		return s.Missing("editing")
	}
	return nil
}

// Missing is the error of a request that lacks a session for something.
func (s *Sessions) Missing(what string) error {
	return web.Problemf(http.StatusUnauthorized, "%s needs a token: sign in at %s%s", what, s.urls, Address)
}
