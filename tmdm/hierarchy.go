package tmdm

import "iter"

// The two relations of ISO 13250-2 §7 between topics and types are ordinary associations with certain types and types
// of roles. The methods here read those in the unconstrained scope that have exactly the two roles, with or without a
// reifier.

// relations iterates over the associations of the given type in which t plays a
// role of the type own, with the topic that plays the role of the type other.
func (t *Topic) relations(association, own, other Locator) iter.Seq2[*Association, *Topic] {
	return func(yield func(*Association, *Topic) bool) {
		find := t.TopicMap().TopicBySubjectIdentifier
		typ, ownType, otherType := find(association), find(own), find(other)
		if typ == nil || ownType == nil || otherType == nil {
			return
		}
		for _, r := range t.RolesPlayed() {
			a := r.Association()
			roles := a.Roles()
			if r.Type() != ownType || a.Type() != typ || len(roles) != 2 || len(a.Scope().Themes()) > 0 {
				continue
			}
			opposite := roles[0]
			if opposite == r {
				opposite = roles[1]
			}
			if opposite.Type() == otherType && !yield(a, opposite.Player()) {
				return
			}
		}
	}
}

func (t *Topic) related(association, own, other Locator) iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, topic := range t.relations(association, own, other) {
			if !yield(topic) {
				return
			}
		}
	}
}

func (t *Topic) classes() iter.Seq[*Topic] { return t.related(PSITypeInstance, PSIInstance, PSIType) }

// Instances iterates over the instances of t, without those of its subtypes (ISO 13250-2 §7.2, The type-instance
// relationship). Its time is proportional to the number of roles that t plays.
func (t *Topic) Instances() iter.Seq[*Topic] {
	return t.related(PSITypeInstance, PSIType, PSIInstance)
}

// Supertypes iterates over the supertypes of t, without theirs (ISO 13250-2 §7.3, The supertype-subtype relationship).
// Its time is proportional to the number of roles that t plays.
func (t *Topic) Supertypes() iter.Seq[*Topic] {
	return t.related(PSISupertypeSubtype, PSISubtype, PSISupertype)
}

// Subtypes iterates over the subtypes of t, without theirs. Its time is proportional to the number of roles that t
// plays.
func (t *Topic) Subtypes() iter.Seq[*Topic] {
	return t.related(PSISupertypeSubtype, PSISupertype, PSISubtype)
}

// AllSupertypes iterates over the supertypes of t, theirs, and so on (ISO 13250-2 §7.3: the relation is transitive),
// the nearest first and each once. Cycles are allowed; t itself is never included. Its time is proportional to the
// number of roles that t and the results play.
func (t *Topic) AllSupertypes() iter.Seq[*Topic] { return t.beyond((*Topic).Supertypes) }

// AllSubtypes iterates over the subtypes of t and theirs, and so on, like
// AllSupertypes.
func (t *Topic) AllSubtypes() iter.Seq[*Topic] { return t.beyond((*Topic).Subtypes) }

// AllTypes iterates over the classes of t and their supertypes, and so on, the nearest first and each once. Its time is
// proportional to the number of roles that t and the results play.
func (t *Topic) AllTypes() iter.Seq[*Topic] { return reachable(t.classes(), (*Topic).Supertypes) }

// AllInstances iterates over the instances of t and of all of its subtypes
// (ISO 13250-2 §7.3: they are instances of t as well), each once, those of t
// first. It takes time in the number of roles that t and its subtypes play.
func (t *Topic) AllInstances() iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		seen := map[*Topic]bool{}
		for class := range reachable(only(t.live()), (*Topic).Subtypes) {
			for instance := range class.Instances() {
				if seen[instance] {
					continue
				}
				seen[instance] = true
				if !yield(instance) {
					return
				}
			}
		}
	}
}

// IsInstanceOf reports whether t is an instance of class or of one of its
// subtypes: whether class is among AllTypes.
func (t *Topic) IsInstanceOf(class *Topic) bool {
	class = class.live()
	for c := range t.AllTypes() {
		if c == class {
			return true
		}
	}
	return false
}

// AddSupertype makes t a subtype of super (ISO 13250-2 §7.3).
func (t *Topic) AddSupertype(super *Topic) *Association {
	return t.relate(super, PSISupertypeSubtype, PSISubtype, PSISupertype)
}

// relate adds the association that [Topic.relations] finds. Nothing is changed
// before it is clear that both topics can take part.
func (t *Topic) relate(to *Topic, association, own, other Locator) *Association {
	tm := t.TopicMap()
	t, to = tm.mustUse(t), tm.mustUse(to)
	psi := tm.CreateTopicBySubjectIdentifier
	a := tm.CreateAssociation(psi(association))
	a.AddRole(psi(other), to)
	a.AddRole(psi(own), t)
	return a
}

// RemoveType removes the associations that AddType adds, including reified ones. t remains an instance of class through
// subtypes of class. Its time is proportional to the number of roles that both play.
func (t *Topic) RemoveType(class *Topic) {
	t.removeRelations(class, PSITypeInstance, PSIInstance, PSIType)
}

// RemoveSupertype takes back that t is a subtype of super, like RemoveType.
func (t *Topic) RemoveSupertype(super *Topic) {
	t.removeRelations(super, PSISupertypeSubtype, PSISubtype, PSISupertype)
}

func (t *Topic) removeRelations(to *Topic, association, own, other Locator) {
	var gone []*Association
	for a, topic := range t.relations(association, own, other) {
		if topic == to.live() {
			gone = append(gone, a)
		}
	}
	for _, a := range gone {
		a.Remove()
	}
}

// beyond iterates over the topics that at least one step from t reaches, without t.
func (t *Topic) beyond(step func(*Topic) iter.Seq[*Topic]) iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		self := t.live()
		for topic := range reachable(only(self), step) {
			if topic != self && !yield(topic) {
				return
			}
		}
	}
}

// reachable iterates over the topics of from and those that steps from there reach, each once, by the number of steps.
func reachable(from iter.Seq[*Topic], step func(*Topic) iter.Seq[*Topic]) iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		seen := map[*Topic]bool{}
		var found []*Topic
		collect := func(topics iter.Seq[*Topic]) {
			for topic := range topics {
				if !seen[topic] {
					seen[topic] = true
					found = append(found, topic)
				}
			}
		}
		collect(from)
		for i := 0; i < len(found); i++ {
			if !yield(found[i]) {
				return
			}
			collect(step(found[i]))
		}
	}
}

func only(t *Topic) iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) { yield(t) }
}
