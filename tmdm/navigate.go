package tmdm

import (
	"iter"
	"slices"
)

// Constructs iterates over every item of the map: the map itself, each topic
// followed by its names, their variants and its occurrences, then each
// association followed by its roles, all in order of creation. The map must not
// be changed meanwhile.
func (tm *TopicMap) Constructs() iter.Seq[Construct] {
	return func(yield func(Construct) bool) {
		if !yield(tm) {
			return
		}
		for t := range tm.Topics() {
			if !yield(t) || !t.statements(yield) {
				return
			}
		}
		for a := range tm.Associations() {
			if !yield(a) {
				return
			}
			for _, r := range a.Roles() {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// statements yields the names, variants and occurrences of t, and reports whether to continue.
func (t *Topic) statements(yield func(Construct) bool) bool {
	for _, n := range t.Names() {
		if !yield(n) {
			return false
		}
		for _, v := range n.Variants() {
			if !yield(v) {
				return false
			}
		}
	}
	for _, o := range t.Occurrences() {
		if !yield(o) {
			return false
		}
	}
	return true
}

// Parent returns the item that contains c, the [parent] property of ISO 13250-2 §5.3 to §5.8: the map of a topic or an
// association, the topic of a name or an occurrence, the name of a variant, the association of a role. For a map it
// returns nil.
func Parent(c Construct) Construct {
	switch c := c.(type) {
	case *Topic, *Association:
		return c.TopicMap()
	case *TopicName:
		return c.Topic()
	case *Variant:
		return c.Name()
	case *Occurrence:
		return c.Topic()
	case *AssociationRole:
		return c.Association()
	}
	return nil
}

// AssociationsByType iterates over the associations of the type, in order of creation. It reads all associations of the
// map.
func (tm *TopicMap) AssociationsByType(typ *Topic) iter.Seq[*Association] {
	return ofType(tm.Associations(), typ)
}

// NamesByType iterates over the names of t that have the type.
func (t *Topic) NamesByType(typ *Topic) iter.Seq[*TopicName] {
	return ofType(slices.Values(t.Names()), typ)
}

// OccurrencesByType iterates over the occurrences of t that have the type.
func (t *Topic) OccurrencesByType(typ *Topic) iter.Seq[*Occurrence] {
	return ofType(slices.Values(t.Occurrences()), typ)
}

// RolesPlayedByType iterates over the roles of type role that t plays in associations of type association. A nil type
// matches any. Its time is proportional to the number of roles that t plays.
func (t *Topic) RolesPlayedByType(role, association *Topic) iter.Seq[*AssociationRole] {
	return func(yield func(*AssociationRole) bool) {
		role, association := role.live(), association.live()
		for _, r := range t.RolesPlayed() {
			if (role == nil || r.Type() == role) && (association == nil || r.Association().Type() == association) && !yield(r) {
				return
			}
		}
	}
}

// RolesByType iterates over the roles of a that have the type.
func (a *Association) RolesByType(typ *Topic) iter.Seq[*AssociationRole] {
	return ofType(slices.Values(a.Roles()), typ)
}

// Others iterates over the other roles of the association. Their players are the topics related to the player of r.
func (r *AssociationRole) Others() iter.Seq[*AssociationRole] {
	return func(yield func(*AssociationRole) bool) {
		for _, other := range r.Association().Roles() {
			if other != r && !yield(other) {
				return
			}
		}
	}
}

func ofType[T Typed](items iter.Seq[T], typ *Topic) iter.Seq[T] {
	return func(yield func(T) bool) {
		typ := typ.live()
		for item := range items {
			if item.Type() == typ && !yield(item) {
				return
			}
		}
	}
}
