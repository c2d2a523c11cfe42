package editing

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// plan is the effect of a change, before or after it is published.
type plan struct {
	Changes []topicChange
	More    int // changes of topics that are not listed
	Empty   bool
	tag     string // no other change has it
}

// decision returns the change to make in a state of a collection.
type decision func(ctx context.Context, c *store.Collection, prior merge.State,
	self fragment.Ref) (*fragment.Change, error)

// finder returns the target of a request in a view.
type finder func(v *store.View) (*target, error)

// Errors that end a publication before anything changes.
var (
	errMoved = errors.New("others have published meanwhile")
	errWrong = errors.New("a row cannot be taken")
	errOther = errors.New("the change would be another one than the one that was shown")
)

// mostAttempts is the number of times that a change is retried because others published meanwhile.
const mostAttempts = 50

// attempt publishes the change that was decided on the present state of the topic, or only computes it (dry). The topic
// must be in the state of the draft, and the change must have the tag; "" is any. It returns the topic before the
// change.
func (e *editor) attempt(r *http.Request, find finder, tag string, d *draft, dry bool,
	decide decision) (*target, *plan, error) {
	for range mostAttempts {
		var t *target
		if err := e.View(r, func(v *store.View) (err error) { t, err = find(v); return err }); err != nil {
			return t, nil, err
		}
		stale := t.state != d.State // then the effect is only computed
		p := &plan{}
		_, err := e.Publisher.Publish(r.Context(), publish.Publication{
			Collection: t.collection.Name, DryRun: dry || stale, Author: d.Author, Note: d.Note,
			Allowed: func(c *store.Collection) error {
				if c.Epoch != t.collection.Epoch || c.Head != t.collection.Head {
					return errMoved
				}
				return nil
			},
			Decide: func(ctx context.Context, c store.Collection, prior merge.State, _ *tmdm.TopicMap) (*fragment.Change,
				error) {
				change, err := decide(ctx, &c, prior, t.self)
				if err != nil {
					return nil, err
				}
				if *p, err = e.planOf(r, &c, prior, change); err != nil {
					return nil, err
				}
				if !dry && !stale && tag != "" && p.tag != tag {
					return nil, errOther
				}
				return change, nil
			},
		})
		if !errors.Is(err, errMoved) {
			return t, p, err
		}
	}
	busy := web.Problemf(http.StatusServiceUnavailable,
		"others publish so much that the change found no moment; send the form again")
	busy.RetryAfter = time.Second
	return nil, nil, busy
}

// carryOut shows the effect of a draft, or publishes the draft if its effect was shown before.
func (e *editor) carryOut(w http.ResponseWriter, r *http.Request, d *draft, dry bool) error {
	var self fragment.Ref
	isNew := web.Var(r, "key") == ""
	if isNew {
		err := e.View(r, func(v *store.View) error {
			self, d.WrongName = d.name(&v.Collection)
			return nil
		})
		if err != nil {
			return err
		}
		if d.WrongName.Kind != "" {
			return e.refused(w, r, self, d)
		}
		r.PostForm.Set("identifier", string(self)) // so that the next form has it
	}
	named := func(v *store.View) (*target, error) { return find(r, v, self) }
	t, p, err := e.attempt(r, named, r.PostForm.Get("plan"), d, dry,
		func(ctx context.Context, c *store.Collection, prior merge.State, self fragment.Ref) (*fragment.Change, error) {
			if isNew {
				if there, err := prior.Topic(self); there != nil || err != nil {
					d.WrongName = wrong{Kind: "taken"}
					return nil, cmp.Or(err, errWrong)
				}
			}
			a, err := e.begin(r, c, prior, self)
			if err != nil {
				return nil, err
			}
			change, err := a.change(d)
			if err == nil && change == nil {
				err = errWrong
			}
			return change, err
		})
	switch {
	case errors.Is(err, errGone):
		return e.conflict(w, r, t, nil, d)
	case errors.Is(err, errWrong):
		return e.refused(w, r, self, d)
	case errors.Is(err, errOther):
		return e.preview(w, r, t, p, d, true)
	case err != nil:
		return err
	case t.state != d.State:
		return e.conflict(w, r, t, p, d)
	case dry:
		return e.preview(w, r, t, p, d, false)
	}
	d.published = e.page(t)
	return e.SeeOther(w, r, d.published)
}

// refused shows the form again, with its errors.
func (e *editor) refused(w http.ResponseWriter, r *http.Request, self fragment.Ref, d *draft) error {
	return e.View(r, func(v *store.View) error {
		t, err := find(r, v, self)
		if errors.Is(err, errGone) {
			return e.SeeOther(w, r, e.page(t))
		}
		if err != nil {
			return err
		}
		return e.show(w, r, http.StatusUnprocessableEntity, v, t, &shown{draft: d})
	})
}

// resent holds the fields by which a page sends a form again.
type resent struct {
	Fields []pages.Field // all of the form, but the state and the plan
	Code   string
	State  string
	Plan   string
}

func (e *editor) resent(r *http.Request, t *target, p *plan) resent {
	form := resent{Fields: pages.Fields(r.PostForm, "", "do", "state", "plan"), Code: e.Code(r), State: t.state}
	if p != nil {
		form.Plan = p.tag
	}
	return form
}

// previewPage shows the effect of a draft.
type previewPage struct {
	resent
	*plan
	Author, Note string
	Other        bool // the effect differs from the one shown before
	Topic        string
}

func (e *editor) preview(w http.ResponseWriter, r *http.Request, t *target, p *plan, d *draft, other bool) error {
	return e.WriteForm(w, r, http.StatusOK, "preview", pages.Say(r, texts.Preview), e.trail(r, t), &previewPage{
		resent: e.resent(r, t, p), plan: p, Author: d.Author, Note: d.Note, Other: other, Topic: e.page(t),
	})
}

// trail leads from the overview to the topic of a form.
func (e *editor) trail(r *http.Request, t *target) []pages.Link {
	if t.topic == nil {
		return e.Trail(r, &t.collection)
	}
	return e.Trail(r, &t.collection, pages.Link{Title: t.title, URL: e.page(t)})
}

// mostRemembered is the number of published forms that are remembered.
const mostRemembered = 1000

// publications remembers the forms that were published lately, so that a form sent twice, as by a second click, leads
// to the result of the first.
type publications struct {
	mu     sync.Mutex
	byForm map[string]*publication
	order  []string // the oldest first
}

type publication struct {
	done chan struct{} // closed once the page is known
	page string        // the page of the topic; "": nothing was published
}

// begin returns the publication of a form, and whether it is the first one.
func (p *publications) begin(form string) (running *publication, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if running = p.byForm[form]; running != nil {
		return running, false
	}
	running = &publication{done: make(chan struct{})}
	if p.byForm == nil {
		p.byForm = map[string]*publication{}
	}
	if p.order = append(p.order, form); len(p.order) > mostRemembered {
		delete(p.byForm, p.order[0])
		p.order = p.order[1:]
	}
	p.byForm[form] = running
	return running, true
}

// end records the result of a publication.
func (p *publications) end(form string, running *publication, page string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if running.page = page; page == "" && p.byForm[form] == running {
		delete(p.byForm, form) // it may be sent again
	}
	close(running.done)
}

// once publishes a form unless the same form was published before.
func (e *editor) once(w http.ResponseWriter, r *http.Request, d *draft) error {
	form := web.Digest([]byte(r.URL.Path + "\x00" + r.PostForm.Encode())) // with the code of the session
	running, first := e.published.begin(form)
	if first {
		defer func() { e.published.end(form, running, d.published) }()
		return e.carryOut(w, r, d, false)
	}
	select {
	case <-running.done:
	case <-r.Context().Done():
		return r.Context().Err()
	}
	if running.page != "" {
		return e.SeeOther(w, r, running.page)
	}
	return e.carryOut(w, r, d, false)
}
