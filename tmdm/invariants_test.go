package tmdm

import (
	"context"
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkInvariants checks what holds for every map at any time: the look-ups and
// the items agree, whatever an accessor returns is part of the map, and both
// ends of each relation know of each other.
func checkInvariants(t require.TestingT, tm *TopicMap) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	items := itemsOf(tm)
	live := map[Construct]bool{}
	for _, c := range items {
		require.False(t, live[c], "%s is there twice", Describe(c))
		live[c] = true
	}
	checkIdentifiers(t, tm, items)
	for _, c := range items {
		require.Same(t, tm, c.TopicMap())
		if c, ok := c.(Typed); ok {
			require.True(t, live[c.Type()], "type of %s", Describe(c))
		}
		if c, ok := c.(Scoped); ok {
			checkScope(t, c.Scope(), live)
		}
		if c, ok := c.(Reifiable); ok && c.Reifier() != nil {
			require.True(t, live[c.Reifier()], "reifier of %s", Describe(c))
			require.True(t, slices.Contains(c.Reifier().reifiedItems(), c), "%s and its reifier", Describe(c))
		}
		switch c := c.(type) {
		case *Topic:
			checkTopic(t, c, live)
		case *TopicName:
			for _, v := range c.Variants() {
				require.Same(t, c, v.Name())
				require.True(t, v.Scope().Contains(c.Scope()))
			}
		case *Association:
			for _, r := range c.Roles() {
				require.Same(t, c, r.Association())
				require.True(t, live[r.Player()])
				require.True(t, slices.Contains(r.Player().RolesPlayed(), r), "%s and its player", Describe(r))
			}
		}
	}
}

// itemsOf returns the items that can be reached from the map, itself first.
func itemsOf(tm *TopicMap) []Construct {
	items := []Construct{tm}
	for t := range tm.Topics() {
		items = append(items, t)
		for _, n := range t.Names() {
			items = append(items, n)
			for _, v := range n.Variants() {
				items = append(items, v)
			}
		}
		for _, o := range t.Occurrences() {
			items = append(items, o)
		}
	}
	for a := range tm.Associations() {
		items = append(items, a)
		for _, r := range a.Roles() {
			items = append(items, r)
		}
	}
	return items
}

func checkIdentifiers(t require.TestingT, tm *TopicMap, items []Construct) {
	sis, sls, iids := 0, 0, 0
	for _, c := range items {
		iids += len(c.ItemIdentifiers())
		for _, l := range c.ItemIdentifiers() {
			require.Same(t, c, tm.ConstructByItemIdentifier(l), "item identifier %s", l)
		}
		topic, ok := c.(*Topic)
		if !ok {
			continue
		}
		sis += len(topic.SubjectIdentifiers())
		for _, l := range topic.SubjectIdentifiers() {
			require.Same(t, topic, tm.TopicBySubjectIdentifier(l), "subject identifier %s", l)
			if other, ok := tm.ConstructByItemIdentifier(l).(*Topic); ok {
				require.Same(t, topic, other, "%s must have been merged", l)
			}
		}
		sls += len(topic.SubjectLocators())
		for _, l := range topic.SubjectLocators() {
			require.Same(t, topic, tm.TopicBySubjectLocator(l), "subject locator %s", l)
		}
	}
	require.Equal(t, []int{sis, sls, iids}, []int{count(tm.ids, asSubject), tm.sls.live, count(tm.ids, asItem) + len(tm.items)}, "the look-ups know more than the items")
}

// count returns how many locators stand in the property as.
func count(x identifiers, as role) (n int) {
	for s, tag := range x.tags {
		if tag >= usedSlot && x.chunks[x.slots[s]/chunkSize].roles[x.slots[s]%chunkSize]&as != 0 {
			n++
		}
	}
	return n
}

func checkScope(t require.TestingT, s *Scope, live map[Construct]bool) {
	require.Same(t, s, s.tm.Scope(s.Themes()...), "one scope for each set of themes")
	for i, theme := range s.Themes() {
		require.True(t, live[theme], "theme %s", Describe(theme))
		require.True(t, i == 0 || s.Themes()[i-1].serial < theme.serial, "themes in order of creation")
	}
}

func checkTopic(t require.TestingT, topic *Topic, live map[Construct]bool) {
	for _, n := range topic.Names() {
		require.Same(t, topic, n.Topic())
	}
	for _, o := range topic.Occurrences() {
		require.Same(t, topic, o.Topic())
	}
	for i, r := range topic.RolesPlayed() {
		require.True(t, live[r], "role played by %s", Describe(topic))
		require.Same(t, topic, r.Player())
		require.False(t, slices.Contains(topic.RolesPlayed()[:i], r), "%s twice", Describe(r))
	}
	for _, c := range topic.reifiedItems() {
		require.True(t, live[c], "reified by %s", Describe(topic))
		require.Same(t, topic, c.Reifier())
	}
	require.Equal(t, len(topic.reifiedItems()) > 0, topic.Reified() != nil)
}

// checkNormal checks the further invariants of Normalize: no duplicates, reification one to one, and every reference
// settled, so that readers change nothing.
func checkNormal(t require.TestingT, tm *TopicMap) {
	checkInvariants(t, tm)
	require.False(t, slices.ContainsFunc(tm.topics, (*Topic).gone))
	items := itemsOf(tm)
	for i, c := range items {
		r, ok := c.(Reifiable)
		if !ok {
			require.LessOrEqual(t, len(c.(*Topic).reifiedItems()), 1)
			continue
		}
		if r.Reifier() != nil {
			require.Same(t, r, r.Reifier().Reified())
		}
		for _, other := range items[:i] {
			if other, ok := other.(Reifiable); ok {
				require.False(t, equalStatements(r, other), "duplicates: %s, %s", Describe(r), Describe(other))
			}
		}
		require.False(t, slices.ContainsFunc(referencesOf(r), (*Topic).gone), "references of %s", Describe(r))
	}
	for _, x := range []identifiers{tm.ids, tm.sls} {
		for _, c := range x.chunks {
			require.False(t, slices.ContainsFunc(c.topics[:], func(t *Topic) bool { return t != nil && t.gone() }), "the look-ups know merged topics")
		}
	}
	before := canonical(tm)
	require.NoError(t, tm.Normalize(context.Background()), "conflicts of a normal map")
	assert.Equal(t, before, canonical(tm), "Normalize is idempotent")
}

// referencesOf returns the topics to which c refers, as it has them.
func referencesOf(c Reifiable) (topics []*Topic) {
	switch c := c.(type) {
	case *TopicName:
		topics = append([]*Topic{c.kind.typ, c.topic}, c.kind.scope.themes...)
		topics = append(topics, reifierOf(c.kind.own)...)
	case *Variant:
		topics = slices.Concat(c.kind.scope.themes, reifierOf(c.kind.own))
	case *Occurrence:
		topics = append([]*Topic{c.kind.typ, c.topic}, c.kind.scope.themes...)
		topics = append(topics, reifierOf(c.kind.own)...)
	case *Association:
		topics = append([]*Topic{c.kind.typ}, c.kind.scope.themes...)
		topics = append(topics, reifierOf(c.kind.own)...)
	case *AssociationRole:
		topics = append([]*Topic{c.typ, c.player}, reifierOf(c.details())...)
	}
	return topics
}

func reifierOf(d *details) []*Topic {
	if d == nil || d.reifier == nil {
		return nil
	}
	return []*Topic{d.reifier}
}
