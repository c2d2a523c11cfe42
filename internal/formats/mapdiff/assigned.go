package mapdiff

import (
	"regexp"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// ForgetAssigned removes the subject identifiers that servers have assigned to topics without one from two maps with
// the same base: from a map and a copy of it, or copies of different servers. They are made of ids, which have no
// meaning here, and become ids again. It keeps an identifier if the other map has another one of the same server for
// the topic, because it distinguishes topics there.
func ForgetAssigned(a, b *tmdm.TopicMap, base tmdm.Locator) {
	inA, inB := assignedIn(a), assignedIn(b)
	ofA, ofB := nameless(a, base), nameless(b, base)
	forget(a, base, inA, inB, ofB)
	forget(b, base, inB, inA, ofA)
}

// defaultPrefix is the shape of the source locator prefixes of servers of this project.
var defaultPrefix = regexp.MustCompile(`^https?://[^?#]+/topicmaps/[\w%-]+/(?:[0-9a-f]{12}/)?$`)

// assigned is a subject identifier that a server may have assigned.
type assigned struct {
	topic    *tmdm.Topic
	si       tmdm.Locator
	sp, name string
}

// assignedIn returns those of a map, by the prefixes of servers.
func assignedIn(tm *tmdm.TopicMap) map[string][]assigned {
	all := map[string][]assigned{}
	for t := range tm.Topics() {
		for _, si := range t.SubjectIdentifiers() {
			if sp, name, ok := split(si); ok {
				all[sp] = append(all[sp], assigned{t, si, sp, name})
			}
		}
	}
	return all
}

// split returns the prefix and the name of which [fragment.NameTopics], or a reader of topics without identifiers, may
// have made a subject identifier.
func split(si tmdm.Locator) (sp, name string, ok bool) {
	if name, ok = strings.CutPrefix(string(si), fragment.UnidentifiedPrefix); ok {
		return fragment.UnidentifiedPrefix, name, true
	}
	i := strings.LastIndex(string(si), "topic/")
	if i < 0 {
		return "", "", false
	}
	sp, name = string(si[:i]), string(si[i+len("topic/"):])
	return sp, name, name != "" && fragment.ValidatePrefix(sp) == nil
}

// nameless returns the names that servers would assign to the topics without subject identifiers.
func nameless(tm *tmdm.TopicMap, base tmdm.Locator) map[string]bool {
	names := map[string]bool{}
	for t := range tm.Topics() {
		if len(t.SubjectIdentifiers()) > 0 {
			continue
		}
		for _, l := range t.ItemIdentifiers() {
			names[short(base, l)] = true // #id
		}
		for _, l := range t.SubjectLocators() {
			names["#"+fragment.AssignedName(l)] = true
		}
	}
	return names
}

func forget(tm *tmdm.TopicMap, base tmdm.Locator, own, other map[string][]assigned, nameless map[string]bool) {
	for sp, all := range own {
		if other[sp] != nil {
			continue
		}
		known := sp == fragment.UnidentifiedPrefix || defaultPrefix.MatchString(sp)
		for _, one := range all {
			id := base + "#" + tmdm.Locator(one.name)
			// With another prefix, it is recognised only if the other map has the id in its place.
			if !known && (!nameless["#"+one.name] || tm.ConstructByItemIdentifier(id) != nil) {
				continue
			}
			one.topic.RemoveSubjectIdentifier(one.si)
			_ = tmdm.AddItemIdentifier(one.topic, id) // another has it: this one is known by its statements
		}
	}
}
