package tmdm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Topics of another map, topics that were removed and topics that are missing
// take part in nothing: errors where a method has one, panics elsewhere, and in
// no case a change.
func TestTopicsThatCannotTakePart(t *testing.T) {
	tm, other := New(), New()
	here, foreign, removed := si(tm, "here"), si(other, "foreign"), si(tm, "removed")
	require.NoError(t, removed.Remove())
	a := tm.CreateAssociation(here)
	name := here.AddName("name", nil)
	before, beforeOther := canonical(tm), canonical(other)

	for err, topic := range map[error]*Topic{ErrOtherMap: foreign, ErrRemoved: removed, ErrNoTopic: nil} {
		for what, f := range map[string]func(){
			"association type": func() { tm.CreateAssociation(topic) },
			"theme":            func() { tm.CreateAssociation(here, topic) },
			"themes":           func() { here.AddName("x", here, here, topic) },
			"occurrence type":  func() { here.AddOccurrence("x", XSDString, topic) },
			"role type":        func() { a.AddRole(topic, here) },
			"player":           func() { a.AddRole(here, topic) },
			"new type":         func() { a.SetType(topic) },
			"new scope":        func() { name.SetScope(topic) },
		} {
			assert.PanicsWithValue(t, err, f, "%s: %s", what, err)
		}
		assert.ErrorIs(t, here.Merge(topic), err)
		if topic != nil {
			assert.PanicsWithValue(t, err, func() { name.SetType(topic) }, "a nil type is the default one")
			assert.ErrorIs(t, SetReifier(name, topic), err)
		}
	}
	assert.ErrorIs(t, removed.AddSubjectIdentifier("http://example.org/x"), ErrRemoved)
	assert.ErrorIs(t, removed.AddSubjectLocator("http://example.org/x"), ErrRemoved)
	assert.ErrorIs(t, AddItemIdentifier(removed, "http://example.org/x"), ErrRemoved)
	assert.PanicsWithValue(t, ErrRemoved, func() { removed.AddName("lost", nil) })
	assert.PanicsWithValue(t, ErrRemoved, func() { removed.AddType(here) })
	assert.PanicsWithValue(t, ErrRemoved, func() { removed.AddSupertype(here) })
	assert.ErrorIs(t, AddItemIdentifier((*Topic)(nil), "http://example.org/x"), ErrNoTopic)
	assert.Nil(t, tm.TopicByIdentifier("http://example.org/x"))

	assert.Equal(t, before, canonical(tm))
	assert.Equal(t, beforeOther, canonical(other))
}

func TestParseLocator(t *testing.T) {
	l, err := ParseLocator("HTTP://example.org/%7Ea%20b")
	require.NoError(t, err)
	assert.Equal(t, Locator("http://example.org/~a b"), l)
	for _, bad := range []string{"", "relative", "#x", "http://example.org/\x00"} {
		_, err := ParseLocator(bad)
		assert.Error(t, err, bad)
	}
}
