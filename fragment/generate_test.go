package fragment_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// Generators of records. The locators are few, so that sets overlap, and some
// begin others, so that it shows where one ends.

var genLocator = rapid.SampledFrom([]tmdm.Locator{"h:", "h:a", "h:ab", "h:b", "http://東京/", "http://long.example.org/with/a/path#and-a-fragment"})

// genLocators draws a set: in order, nil where it is empty.
var genLocators = rapid.Custom(func(t *rapid.T) []tmdm.Locator {
	set := rapid.SliceOfNDistinct(genLocator, 0, 4, rapid.ID).Draw(t, "set")
	if len(set) == 0 {
		return nil
	}
	return sorted(set)
})

func sorted(set []tmdm.Locator) []tmdm.Locator {
	one := fragment.Association{Scope: set}
	one.Canonical()
	return one.Scope
}

var genReifier = rapid.OneOf(rapid.Just(tmdm.Locator("")), genLocator)

var genText = rapid.OneOf(rapid.SampledFrom([]string{"", "a", "ab", "\x00", "a\nb", "é"}), rapid.String())

// genIDs draws item identifiers, which say nothing.
var genIDs = genLocators

var genTopic = rapid.Custom(func(t *rapid.T) *fragment.Topic {
	topic := &fragment.Topic{Provisional: rapid.Bool().Draw(t, "provisional")}
	topic.SubjectIdentifiers = rapid.SliceOfNDistinct(genLocator, 1, 4, rapid.ID).Draw(t, "identifiers")
	topic.SubjectLocators = genLocators.Draw(t, "locators")
	for i := range rapid.IntRange(0, 3).Draw(t, "names") {
		n := fragment.Name{
			Value: fmt.Sprint(i, genText.Draw(t, "value")), Type: genLocator.Draw(t, "type"), Scope: genLocators.Draw(t, "scope"),
			Reifier: genReifier.Draw(t, "reifier"), ItemIdentifiers: genIDs.Draw(t, "ids"),
		}
		for j := range rapid.IntRange(0, 3).Draw(t, "variants") {
			n.Variants = append(n.Variants, fragment.Variant{
				Value: fmt.Sprint(j, genText.Draw(t, "variant")), Datatype: genText.Draw(t, "datatype"), Scope: genLocators.Draw(t, "themes"),
				Reifier: genReifier.Draw(t, "reifier"), ItemIdentifiers: genIDs.Draw(t, "ids"),
			})
		}
		topic.Names = append(topic.Names, n)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "occurrences") {
		topic.Occurrences = append(topic.Occurrences, fragment.Occurrence{
			Value: fmt.Sprint(i, genText.Draw(t, "value")), Datatype: genText.Draw(t, "datatype"), Type: genLocator.Draw(t, "type"),
			Scope: genLocators.Draw(t, "scope"), Reifier: genReifier.Draw(t, "reifier"), ItemIdentifiers: genIDs.Draw(t, "ids"),
		})
	}
	topic.Canonical()
	return topic
})

var genAssociation = rapid.Custom(func(t *rapid.T) *fragment.Association {
	a := &fragment.Association{
		Type: genLocator.Draw(t, "type"), Scope: genLocators.Draw(t, "scope"),
		Reifier: genReifier.Draw(t, "reifier"), ItemIdentifiers: genIDs.Draw(t, "ids"),
	}
	type role struct{ typ, player tmdm.Locator }
	roles := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) role {
		return role{genLocator.Draw(t, "role"), genLocator.Draw(t, "player")}
	}), 1, 4, rapid.ID).Draw(t, "roles")
	for _, r := range roles {
		a.Roles = append(a.Roles, fragment.Role{
			Type: r.typ, Player: r.player, Reifier: genReifier.Draw(t, "reifier"), ItemIdentifiers: genIDs.Draw(t, "ids"),
		})
	}
	a.Canonical()
	return a
})
