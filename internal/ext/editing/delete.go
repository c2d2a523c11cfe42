package editing

import (
	"context"
	"errors"
	"net/http"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// deletePage asks whether a topic is to be deleted.
type deletePage struct {
	resent
	*plan
	Topic      pages.Link
	Author     string
	Note       string
	AuthorKnow bool
	Other      bool     // the topic has changed since it was asked
	Users      []string // why it cannot be deleted
}

// deletion shows what goes with a topic, or deletes it if that was shown before.
func (e *editor) deletion(w http.ResponseWriter, r *http.Request) error {
	d, sent := &draft{}, r.Method == http.MethodPost
	var t *target
	var p *plan
	var err error
	if sent {
		d = read(r.PostForm)
		if w := e.checkAttribution(r, d); w.Kind != "" {
			return web.Problemf(http.StatusBadRequest,
				"who makes a change, or the note, is longer than %s bytes, or has characters that no line has: go back, "+
					"and change it", w.Text)
		}
		t, p, err = e.attempt(r, "", d.State, r.PostForm.Get("plan"), d, false, without)
	} else if t, p, err = e.wouldDelete(r); t != nil {
		d.State = t.state
	}
	other := errors.Is(err, errOther)
	var inUse *fragment.InUseError
	switch {
	case errors.As(err, &inUse):
	case errors.Is(err, errGone):
		return pages.SeeOther(w, r, e.page(t)) // which says so
	case err != nil && !other:
		return err
	case sent && !other && t.state == d.State:
		return pages.SeeOther(w, r, e.page(t))
	}
	of := &deletePage{
		resent: e.resent(r, t, p), plan: p, Topic: pages.Link{Title: pages.Called(t.topic, t.collection.Languages()...),
			URL: e.page(t)},
		Author: d.Author, Note: d.Note, Other: other || t.state != d.State,
	}
	if name := e.NameOf(r); name != "" {
		of.AuthorKnow, of.Author = true, name
	}
	status := http.StatusOK
	switch {
	case inUse != nil:
		if of.Users = inUse.Users; sent {
			status = http.StatusConflict
		}
	case of.Other:
		status = http.StatusPreconditionFailed
	}
	return e.WriteForm(w, r, status, "delete", of.Topic.Title, e.trail(t), of)
}

// without decides that a topic goes.
func without(ctx context.Context, sp string, prior merge.State, self fragment.Ref) (*fragment.Change, error) {
	return history.Back(ctx, sp, prior, self, nil)
}

// wouldDelete says what goes with a topic. It is not tried as far as other publications would have to wait for it: the
// topic may play in many associations, and all their players change.
func (e *editor) wouldDelete(r *http.Request) (t *target, p *plan, err error) {
	p = &plan{}
	err = e.View(r, func(v *store.View) (err error) {
		if t, err = find(r, v, ""); err != nil {
			return err
		}
		change, err := without(r.Context(), v.SP, v.State(), t.self)
		if err != nil {
			return err
		}
		*p, err = e.planOf(r.Context(), &v.Collection, v.State(), change)
		return err
	})
	return t, p, err
}
