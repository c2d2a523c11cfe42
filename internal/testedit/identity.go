package testedit

import (
	"errors"
	"slices"

	"github.com/tmshare/tmshare/tmdm"
)

// The edits that change which topics there are, and by which identifiers they
// are known.

func (e *Editor) addIdentifier() string {
	t := e.topic()
	if t.AddSubjectIdentifier(e.identifier()) != nil {
		return ""
	}
	return say("add identifier", t)
}

// identified returns a topic with a subject identifier that it can do without.
func (e *Editor) identified() *tmdm.Topic {
	for range 20 {
		t := e.topic()
		if len(t.SubjectIdentifiers()) > 1 || len(t.SubjectIdentifiers()) == 1 && len(t.ItemIdentifiers()) > 0 {
			return t
		}
	}
	return nil
}

func (e *Editor) takeIdentifier() (from *tmdm.Topic, si tmdm.Locator) {
	if from = e.identified(); from != nil {
		sis := from.SubjectIdentifiers()
		si = sis[e.rng.IntN(len(sis))]
		from.RemoveSubjectIdentifier(si)
	}
	return from, si
}

func (e *Editor) removeIdentifier() string {
	t, si := e.takeIdentifier()
	if t == nil {
		return ""
	}
	return say("remove identifier "+string(si), t)
}

func (e *Editor) moveIdentifier() string {
	to := e.topic()
	_, si := e.takeIdentifier()
	if si == "" {
		return ""
	}
	if err := to.AddSubjectIdentifier(si); err != nil {
		panic(err)
	}
	return say("move identifier "+string(si), to)
}

func (e *Editor) addLocator() string {
	t := e.topic()
	if t.AddSubjectLocator(e.identifier()) != nil {
		return ""
	}
	return say("add locator", t)
}

func (e *Editor) create() string {
	t := e.newTopic()
	t.AddName(e.word(), nil)
	if e.rng.IntN(2) == 0 {
		t.AddType(e.topic())
	}
	return say("create", t)
}

func (e *Editor) recreate() string {
	if len(e.removed) == 0 {
		return ""
	}
	i := e.rng.IntN(len(e.removed))
	was := e.removed[i]
	e.removed = slices.Delete(e.removed, i, i+1)
	for _, l := range was.iids {
		if e.Map.ConstructByItemIdentifier(l) != nil {
			return ""
		}
	}
	t := e.Map.CreateTopic()
	for _, l := range was.iids {
		_ = tmdm.AddItemIdentifier(t, l)
	}
	for _, l := range was.sis {
		_ = t.AddSubjectIdentifier(l)
	}
	if len(was.iids)+len(t.SubjectIdentifiers()) == 0 {
		_ = t.AddSubjectIdentifier(e.identifier())
	}
	t.AddName(e.word(), nil)
	return say("create again", t)
}

func (e *Editor) remove() string {
	t := e.topic()
	edit := say("delete", t)
	was := identity{slices.Clone(t.ItemIdentifiers()), slices.Clone(t.SubjectIdentifiers())}
	var inUse *tmdm.InUseError
	if errors.As(t.Remove(), &inUse) {
		return ""
	}
	e.removed = append(e.removed, was)
	return edit
}

func (e *Editor) merge() string {
	a, b := e.topic(), e.topic()
	if a == b || a.Merge(b) != nil {
		return ""
	}
	return say("merge", a)
}

// split takes identifiers and statements of a topic for a new one.
func (e *Editor) split() string {
	t := e.topic()
	sis := t.SubjectIdentifiers()
	if len(sis) < 2 {
		return ""
	}
	si := sis[e.rng.IntN(len(sis))]
	t.RemoveSubjectIdentifier(si)
	half := e.Map.CreateTopic()
	if err := half.AddSubjectIdentifier(si); err != nil {
		panic(err)
	}
	if iids := t.ItemIdentifiers(); len(iids) > 1 && e.rng.IntN(2) == 0 {
		l := iids[e.rng.IntN(len(iids))]
		tmdm.RemoveItemIdentifier(t, l)
		if err := tmdm.AddItemIdentifier(half, l); err != nil {
			panic(err)
		}
	}
	for _, n := range slices.Clone(t.Names()) {
		if e.rng.IntN(2) == 0 && n.Reifier() == nil && len(n.Variants()) == 0 {
			half.AddName(n.Value(), n.Type(), n.Scope().Themes()...)
			n.Remove()
		}
	}
	return say("split off "+string(si), t)
}

func (e *Editor) reify() string {
	r := e.topic()
	if r.Reified() != nil {
		return ""
	}
	var c tmdm.Reifiable
	t := e.topic()
	if len(t.Names()) > 0 && e.rng.IntN(2) == 0 {
		c = t.Names()[0]
	} else if a := e.association(func(*tmdm.Association) bool { return true }); a != nil {
		c = a
	}
	if c == nil || c.Reifier() != nil || tmdm.SetReifier(c, r) != nil {
		return ""
	}
	return say("reify "+tmdm.Describe(c), r)
}

func (e *Editor) unreify() string {
	for _, t := range e.topics() {
		if c := t.Reified(); c != nil && c != tmdm.Reifiable(e.Map) && e.rng.IntN(3) == 0 {
			if err := tmdm.SetReifier(c, nil); err != nil {
				panic(err)
			}
			return say("unreify", t)
		}
	}
	return ""
}
