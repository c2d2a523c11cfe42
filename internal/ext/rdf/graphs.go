package rdf

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/xml/write"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// fragmentsOf returns the statements of a document about some resources: a fragment for each, with the associations
// that are its statements, and one for each blank node that these refer to. It skips statements about other resources,
// because they come with their own documents.
func fragmentsOf(m *fragment.Map, resources []string) (fragments []*fragment.Fragment, err error) {
	seen := map[fragment.Ref]bool{}
	mentioned := sync.OnceValue(func() map[fragment.Ref]bool { return mentions(m) })
	var queue []fragment.Ref
	for _, resource := range resources {
		ref, err := named(m, resource)
		if err != nil {
			return nil, err
		}
		queue = append(queue, ref)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		ref := queue[0]
		if seen[ref] {
			continue
		}
		seen[ref] = true
		one, err := statementsOf(m, ref, mentioned)
		if err != nil {
			return nil, err
		}
		fragments = append(fragments, one)
		for _, a := range one.Associations {
			queue = append(queue, nodes(a)...)
		}
	}
	return fragments, nil
}

// carried passes on the statements that XTM can carry. The others are left out, and counted.
func carried(o *xtm.Options, add func(rdf.Quad) error) func(rdf.Quad) error {
	return func(q rdf.Quad) error {
		for _, t := range []rdf.Term{q.Subject, q.Predicate, q.Object} {
			err := write.Check(t.Value)
			if err == nil && t.Kind == rdf.IRI && len(t.Value) > xtm.DefaultLocator {
				err = fmt.Errorf("an IRI has more than %d bytes", xtm.DefaultLocator)
			}
			if err == nil {
				continue
			}
			if o.Tolerated != nil {
				o.Tolerated(&xtm.SyntaxError{URI: o.URI, Line: 1, Column: 1, Rule: rdf.UncarriedTexts,
					Of: fmt.Sprintf("%.80q", q.Predicate.Value), Reason: "of " + q.Subject.Value + ": " + err.Error()})
			}
			return nil
		}
		return add(q)
	}
}

// mapOf returns a map that was read, if it can be written as XTM.
func mapOf(tm *tmdm.TopicMap, o xtm.Options) (m *fragment.Map, err error) {
	if err = xtm.Check(tm); err == nil {
		m, err = fragment.NewMap(tm, string(o.Base))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.URI, err)
	}
	return m, nil
}

// named returns the topic that a resource is, by its IRI as it stands in the document: a feed may have it in normal
// form.
func named(m *fragment.Map, resource string) (fragment.Ref, error) {
	ref, known, err := fragment.Find(m, resource)
	if known != nil || err != nil {
		return ref, err
	}
	for t, err := range m.Topics() {
		if err != nil {
			return "", err
		}
		for _, l := range t.SubjectIdentifiers {
			if normal, err := tmdm.ParseLocator(iri.FromLocator(string(l))); err == nil && normal == ref {
				return l, nil
			}
		}
	}
	return ref, nil
}

// statementsOf returns the statements of a map that have a topic as their subject. If there are none, the topic is
// provisional. A statement of its existence makes a topic that nothing else mentions.
func statementsOf(m *fragment.Map, ref fragment.Ref,
	mentioned func() map[fragment.Ref]bool) (*fragment.Fragment, error) {
	known, err := m.Topic(ref)
	if err != nil {
		return nil, err
	}
	t := known
	if t == nil {
		t = &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{ref}}}
	}
	one := &fragment.Fragment{TopicSI: ref, Topic: t}
	for a, err := range fragment.PlayedBy(m, t.TopicSI()) {
		if err != nil {
			return nil, err
		}
		if mapping.Subject(a) == t.TopicSI() {
			one.Associations = append(one.Associations, a)
		}
	}
	if one.Stubs, err = stubs(m, one); err != nil || len(one.Associations)+len(t.Names)+len(t.Occurrences) > 0 {
		return one, err
	}
	if known == nil || mentioned()[t.TopicSI()] {
		provisional := *t
		provisional.Provisional = true
		one.Topic = &provisional
	}
	return one, nil
}

// stubs returns the identities of the topics that a fragment mentions.
func stubs(m *fragment.Map, one *fragment.Fragment) (all []fragment.Identity, err error) {
	refs := map[fragment.Ref]bool{}
	one.Topic.Mentions(func(ref fragment.Ref) { refs[ref] = true })
	for _, a := range one.Associations {
		addMentions(refs, a)
	}
	delete(refs, one.Topic.TopicSI())
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		t, err := m.Topic(ref)
		if err != nil {
			return nil, err
		}
		if t != nil {
			all = append(all, t.Identity)
		}
	}
	return all, nil
}

// nodes are the blank nodes among the players of an association.
func nodes(a *fragment.Association) []fragment.Ref {
	return slices.DeleteFunc(a.Players(), func(ref fragment.Ref) bool { return !mapping.IsBlank(ref) })
}

// recordsOf returns the records of a snapshot. Topics without statements that others mention are provisional: they are
// deleted with their last mention.
func recordsOf(m *fragment.Map) iter.Seq2[fragment.Record, error] {
	return func(yield func(fragment.Record, error) bool) {
		mentioned, subjects := mentions(m), map[fragment.Ref]bool{}
		for a := range m.Associations() { // a map in memory has no errors
			subjects[mapping.Subject(a)] = true
		}
		for record, err := range fragment.Records(m) {
			if t := record.Topic; t != nil && mentioned[t.TopicSI()] && !subjects[t.TopicSI()] &&
				len(t.Names)+len(t.Occurrences) == 0 {
				provisional := *t
				provisional.Provisional = true
				record.Topic = &provisional
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// mentions returns the topics that others of a map mention, or that play roles.
func mentions(m *fragment.Map) map[fragment.Ref]bool {
	mentioned := map[fragment.Ref]bool{}
	mention := func(ref fragment.Ref) { mentioned[ref] = true }
	for t := range m.Topics() { // a map in memory has no errors
		t.Mentions(mention)
	}
	for a := range m.Associations() {
		addMentions(mentioned, a)
	}
	return mentioned
}

// addMentions adds the topics that an association mentions, and its players.
func addMentions(to map[fragment.Ref]bool, a *fragment.Association) {
	a.Mentions(func(ref fragment.Ref) { to[ref] = true })
	for _, ref := range a.Players() {
		to[ref] = true
	}
}
