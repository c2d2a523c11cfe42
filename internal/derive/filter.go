package derive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// Filter passes a part of a view. The rest counts as not stated, except identifiers, which determine the identity of
// topics.
//
//   - A topic passes if it is an instance of one of the types, and one of the topics within, or below these. A blank
//     node of RDF passes with what has it as the object of a statement. Of a topic that does not, only the names of the
//     default type in the unconstrained scope pass. It is published while something that passes refers to it.
//   - An association passes if it has one of the association types, and if one of its players passes. A
//     type-instance one passes with the instance.
//   - A statement passes if its scope is unconstrained or has one of the themes.
//
// Subtypes are types as well (ISO 13250-2 §7.3, The supertype-subtype relationship). All passes where the filter is
// nil.
type Filter struct {
	view   *merge.View
	passed map[fragment.Ref]bool // topics that were looked at

	types, within, associationTypes, scope *meant

	scopedNames bool // names in the unconstrained scope do not pass

	having pair   // the types of the roles of what has a blank node, and of the node
	names  *meant // the default name type
	typing *meant // the vocabulary of type-instance associations
}

// pair is the types of the roles of two topics, one of which is above the other.
type pair struct{ above, below tmdm.Locator }

// subtyping and narrowing are the types of associations by which topics are below others: types, and concepts
// (SKOS Reference, sections 4, Concept Schemes, and 8, Semantic Relations).
var (
	subtyping = map[tmdm.Locator]pair{tmdm.PSISupertypeSubtype: {tmdm.PSISupertype, tmdm.PSISubtype}}
	narrowing = map[tmdm.Locator]pair{skos + "broader": ofObject, skos + "narrower": ofSubject,
		skos + "inScheme": ofObject, skos + "topConceptOf": ofObject, skos + "hasTopConcept": ofSubject}

	ofObject  = pair{fragment.RDFObject, fragment.RDFSubject}
	ofSubject = pair{fragment.RDFSubject, fragment.RDFObject}
)

const skos = "http://www.w3.org/2004/02/skos/core#"

// meant are the topics of a view that one part of a filter names.
type meant struct {
	refs map[fragment.Ref]bool // their TopicSIs
	all  []fragment.Ref        // their subject identifiers, in order
}

// Resolve finds the topics of a view that a filter means.
func Resolve(view *merge.View, given *store.Filter) (f *Filter, err error) {
	if given.Empty() {
		return nil, nil
	}
	f = &Filter{view: view, passed: map[fragment.Ref]bool{}, scopedNames: given.ScopedNames}
	if f.types, err = f.find(given.Types, subtyping); err != nil {
		return nil, err
	}
	if f.within, err = f.find(given.Within, narrowing); err != nil {
		return nil, err
	}
	if f.associationTypes, err = f.find(given.AssociationTypes, subtyping); err != nil {
		return nil, err
	}
	scope := slices.Clone(given.Scope)
	for _, language := range given.Languages {
		scope = append(scope, collections.Themes(language)...)
	}
	if f.scope, err = f.find(scope, nil); err != nil {
		return nil, err
	}
	roles := map[fragment.Ref]*fragment.Ref{ofSubject.above: &f.having.above, ofSubject.below: &f.having.below}
	for psi, role := range roles {
		id, err := f.identity(psi)
		if err != nil {
			return nil, err
		}
		*role = id.TopicSI()
	}
	if f.names, err = f.find([]fragment.Ref{tmdm.PSIDefaultNameType}, nil); err != nil {
		return nil, err
	}
	f.typing, err = f.find(vocabulary, nil)
	return f, err
}

// Meant returns the identifiers of the topics that each part of the filter selects. While they are unchanged, the
// result changes only with the filtered topics and associations.
func (f *Filter) Meant() (all [][]fragment.Ref) {
	if f == nil {
		return nil
	}
	for _, m := range []*meant{f.types, f.associationTypes, f.scope, f.names, f.typing} {
		if m == nil {
			m = &meant{}
		}
		all = append(all, m.all)
	}
	if f.within != nil { // there may be many
		h := sha256.New()
		for _, si := range f.within.all {
			fmt.Fprintln(h, si)
		}
		all = append(all, []fragment.Ref{fragment.Ref(hex.EncodeToString(h.Sum(nil)))})
	}
	return all
}

func (f *Filter) identity(si fragment.Ref) (*fragment.Identity, error) {
	id, err := f.view.Identity(si)
	if s := iri.Shown(string(si)); id == nil && err == nil && s != string(si) { // the map may have its normal form
		si, _ = tmdm.ParseLocator(s)
		id, err = f.view.Identity(si)
	}
	if id == nil {
		id = &fragment.Identity{SubjectIdentifiers: []fragment.Ref{si}}
	}
	return id, err
}

// find returns the topics with the given identifiers, and those that associations put below them.
func (f *Filter) find(given []fragment.Ref, by map[tmdm.Locator]pair) (*meant, error) {
	if len(given) == 0 {
		return nil, nil
	}
	next, err := f.under(by)
	if err != nil {
		return nil, err
	}
	m := &meant{refs: map[fragment.Ref]bool{}}
	for queue := slices.Clone(given); len(queue) > 0; {
		id, err := f.identity(queue[len(queue)-1])
		queue = queue[:len(queue)-1]
		if err != nil {
			return nil, err
		}
		if m.refs[id.TopicSI()] {
			continue
		}
		m.refs[id.TopicSI()] = true
		m.all = append(m.all, id.SubjectIdentifiers...)
		if len(by) == 0 {
			continue
		}
		more, err := next(id.TopicSI())
		if err != nil {
			return nil, err
		}
		queue = append(queue, more...)
	}
	slices.Sort(m.all)
	return m, nil
}

// under returns a function that returns the topics directly below one.
func (f *Filter) under(by map[tmdm.Locator]pair) (func(fragment.Ref) ([]fragment.Ref, error), error) {
	type roles struct{ above, below fragment.Ref }
	types := map[fragment.Ref]roles{}
	for typ, p := range by {
		var refs [3]fragment.Ref
		for i, psi := range []tmdm.Locator{typ, p.above, p.below} {
			id, err := f.identity(psi)
			if err != nil {
				return nil, err
			}
			refs[i] = id.TopicSI()
		}
		types[refs[0]] = roles{refs[1], refs[2]}
	}
	return func(ref fragment.Ref) (all []fragment.Ref, err error) {
		for a, err := range f.view.AssociationsOf(ref, fragment.AsPlayer) {
			if err != nil {
				return nil, err
			}
			p, ok := types[a.Type]
			for i := 0; ok && len(a.Roles) == 2 && i < 2; i++ {
				if one, other := a.Roles[i], a.Roles[1-i]; one.Type == p.above && one.Player == ref && other.Type == p.below {
					all = append(all, other.Player)
				}
			}
		}
		return all, nil
	}, nil
}

// choosesTopics reports whether some topics do not pass.
func (f *Filter) choosesTopics() bool { return f != nil && (f.within != nil || f.types != nil) }

// passes reports whether the topic with a TopicSI of the view passes.
func (f *Filter) passes(ref fragment.Ref) (bool, error) {
	if !f.choosesTopics() {
		return true, nil
	}
	if passed, known := f.passed[ref]; known {
		return passed, nil
	}
	// It goes from a node to the topic that refers to it, and on from that if it is a node.
	below, seen := map[fragment.Ref]fragment.Ref{}, []fragment.Ref{ref}
	for i := 0; i < len(seen); i++ {
		passes, known := f.passed[seen[i]]
		if !known {
			var err error
			if passes, err = f.isMeant(seen[i]); err != nil {
				return false, err
			}
		}
		if passes { // so do the nodes in between
			for at := seen[i]; at != ref; at = below[at] {
				f.passed[at] = true
			}
			f.passed[ref] = true
			return true, nil
		}
		node, err := f.isNode(seen[i])
		if err != nil {
			return false, err
		}
		if !node {
			continue
		}
		for a, err := range f.view.AssociationsOf(seen[i], fragment.AsPlayer) {
			if err != nil {
				return false, err
			}
			if one, other, ok := f.has(a); ok && other == seen[i] && one != ref && below[one] == "" {
				below[one] = seen[i]
				seen = append(seen, one)
			}
		}
	}
	for _, ref := range seen {
		f.passed[ref] = false
	}
	return false, nil
}

// isMeant reports whether a topic is selected by the filter.
func (f *Filter) isMeant(ref fragment.Ref) (bool, error) {
	if f.within != nil && !f.within.refs[ref] {
		return false, nil
	}
	if f.types == nil {
		return true, nil
	}
	for a, err := range f.view.AssociationsOf(ref, fragment.AsInstance) {
		if err != nil {
			return false, err
		}
		if class, _, ok := a.TypeInstance(); ok && f.types.refs[class] {
			return true, nil
		}
	}
	return false, nil
}

// isNode reports whether a topic is a blank node of RDF without other identifiers.
func (f *Filter) isNode(ref fragment.Ref) (bool, error) {
	if !words.IsOpaque(string(ref)) {
		return false, nil
	}
	id, err := f.view.Identity(ref)
	if id == nil || err != nil {
		return err == nil, err
	}
	named := func(si fragment.Ref) bool { return !words.IsOpaque(string(si)) }
	return !slices.ContainsFunc(id.SubjectIdentifiers, named), nil
}

// has returns the players of an association from a topic to a node, which passes with the topic.
func (f *Filter) has(a *fragment.Association) (one, other fragment.Ref, ok bool) {
	if len(a.Roles) != 2 || !f.valid(a.Scope) || f.associationTypes != nil && !f.associationTypes.refs[a.Type] {
		return "", "", false
	}
	from, to := a.Roles[0], a.Roles[1]
	if from.Type != f.having.above {
		from, to = to, from
	}
	ok = from.Type == f.having.above && to.Type == f.having.below && from.Type != to.Type
	return from.Player, to.Player, ok
}

// valid reports whether a statement with a scope passes.
func (f *Filter) valid(scope []fragment.Ref) bool {
	return f.scope == nil || len(scope) == 0 || slices.ContainsFunc(scope, func(theme fragment.Ref) bool {
		return f.scope.refs[theme]
	})
}

// topic returns the passing part of a record of the view, and whether the topic passes. The record is not changed.
func (f *Filter) topic(t *fragment.Topic) (*fragment.Topic, bool, error) {
	passes, err := true, error(nil)
	if f == nil || t == nil {
		return t, passes, err
	}
	if passes, err = f.passes(t.TopicSI()); err != nil {
		return nil, false, err
	}
	left := &fragment.Topic{Identity: t.Identity, Provisional: t.Provisional}
	for i := range t.Names {
		n := t.Names[i]
		switch {
		case !passes && f.names.refs[n.Type] && len(n.Scope) == 0 && n.Type != t.TopicSI():
			n.Variants, n.Reifier = nil, ""
		case !passes || !f.valid(n.Scope) || f.scopedNames && len(n.Scope) == 0:
			continue
		}
		n.Variants = slices.DeleteFunc(slices.Clone(n.Variants), func(v fragment.Variant) bool { return !f.valid(v.Scope) })
		left.Names = append(left.Names, n)
	}
	for i := range t.Occurrences {
		if o := &t.Occurrences[i]; passes && f.valid(o.Scope) {
			left.Occurrences = append(left.Occurrences, *o)
		}
	}
	return left, passes, nil
}

// association reports whether an association of the view passes.
func (f *Filter) association(a *fragment.Association) (bool, error) {
	if f == nil {
		return true, nil
	}
	if _, instance, ok := a.TypeInstance(); ok {
		return f.passes(instance)
	}
	if !f.valid(a.Scope) || f.associationTypes != nil && !f.associationTypes.refs[a.Type] {
		return false, nil
	}
	for _, p := range a.Players() {
		if passes, err := f.passes(p); passes || err != nil {
			return passes, err
		}
	}
	return false, nil
}

// associations iterates over those of some associations of the view that pass.
func (f *Filter) associations(all iter.Seq2[*fragment.Association, error]) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		for a, err := range all {
			passes := true
			if err == nil {
				passes, err = f.association(a)
			}
			if (passes || err != nil) && !yield(a, err) || err != nil {
				return
			}
		}
	}
}
