package editing

import (
	"errors"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/merge"
)

// conflictPage compares a person's changes with the changes that others made since the form was created.
type conflictPage struct {
	resent
	*plan        // the present effect of the change
	Gone         bool
	Topic        string
	Author, Note string

	Mine    []topicChange // on the state that the form was made of
	Unknown bool          // that state is no longer kept
	Doubles []double
	Theirs  []theirs // the newest first
}

// double is a statement that a person changed, and others changed or removed meanwhile, so that both would be kept.
type double struct {
	Kind   string
	Mine   string
	Theirs []string // the statements of the same kind that others added since
}

// theirs is a change that others have made since.
type theirs struct {
	pages.Differences
	Updated      time.Time
	Author, Note string
	Kind         history.Kind
}

// mostTheirs is the number of changes by others that are shown.
const mostTheirs = 20

// conflict serves the changes since the form was created. It publishes nothing.
func (e *editor) conflict(w http.ResponseWriter, r *http.Request, t *target, p *plan, d *draft) error {
	page := &conflictPage{resent: e.resent(r, t, p), plan: p, Topic: e.page(t), Author: d.Author, Note: d.Note,
		Doubles: d.doubles}
	if p == nil {
		page.plan, page.Gone = &plan{}, true
	}
	if err := e.View(r, func(v *store.View) error {
		base := baseOf(v, d.State)
		if err := e.mine(r, v, t, base, d, page); err != nil {
			return err
		}
		list, err := history.Changes(r.Context(), v, history.Query{TopicSI: t.self, Words: true, Limit: mostTheirs})
		if err != nil {
			return err
		}
		name := e.Naming(v, r)
		for _, c := range list.Changes {
			if c.Entry <= base {
				break
			}
			one := theirs{Author: c.Author, Note: c.Note, Kind: c.Kind}
			if one.Updated, err = history.ParseTime(c.Updated); err != nil {
				return err
			}
			one.Differences, err = pages.InWords(layout.LanguageOf(r), t.self, c.Added, c.Removed, mostStatements, name)
			if err != nil {
				return err
			}
			one.Missing = c.Missing
			page.Theirs = append(page.Theirs, one)
		}
		return nil
	}); err != nil {
		return err
	}
	return e.WriteForm(w, r, http.StatusPreconditionFailed, "conflict", pages.Say(r, texts.Conflict), e.trail(r, t), page)
}

// baseOf returns the sequence of the entry that a form was made of, 0 where it is not one of this history.
func baseOf(v *store.View, state string) uint64 {
	seq, same := strings.CutPrefix(state, v.Epoch.String()+"-")
	n, err := strconv.ParseUint(seq, 10, 63)
	if err != nil || !same || n > v.Head {
		return 0
	}
	return n
}

// mine adds the changes of a draft relative to the state of which its form was created.
func (e *editor) mine(r *http.Request, v *store.View, t *target, base uint64, d *draft, page *conflictPage) error {
	self := t.self
	page.Unknown = true
	if base <= v.Horizon {
		return nil
	}
	entry, err := v.Entry(base)
	if err != nil || !entry.Lives() || entry.TopicSI != self {
		return err
	}
	sent, err := history.Read(r.Context(), v, entry)
	if errors.Is(err, store.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	was := &pastTopic{State: v.State(), self: self}
	if err := merge.Apply(&was.then, sent); err != nil {
		return err
	}
	a, err := e.begin(r, &v.Collection, was, self)
	if err != nil {
		return err
	}
	change, err := a.change(d)
	if err != nil || change == nil {
		return err
	}
	p, err := e.planOf(r, &v.Collection, was, change)
	if err != nil {
		return err
	}
	page.Mine, page.Unknown = p.Changes, false
	then, err := was.Topic(self)
	if then == nil || t.topic == nil || err != nil {
		return err
	}
	for i := range page.Doubles {
		two := &page.Doubles[i]
		if two.Kind == ofName {
			two.Theirs = since(then.Names, t.topic.Names, func(n *fragment.Name) (string, string) {
				return nameIs(self, n), n.Value
			})
		} else {
			two.Theirs = since(then.Occurrences, t.topic.Occurrences, func(o *fragment.Occurrence) (string, string) {
				return occurrenceIs(self, o), o.Value
			})
		}
	}
	return nil
}

// since returns the values of statements that were not there before.
func since[T any](before, now []T, describe func(*T) (is, value string)) (values []string) {
	known := map[string]bool{}
	for i := range before {
		is, _ := describe(&before[i])
		known[is] = true
	}
	for i := range now {
		if is, value := describe(&now[i]); !known[is] && len(values) < mostStatements {
			values = append(values, layout.Cut(value))
		}
	}
	return values
}

// pastTopic is a state with one topic in its earlier version.
type pastTopic struct {
	records.State
	self fragment.Ref
	then merge.Memory
}

func (p *pastTopic) Topic(si fragment.Ref) (*fragment.Topic, error) {
	if t, err := p.then.Topic(si); t != nil && t.TopicSI() == p.self || err != nil {
		return t, err
	}
	return p.State.Topic(si)
}

func (p *pastTopic) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	if player == p.self {
		return p.then.AssociationsOf(player, part)
	}
	return p.State.AssociationsOf(player, part)
}
