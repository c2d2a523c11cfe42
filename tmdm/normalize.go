package tmdm

import "slices"

// Normalize removes duplicate statements (ISO 13250-2 §6.3 to §6.7: equal names,
// variants, occurrences, associations and roles are merged) and settles all
// references to merged topics. Duplicates with different reifiers join the
// reifiers, which may make further statements equal; it goes on until nothing
// changes. It returns the conflicts: reifiers that could not be joined because
// each reifies something else as well, and reifiers of two statements that
// ceased to be equal. The first statement and its reifier keep each other.
func (tm *TopicMap) Normalize() []*ReifierError {
	n := normalizer{
		tm:      tm,
		seen:    map[statementKey]Reifiable{},
		rolesOf: map[roleKey]*AssociationRole{},
	}
	tm.reifier = tm.Reifier()
	for {
		n.topics()
		n.associations()
		if !n.mergeReifiers() {
			return n.conflicts()
		}
	}
}

type normalizer struct {
	tm       *TopicMap
	reifiers [][2]*Topic // pairs to merge at the end of the pass
	seen     map[statementKey]Reifiable
	rolesOf  map[roleKey]*AssociationRole
	key      []byte
}

func (n *normalizer) topics() {
	tm := n.tm
	tm.topics = slices.DeleteFunc(tm.topics, (*Topic).gone)
	for _, t := range tm.topics {
		for _, x := range t.names {
			x.topic, x.typ, x.scope, x.reifier = t, x.Type(), x.Scope(), x.Reifier()
		}
		t.names = distinct(n, t.names, (*TopicName).key)
		for _, x := range t.names {
			for _, v := range x.variants {
				v.scope, v.reifier = v.Scope(), v.Reifier()
			}
			x.variants = distinct(n, x.variants, (*Variant).key)
		}
		for _, o := range t.occurrences {
			o.topic, o.typ, o.scope, o.reifier = t, o.Type(), o.Scope(), o.Reifier()
		}
		t.occurrences = distinct(n, t.occurrences, (*Occurrence).key)
	}
}

// distinct joins each statement of list to the first with the same key.
func distinct[S Reifiable](n *normalizer, list []S, key func(S) statementKey) []S {
	if len(list) < 2 {
		return list
	}
	clear(n.seen)
	return slices.DeleteFunc(list, func(s S) bool {
		k := key(s)
		first, duplicate := n.seen[k]
		if !duplicate {
			n.seen[k] = s
			return false
		}
		n.join(first, s)
		return true
	})
}

func (n *normalizer) associations() {
	seen := make(map[string]*Association, len(n.tm.associations))
	removed := false
	n.tm.associations = slices.DeleteFunc(n.tm.associations, func(a *Association) bool {
		if a.removed {
			return true
		}
		a.typ, a.scope, a.reifier = a.Type(), a.Scope(), a.Reifier()
		for _, r := range a.roles {
			r.typ, r.player, r.reifier = r.Type(), r.Player(), r.Reifier()
		}
		n.key = a.appendKey(n.key[:0])
		if distinctRoles(n.key) < len(a.roles) {
			a.roles, removed = n.joinRoles(a.roles[:0], a.roles), true
		}
		first, duplicate := seen[string(n.key)]
		if !duplicate {
			seen[string(n.key)] = a
			return false
		}
		n.joinRoles(first.roles, a.roles)
		n.join(first, a)
		a.removed, removed = true, true
		return true
	})
	n.tm.removed = 0
	if !removed {
		return
	}
	for _, t := range n.tm.topics {
		t.roles = slices.DeleteFunc(t.roles, func(r *AssociationRole) bool { return r.removed })
	}
}

// joinRoles joins each role of more to an equal one in roles, or else appends it.
func (n *normalizer) joinRoles(roles, more []*AssociationRole) []*AssociationRole {
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
		r.removed = true
	}
	return roles
}

// join gives the item identifiers, the variants and the reifier of gone to kept.
func (n *normalizer) join(kept, gone Reifiable) {
	n.tm.moveIdentifiers(gone, kept)
	if from, isName := gone.(*TopicName); isName {
		to := kept.(*TopicName)
		for _, v := range from.variants {
			v.name = to
		}
		to.variants = append(to.variants, from.variants...)
		from.variants = nil
	}
	k, g := kept.Reifier(), gone.Reifier()
	gone.reification().reifier = nil // settleReified takes gone from g.reified
	switch {
	case g == nil || g == k:
	case k == nil:
		kept.reification().reifier = g
		g.reified = append(g.reified, kept)
	default:
		n.reifiers = append(n.reifiers, [2]*Topic{k, g})
	}
}

// mergeReifiers merges the reifiers of joined statements and reports whether
// any were. Those that cannot be merged wait for what the next pass makes equal.
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

// settleReified takes the statements that were joined to others from what
// their topics reify.
func (n *normalizer) settleReified() {
	for _, t := range n.tm.topics {
		t.reified = slices.DeleteFunc(t.reified, func(c Reifiable) bool { return c.Reifier() != t })
	}
}

// conflicts returns the errors that are left when no more can be merged. What a
// topic still reifies beside the first statement is no duplicate of that.
func (n *normalizer) conflicts() (errs []*ReifierError) {
	for _, pair := range n.reifiers {
		if err := pair[1].live().reifierConflict(pair[0].live()); err != nil {
			errs = append(errs, err)
		}
	}
	for _, t := range n.tm.topics {
		if len(t.reified) < 2 {
			continue
		}
		for _, c := range t.reified[1:] {
			errs = append(errs, &ReifierError{t, c, t.reified[0]})
			c.reification().reifier = nil
		}
		t.reified = slices.Delete(t.reified, 1, len(t.reified))
	}
	return errs
}
