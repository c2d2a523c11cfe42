package derive_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// anyFilter returns a random filter, or nil.
func anyFilter(rng *rand.Rand) *store.Filter {
	some := func() (refs []fragment.Ref) {
		if rng.IntN(2) == 0 {
			return nil
		}
		for range 1 + rng.IntN(2) {
			refs = append(refs, fragment.Ref("http://"+string(rune('a'+rng.IntN(6)))))
		}
		return refs
	}
	f := &store.Filter{Types: some(), AssociationTypes: some(), Scope: some()}
	if rng.IntN(4) == 0 {
		f.Within, f.ScopedNames = some(), rng.IntN(2) == 0
	}
	return f
}

// meant returns the topics with some subject identifiers, with all their subtypes.
func meant(tm *tmdm.TopicMap, sis []fragment.Ref, subtypes bool) map[*tmdm.Topic]bool {
	all := map[*tmdm.Topic]bool{}
	var add func(*tmdm.Topic)
	add = func(t *tmdm.Topic) {
		if t == nil || all[t] {
			return
		}
		if all[t] = true; subtypes {
			for sub := range t.Subtypes() {
				add(sub)
			}
		}
	}
	for _, si := range sis {
		add(tm.TopicBySubjectIdentifier(si))
	}
	return all
}

// keep removes from a merged map the parts that a filter does not pass, by the topic map API only.
func keep(t *testing.T, tm *tmdm.TopicMap, f *store.Filter, parts []merge.Part) {
	if f.Empty() {
		return
	}
	themes := meant(tm, f.Scope, false)
	valid := func(s tmdm.Scoped) bool {
		return len(f.Scope) == 0 || len(s.Scope().Themes()) == 0 || slices.ContainsFunc(s.Scope().Themes(), func(theme *tmdm.Topic) bool { return themes[theme] })
	}
	within := meant(tm, f.Within, false) // these maps have no narrower topics
	types, passes := meant(tm, f.Types, true), map[*tmdm.Topic]bool{}
	for a := range tm.Associations() {
		if class, instance, ok := a.TypeInstance(); ok && types[class] {
			passes[instance] = true
		}
	}
	for topic := range tm.Topics() {
		passes[topic] = (passes[topic] || len(f.Types) == 0) && (len(f.Within) == 0 || within[topic])
	}
	associationTypes := meant(tm, f.AssociationTypes, true)
	one, other := tm.TopicBySubjectIdentifier(fragment.RDFSubject), tm.TopicBySubjectIdentifier(fragment.RDFObject)
	for again := true; again; { // blank nodes pass with their owners
		again = false
		for a := range tm.Associations() {
			if len(a.Roles()) != 2 || !valid(a) || len(f.AssociationTypes) > 0 && !associationTypes[a.Type()] || one == other {
				continue
			}
			for i, r := range a.Roles() {
				has, node := r.Player(), a.Roles()[1-i].Player()
				if r.Type() == one && a.Roles()[1-i].Type() == other && passes[has] && !passes[node] && isNode(node) {
					passes[node], again = true, true
				}
			}
		}
	}
	for _, a := range slices.Collect(tm.Associations()) {
		stays := len(f.AssociationTypes) == 0 || associationTypes[a.Type()]
		stays = stays && valid(a) && slices.ContainsFunc(a.Roles(), func(r *tmdm.AssociationRole) bool { return passes[r.Player()] })
		if _, instance, typing := a.TypeInstance(); typing {
			stays = passes[instance]
		}
		if !stays {
			a.Remove()
		}
	}
	nameType := tm.TopicBySubjectIdentifier(tmdm.PSIDefaultNameType)
	for topic := range tm.Topics() {
		for _, n := range slices.Clone(topic.Names()) {
			if !passes[topic] && (n.Type() != nameType || len(n.Scope().Themes()) > 0 || topic == nameType) || !valid(n) ||
				passes[topic] && f.ScopedNames && len(n.Scope().Themes()) == 0 {
				n.Remove()
				continue
			}
			if !passes[topic] {
				require.NoError(t, tmdm.SetReifier(n, nil))
			}
			for _, v := range slices.Clone(n.Variants()) {
				if !passes[topic] || !valid(v) {
					v.Remove()
				}
			}
		}
		for _, o := range slices.Clone(topic.Occurrences()) {
			if !passes[topic] || !valid(o) {
				o.Remove()
			}
		}
	}
	for again := true; again; {
		again = false
		for _, topic := range slices.Collect(tm.Topics()) {
			announced := passes[topic] && (announcedIn(t, parts, topic) || len(topic.Names())+len(topic.Occurrences()) > 0)
			if !announced && len(topic.RolesPlayed()) == 0 && topic.Remove() == nil {
				again = true
			}
		}
	}
}

// isNode reports whether a topic has no identifiers but those of blank nodes.
func isNode(topic *tmdm.Topic) bool {
	return !slices.ContainsFunc(topic.SubjectIdentifiers(), func(si tmdm.Locator) bool { return !strings.HasPrefix(string(si), genid) })
}

const genid = "http://example.org/.well-known/genid/"

// announcedIn reports whether a source has more than references to a topic.
func announcedIn(t *testing.T, parts []merge.Part, topic *tmdm.Topic) bool {
	for _, p := range parts {
		for _, si := range topic.SubjectIdentifiers() {
			r, err := p.Source.Topic(si)
			require.NoError(t, err)
			if r != nil && !r.Provisional {
				return true
			}
		}
	}
	return false
}

// vocabularyMerged reports whether the vocabulary of types and subtypes was merged with other topics. A view and a
// topic map then differ in their types.
func vocabularyMerged(t *testing.T, parts []merge.Part) bool {
	view := merge.NewView(t.Context(), parts...)
	for _, psi := range []tmdm.Locator{tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance, tmdm.PSISupertypeSubtype, tmdm.PSISupertype, tmdm.PSISubtype, fragment.RDFSubject, fragment.RDFObject, tmdm.PSIDefaultNameType} {
		id, err := view.Identity(psi)
		require.NoError(t, err)
		if id != nil && len(id.SubjectIdentifiers) > 1 {
			return true
		}
	}
	return false
}

// atOnce returns the published state if all topics are derived for the first time.
func atOnce(t *testing.T, f *store.Filter, parts []merge.Part) string {
	var all []fragment.Ref
	for topic, err := range merge.NewView(t.Context(), parts...).Topics() {
		require.NoError(t, err)
		all = append(all, topic.TopicSI())
	}
	d := derived{filter: f}
	d.update(t, parts, 1000, all)
	return canonical(t, nil, merge.Part{SP: sp, Source: &d.state})
}

// passed returns the parts of some sources that pass now, as readers get them.
func passed(t *testing.T, f *store.Filter, parts []merge.Part) string {
	src, err := derive.Pass(t.Context(), f, func(string, bool) error { return nil }, parts...)
	require.NoError(t, err)
	return canonical(t, nil, merge.Part{SP: sp, Source: src})
}
