package tmdm

import (
	"bytes"
	"context"
	"hash/maphash"
	"slices"
)

// Normalize removes duplicate statements (ISO 13250-2 §6.3 to §6.7: equal names, variants, occurrences, associations
// and roles are merged) and settles all references to merged topics. It merges the reifiers of duplicates, which may
// make further statements equal, and repeats this until nothing changes. Its error is a [Conflicts]: reifiers that
// cannot be merged because each reifies something else as well, and reifiers of two statements that ceased to be equal.
// The first statement and its reifier keep each other.
//
// The number of passes can equal the number of statements in a contrived map. If ctx ends between two passes, the error
// is its cause, and the map still has duplicates.
func (tm *TopicMap) Normalize(ctx context.Context) error {
	n := normalizer{tm: tm}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if tm.merged {
			tm.ids.settle()
			tm.sls.settle()
			tm.details.settle()
			tm.merged = false
		}
		n.topics()
		n.associations()
		if !n.mergeReifiers() {
			n.pack()
			if errs := n.conflicts(); len(errs) > 0 {
				return errs
			}
			return nil
		}
	}
}

type normalizer struct {
	tm       *TopicMap
	reifiers [][2]*Topic // pairs to merge at the end of the pass
	seen     map[statementKey]Reifiable
	rolesOf  map[roleKey]*AssociationRole
	joined   map[*AssociationRole]bool // merged into others in this pass; they keep their type and player
}

func (n *normalizer) topics() {
	tm := n.tm
	tm.topics = slices.DeleteFunc(tm.topics, (*Topic).gone)
	for _, t := range tm.topics {
		for _, x := range t.names {
			x.topic = t
			x.settle()
		}
		t.names = distinct(n, t.names, (*TopicName).key)
		for _, x := range t.names {
			for _, v := range x.Variants() {
				v.settle()
			}
			x.setVariants(distinct(n, x.Variants(), (*Variant).key))
		}
		for _, o := range t.occurrences {
			o.topic = t
			o.settle()
		}
		t.occurrences = distinct(n, t.occurrences, (*Occurrence).key)
	}
}

// fewStatements is the number of statements up to which they are compared pairwise instead of looked up.
const fewStatements = 8

// distinct joins each statement of list to the first with the same key.
func distinct[S Reifiable](n *normalizer, list []S, key func(S) statementKey) []S {
	if len(list) < 2 {
		return list
	}
	var first func(S) (S, bool)
	kept := list[:0]
	if len(list) <= fewStatements {
		first = func(s S) (S, bool) {
			k := key(s)
			for _, other := range kept {
				if key(other) == k {
					return other, true
				}
			}
			return s, false
		}
	} else {
		if n.seen == nil {
			n.seen = map[statementKey]Reifiable{}
		}
		clear(n.seen)
		first = func(s S) (S, bool) {
			k := key(s)
			if other, found := n.seen[k]; found {
				return other.(S), true
			}
			n.seen[k] = s
			return s, false
		}
	}
	for _, s := range list {
		if other, found := first(s); found {
			n.join(other, s)
		} else {
			kept = append(kept, s)
		}
	}
	clear(list[len(kept):])
	return kept
}

func (n *normalizer) associations() {
	tm := n.tm
	for _, a := range tm.associations {
		if a.removed() {
			continue
		}
		a.settle()
		for _, r := range a.roles {
			r.settle()
		}
	}
	seen := newAssociationSet(len(tm.associations))
	removed := false
	n.joined = nil
	tm.associations = slices.DeleteFunc(tm.associations, func(a *Association) bool {
		if a.removed() {
			return true
		}
		first, roles := seen.add(a)
		if roles < len(a.roles) {
			a.roles, removed = n.joinRoles(a.roles[:0], a.roles), true
		}
		if first == a {
			return false
		}
		n.joinRoles(first.roles, a.roles)
		n.join(first, a)
		a.markRemoved()
		removed = true
		return true
	})
	tm.removed = 0
	if !removed {
		return
	}
	for _, t := range tm.topics {
		t.roles = slices.DeleteFunc(t.roles, func(r *AssociationRole) bool { return r.removed() || n.joined[r] })
	}
}

// associationSet holds unequal associations. It is a hash table with linear
// probing, made for a number of associations that is known.
type associationSet struct {
	seed       maphash.Seed
	hashes     []uint64
	members    []*Association
	key, other []byte
}

func newAssociationSet(n int) *associationSet {
	size := 8
	for size < 2*n {
		size *= 2
	}
	return &associationSet{seed: maphash.MakeSeed(), hashes: make([]uint64, size), members: make([]*Association, size)}
}

// add returns the first association that equals a, or a itself, and its number of unequal roles.
func (s *associationSet) add(a *Association) (first *Association, roles int) {
	s.key = a.appendKey(s.key[:0])
	hash := maphash.Bytes(s.seed, s.key)
	i := hash & uint64(len(s.members)-1)
	for ; s.members[i] != nil; i = (i + 1) & uint64(len(s.members)-1) {
		if s.hashes[i] != hash {
			continue
		}
		s.other = s.members[i].appendKey(s.other[:0])
		if bytes.Equal(s.key, s.other) {
			return s.members[i], distinctRoles(s.key)
		}
	}
	s.hashes[i], s.members[i] = hash, a
	return a, distinctRoles(s.key)
}

// joinRoles merges each role of more into an equal one in roles, or else appends it.
func (n *normalizer) joinRoles(roles, more []*AssociationRole) []*AssociationRole {
	if n.rolesOf == nil {
		n.rolesOf = map[roleKey]*AssociationRole{}
	}
	clear(n.rolesOf)
	for _, r := range roles {
		n.rolesOf[r.key()] = r
	}
	for _, r := range more {
		first, duplicate := n.rolesOf[r.key()]
		if !duplicate {
			n.rolesOf[r.key()] = r
			roles = append(roles, r)
			continue
		}
		n.join(first, r)
		if r.assoc == first.assoc { // otherwise the whole association is removed
			if n.joined == nil {
				n.joined = map[*AssociationRole]bool{}
			}
			n.joined[r] = true
		}
	}
	return roles
}

// join moves the item identifiers, the variants and the reifier of gone to kept.
func (n *normalizer) join(kept, gone Reifiable) {
	n.tm.moveIdentifiers(gone, kept)
	if from, isName := gone.(*TopicName); isName && len(from.Variants()) > 0 {
		to := kept.(*TopicName)
		for _, v := range from.Variants() {
			v.name = to
		}
		to.setVariants(append(to.Variants(), from.Variants()...))
		from.setVariants(nil)
	}
	k, g := kept.Reifier(), gone.Reifier()
	gone.setReifier(nil) // settleReified removes gone from the items that g reifies
	switch {
	case g == nil || g == k:
	case k == nil:
		kept.setReifier(g)
		g.setReified(append(g.reifiedItems(), kept))
	default:
		n.reifiers = append(n.reifiers, [2]*Topic{k, g})
	}
}

// mergeReifiers merges the reifiers of merged statements and reports whether it merged any. Those that cannot be merged
// wait for the next pass.
func (n *normalizer) mergeReifiers() (merged bool) {
	n.settleReified()
	waiting := n.reifiers[:0]
	for _, pair := range n.reifiers {
		k, g := pair[0].live(), pair[1].live()
		switch {
		case k == g:
		case k.reifierConflict(g) != nil:
			waiting = append(waiting, pair)
		default:
			k.absorb(g)
			merged = true
		}
	}
	n.reifiers = waiting
	return merged
}

// settleReified removes merged statements from the items that their topics reify.
func (n *normalizer) settleReified() {
	for _, t := range n.tm.topics {
		if list := t.reifiedItems(); len(list) > 0 {
			t.setReified(slices.DeleteFunc(list, func(c Reifiable) bool { return c.Reifier() != t }))
		}
	}
}

// conflicts returns the remaining errors when no more can be merged. Other items that a topic still reifies are no
// duplicates of the first one.
func (n *normalizer) conflicts() (errs Conflicts) {
	for _, pair := range n.reifiers {
		if err := pair[1].live().reifierConflict(pair[0].live()); err != nil {
			errs = append(errs, err)
		}
	}
	for _, t := range n.tm.topics {
		list := t.reifiedItems()
		if len(list) < 2 {
			continue
		}
		for _, c := range list[1:] {
			errs = append(errs, &ReifierError{t, c, list[0]})
			c.setReifier(nil)
		}
		t.setReified(list[:1:1])
	}
	return errs
}

// pack gives back the memory that lists were given to grow.
func (n *normalizer) pack() {
	var names packer[*TopicName]
	var occurrences packer[*Occurrence]
	var roles packer[*AssociationRole]
	for _, t := range n.tm.topics {
		t.names = names.pack(t.names)
		t.occurrences = occurrences.pack(t.occurrences)
		t.roles = roles.pack(t.roles)
	}
	n.tm.topics = slices.Clip(n.tm.topics)
	n.tm.associations = slices.Clip(n.tm.associations)
}
