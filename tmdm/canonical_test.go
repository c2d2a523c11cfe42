package tmdm

import (
	"fmt"
	"slices"
	"strings"
)

// canonical writes a map so that two maps with the same content give the same
// text, whatever the order in which they came to be and whichever topic outlived
// a merge. Topics are known by all of their identifiers; it is for maps in which
// every topic has one. A topic appears with its statements, each on a line, and
// equal statements appear as often as they are there.
func canonical(tm *TopicMap) string {
	lines := []string{"map" + itemText(tm)}
	for t := range tm.Topics() {
		id := "topic " + topicText(t)
		lines = append(lines, id)
		for _, n := range t.Names() {
			var variants []string
			for _, v := range n.Variants() {
				variants = append(variants, fmt.Sprintf("(%q %s @%s%s)", v.Value(), v.Datatype(), scopeText(v.Scope()), itemText(v)))
			}
			slices.Sort(variants)
			lines = append(lines, fmt.Sprintf("%s name %q %s @%s%s %s", id, n.Value(), topicText(n.Type()), scopeText(n.Scope()), itemText(n), variants))
		}
		for _, o := range t.Occurrences() {
			lines = append(lines, fmt.Sprintf("%s occurrence %q %s %s @%s%s", id, o.Value(), o.Datatype(), topicText(o.Type()), scopeText(o.Scope()), itemText(o)))
		}
		for _, r := range t.RolesPlayed() {
			lines = append(lines, fmt.Sprintf("%s plays %s in %s", id, topicText(r.Type()), associationText(r.Association())))
		}
	}
	for a := range tm.Associations() {
		lines = append(lines, "association "+associationText(a))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func topicText(t *Topic) string {
	var ids []string
	for _, l := range t.SubjectIdentifiers() {
		ids = append(ids, "si:"+string(l))
	}
	for _, l := range t.SubjectLocators() {
		ids = append(ids, "sl:"+string(l))
	}
	for _, l := range t.ItemIdentifiers() {
		ids = append(ids, "ii:"+string(l))
	}
	slices.Sort(ids)
	return "<" + strings.Join(ids, " ") + ">"
}

func scopeText(s *Scope) string {
	var themes []string
	for _, t := range s.Themes() {
		themes = append(themes, topicText(t))
	}
	slices.Sort(themes)
	return fmt.Sprint(themes)
}

func associationText(a *Association) string {
	var roles []string
	for _, r := range a.Roles() {
		roles = append(roles, fmt.Sprintf("(%s: %s%s)", topicText(r.Type()), topicText(r.Player()), itemText(r)))
	}
	slices.Sort(roles)
	return fmt.Sprintf("%s @%s%s %s", topicText(a.Type()), scopeText(a.Scope()), itemText(a), roles)
}

func itemText(c Reifiable) string {
	ids := slices.Sorted(slices.Values(c.ItemIdentifiers()))
	if c.Reifier() == nil {
		return fmt.Sprintf(" ii%s", ids)
	}
	return fmt.Sprintf(" ii%s reified by %s", ids, topicText(c.Reifier()))
}
