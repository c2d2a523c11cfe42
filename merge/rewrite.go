package merge

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// rewriter makes statements of a view of those of its sources: with references
// to merged topics, equal ones united. The first error ends it.
type rewriter struct {
	v       *View
	changed bool // a reference was rewritten
	err     error
}

func (r *rewriter) ref(ref fragment.Ref) fragment.Ref {
	if ref == "" || r.err != nil {
		return ref
	}
	to, err := r.v.resolve(ref)
	if err != nil {
		r.err = err
		return ref
	}
	if to.ref != ref {
		r.changed = true
	}
	return to.ref
}

// refs rewrites a scope.
func (r *rewriter) refs(refs []fragment.Ref) []fragment.Ref {
	for i, ref := range refs {
		if to := r.ref(ref); to != ref {
			out := slices.Clone(refs)
			out[i] = to
			for j := i + 1; j < len(out); j++ {
				out[j] = r.ref(out[j])
			}
			slices.Sort(out)
			return slices.Compact(out)
		}
	}
	return refs
}

// fits reports whether t is as it must be in the view.
func (r *rewriter) fits(t *fragment.Topic) bool {
	t.Mentions(func(ref fragment.Ref) { r.ref(ref) })
	return !r.changed && len(r.v.chosen) == 0 && r.err == nil && !hasEqualStatements(t)
}

// hasEqualStatements reports whether statements of t differ only in their reifiers, which valid sources do not have.
func hasEqualStatements(t *fragment.Topic) bool {
	for i := range t.Names {
		if hasEqual(t.Names[i].Variants, compareVariants) {
			return true
		}
	}
	return hasEqual(t.Names, compareNames) || hasEqual(t.Occurrences, compareOccurrences)
}

// hasEqual reports whether a list in order has equal neighbours.
func hasEqual[T any](list []T, compare func(a, b T) int) bool {
	for i := 1; i < len(list); i++ {
		if compare(list[i-1], list[i]) == 0 {
			return true
		}
	}
	return false
}

// identifiers returns the item identifiers of a statement of a part: those of its document, or the derived claim.
func (r *rewriter) identifiers(part int, given []tmdm.Locator, derived func(sp string) tmdm.Locator) []tmdm.Locator {
	if len(given) == 0 && r.v.parts[part].Claims {
		return []tmdm.Locator{derived(r.v.parts[part].SP)}
	}
	return slices.Clip(given)
}

// names returns the names of s, with their variants apart.
func (r *rewriter) names(s *subject) []ClaimedName {
	var all []ClaimedName
	for _, m := range s.members {
		for i := range m.topic.Names {
			n := &m.topic.Names[i]
			name := ClaimedName{Claimed: Claimed[fragment.Name]{
				Value: fragment.Name{
					Value: n.Value, Type: r.ref(n.Type), Scope: r.refs(n.Scope), Reifier: r.ref(n.Reifier),
					ItemIdentifiers: r.identifiers(m.part, n.ItemIdentifiers, func(sp string) tmdm.Locator {
						return fragment.NameClaim(sp, m.id.TopicSI(), n)
					}),
				},
				By: []int{m.part},
			}}
			for j := range n.Variants {
				v := &n.Variants[j]
				name.Variants = append(name.Variants, Claimed[fragment.Variant]{
					Value: fragment.Variant{
						Value: v.Value, Datatype: v.Datatype, Scope: r.refs(v.Scope), Reifier: r.ref(v.Reifier),
						ItemIdentifiers: r.identifiers(m.part, v.ItemIdentifiers, func(sp string) tmdm.Locator {
							return fragment.VariantClaim(sp, m.id.TopicSI(), n, v)
						}),
					},
					By: []int{m.part},
				})
			}
			all = append(all, name)
		}
	}
	all = unite(all, func(a, b ClaimedName) int {
		return compareNames(a.Value, b.Value)
	}, func(into, from *ClaimedName) {
		join(&into.Value.Reifier, from.Value.Reifier, &into.Value.ItemIdentifiers, from.Value.ItemIdentifiers,
			&into.By, from.By)
		into.Variants = append(into.Variants, from.Variants...)
	})
	for i := range all {
		n := &all[i]
		n.Variants = unite(n.Variants, func(a, b Claimed[fragment.Variant]) int {
			return compareVariants(a.Value, b.Value)
		}, func(into, from *Claimed[fragment.Variant]) {
			join(&into.Value.Reifier, from.Value.Reifier, &into.Value.ItemIdentifiers, from.Value.ItemIdentifiers,
				&into.By, from.By)
		})
		if len(r.v.chosen) > 0 {
			r.choose(&n.Value.Reifier, func() string { return nameKey(s.ref, &n.Value) })
			for j := range n.Variants {
				v := &n.Variants[j].Value
				r.choose(&v.Reifier, func() string { return variantKey(s.ref, &n.Value, v) })
			}
		}
	}
	return all
}

func (r *rewriter) occurrences(s *subject) []Claimed[fragment.Occurrence] {
	var all []Claimed[fragment.Occurrence]
	for _, m := range s.members {
		for i := range m.topic.Occurrences {
			o := &m.topic.Occurrences[i]
			all = append(all, Claimed[fragment.Occurrence]{
				Value: fragment.Occurrence{
					Value: o.Value, Datatype: o.Datatype, Type: r.ref(o.Type), Scope: r.refs(o.Scope), Reifier: r.ref(o.Reifier),
					ItemIdentifiers: r.identifiers(m.part, o.ItemIdentifiers, func(sp string) tmdm.Locator {
						return fragment.OccurrenceClaim(sp, m.id.TopicSI(), o)
					}),
				},
				By: []int{m.part},
			})
		}
	}
	all = unite(all, func(a, b Claimed[fragment.Occurrence]) int {
		return compareOccurrences(a.Value, b.Value)
	}, func(into, from *Claimed[fragment.Occurrence]) {
		join(&into.Value.Reifier, from.Value.Reifier, &into.Value.ItemIdentifiers, from.Value.ItemIdentifiers,
			&into.By, from.By)
	})
	if len(r.v.chosen) > 0 {
		for i := range all {
			o := &all[i].Value
			r.choose(&o.Reifier, func() string { return occurrenceKey(s.ref, o) })
		}
	}
	return all
}

// association returns an association of a part as in the view, without the additions of equal ones; a itself if it is
// unchanged.
func (r *rewriter) association(part int, a *fragment.Association) *fragment.Association {
	before := r.changed
	r.changed = false
	a.Mentions(func(ref fragment.Ref) { r.ref(ref) })
	for i := range a.Roles {
		r.ref(a.Roles[i].Player)
	}
	if hasEqual(a.Roles, compareRoles) {
		r.changed = true // no source should have it
	}
	changed := r.changed
	r.changed = before || changed
	ids := r.identifiers(part, a.ItemIdentifiers, func(sp string) tmdm.Locator { return fragment.AssociationClaim(sp, a) })
	if !changed && len(ids) == len(a.ItemIdentifiers) {
		return a
	}
	out := &fragment.Association{Type: r.ref(a.Type), Scope: r.refs(a.Scope), Reifier: r.ref(a.Reifier),
		ItemIdentifiers: ids}
	for _, role := range a.Roles {
		role.Type, role.Player, role.Reifier = r.ref(role.Type), r.ref(role.Player), r.ref(role.Reifier)
		out.Roles = append(out.Roles, role)
	}
	out.Canonical()
	out.Roles = uniteRoles(out.Roles)
	return out
}

func uniteRoles(roles []fragment.Role) []fragment.Role {
	return unite(roles, compareRoles, func(into, from *fragment.Role) {
		join(&into.Reifier, from.Reifier, &into.ItemIdentifiers, from.ItemIdentifiers, nil, nil)
	})
}

// Statements are compared by the properties that determine equality, in the order of canonical records.

func compareNames(a, b fragment.Name) int {
	return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Type, b.Type), slices.Compare(a.Scope, b.Scope))
}

func compareVariants(a, b fragment.Variant) int {
	return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Datatype, b.Datatype), slices.Compare(a.Scope, b.Scope))
}

func compareOccurrences(a, b fragment.Occurrence) int {
	return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Datatype, b.Datatype), cmp.Compare(a.Type, b.Type),
		slices.Compare(a.Scope, b.Scope))
}

func compareRoles(a, b fragment.Role) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Player, b.Player))
}

// unite sorts a list and merges equal elements into the first one.
func unite[T any](list []T, compare func(a, b T) int, join func(into, from *T)) []T {
	slices.SortStableFunc(list, compare)
	out := list[:0]
	for i := range list {
		if n := len(out); n > 0 && compare(out[n-1], list[i]) == 0 {
			join(&out[n-1], &list[i])
		} else {
			out = append(out, list[i])
		}
	}
	clear(list[len(out):])
	return out
}

// join adds the identifiers and the reifier of a statement to an equal one. It replaces lists instead of changing them,
// because records share them.
func join(reifier *fragment.Ref, otherReifier fragment.Ref, ids *[]tmdm.Locator, otherIDs []tmdm.Locator, by *[]int,
	otherBy []int) {
	*reifier = cmp.Or(*reifier, otherReifier)
	if len(otherIDs) > 0 {
		all := slices.Concat(*ids, otherIDs)
		slices.Sort(all)
		*ids = slices.Compact(all)
	}
	if by != nil {
		all := slices.Concat(*by, otherBy)
		slices.Sort(all)
		*by = slices.Compact(all)
	}
}

// choose replaces the reifier of a statement about which the sources disagree.
func (r *rewriter) choose(reifier *fragment.Ref, key func() string) {
	if *reifier == "" {
		return
	}
	if chosen, ok := r.v.chosen[key()]; ok {
		*reifier = chosen
	}
}

// Keys of statements of the view, for those about which the sources disagree.

func nameKey(topic fragment.Ref, n *fragment.Name) string {
	return string(appendRefs(appendText([]byte("n"), string(topic), n.Value, string(n.Type)), n.Scope))
}

func variantKey(topic fragment.Ref, n *fragment.Name, v *fragment.Variant) string {
	return string(appendRefs(appendText([]byte("v"), nameKey(topic, n), v.Value, v.Datatype), v.Scope))
}

func occurrenceKey(topic fragment.Ref, o *fragment.Occurrence) string {
	return string(appendRefs(appendText([]byte("o"), string(topic), o.Value, o.Datatype, string(o.Type)), o.Scope))
}

func associationKey(a *fragment.Association) string {
	key := a.Key()
	return "a" + string(key[:])
}

func roleKey(a *fragment.Association, role *fragment.Role) string {
	return string(appendText([]byte("r"), associationKey(a), string(role.Type), string(role.Player)))
}

func appendText(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

func appendRefs(b []byte, refs []fragment.Ref) []byte {
	for _, ref := range refs {
		b = appendText(b, string(ref))
	}
	return b
}
