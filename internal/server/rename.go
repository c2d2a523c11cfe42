package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Renamed is the answer to a request that renames a collection, or frees a name that one had.
type Renamed struct {
	Collection string `json:"collection,omitempty"` // the name that it has now
	Former     string `json:"former"`               // the name that it had
}

// rename gives a collection another name. The address that it had leads to it.
func (s *Server) rename(w http.ResponseWriter, r *http.Request) error {
	name := web.Var(r, "map")
	var given struct{ To string }
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSettings))
	d.DisallowUnknownFields()
	if err := d.Decode(&given); err != nil {
		return web.Problemf(http.StatusUnprocessableEntity,
			"send the new name as JSON, such as {\"to\": \"services\"}: %s", err)
	}
	if err := store.ValidateName(given.To); err != nil {
		return web.Problemf(http.StatusUnprocessableEntity, "%s", err)
	}
	if len(s.readers[name]) > 0 && len(s.readers[given.To]) == 0 {
		return web.Problemf(http.StatusConflict,
			"%s may be read with a token only, and as %s it could be read by all: start the server with "+
				"--read-token-file for %[2]s as well, then rename it", name, given.To)
	}
	for _, name := range []string{name, given.To} {
		defer s.keeper.Changes.Begin(name)()
	}
	allowed := func(c *store.Collection) error { return s.ifMatch(r, c) }
	c, err := s.Store.RenameCollection(r.Context(), name, given.To, allowed)
	if err != nil {
		return err
	}
	s.Logger.Info("renamed", "collection", c.Name, "from", name)
	s.keeper.Changed(c)
	return web.WriteJSON(w, http.StatusOK, Renamed{c.Name, name})
}

// forgetFormer frees a former name of a collection: its address does not exist from then on.
func (s *Server) forgetFormer(w http.ResponseWriter, r *http.Request) error {
	name := web.Var(r, "map")
	defer s.keeper.Changes.Begin(name)()
	if err := s.Store.ForgetCollection(r.Context(), name); err != nil {
		return err
	}
	s.Logger.Info("forgot the former name of a collection", "name", name)
	return web.WriteJSON(w, http.StatusOK, Renamed{Former: name})
}

// explain is [problems.Explain]. It redirects a request for a renamed collection to the same path below its present
// name (RFC 9110 §15.4.9, 308 Permanent Redirect). That for one on another server, with the same base URL, has come to
// the wrong one (§15.5.20, 421 Misdirected Request).
func (s *Server) explain(r *http.Request, err error) (answer web.Described, serverFault bool) {
	former, is := errors.AsType[*store.FormerError](err)
	name := web.Var(r, "map")
	if !is || former.Name != name {
		return problems.Explain(r, err)
	}
	switch {
	case former.Moved != nil:
		return web.Problemf(http.StatusMisdirectedRequest, "%s", former), false
	case former.To == "":
		return web.Problemf(http.StatusGone, "%s", former), false
	}
	moved := web.Problemf(http.StatusPermanentRedirect, "%s", former)
	moved.Location = s.URLs.Overview() + "/" + former.To +
		strings.TrimPrefix(r.URL.EscapedPath(), "/topicmaps/"+name)
	if r.URL.RawQuery != "" {
		moved.Location += "?" + r.URL.RawQuery
	}
	return moved, false
}
