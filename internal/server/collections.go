package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/jsontext"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
)

// CollectionSettings are the settings of a collection as JSON: the body of PUT and the answer of GET …/settings. Some,
// besides those of [store.DB.Settings], are for new collections only. A missing member changes nothing.
type CollectionSettings map[string]json.RawMessage

// Text returns a member in the syntax of flags; "" for none.
func (s CollectionSettings) Text(name string) string {
	var value any
	d := json.NewDecoder(bytes.NewReader(s[name]))
	d.UseNumber()
	_ = d.Decode(&value) // a missing member stays nil
	switch v := value.(type) {
	case nil:
		return ""
	case []any:
		names := make([]string, len(v))
		for i := range v {
			names[i] = fmt.Sprint(v[i])
		}
		return strings.Join(names, ",")
	}
	return fmt.Sprint(value)
}

// fixed are the other members of [CollectionSettings].
type fixed struct {
	SP          *string       `json:"sp,omitempty"`
	DerivedFrom *[]string     `json:"derivedFrom,omitempty"` // collections and subscriptions of this node
	Filter      *store.Filter `json:"filter,omitempty"`      // of the inputs
	// Warnings, in the answer for a new collection, are probable errors of its filter.
	Warnings []string `json:"warnings,omitempty"`
}

// given holds the settings in a request.
type given struct {
	fixed
	settings CollectionSettings // the others
	all      []store.Setting
}

// apply applies the given settings to s.
func (g *given) apply(s *store.Settings) (err error) {
	for i := range g.all {
		if value, is := g.settings[g.all[i].Name]; is {
			err = errors.Join(err, g.all[i].Set(s, value))
		}
	}
	return err
}

// settingsOf returns the settings of a collection.
func (s *Server) settingsOf(c *store.Collection, warnings ...string) (CollectionSettings, error) {
	shown, err := c.Shown(s.Store.Settings())
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(fixed{&c.SP, inputs.Names(c), c.Filter, warnings})
	return shown, errors.Join(err, json.Unmarshal(b, &shown))
}

// getSettings answers with the settings of a collection. The feeds do not show all of them. The ETag serves as the
// condition of a later change.
func (s *Server) getSettings(w http.ResponseWriter, r *http.Request) error {
	return s.Store.View(r.Context(), web.Var(r, "map"), func(v *store.View) error {
		shown, tag, err := s.settingsTag(&v.Collection)
		if err != nil {
			return err
		}
		w.Header().Set("Cache-Control", "no-store")
		if done, err := web.Unchanged(w, r, web.Validator{Tag: tag}, web.Identity); done || err != nil {
			return err
		}
		if !s.isWriter(r) { // only writers need the paths of files
			delete(shown, "sign")
			if len(v.DerivedFrom) > 0 { // nor the names of maps that they may not read
				seen := slices.DeleteFunc(slices.Clone(v.DerivedFrom), func(name string) bool { return !s.MayRead(r, name) })
				if shown["derivedFrom"], err = json.Marshal(seen); err != nil {
					return err
				}
			}
		}
		return web.WriteJSON(w, http.StatusOK, shown)
	})
}

// settingsTag returns the settings of a collection, and their ETag.
func (s *Server) settingsTag(c *store.Collection) (CollectionSettings, string, error) {
	shown, err := s.settingsOf(c)
	if err != nil {
		return nil, "", err
	}
	b, err := json.Marshal(shown)
	return shown, web.Digest(append(b, c.Epoch[:]...)), err
}

// maxSettings is the size in bytes of the largest settings that are read.
const maxSettings = 64 << 10

// readSettings reads the settings in the body of a request.
func (s *Server) readSettings(w http.ResponseWriter, r *http.Request) (*given, error) {
	if c := r.Header.Get("Content-Encoding"); c != "" && !strings.EqualFold(c, "identity") {
		return nil, web.Problemf(http.StatusUnsupportedMediaType, "settings are sent without a content coding, not as %q", c)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSettings))
	var slow *web.Problem
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &slow) || errors.As(err, &large):
		return nil, err
	case err != nil:
		return nil, web.Problemf(http.StatusBadRequest, "request body: cannot be read to its end: %s", err)
	case !json.Valid(body):
		return nil, web.Problemf(http.StatusBadRequest,
			"the request body is not JSON: a collection is made of settings such as {\"title\": \"…\"}")
	}
	if _, reason := jsontext.Changed(body); reason != "" {
		return nil, web.Problemf(http.StatusUnprocessableEntity, "request body: %s", reason)
	}
	g := &given{all: s.Store.Settings()}
	var wrong *json.UnmarshalTypeError
	if err = json.Unmarshal(body, &g.settings); err == nil {
		err = json.Unmarshal(body, &g.fixed)
	}
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return nil, web.Problemf(http.StatusUnprocessableEntity,
			"%s cannot be a JSON %s; the settings of a collection show how each is written", wrong.Field, wrong.Value)
	case err != nil:
		return nil, web.Problemf(http.StatusUnprocessableEntity,
			"these are no settings: %s; those of a collection show all that there are",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	for name := range g.settings {
		known := func(x store.Setting) bool { return x.Name == name }
		if !slices.ContainsFunc(g.all, known) && !slices.Contains([]string{"sp", "derivedFrom", "filter", "warnings"}, name) {
			return nil, web.Problemf(http.StatusUnprocessableEntity,
				"there is no setting %q here; those of a collection show all that there are", name)
		}
	}
	if names := g.DerivedFrom; names != nil && len(slices.Compact(slices.Sorted(slices.Values(*names)))) < len(*names) {
		return nil, web.Problemf(http.StatusUnprocessableEntity, "derivedFrom names the same input twice: %s; name each once",
			strings.Join(*names, ", "))
	}
	if g.Filter != nil {
		if err := g.Filter.Normalize(); err != nil {
			return nil, web.Problemf(http.StatusUnprocessableEntity, "%s", err)
		}
	}
	var checked store.Settings
	if err := errors.Join(g.apply(&checked), checked.Validate(), readyToSign(&checked)); err != nil {
		return nil, web.Problemf(http.StatusUnprocessableEntity, "%s", err)
	}
	return g, nil
}

// putCollection creates a collection, or changes its settings.
func (s *Server) putCollection(w http.ResponseWriter, r *http.Request) error {
	given, err := s.readSettings(w, r)
	if err != nil {
		return err
	}
	if string(given.settings["rdf"]) == "true" && len(s.Formats.Exchanged()) == 0 {
		return web.Problemf(http.StatusUnprocessableEntity,
			"rdf: a server without the extension rdf offers no RDF; leave it out")
	}
	name := web.Var(r, "map")
	changed := s.keeper.Changes.Begin(name)
	defer changed()
	closed := func(name string) bool { return len(s.readers[name]) > 0 }
	if err := inputs.Check(r.Context(), s.Store, closed, name, given.DerivedFrom, given.Filter); err != nil {
		return err
	}
	change := func() (*store.Collection, error) {
		allowed := func(c *store.Collection) error { return s.mayChange(r, c, given) }
		if given.DerivedFrom != nil || given.Filter != nil {
			var names []string // nil: they stay
			if given.DerivedFrom != nil {
				names = append([]string{}, *given.DerivedFrom...)
			}
			return s.Store.DeriveAgain(r.Context(), name, names, given.Filter, given.apply, allowed)
		}
		return s.Store.ChangeSettings(r.Context(), name, given.apply, allowed)
	}
	c, err := change()
	status := http.StatusOK
	if errors.Is(err, store.ErrNotFound) {
		if c, err = s.createEmpty(r, name, given); err == nil {
			status = http.StatusCreated
			w.Header().Set("Location", s.URLs.Map(c))
		} else if errors.Is(err, store.ErrExists) { // since a moment ago
			c, err = change()
		}
	}
	if err != nil {
		return err
	}
	s.keeper.Changed(c) // new settings may require a snapshot, or a republication
	var warnings []string
	if status == http.StatusCreated || given.Filter != nil {
		if warnings, err = inputs.Warnings(r.Context(), s.Store, c); err != nil {
			return err
		}
	}
	answer, err := s.settingsOf(c, warnings...)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, status, answer)
}

func (s *Server) mayChange(r *http.Request, c *store.Collection, given *given) error {
	if given.SP != nil && *given.SP != c.SP {
		return web.Problemf(http.StatusConflict,
			"the source locator prefix of %s is %s for ever; create another collection, or delete this one", c.Name, c.SP)
	}
	_, tag, err := s.settingsTag(c)
	if err != nil {
		return err
	}
	return s.ifMatch(r, c, tag)
}

// createEmpty creates a collection without topics, and takes its first snapshot.
func (s *Server) createEmpty(r *http.Request, name string, given *given) (*store.Collection, error) {
	if r.Header.Get("If-Match") != "" {
		return nil, web.Problemf(http.StatusPreconditionFailed, "there is no collection %s", name)
	}
	if !given.Filter.Empty() && (given.DerivedFrom == nil || len(*given.DerivedFrom) == 0) {
		return nil, web.Problemf(http.StatusUnprocessableEntity,
			"only a derived collection has a filter: give derivedFrom as well, or leave filter out")
	}
	sp, err := s.PrefixFor(r.Context(), name, given.SP)
	if err != nil {
		return nil, err
	}
	c := store.Collection{Name: name, SP: sp, Settings: store.Settings{DocumentSize: s.DocumentSize}}
	if given.DerivedFrom != nil {
		c.DerivedFrom = *given.DerivedFrom
	}
	c.Filter = given.Filter
	if err := given.apply(&c.Settings); err != nil {
		return nil, err
	}
	nothing, err := fragment.NewMap(tmdm.New(), c.SP)
	if err != nil {
		return nil, err
	}
	created, err := s.Store.CreateCollection(r.Context(), c, nothing, nil)
	if err != nil {
		return nil, err
	}
	s.Logger.Info("created", "collection", name, "sp", c.SP)
	if created.Hidden {
		return created, nil // it has its first snapshot when it is whole
	}
	if _, _, err := s.keeper.TakeSnapshot(r.Context(), name); err != nil {
		s.Logger.Error("no snapshot taken; it is tried again", "collection", name, "error", err)
	}
	return created, nil
}

// deleteCollection removes a collection and its history.
func (s *Server) deleteCollection(w http.ResponseWriter, r *http.Request) error {
	name := web.Var(r, "map")
	changed := s.keeper.Changes.Begin(name)
	defer changed()
	_, note, err := s.attribution(r)
	if err != nil {
		return err
	}
	deleted := publish.Published{Collection: name}
	kept, err := s.Store.Dependents(r.Context(), name)
	if err != nil {
		return err
	}
	err = s.Store.DeleteCollection(r.Context(), name, note, func(c *store.Collection) error {
		deleted.Deleted = c.Topics
		return s.ifMatch(r, c)
	})
	if err != nil {
		return err
	}
	s.Logger.Info("deleted", "collection", name, "topics", deleted.Deleted)
	for _, d := range kept {
		deleted.Warnings = append(deleted.Warnings, formats.Warning{Rule: "kept-in-step", Times: 1, Text: d.Orphaned()})
	}
	if err := s.keeper.SweepTasks(context.WithoutCancel(r.Context())); err != nil {
		s.Logger.Error("files of a deleted collection not removed; it is tried again", "collection", name, "error", err)
	}
	return web.WriteJSON(w, http.StatusOK, deleted)
}
