package fragment

import (
	"bytes"
	"iter"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/tmdm"
)

// Exchange returns the change that replaces records of a published state: targets and removed by topics and added.
// Records equal on both sides do not change. A target gets a closing entry if no topic has its TopicSI.
//
// The caller ensures that no remaining record refers to a TopicSI that ceases, and that new records refer to existing
// topics. removed must have all associations of the targets, except those in which a target is only the class.
func Exchange(prior Published, targets, topics []*Topic, removed, added []*Association) (*Change, error) {
	r := emptyReplacement(prior, map[Ref]*Topic{})
	for _, t := range targets {
		r.targets[t.TopicSI()] = t
	}
	for _, t := range topics {
		r.put(t)
	}
	for _, a := range removed {
		r.removed[a.Key()] = a
	}
	for _, a := range added {
		r.added[a.Key()] = a
	}
	return r.compare()
}

func emptyReplacement(prior Published, targets map[Ref]*Topic) replacement {
	return replacement{
		prior: prior, targets: targets, topics: map[Ref]*Topic{},
		byIdentifier: map[tmdm.Locator]*Topic{}, byLocator: map[tmdm.Locator]*Topic{},
		removed: map[AssociationKey]*Association{}, added: map[AssociationKey]*Association{},
		before: newReferences(), after: newReferences(),
	}
}

// compare returns the rows to write and the entries to publish.
func (r *replacement) compare() (*Change, error) {
	c := &Change{}
	changed := r.compareAssociations(c)
	refs := map[Ref]bool{}
	for _, some := range []iter.Seq[Ref]{maps.Keys(r.targets), maps.Keys(r.topics), maps.Keys(changed)} {
		for ref := range some {
			refs[ref] = true
		}
	}
	inOrder := slices.Sorted(maps.Keys(refs))
	if err := expect(r.prior, inOrder, nil); err != nil {
		return nil, err
	}
	for _, ref := range inOrder {
		old, err := r.prior.Topic(ref)
		if err != nil {
			return nil, err
		}
		if old != nil && old.TopicSI() != ref {
			old = nil
		}
		new := r.topics[ref]
		if new == nil && r.targets[ref] == nil {
			new = old
		}
		if err := c.topic(old, new, changed[ref], r); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// compareAssociations adds the associations to write. It returns the topics whose fragments change.
func (r *replacement) compareAssociations(c *Change) (changed map[Ref]bool) {
	changed = map[Ref]bool{}
	touch := func(a *Association) {
		for _, p := range a.Players() {
			if a.Part(p) != AsType {
				changed[p] = true
			}
		}
	}
	for _, key := range sortedKeys(r.removed) {
		if r.added[key] == nil {
			c.DeleteAssociations = append(c.DeleteAssociations, r.removed[key])
			touch(r.removed[key])
		}
	}
	for _, key := range sortedKeys(r.added) {
		old, new := r.removed[key], r.added[key]
		if old != nil && bytes.Equal(MarshalAssociation(old), MarshalAssociation(new)) {
			continue
		}
		c.PutAssociations = append(c.PutAssociations, new)
		if old == nil {
			touch(new)
		} else if !SameAssociation(old, new) {
			touch(old)
			touch(new)
		}
	}
	return changed
}

func sortedKeys(m map[AssociationKey]*Association) []AssociationKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b AssociationKey) int { return bytes.Compare(a[:], b[:]) })
}
