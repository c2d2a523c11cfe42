package fragment

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/tmdm"
)

// replacement is the difference between the states before and after a document is posted: the statements about the
// targets are removed, those of the document added.
type replacement struct {
	prior   Published
	targets map[Ref]*Topic
	topics  map[Ref]*Topic // that the document describes or adds, by TopicSI

	byIdentifier map[tmdm.Locator]*Topic // the same by every subject identifier
	byLocator    map[tmdm.Locator]*Topic

	removed, added map[AssociationKey]*Association
	before, after  references // in removed and in added statements
}

// references are the references of statements, with their titles.
type references struct {
	mentions map[Ref]int
	reifiers map[Ref]bool
	players  map[Ref]bool
	ids      map[tmdm.Locator]bool
}

func newReferences() references {
	return references{map[Ref]int{}, map[Ref]bool{}, map[Ref]bool{}, map[tmdm.Locator]bool{}}
}

// replace makes the change, now that all references of the document are resolved.
func (p *post) replace(m *Map) (*Change, error) {
	r := emptyReplacement(p.prior, p.targets)
	if err := r.takeAway(); err != nil {
		return nil, err
	}
	if err := r.putDown(p, m); err != nil {
		return nil, err
	}
	if err := r.checkCeased(); err != nil {
		return nil, err
	}
	if err := r.checkReifiers(); err != nil {
		return nil, err
	}
	return r.compare()
}

// takeAway finds the statements about the targets. The type-instance associations in which they are the class belong to
// the instances.
func (r *replacement) takeAway() error {
	for ref, t := range r.targets {
		r.before.addTopic(t)
		for _, part := range []Part{AsInstance, AsPlayer} {
			for a, err := range r.prior.AssociationsOf(ref, part) {
				if err != nil {
					return err
				}
				if key := a.Key(); r.removed[key] == nil {
					r.removed[key] = a
					r.before.addAssociation(a)
				}
			}
		}
	}
	return nil
}

// putDown makes the records of the document.
func (r *replacement) putDown(p *post, m *Map) error {
	for t := range p.described {
		topic := m.topic(t)
		topic.statements(r.before.keepIDs)
		r.after.addTopic(topic)
		r.put(topic)
	}
	for a := range p.tm.Associations() {
		record := m.association(a)
		key := record.Key()
		if _, instance, ok := record.TypeInstance(); ok && r.topics[instance] == nil {
			there, err := r.isTyped(instance, key)
			if err != nil {
				return err
			}
			if there {
				continue // it is the instance's
			}
		}
		record.statements(r.before.keepIDs)
		r.after.addAssociation(record)
		r.added[key] = record
	}
	for t := range p.tm.Topics() {
		ref := m.ref(t)
		if !p.described[t] && !p.known[t] && (r.after.mentions[ref] > 0 || r.after.players[ref]) {
			r.put(m.topic(t))
		}
	}
	return nil
}

func (r *replacement) put(t *Topic) {
	r.topics[t.TopicSI()] = t
	for _, si := range t.SubjectIdentifiers {
		r.byIdentifier[si] = t
	}
	for _, sl := range t.SubjectLocators {
		r.byLocator[sl] = t
	}
}

// isTyped reports whether a published topic has the type-instance association.
func (r *replacement) isTyped(instance Ref, key AssociationKey) (bool, error) {
	for a, err := range r.prior.AssociationsOf(instance, AsInstance) {
		if err != nil {
			return false, err
		}
		if a.Key() == key {
			return true, nil
		}
	}
	return false, nil
}

// checkCeased returns an error if a record refers to a TopicSI that ceases.
func (r *replacement) checkCeased() error {
	for _, ref := range slices.Sorted(maps.Keys(r.targets)) {
		if r.topics[ref] != nil {
			continue
		}
		n, err := r.prior.Mentions(ref)
		if err != nil {
			return err
		}
		if n > r.before.mentions[ref] {
			return inUse(untouched{r.prior, r}, ref)
		}
		for a, err := range r.prior.AssociationsOf(ref, AsType) {
			if err != nil {
				return err
			}
			if r.removed[a.Key()] == nil {
				return inUse(untouched{r.prior, r}, ref)
			}
		}
	}
	return nil
}

// checkReifiers returns an error if a topic would reify a statement of the document and something else (ISO 13250-2
// §5.3.4, Reification). The store has no index of reifiers: if the mentions are inconclusive, it reads the whole state.
func (r *replacement) checkReifiers() error {
	open := map[Ref]*InUseError{} // those for which the mentions are inconclusive
	for ref := range r.after.reifiers {
		n, err := r.prior.Mentions(ref)
		if err != nil {
			return err
		}
		if !r.before.reifiers[ref] && n > r.before.mentions[ref] {
			open[ref] = &InUseError{Topic: ref}
		}
	}
	if len(open) == 0 {
		return nil
	}
	rest := untouched{r.prior, r}
	for t, err := range rest.Topics() {
		if err != nil {
			return err
		}
		t.statements(func(reifier Ref, _ *[]tmdm.Locator) {
			if e := open[reifier]; e != nil {
				e.Users = append(e.Users, fmt.Sprintf("statements of %q", t.Title()))
			}
		})
	}
	for a, err := range rest.Associations() {
		if err != nil {
			return err
		}
		a.statements(func(reifier Ref, _ *[]tmdm.Locator) {
			if e := open[reifier]; e != nil {
				e.Users = append(e.Users, describePlayers(a))
			}
		})
	}
	for _, ref := range slices.Sorted(maps.Keys(open)) {
		if len(open[ref].Users) > 0 {
			return open[ref]
		}
	}
	return nil
}

// untouched is the published state without the removed records.
type untouched struct {
	Source
	r *replacement
}

func (u untouched) Topics() iter.Seq2[*Topic, error] {
	return Select(u.Source.Topics(), func(t *Topic) bool { return u.r.targets[t.TopicSI()] == nil })
}

func (u untouched) Associations() iter.Seq2[*Association, error] {
	return Select(u.Source.Associations(), func(a *Association) bool { return u.r.removed[a.Key()] == nil })
}

// Topic returns the topic that has the subject identifier afterwards, or nil.
func (r *replacement) Topic(si Ref) (*Topic, error) {
	if t := r.byIdentifier[si]; t != nil {
		return t, nil
	}
	return r.unlessTarget(r.prior.Topic(si))
}

// TopicBySubjectLocator returns the topic that has the subject locator afterwards, or nil.
func (r *replacement) TopicBySubjectLocator(sl tmdm.Locator) (*Topic, error) {
	if t := r.byLocator[sl]; t != nil {
		return t, nil
	}
	return r.unlessTarget(r.prior.TopicBySubjectLocator(sl))
}

func (r *replacement) unlessTarget(t *Topic, err error) (*Topic, error) {
	if t == nil || err != nil || r.targets[t.TopicSI()] != nil {
		return nil, err
	}
	return t, nil
}

func (s *references) addTopic(t *Topic) {
	t.Mentions(s.mention)
	t.statements(s.note)
}

func (s *references) addAssociation(a *Association) {
	a.Mentions(s.mention)
	a.statements(s.note)
	for i := range a.Roles {
		s.players[a.Roles[i].Player] = true
	}
}

func (s *references) mention(ref Ref) { s.mentions[ref]++ }

func (s *references) note(reifier Ref, ids *[]tmdm.Locator) {
	if reifier != "" {
		s.reifiers[reifier] = true
	}
	for _, l := range *ids {
		s.ids[l] = true
	}
}

// keepIDs takes from a statement the item identifiers that are not in s. The list may be the map's own.
func (s *references) keepIDs(_ Ref, ids *[]tmdm.Locator) {
	var kept []tmdm.Locator
	for _, l := range *ids {
		if s.ids[l] {
			kept = append(kept, l)
		}
	}
	*ids = kept
}

// statements calls yield with the reifier and the item identifiers of each statement of t.
func (t *Topic) statements(yield func(reifier Ref, ids *[]tmdm.Locator)) {
	for i := range t.Names {
		n := &t.Names[i]
		yield(n.Reifier, &n.ItemIdentifiers)
		for j := range n.Variants {
			yield(n.Variants[j].Reifier, &n.Variants[j].ItemIdentifiers)
		}
	}
	for i := range t.Occurrences {
		yield(t.Occurrences[i].Reifier, &t.Occurrences[i].ItemIdentifiers)
	}
}

// statements calls yield with the reifier and the item identifiers of a and of each of its roles.
func (a *Association) statements(yield func(reifier Ref, ids *[]tmdm.Locator)) {
	yield(a.Reifier, &a.ItemIdentifiers)
	for i := range a.Roles {
		yield(a.Roles[i].Reifier, &a.Roles[i].ItemIdentifiers)
	}
}
