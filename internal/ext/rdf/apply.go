package rdf

import (
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/merge"
)

// apply replaces the statements of resources in the state of a source, and those of the blank nodes that they refer to.
// It adds to each fragment the associations that are statements of other resources, and applies it like an XTM
// fragment. It deletes blank nodes that no resource refers to any more. It is idempotent.
func apply(s merge.State, fragments []*fragment.Fragment) error {
	var roots []fragment.Ref
	now := map[fragment.Ref]bool{}
	for _, one := range fragments {
		if now[one.TopicSI] = true; !mapping.IsBlank(one.TopicSI) {
			roots = append(roots, one.TopicSI)
		}
	}
	before, err := reached(s, roots)
	if err != nil {
		return err
	}
	for _, one := range fragments {
		if err := replace(s, one); err != nil {
			return err
		}
	}
	gone := slices.DeleteFunc(before, func(ref fragment.Ref) bool { return now[ref] })
	return sweep(s, gone)
}

// reached returns the blank nodes to which resources lead.
func reached(s fragment.Source, from []fragment.Ref) (all []fragment.Ref, err error) {
	seen := map[fragment.Ref]bool{}
	for queue := slices.Clone(from); len(queue) > 0; queue = queue[1:] {
		for a, err := range fragment.PlayedBy(s, queue[0]) {
			if err != nil {
				return nil, err
			}
			if mapping.Subject(a) != queue[0] {
				continue
			}
			for _, node := range nodes(a) {
				if !seen[node] {
					seen[node] = true
					all, queue = append(all, node), append(queue, node)
				}
			}
		}
	}
	return all, nil
}

// replace applies the statements about one topic. The statements of others about it stay.
func replace(s merge.State, one *fragment.Fragment) error {
	f := *one
	f.Associations = slices.Clone(one.Associations)
	stays := map[fragment.AssociationKey]bool{}
	for _, a := range f.Associations {
		stays[a.Key()] = true
	}
	names := slices.Clone(f.Topic.SubjectIdentifiers)
	if t, err := s.Topic(f.TopicSI); err != nil {
		return err
	} else if t != nil {
		names = append(names, t.SubjectIdentifiers...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		for a, err := range fragment.PlayedBy(s, name) {
			if err != nil {
				return err
			}
			if slices.Contains(names, mapping.Subject(a)) || stays[a.Key()] {
				continue
			}
			stays[a.Key()] = true
			f.Associations = append(f.Associations, a)
		}
	}
	// A provisional topic has no statements: it exists as long as others mention it.
	f.Deleted = one.Topic.Provisional && len(f.Associations) == 0
	return merge.Apply(s, &f)
}

// sweep deletes those of some blank nodes that no other topic refers to.
func sweep(s merge.State, nodes []fragment.Ref) error {
	among := map[fragment.Ref]bool{}
	for _, node := range nodes {
		among[node] = true
	}
	var led []fragment.Ref
	for _, node := range nodes {
		for a, err := range fragment.PlayedBy(s, node) {
			if err != nil {
				return err
			}
			if !among[mapping.Subject(a)] {
				led = append(led, node)
				break
			}
		}
	}
	stay, err := reached(s, led)
	if err != nil {
		return err
	}
	for _, node := range append(stay, led...) {
		delete(among, node)
	}
	for _, node := range nodes {
		if !among[node] {
			continue
		}
		gone := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{node}}}
		if err := merge.Apply(s, &fragment.Fragment{TopicSI: node, Deleted: true, Topic: gone}); err != nil {
			return err
		}
	}
	return nil
}
