package tmdm_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/tmdm"
)

const ex = "http://example.org/"

// topic returns the topic with a subject identifier of the tests' namespace.
func topic(tm *tmdm.TopicMap, name string) *tmdm.Topic {
	return tm.CreateTopicBySubjectIdentifier(tmdm.Locator(ex + name))
}

// randomMap draws a normalized map: few topics, so that they are instances and
// subtypes of each other in loops, and say much about each other; some are
// merged at the end. It returns the topics as well, merged ones among them.
func randomMap(t *rapid.T) (*tmdm.TopicMap, []*tmdm.Topic) {
	tm := tmdm.New()
	var topics []*tmdm.Topic
	for i := range rapid.IntRange(1, 7).Draw(t, "topics") {
		topics = append(topics, topic(tm, fmt.Sprint(i)))
	}
	one := rapid.SampledFrom(topics)
	themes := rapid.SliceOfN(one, 0, 2)
	value := rapid.SampledFrom([]string{"x", "y", "z"})
	for range rapid.IntRange(0, 25).Draw(t, "statements") {
		about := one.Draw(t, "topic")
		var c tmdm.Reifiable
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0, 1:
			c = about.AddType(one.Draw(t, "class"))
		case 2, 3:
			c = about.AddSupertype(one.Draw(t, "supertype"))
		case 4:
			n := about.AddName(value.Draw(t, "value"), one.Draw(t, "type"), themes.Draw(t, "themes")...)
			c = n.AddVariant(value.Draw(t, "value"), tmdm.XSDString, themes.Draw(t, "themes")...)
		case 5:
			c = about.AddOccurrence(value.Draw(t, "value"), tmdm.XSDString, one.Draw(t, "type"), themes.Draw(t, "themes")...)
		case 6: // much like the relations of §7, and now and then one of them
			psi := rapid.SampledFrom([]tmdm.Locator{tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance,
				tmdm.PSISupertypeSubtype, tmdm.PSISupertype, tmdm.PSISubtype})
			some := func(label string) *tmdm.Topic { return tm.CreateTopicBySubjectIdentifier(psi.Draw(t, label)) }
			a := tm.CreateAssociation(some("type"), themes.Draw(t, "themes")...)
			for range rapid.IntRange(1, 3).Draw(t, "roles") {
				a.AddRole(some("role"), one.Draw(t, "player"))
			}
			c = a
		}
		if rapid.IntRange(0, 5).Draw(t, "reified") == 0 {
			if err := tmdm.SetReifier(c, tm.CreateTopic()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "merges") {
		if err := one.Draw(t, "topic").Merge(one.Draw(t, "other")); err != nil {
			t.Fatal(err)
		}
	}
	if err := tm.Normalize(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tm, topics
}
