package fragment

import (
	"slices"
)

// A change of an association changes all topics that take part in it. Most changes of a hub, such as the scheme of a
// thesaurus, are of this kind: each added or removed concept changes it, and its fragment has all its concepts. The
// fragment of the concept has the changed association, too. So the entry of the hub is marked as covered, and a
// follower need not fetch it.

// Cover marks the entries that other entries of the change cover: their topics existed before and have changed only in
// associations, each of which has an entry that is not covered. prior is the state before, and stored returns its
// association with the key of another; nil if it has none.
func (c *Change) Cover(prior Source, stored func(*Association) (*Association, error)) error {
	changed, err := c.changedAssociations(stored)
	if err != nil || len(changed) == 0 {
		return err
	}
	v := covering{prior: prior, entries: make(map[Ref]*Entry, len(c.Entries)), soft: map[Ref]bool{}}
	for i := range c.Entries {
		v.entries[c.Entries[i].TopicSI] = &c.Entries[i]
	}
	if err := v.findSoft(c, changed); err != nil {
		return err
	}
	for _, a := range changed {
		if err := v.carry(a); err != nil {
			return err
		}
	}
	for ref := range v.soft {
		v.entries[ref].Covered = true
	}
	return nil
}

// changedAssociations returns the associations that were removed, and those that were added. One whose reifier has
// changed is both.
func (c *Change) changedAssociations(stored func(*Association) (*Association,
	error)) (changed []*Association, err error) {
	put := make(map[AssociationKey]*Association, len(c.PutAssociations))
	for _, a := range c.PutAssociations {
		put[a.Key()] = a
	}
	before := map[AssociationKey]bool{}
	note := func(old *Association) {
		key := old.Key()
		before[key] = true
		if next := put[key]; next != nil && SameAssociation(old, next) {
			delete(put, key) // its item identifiers may be others
			return
		}
		changed = append(changed, old)
	}
	for _, a := range c.DeleteAssociations {
		note(a)
	}
	for _, a := range c.PutAssociations {
		key := a.Key()
		if !before[key] {
			old, err := stored(a)
			if err != nil {
				return nil, err
			}
			if old != nil {
				note(old)
			}
		}
		if put[key] != nil {
			changed = append(changed, a)
		}
	}
	return changed, nil
}

// covering finds out which entries are covered.
type covering struct {
	prior   Source
	entries map[Ref]*Entry
	soft    map[Ref]bool // topics whose entries may be covered; those needed are removed
}

// findSoft finds the topics that have changed only in associations.
func (v *covering) findSoft(c *Change, changed []*Association) error {
	next := make(map[Ref]*Topic, len(c.PutTopics))
	for _, t := range c.PutTopics {
		next[t.TopicSI()] = t
	}
	for _, a := range changed {
		for _, ref := range a.Players() {
			e := v.entries[ref]
			if e == nil || e.Deleted || e.Topic != ref || a.Part(ref) == AsType || v.soft[ref] {
				continue
			}
			was, err := v.prior.Topic(ref)
			if err != nil {
				return err
			}
			if was == nil || was.TopicSI() != ref || next[ref] != nil && !SameTopic(was, next[ref]) {
				continue
			}
			v.soft[ref] = true
		}
	}
	return nil
}

// carry sees to it that an entry which is not covered has a changed association.
func (v *covering) carry(a *Association) error {
	needed := false
	var able []Ref
	for _, ref := range a.Players() {
		needed = needed || v.soft[ref] && a.Part(ref) != AsType
		if v.entries[ref] == nil || playsType(a, ref) {
			continue
		}
		if !v.soft[ref] {
			return nil
		}
		able = append(able, ref)
	}
	switch {
	case !needed:
	case len(able) == 0: // no entry can carry it: all that need it stay
		for _, ref := range a.Players() {
			if a.Part(ref) != AsType {
				delete(v.soft, ref)
			}
		}
	default:
		carrier, err := v.lightest(able)
		if err != nil {
			return err
		}
		delete(v.soft, carrier)
	}
	return nil
}

// playsType reports whether a topic is only the type in an unscoped type-instance association, reified or not. The
// topic's fragment need not have such an association.
func playsType(a *Association, ref Ref) bool {
	if a.Reifier == "" && !slices.ContainsFunc(a.Roles, func(r Role) bool { return r.Reifier != "" }) {
		return a.Part(ref) == AsType
	}
	bare := Association{Type: a.Type, Scope: a.Scope, Roles: slices.Clone(a.Roles)}
	for i := range bare.Roles {
		bare.Roles[i].Reifier = ""
	}
	return bare.Part(ref) == AsType
}

// lightest returns the topic that takes part in the fewest associations, of several the one with the least TopicSI. It
// counts no further than the fewest so far.
func (v *covering) lightest(able []Ref) (carrier Ref, err error) {
	least := -1
	for _, ref := range able {
		n := 0
		for _, part := range Parts {
			for _, err := range v.prior.AssociationsOf(ref, part) {
				if err != nil {
					return "", err
				}
				if n++; least >= 0 && n >= least {
					break
				}
			}
		}
		if least < 0 || n < least {
			carrier, least = ref, n
		}
	}
	return carrier, nil
}
