package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
)

// CollectionSettings are the settings of a collection as JSON: what PUT takes
// and GET …/settings answers. A field that is left out stays as it is.
type CollectionSettings struct {
	Title         *string         `json:"title,omitempty"`
	Summary       *string         `json:"summary,omitempty"`
	SP            *string         `json:"sp,omitempty"` // only for a new collection
	DocumentSize  *int            `json:"documentSize,omitempty"`
	OmitInstances *bool           `json:"omitInstances,omitempty"`
	RecordFormats *[]recordFormat `json:"recordFormats,omitempty"` // "xtm1", "xtm2.1"; none: both
	RDF           *bool           `json:"rdf,omitempty"`           // whether it is offered in RDF, too
	SnapshotEvery *int            `json:"snapshotEvery,omitempty"`
	SnapshotAfter *web.Period     `json:"snapshotAfter,omitempty"`
	SnapshotsKept *int            `json:"snapshotsKept,omitempty"`
	KeepEntries   *uint64         `json:"keepEntries,omitempty"`
	KeepFor       *web.Period     `json:"keepFor,omitempty"`

	ResourceSync    *bool       `json:"resourceSync,omitempty"` // whether it is offered
	Mirrors         *[]string   `json:"mirrors,omitempty"`
	Via             *string     `json:"via,omitempty"`
	ChangesPerList  *int        `json:"changesPerList,omitempty"`
	ChangeListAfter *web.Period `json:"changeListAfter,omitempty"`

	DerivedFrom *[]string     `json:"derivedFrom,omitempty"` // collections and subscriptions of this node; only for a new collection
	Filter      *store.Filter `json:"filter,omitempty"`      // of what it is derived from; only for a new collection

	Sign *string `json:"sign,omitempty"` // path of the key file, on the server's machine

	Warnings []string `json:"warnings,omitempty"` // in the answer where a collection is created: what its filter may have wrong
}

// recordFormat is a format in which records are offered, by its name.
type recordFormat struct{ *formats.Format }

func (f *recordFormat) UnmarshalText(name []byte) (err error) {
	f.Format, err = formats.Stored().Named(string(name))
	return err
}

// apply changes s to what is given.
func (g *CollectionSettings) apply(s *store.Settings) {
	set(&s.Title, g.Title)
	set(&s.Summary, g.Summary)
	set(&s.DocumentSize, g.DocumentSize)
	set(&s.OmitInstances, g.OmitInstances)
	if g.RecordFormats != nil {
		s.RecordForms = nil
		for _, f := range *g.RecordFormats {
			s.RecordForms = append(s.RecordForms, f.Stored)
		}
	}
	if g.RDF != nil {
		s.RDF = g.RDF
	}
	set(&s.SnapshotEvery, g.SnapshotEvery)
	set(&s.SnapshotAfter, (*time.Duration)(g.SnapshotAfter))
	set(&s.SnapshotsKept, g.SnapshotsKept)
	set(&s.KeepEntries, g.KeepEntries)
	set(&s.KeepFor, (*time.Duration)(g.KeepFor))
	if g.ResourceSync != nil {
		s.NoResourceSync = !*g.ResourceSync
	}
	set(&s.Mirrors, g.Mirrors)
	set(&s.Via, g.Via)
	set(&s.ChangesPerList, g.ChangesPerList)
	set(&s.ChangeListAfter, (*time.Duration)(g.ChangeListAfter))
	set(&s.Sign, g.Sign)
}

func set[T any](field, given *T) {
	if given != nil {
		*field = *given
	}
}

func settingsOf(c *store.Collection) CollectionSettings {
	offered := []recordFormat{}
	for _, v := range c.RecordForms {
		offered = append(offered, recordFormat{formats.StoredAs(v)})
	}
	mirrors, offersSync, inRDF := append([]string{}, c.Mirrors...), !c.NoResourceSync, c.InRDF()
	return CollectionSettings{
		RecordFormats: &offered, RDF: &inRDF,
		Title: &c.Title, Summary: &c.Summary, SP: &c.SP, DocumentSize: &c.DocumentSize, OmitInstances: &c.OmitInstances,
		SnapshotEvery: &c.SnapshotEvery, SnapshotAfter: (*web.Period)(&c.SnapshotAfter), SnapshotsKept: &c.SnapshotsKept,
		KeepEntries: &c.KeepEntries, KeepFor: (*web.Period)(&c.KeepFor),
		ResourceSync: &offersSync, Mirrors: &mirrors, Via: &c.Via,
		ChangesPerList: &c.ChangesPerList, ChangeListAfter: (*web.Period)(&c.ChangeListAfter), Sign: &c.Sign,
		DerivedFrom: inputs.Names(c), Filter: c.Filter,
	}
}

// getSettings answers with the settings of a collection. The feeds do not show
// all of them: the ETag is for whoever wants to change them on that condition.
func (s *Server) getSettings(w http.ResponseWriter, r *http.Request) error {
	return s.Store.View(r.Context(), web.Var(r, "map"), func(v *store.View) error {
		tag, err := settingsTag(&v.Collection)
		if err != nil {
			return err
		}
		w.Header().Set("Cache-Control", "no-store")
		if done, err := web.Unchanged(w, r, web.Validator{Tag: tag}, web.Identity); done || err != nil {
			return err
		}
		shown := settingsOf(&v.Collection)
		if !s.isWriter(r) { // nobody else need know where files are
			shown.Sign = nil
			if from := shown.DerivedFrom; from != nil { // nor which maps there are that they may not read
				seen := slices.DeleteFunc(slices.Clone(*from), func(name string) bool { return !s.MayRead(r, name) })
				shown.DerivedFrom = &seen
			}
		}
		return web.WriteJSON(w, http.StatusOK, shown)
	})
}

func settingsTag(c *store.Collection) (string, error) {
	b, err := json.Marshal(settingsOf(c))
	return web.Digest(append(b, c.Epoch[:]...)), err
}

// maxSettings is the size in bytes of the largest settings that are read.
const maxSettings = 64 << 10

// readSettings reads the settings in the body of a request.
func readSettings(w http.ResponseWriter, r *http.Request) (*CollectionSettings, error) {
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
		return nil, web.Problemf(http.StatusBadRequest, "the request body is not JSON: a collection is made of settings such as {\"title\": \"…\"}")
	}
	var given CollectionSettings
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var wrong *json.UnmarshalTypeError
	err = d.Decode(&given)
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return nil, web.Problemf(http.StatusUnprocessableEntity, "%s cannot be a JSON %s; the settings of a collection show how each is written", wrong.Field, wrong.Value)
	case err != nil:
		return nil, web.Problemf(http.StatusUnprocessableEntity, "these are no settings: %s; those of a collection show all that there are", strings.TrimPrefix(err.Error(), "json: "))
	}
	if names := given.DerivedFrom; names != nil && len(slices.Compact(slices.Sorted(slices.Values(*names)))) < len(*names) {
		return nil, web.Problemf(http.StatusUnprocessableEntity, "derivedFrom names the same input twice: %s; name each once", strings.Join(*names, ", "))
	}
	if given.Filter != nil {
		if err := given.Filter.Normalize(); err != nil {
			return nil, web.Problemf(http.StatusUnprocessableEntity, "%s", err)
		}
	}
	var checked store.Settings
	given.apply(&checked)
	if err := errors.Join(checked.Validate(), readyToSign(&checked)); err != nil {
		return nil, web.Problemf(http.StatusUnprocessableEntity, "%s", err)
	}
	return &given, nil
}

// putCollection creates a collection, or changes its settings.
func (s *Server) putCollection(w http.ResponseWriter, r *http.Request) error {
	given, err := readSettings(w, r)
	if err != nil {
		return err
	}
	if given.RDF != nil && *given.RDF && len(s.Formats.Exchanged()) == 0 {
		return web.Problemf(http.StatusUnprocessableEntity, "rdf: a server without the extension rdf offers no RDF; leave it out")
	}
	name := web.Var(r, "map")
	changed := s.keeper.Changes.Begin(name)
	defer changed()
	if given.DerivedFrom != nil {
		if err := inputs.CheckName(name); err != nil {
			return err
		}
		closed := func(name string) bool { return len(s.readers[name]) > 0 }
		if err := inputs.KeepsClosed(r.Context(), s.Store, closed, name, *given.DerivedFrom); err != nil {
			return err
		}
	}
	change := func() (*store.Collection, error) {
		apply := func(settings *store.Settings) error { given.apply(settings); return nil }
		allowed := func(c *store.Collection) error { return s.mayChange(r, c, given) }
		if given.DerivedFrom != nil {
			return s.Store.DeriveAgain(r.Context(), name, *given.DerivedFrom, apply, allowed)
		}
		return s.Store.ChangeSettings(r.Context(), name, apply, allowed)
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
	s.keeper.Changed(c) // by the new settings a snapshot may be due, or records are to be published again
	answer := settingsOf(c)
	if status == http.StatusCreated {
		if answer.Warnings, err = inputs.Warnings(r.Context(), s.Store, c); err != nil {
			return err
		}
	}
	return web.WriteJSON(w, status, answer)
}

func (s *Server) mayChange(r *http.Request, c *store.Collection, given *CollectionSettings) error {
	if given.SP != nil && *given.SP != c.SP {
		return web.Problemf(http.StatusConflict, "the source locator prefix of %s is %s for ever; create another collection, or delete this one", c.Name, c.SP)
	}
	if (given.Filter != nil || given.DerivedFrom != nil) && !given.Filter.Equal(c.Filter) {
		return web.Problemf(http.StatusConflict, "the filter of %s is decided for ever; delete it first, or derive another", c.Name)
	}
	tag, err := settingsTag(c)
	if err != nil {
		return err
	}
	return s.ifMatch(r, c, tag)
}

// createEmpty creates a collection without topics, and takes its first snapshot.
func (s *Server) createEmpty(r *http.Request, name string, given *CollectionSettings) (*store.Collection, error) {
	if r.Header.Get("If-Match") != "" {
		return nil, web.Problemf(http.StatusPreconditionFailed, "there is no collection %s", name)
	}
	if !given.Filter.Empty() && (given.DerivedFrom == nil || len(*given.DerivedFrom) == 0) {
		return nil, web.Problemf(http.StatusUnprocessableEntity, "only a derived collection has a filter: give derivedFrom as well, or leave filter out")
	}
	sp, err := s.prefixFor(name, given.SP)
	if err != nil {
		return nil, err
	}
	c := store.Collection{Name: name, SP: sp, Settings: store.Settings{DocumentSize: s.DocumentSize}}
	given.apply(&c.Settings)
	set(&c.DerivedFrom, given.DerivedFrom)
	c.Filter = given.Filter
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
	topics := 0
	err := s.Store.DeleteCollection(r.Context(), name, func(c *store.Collection) error {
		topics = c.Topics
		return s.ifMatch(r, c)
	})
	if err != nil {
		return err
	}
	s.Logger.Info("deleted", "collection", name, "topics", topics)
	if err := s.keeper.SweepTasks(context.WithoutCancel(r.Context())); err != nil {
		s.Logger.Error("files of a deleted collection not removed; it is tried again", "collection", name, "error", err)
	}
	return web.WriteJSON(w, http.StatusOK, publish.Published{Collection: name, Deleted: topics})
}
