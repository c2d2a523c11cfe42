package tmdm

import (
	"slices"

	"github.com/tmshare/tmshare/internal/titles"
)

// ValidIn reports whether statements in the scope s are valid in a context, which is a set of topics: whether it
// contains every theme (ISO 13250-2 §5.3.3, Scope). In the unconstrained scope they are valid everywhere. Unlike
// [TopicMap.Scope], it never changes the map.
func (s *Scope) ValidIn(context ...*Topic) bool {
	for _, theme := range s.Themes() {
		if !slices.ContainsFunc(context, func(t *Topic) bool { return t.live() == theme }) {
			return false
		}
	}
	return true
}

// DisplayName returns the name of t for a reader of some languages, the best first; nil if t has no name that can be a
// title (see package titles). Its time is proportional to the number of names.
func (t *Topic) DisplayName(languages ...string) (best *TopicName) {
	c := titles.Chooser[Locator]{Languages: languages}
	for _, n := range t.Names() {
		c.Name(Locator(n.Value()))
		for _, l := range n.Type().SubjectIdentifiers() {
			c.Type(l)
		}
		for _, theme := range n.Scope().Themes() {
			c.Theme(theme.SubjectIdentifiers()...)
		}
		if c.End() {
			best = n
		}
	}
	return best
}

// CountLanguages counts the names of t.
func (t *Topic) CountLanguages(add titles.Count) {
	for _, n := range t.Names() {
		var themes []Locator
		for _, theme := range n.Scope().Themes() {
			themes = append(themes, theme.SubjectIdentifiers()...)
		}
		for _, typ := range n.Type().SubjectIdentifiers() {
			titles.CountName(add, typ, themes)
		}
	}
}

// SortKey returns the string by which to sort n: the value of the first variant with the topic for sorting in its scope
// (ISO 13250-2 §7.4, Sort names), or else of the name itself.
func (n *TopicName) SortKey() string {
	sort := n.TopicMap().TopicBySubjectIdentifier(PSISort)
	for _, v := range n.Variants() {
		if slices.Contains(v.Scope().Themes(), sort) {
			return v.Value()
		}
	}
	return n.Value()
}
