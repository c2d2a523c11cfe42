package editing

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// question is a change without a form: the page shows its effect and asks for confirmation.
type question struct {
	page   string
	title  texts.Text
	find   finder
	decide decision
	says   texts.Text             // the default note in the log, with a time
	at     func(t *target) string // that time, which is in the title, too; nil: none
	move   *move                  // of a concept; nil: it is no move
}

// confirmation is the page that asks to confirm a change.
type confirmation struct {
	resent
	*plan
	Topic      pages.Link
	Author     string
	Note       string
	AuthorKnow bool
	Forced     bool           // statements changed since a commit are kept
	Other      bool           // the effect differs from the one shown before
	Users      []string       // why a topic cannot be deleted
	Kept       []history.Kept // the parts of a commit that cannot be undone
	MoreKept   int            // of which only so many are listed
	Moved      string         // why a topic cannot be restored
	Move       *move          // the new position of a concept; nil: it is not moved
	Asks       bool           // that is not certain, or cannot be
}

// deletion asks to confirm the deletion of a topic.
func (e *editor) deletion(w http.ResponseWriter, r *http.Request) error {
	return e.confirm(w, r, question{page: "delete",
		find: func(v *store.View) (*target, error) { return find(r, v, "") },
		decide: func(ctx context.Context, c *store.Collection, prior merge.State,
			self fragment.Ref) (*fragment.Change, error) {
			return history.Back(ctx, c.SP, prior, self, nil)
		}})
}

// restoration asks to confirm that a topic is restored to its state at ?at=.
func (e *editor) restoration(w http.ResponseWriter, r *http.Request) error {
	var was *fragment.Fragment
	q := question{page: "restore", title: texts.Restore, says: texts.Restores, find: func(v *store.View) (*target, error) {
		t, err := find(r, v, "")
		if errors.Is(err, errGone) {
			err = nil // it may have been there
		}
		if err != nil {
			return t, err
		}
		m, _, err := pages.MomentAt(v, "at", r.URL.Query().Get("at"))
		if err == nil {
			was, err = history.Was(v, t.self, m)
		}
		return t, err
	}, decide: func(ctx context.Context, c *store.Collection, prior merge.State,
		self fragment.Ref) (*fragment.Change, error) {
		return history.Back(ctx, c.SP, prior, self, was)
	}, at: func(*target) string { return r.URL.Query().Get("at") }}
	return e.confirm(w, r, q)
}

// undoing asks to confirm the undoing of a commit; the address names one of its entries. With ?force=1, statements that
// were changed since are kept.
func (e *editor) undoing(w http.ResponseWriter, r *http.Request) error {
	id, err := uuid.Parse(web.Var(r, "id"))
	if err != nil {
		return web.Problemf(http.StatusNotFound, "there is no such change")
	}
	force := r.URL.Query().Get("force") == "1"
	var entry *store.Entry
	q := question{page: "undo", title: texts.Undo, says: texts.Undoes, find: func(v *store.View) (*target, error) {
		if err := v.Collection.WritableBy(""); err != nil {
			return nil, err
		}
		e, err := v.EntryOf(id)
		if err != nil {
			return nil, err
		}
		entry = e
		t := &target{collection: v.Collection, self: e.TopicSI, last: e}
		return t, t.read(r, v)
	}, decide: func(ctx context.Context, c *store.Collection, prior merge.State,
		_ fragment.Ref) (*fragment.Change, error) {
		return history.Undo(ctx, e.Store.ViewOf(*c, prior), entry.Seq, history.Undone{Force: force, Limit: losses.All()})
	}, at: func(t *target) string { return feeds.FormatTime(t.last.Updated) }}
	return e.confirm(w, r, q)
}

// confirm shows the effect of a change, or publishes it if it was shown before.
func (e *editor) confirm(w http.ResponseWriter, r *http.Request, q question) error {
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
		t, p, err = e.attempt(r, q.find, r.PostForm.Get("plan"), d, false, q.decide)
	} else if t, p, err = e.would(r, q); t != nil {
		if d.State = t.state; q.at != nil {
			d.Note = pages.Say(r, q.says, q.at(t))
		}
	}
	page := &confirmation{Move: q.move, Forced: r.URL.Query().Get("force") == "1"}
	other := errors.Is(err, errOther)
	switch refused := page.refused(err); {
	case refused:
	case errors.Is(err, errGone):
		return e.SeeOther(w, r, e.page(t)) // the page shows the result
	case err != nil && !other:
		return err
	case sent && !other && t.state == d.State:
		return e.SeeOther(w, r, e.page(t))
	}
	page.resent, page.plan, page.Author, page.Note = e.resent(r, t, p), p, d.Author, d.Note
	page.Other = other || t.state != d.State
	page.Topic = pages.Link{Title: t.title, URL: e.page(t)}
	if name := e.NameOf(r); name != "" {
		page.AuthorKnow, page.Author = true, name
	}
	status := http.StatusOK
	switch {
	case page.Users != nil || page.Kept != nil || page.Moved != "" || page.Asks:
		if sent {
			status = http.StatusConflict
		}
	case page.Other:
		status = http.StatusPreconditionFailed
	}
	title := page.Topic.Title
	if q.title != "" {
		if title = pages.Say(r, texts.About, pages.Say(r, q.title), title); q.at != nil {
			title += ", " + q.at(t)
		}
	}
	return e.WriteForm(w, r, status, q.page, title, e.trail(r, t), page)
}

// mostKept is the number of parts that cannot be undone that a page lists.
const mostKept = 100

// refused reports whether an error makes a change impossible, and keeps the reason for the page.
func (c *confirmation) refused(err error) bool {
	var inUse *fragment.InUseError
	var conflict *history.ConflictError
	var moved *history.MovedError
	switch {
	case errors.As(err, &inUse):
		c.Users = inUse.Users
	case errors.As(err, &conflict):
		c.Kept = conflict.Kept[:min(len(conflict.Kept), mostKept)]
		c.MoreKept = len(conflict.Kept) - len(c.Kept)
	case errors.Is(err, errWrong):
		c.Asks = true
	case errors.As(err, &moved):
		c.Moved = moved.Topic.String()
	default:
		return false
	}
	return true
}

// would computes the effect of a change. It avoids blocking other publications, because the change may be large.
func (e *editor) would(r *http.Request, q question) (t *target, p *plan, err error) {
	p = &plan{}
	err = e.View(r, func(v *store.View) (err error) {
		if t, err = q.find(v); err != nil {
			return err
		}
		change, err := q.decide(r.Context(), &v.Collection, v.State(), t.self)
		if err != nil {
			return err
		}
		*p, err = e.planOf(r, &v.Collection, v.State(), change)
		return err
	})
	return t, p, err
}
