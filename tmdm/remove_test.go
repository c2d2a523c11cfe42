package tmdm

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A topic that something else refers to stays.
func TestRemoveTopicInUse(t *testing.T) {
	uses := map[string]func(tm *TopicMap, t, other *Topic) Construct{
		"type of a name":  func(tm *TopicMap, t, other *Topic) Construct { return other.AddName("N", t) },
		"theme of a name": func(tm *TopicMap, t, other *Topic) Construct { return other.AddName("N", nil, t) },
		"theme of a variant": func(tm *TopicMap, t, other *Topic) Construct {
			return other.AddName("N", nil).AddVariant("v", XSDString, t)
		},
		"type of an occurrence":   func(tm *TopicMap, t, other *Topic) Construct { return other.AddOccurrence("O", XSDString, t) },
		"theme of an occurrence":  func(tm *TopicMap, t, other *Topic) Construct { return other.AddOccurrence("O", XSDString, other, t) },
		"type of an association":  func(tm *TopicMap, t, other *Topic) Construct { return tm.CreateAssociation(t) },
		"theme of an association": func(tm *TopicMap, t, other *Topic) Construct { return tm.CreateAssociation(other, t) },
		"type of a role":          func(tm *TopicMap, t, other *Topic) Construct { return tm.CreateAssociation(other).AddRole(t, other) },
		"reifier of the map":      func(tm *TopicMap, t, other *Topic) Construct { return reify(tm, t) },
		"reifier of a name":       func(tm *TopicMap, t, other *Topic) Construct { return reify(other.AddName("N", nil), t) },
		"reifier of a variant": func(tm *TopicMap, t, other *Topic) Construct {
			return reify(other.AddName("N", nil).AddVariant("v", XSDString, other), t)
		},
		"reifier of an occurrence": func(tm *TopicMap, t, other *Topic) Construct {
			return reify(other.AddOccurrence("O", XSDString, other), t)
		},
		"reifier of an association": func(tm *TopicMap, t, other *Topic) Construct { return reify(tm.CreateAssociation(other), t) },
		"reifier of a role": func(tm *TopicMap, t, other *Topic) Construct {
			return reify(tm.CreateAssociation(other).AddRole(other, other), t)
		},
	}
	for use, create := range uses {
		for _, merged := range []bool{false, true} {
			t.Run(use, func(t *testing.T) {
				tm := New()
				topic, other := si(tm, "topic"), si(tm, "other")
				user := create(tm, topic, other)
				if merged { // references may be on their way
					topic = si(tm, "new")
					require.NoError(t, topic.Merge(si(tm, "topic")))
				}
				before := canonical(tm)
				var inUse *InUseError
				require.ErrorAs(t, topic.Remove(), &inUse)
				assert.Same(t, topic, inUse.Topic)
				assert.Same(t, user, inUse.User)
				assert.Contains(t, inUse.Error(), "cannot be removed")
				assert.Equal(t, before, canonical(tm))
				checkInvariants(t, tm)
			})
		}
	}
}

func reify(c Reifiable, t *Topic) Construct {
	if err := SetReifier(c, t); err != nil {
		panic(err)
	}
	return c
}

// A topic goes with its statements and its associations, and nothing in the map
// knows of them any more.
func TestRemoveTopic(t *testing.T) {
	tm := New()
	topic, other, r := si(tm, "topic"), si(tm, "other"), si(tm, "r")
	require.NoError(t, topic.AddSubjectLocator(ex+"l"))
	require.NoError(t, AddItemIdentifier(topic, ex+"i"))
	// That it refers to itself is no reason to stay.
	name := topic.AddName("N", topic, topic)
	variant := name.AddVariant("v", XSDString, other)
	occurrence := topic.AddOccurrence("O", XSDString, topic)
	as := tm.CreateAssociation(topic, topic)
	role := as.AddRole(topic, topic)
	as.AddRole(topic, other)
	kept := other.AddType(other)
	require.NoError(t, SetReifier(variant, topic))
	for _, c := range []Reifiable{name, occurrence, as, role} {
		require.NoError(t, SetReifier(c, r))
		require.NoError(t, SetReifier(c, nil))
	}
	require.NoError(t, SetReifier(role, r))
	identify(t, name, variant, occurrence, as, role)

	require.NoError(t, topic.Remove())
	require.NoError(t, topic.Remove(), "once more")
	assert.Nil(t, tm.TopicBySubjectIdentifier(ex+"topic"))
	assert.Nil(t, tm.TopicBySubjectLocator(ex+"l"))
	for _, l := range []Locator{ex + "i", "1", "2", "3", "4", "5"} {
		assert.Nil(t, tm.ConstructByItemIdentifier(l))
	}
	assert.Equal(t, []*Association{kept}, slices.Collect(tm.Associations()))
	assert.Len(t, other.RolesPlayed(), 2, "those of the association that stays")
	assert.Nil(t, r.Reified())
	assert.NotContains(t, slices.Collect(tm.Topics()), topic)
	assert.NotSame(t, topic, si(tm, "topic"), "it is a new topic")
	checkInvariants(t, tm)
}

func TestRemoveMergedTopic(t *testing.T) {
	tm := New()
	a, b := si(tm, "a"), si(tm, "b")
	require.NoError(t, a.Merge(b))
	require.NoError(t, b.Remove())
	assert.Empty(t, slices.Collect(tm.Topics()))
	assert.Nil(t, tm.TopicBySubjectIdentifier(ex+"a"))
	checkInvariants(t, tm)
}

func TestRemoveStatements(t *testing.T) {
	tm := New()
	a, b, r := si(tm, "a"), si(tm, "b"), si(tm, "r")
	before := canonical(tm)
	name := b.AddName("N", a)
	require.NoError(t, a.Merge(b)) // statements find their topic
	require.NoError(t, SetReifier(name.AddVariant("v", XSDString, r), r))
	identify(t, name, name.Variants()[0])
	name.Remove()
	assert.Nil(t, r.Reified())

	occurrence := a.AddOccurrence("O", XSDString, a)
	require.NoError(t, SetReifier(occurrence, r))
	identify(t, occurrence)
	occurrence.Remove()
	assert.Nil(t, r.Reified())

	name = a.AddName("N", a)
	one, two := name.AddVariant("1", XSDString, r), name.AddVariant("2", XSDString, r)
	require.NoError(t, SetReifier(one, r))
	identify(t, one)
	one.Remove()
	assert.Equal(t, []*Variant{two}, name.Variants())
	assert.Nil(t, r.Reified())
	assert.Nil(t, tm.ConstructByItemIdentifier("1"))
	name.Remove()

	as := tm.CreateAssociation(a)
	require.NoError(t, SetReifier(as.AddRole(a, a), r))
	as.AddRole(a, a)
	as.AddRole(a, r)
	identify(t, as, as.Roles()[0])
	as.Remove()
	as.Remove() // once more
	assert.Nil(t, r.Reified())
	assert.Empty(t, a.RolesPlayed())
	assert.Empty(t, slices.Collect(tm.Associations()))
	checkInvariants(t, tm)

	c := New()
	si(c, "a")
	require.NoError(t, si(c, "a").AddSubjectIdentifier(ex+"b"))
	si(c, "r")
	assert.Equal(t, canonical(c), canonical(tm))
	assert.NotEqual(t, before, canonical(tm))
}
