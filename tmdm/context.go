package tmdm

import "slices"

// ValidIn reports whether statements in the scope s are valid in a context, the
// topics that apply there: whether every theme is one of them (ISO 13250-2
// §5.3.3, Scope). In the unconstrained scope they are valid everywhere. Other
// than [TopicMap.Scope], it writes nothing to the map.
func (s *Scope) ValidIn(context ...*Topic) bool { return s.foreign(settled(context)) == 0 }

// foreign counts the themes of s that are missing in the context.
func (s *Scope) foreign(context []*Topic) (n int) {
	for _, theme := range s.Themes() {
		if !slices.Contains(context, theme) {
			n++
		}
	}
	return n
}

// settled returns what the topics have become by merges.
func settled(topics []*Topic) []*Topic {
	list := make([]*Topic, len(topics))
	for i, t := range topics {
		list[i] = t.live()
	}
	return list
}

// DisplayName returns the name of t that suits a context best, such as a
// language, or nil where t has no name: one that is valid there, or else one
// that lacks few themes; among those, one of the default name type (ISO 13250-2
// §7.5); among those, the one whose scope has most of the context; among those,
// the first. It goes through the names of t.
func (t *Topic) DisplayName(context ...*Topic) *TopicName {
	context = settled(context)
	usual := t.TopicMap().TopicBySubjectIdentifier(PSIDefaultNameType)
	var best *TopicName
	var least [3]int // of what speaks against a name, the weightiest first
	for _, n := range t.Names() {
		foreign := n.Scope().foreign(context)
		against := [3]int{foreign, 1, foreign - len(n.Scope().Themes())}
		if n.Type() == usual {
			against[1] = 0
		}
		if best == nil || slices.Compare(against[:], least[:]) < 0 {
			best, least = n, against
		}
	}
	return best
}

// SortKey returns the string by which to sort n among others: the first variant
// with the topic for sorting in its scope (ISO 13250-2 §7.4, Sort names), or
// else the name itself.
func (n *TopicName) SortKey() string {
	sort := n.TopicMap().TopicBySubjectIdentifier(PSISort)
	for _, v := range n.Variants() {
		if slices.Contains(v.Scope().Themes(), sort) {
			return v.Value()
		}
	}
	return n.Value()
}
