package merge_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
)

// TestWildHistories is TestHistories with edits that no editor offers and that
// documents can nevertheless hold.
func TestWildHistories(t *testing.T) {
	entries := 0
	for n := range uint64(histories() / 2) {
		seed := testenv.Seed() + n
		t.Run(fmt.Sprint(seed), func(t *testing.T) { entries += runHistory(t, seed, &publisher{t: t}, wildEdit) })
		if t.Failed() {
			return
		}
	}
	require.Greater(t, entries, histories()*5, "the histories published too little to mean anything")
}

// wildEdit makes one wild edit, or none if the map does not allow it, and describes it.
func wildEdit(rng *rand.Rand, tm *tmdm.TopicMap) string {
	topics := slices.Collect(tm.Topics())
	t := topics[rng.IntN(len(topics))]
	edits := []func(*rand.Rand, *tmdm.Topic) string{
		reifyPart, identifyStatement, addLocatorTopic, nameLocatorTopic, addToItself, takeVocabulary, reifyMap,
	}
	edit := edits[rng.IntN(len(edits))](rng, t)
	tm.Normalize(context.Background())
	return edit
}

// parts returns everything that t reaches and that a topic can reify.
func parts(t *tmdm.Topic) (list []tmdm.Reifiable) {
	for _, n := range t.Names() {
		list = append(list, n)
		for _, v := range n.Variants() {
			list = append(list, v)
		}
	}
	for _, o := range t.Occurrences() {
		list = append(list, o)
	}
	for _, r := range t.RolesPlayed() {
		list = append(list, r, r.Association())
	}
	return list
}

func part(rng *rand.Rand, t *tmdm.Topic) tmdm.Reifiable {
	if list := parts(t); len(list) > 0 {
		return list[rng.IntN(len(list))]
	}
	return nil
}

// reifyPart makes t the reifier of a statement of another topic, or of its own.
func reifyPart(rng *rand.Rand, t *tmdm.Topic) string {
	topics := slices.Collect(t.TopicMap().Topics())
	c := part(rng, topics[rng.IntN(len(topics))])
	if c == nil || t.Reified() != nil || tmdm.SetReifier(c, t) != nil {
		return ""
	}
	return fmt.Sprintf("%s reifies %s", tmdm.Describe(t), tmdm.Describe(c))
}

// identifyStatement gives a statement an item identifier, or takes it away.
func identifyStatement(rng *rand.Rand, t *tmdm.Topic) string {
	c := part(rng, t)
	if c == nil {
		return ""
	}
	if ids := c.ItemIdentifiers(); len(ids) > 0 {
		l := ids[0]
		tmdm.RemoveItemIdentifier(c, l)
		return "statement loses " + string(l)
	}
	l := tmdm.Locator(fmt.Sprintf("%s#i%d", sp, rng.IntN(20)))
	if tmdm.AddItemIdentifier(c, l) != nil {
		return ""
	}
	return fmt.Sprintf("%s gets %s", tmdm.Describe(c), l)
}

func wildLocator(rng *rand.Rand) tmdm.Locator {
	return tmdm.Locator(fmt.Sprintf("http://documents.example.org/%d", rng.IntN(6)))
}

// addLocatorTopic adds a topic with subject locators only.
func addLocatorTopic(rng *rand.Rand, t *tmdm.Topic) string {
	locator := t.TopicMap().CreateTopicBySubjectLocator(wildLocator(rng))
	_ = locator.AddSubjectLocator(wildLocator(rng))
	t.AddOccurrence("about a document", tmdm.XSDString, locator)
	return "uses " + tmdm.Describe(locator)
}

// nameLocatorTopic gives a topic with a subject locator a subject identifier,
// or takes one away that it can do without.
func nameLocatorTopic(rng *rand.Rand, t *tmdm.Topic) string {
	located := t.TopicMap().TopicBySubjectLocator(wildLocator(rng))
	if located == nil {
		return ""
	}
	if sis := located.SubjectIdentifiers(); len(sis) > 0 {
		si := sis[0]
		located.RemoveSubjectIdentifier(si)
		return tmdm.Describe(located) + " loses " + string(si)
	}
	if located.AddSubjectIdentifier(tmdm.Locator(fmt.Sprintf("http://named.example.org/%d", rng.IntN(10)))) != nil {
		return ""
	}
	return "gets an identifier: " + tmdm.Describe(located)
}

// addToItself makes a topic its own type, theme and player.
func addToItself(_ *rand.Rand, t *tmdm.Topic) string {
	t.AddType(t)
	t.AddName("of itself", t, t)
	a := t.TopicMap().CreateAssociation(t, t)
	a.AddRole(t, t)
	return "relates to itself: " + tmdm.Describe(t)
}

// takeVocabulary makes a topic one of those that the model refers to.
func takeVocabulary(rng *rand.Rand, t *tmdm.Topic) string {
	if rng.IntN(4) > 0 {
		return "" // few maps survive many of these
	}
	psis := []tmdm.Locator{tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance, tmdm.PSIDefaultNameType}
	psi := psis[rng.IntN(len(psis))]
	if t.Merge(t.TopicMap().CreateTopicBySubjectIdentifier(psi)) != nil {
		return ""
	}
	return string(psi) + " is " + tmdm.Describe(t)
}

// reifyMap lets t reify the map, which is not published.
func reifyMap(_ *rand.Rand, t *tmdm.Topic) string {
	tm := t.TopicMap()
	if t.Reified() != nil || tmdm.SetReifier(tm, t) != nil {
		return ""
	}
	return tmdm.Describe(t) + " reifies the map"
}
