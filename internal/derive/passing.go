package derive

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// Pass returns the part of merged sources that a filter passes, as in a collection derived by it. It is not safe for
// concurrent use. It reports names of the filter that no source has, and an empty result. An error of the report ends
// it.
func Pass(ctx context.Context, given *store.Filter, report func(line string, nothing bool) error,
	parts ...merge.Part) (fragment.Source, error) {
	view := merge.NewView(ctx, parts...)
	f, err := Resolve(view, given)
	if err != nil {
		return nil, err
	}
	missing, nothing, err := Missing(given, func(si fragment.Ref) (bool, error) {
		id, err := view.Identity(si)
		return id != nil, err
	})
	for _, line := range missing {
		err = cmp.Or(err, report(line, len(nothing) > 0))
	}
	return &passing{view: view, f: f, report: report}, err
}

// Missing reports the names in a filter without a topic. nothing has the lists without any.
func Missing(given *store.Filter, has func(fragment.Ref) (bool, error)) (lines, nothing []string, err error) {
	if given.Empty() {
		return nil, nil, nil
	}
	look := func(means, named string, refs ...fragment.Ref) (there bool) {
		for i := 0; i < len(refs) && !there && err == nil; i++ {
			there, err = has(refs[i])
		}
		if !there && err == nil {
			passes := "nothing passes"
			if means == "theme" || means == "language" {
				passes = "only statements without a scope pass"
			}
			lines = append(lines, fmt.Sprintf("no input has the %s %s so far: %s by it; "+
				"check the identifier (\"topic\" shows those that there are)", means, named, passes))
		}
		return there
	}
	for _, list := range given.Lists() {
		some := len(*list.Refs) == 0
		for _, ref := range *list.Refs {
			some = look(list.Means, string(ref), ref) || some
		}
		if !some {
			nothing = append(nothing, list.Means)
		}
	}
	some := len(given.Languages) == 0
	for _, language := range given.Languages {
		some = look("language", language, collections.Themes(language)...) || some
	}
	if !some {
		nothing = append(nothing, "language")
	}
	return lines, nothing, err
}

// passing is the passing part of a view. All identities pass.
type passing struct {
	view   *merge.View
	f      *Filter
	report func(line string, nothing bool) error // nil: an empty result is not reported

	needed map[fragment.Ref]bool // TopicSIs that passing statements refer to; nil: not computed
}

// Topic implements [fragment.Source]. It also returns topics without references.
func (p *passing) Topic(si fragment.Ref) (*fragment.Topic, error) {
	t, _, err := p.left(p.view.Topic(si))
	return t, err
}

// left returns the passing part of a topic of the view, and whether the topic passes.
func (p *passing) left(t *fragment.Topic, err error) (*fragment.Topic, bool, error) {
	if t == nil || err != nil {
		return nil, false, err
	}
	return p.f.topic(t)
}

// Identity implements [fragment.Identifier].
func (p *passing) Identity(si fragment.Ref) (*fragment.Identity, error) { return p.view.Identity(si) }

// TopicBySubjectLocator implements [fragment.Source].
func (p *passing) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	t, _, err := p.left(p.view.TopicBySubjectLocator(sl))
	return t, err
}

// Topics implements [fragment.Source]: it yields topics that pass, and those that passing statements refer to.
func (p *passing) Topics() iter.Seq2[*fragment.Topic, error] {
	if p.f == nil {
		return p.view.Topics()
	}
	return func(yield func(*fragment.Topic, error) bool) {
		err := p.need()
		var seen, passed bool
		for t, failed := range p.view.Topics() {
			var left *fragment.Topic
			var passes bool
			if err = cmp.Or(err, failed); err == nil {
				left, passes, err = p.f.topic(t)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			seen = true
			if !p.f.announced(left, passes) && !slices.ContainsFunc(left.SubjectIdentifiers, p.isNeeded) {
				continue
			}
			if passed = true; !yield(left, nil) {
				return
			}
		}
		if seen && !passed && p.report != nil {
			if err := p.report("nothing passes the filter: no topic is in all that it names", true); err != nil {
				yield(nil, err)
			}
		}
	}
}

// announced reports whether the rest of a topic exists without references. Names in other languages alone do not.
func (f *Filter) announced(left *fragment.Topic, passes bool) bool {
	stated := len(left.Names)+len(left.Occurrences) > 0
	if !passes || stated || left.Provisional {
		return passes && stated
	}
	isLanguage := func(si fragment.Ref) bool { _, is := titles.LanguageOf(si); return is }
	return f == nil || f.scope == nil || f.scope.refs[left.TopicSI()] ||
		!slices.ContainsFunc(left.SubjectIdentifiers, isLanguage)
}

func (p *passing) isNeeded(si fragment.Ref) bool { return p.needed[si] }

// need finds the topics that something that passes refers to.
func (p *passing) need() error {
	if p.needed != nil {
		return nil
	}
	needed := map[fragment.Ref]bool{}
	need := func(ref fragment.Ref) { needed[ref] = true }
	for t, err := range p.view.Topics() {
		var passes bool
		if err == nil {
			t, passes, err = p.f.topic(t)
		}
		if err != nil {
			return err
		}
		if passes {
			t.Mentions(need)
		}
	}
	for a, err := range p.Associations() {
		if err != nil {
			return err
		}
		a.Mentions(need)
		for i := range a.Roles {
			need(a.Roles[i].Player)
		}
	}
	p.needed = needed
	for ref := range needed { // other topics have names of one type only
		t, passes, err := p.left(p.view.Topic(ref))
		if err != nil {
			return err
		}
		if t != nil && !passes && len(t.Names) > 0 {
			t.Mentions(need)
			return nil
		}
	}
	return nil
}

// AssociationsOf implements [fragment.Source].
func (p *passing) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return p.f.associations(p.view.AssociationsOf(player, part))
}

// Associations implements [fragment.Source].
func (p *passing) Associations() iter.Seq2[*fragment.Association, error] {
	return p.f.associations(p.view.Associations())
}
