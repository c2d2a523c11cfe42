package tmdm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

const ex = "http://example.org/"

// si returns the topic with a subject identifier of the tests' namespace.
func si(tm *TopicMap, name string) *Topic {
	return tm.CreateTopicBySubjectIdentifier(Locator(ex + name))
}

// requireIdentityError requires that err names these three and that the map
// was not changed by the operation that failed.
func requireIdentityError(t *testing.T, tm *TopicMap, before string, err error, construct, existing Construct, loc Locator) {
	t.Helper()
	var identity *IdentityError
	require.ErrorAs(t, err, &identity)
	assert.Same(t, existing, identity.Existing)
	if construct == nil {
		assert.Nil(t, identity.Construct)
		assert.Contains(t, identity.Error(), "a new topic cannot have")
	} else {
		assert.Same(t, construct, identity.Construct)
	}
	assert.Equal(t, loc, identity.Locator)
	assert.Contains(t, identity.Error(), string(loc))
	assert.Equal(t, before, canonical(tm))
	checkInvariants(t, tm)
}

func TestSubjectIdentifierOfAnotherTopic(t *testing.T) {
	tm := New()
	a, b := si(tm, "a"), si(tm, "b")
	before := canonical(tm)
	requireIdentityError(t, tm, before, b.AddSubjectIdentifier(ex+"a"), b, a, ex+"a")
	require.NoError(t, a.AddSubjectIdentifier(ex+"a"), "it has that one already")
	assert.Equal(t, before, canonical(tm))
	require.NoError(t, a.AddSubjectIdentifier(ex+"a2"))
	assert.Equal(t, []Locator{ex + "a", ex + "a2"}, a.SubjectIdentifiers())
	assert.Same(t, a, tm.TopicBySubjectIdentifier(ex+"a2"))
}

func TestSubjectLocatorOfAnotherTopic(t *testing.T) {
	tm := New()
	a, b := tm.CreateTopicBySubjectLocator(ex+"a"), si(tm, "b")
	before := canonical(tm)
	requireIdentityError(t, tm, before, b.AddSubjectLocator(ex+"a"), b, a, ex+"a")
	require.NoError(t, a.AddSubjectLocator(ex+"a"))
	assert.Equal(t, before, canonical(tm))
	require.NoError(t, a.AddSubjectLocator(ex+"b"), "a subject locator is no subject identifier")
	assert.Same(t, a, tm.TopicBySubjectLocator(ex+"b"))
	assert.Same(t, b, tm.TopicBySubjectIdentifier(ex+"b"))
	checkInvariants(t, tm)
}

// Topics are equal too where a subject identifier of one is an item identifier
// of the other; within one topic it is no matter.
func TestSubjectIdentifierMeetsItemIdentifier(t *testing.T) {
	tm := New()
	a, b := si(tm, "a"), si(tm, "b")
	require.NoError(t, AddItemIdentifier(a, ex+"i"))
	before := canonical(tm)
	requireIdentityError(t, tm, before, b.AddSubjectIdentifier(ex+"i"), b, a, ex+"i")
	requireIdentityError(t, tm, before, AddItemIdentifier(b, ex+"a"), b, a, ex+"a")
	require.NoError(t, a.AddSubjectIdentifier(ex+"i"))
	require.NoError(t, AddItemIdentifier(a, ex+"a"))
	checkInvariants(t, tm)
}

// The item identifier of a statement may be the subject identifier of a topic:
// that is how XTM 1.0 reifies.
func TestItemIdentifierOfAStatement(t *testing.T) {
	tm := New()
	a, b := si(tm, "a"), si(tm, "b")
	name, other := a.AddName("A", nil), b.AddName("B", nil)
	require.NoError(t, AddItemIdentifier(name, ex+"b"))
	require.NoError(t, a.AddSubjectIdentifier(ex+"n"))
	require.NoError(t, AddItemIdentifier(name, ex+"n"))
	require.NoError(t, AddItemIdentifier(name, ex+"n"), "it has that one already")
	assert.Equal(t, []Locator{ex + "b", ex + "n"}, name.ItemIdentifiers())
	assert.Same(t, name, tm.ConstructByItemIdentifier(ex+"n"))

	before := canonical(tm)
	for _, c := range []Construct{other, b, tm, a} {
		requireIdentityError(t, tm, before, AddItemIdentifier(c, ex+"n"), c, name, ex+"n")
	}
	RemoveItemIdentifier(other, ex+"n")
	assert.Equal(t, before, canonical(tm), "another item's identifier")
	RemoveItemIdentifier(name, ex+"n")
	assert.Nil(t, tm.ConstructByItemIdentifier(ex+"n"))
	require.NoError(t, AddItemIdentifier(other, ex+"n"))
	checkInvariants(t, tm)
}

func TestTopicMapHasItemIdentifiers(t *testing.T) {
	tm := New()
	require.NoError(t, AddItemIdentifier(tm, ex+"map"))
	assert.Equal(t, []Locator{ex + "map"}, tm.ItemIdentifiers())
	assert.Same(t, tm, tm.ConstructByItemIdentifier(ex+"map"))
}

func TestCreateTopicBySubjectIdentifier(t *testing.T) {
	tm := New()
	a := tm.CreateTopicBySubjectIdentifier(ex + "a")
	assert.Same(t, a, tm.CreateTopicBySubjectIdentifier(ex+"a"))

	b, err := tm.CreateTopicByItemIdentifier(ex + "b")
	require.NoError(t, err)
	assert.Same(t, b, tm.CreateTopicBySubjectIdentifier(ex+"b"), "a topic with it as item identifier is the same")
	assert.Equal(t, []Locator{ex + "b"}, b.SubjectIdentifiers())

	name := a.AddName("A", nil)
	require.NoError(t, AddItemIdentifier(name, ex+"n"))
	n := tm.CreateTopicBySubjectIdentifier(ex + "n")
	assert.NotSame(t, a, n)
	assert.Same(t, name, tm.ConstructByItemIdentifier(ex+"n"))
	checkInvariants(t, tm)
}

func TestCreateTopicBySubjectLocator(t *testing.T) {
	tm := New()
	a, b := si(tm, "a"), tm.CreateTopicBySubjectLocator(ex+"a")
	assert.NotSame(t, a, b)
	assert.Same(t, b, tm.CreateTopicBySubjectLocator(ex+"a"))
	checkInvariants(t, tm)
}

func TestCreateTopicByItemIdentifier(t *testing.T) {
	tm := New()
	a := si(tm, "a")
	found, err := tm.CreateTopicByItemIdentifier(ex + "a")
	require.NoError(t, err)
	assert.Same(t, a, found, "a topic with it as subject identifier is the same")
	assert.Equal(t, []Locator{ex + "a"}, a.ItemIdentifiers())
	found, err = tm.CreateTopicByItemIdentifier(ex + "a")
	require.NoError(t, err)
	assert.Same(t, a, found)

	name := a.AddName("A", nil)
	require.NoError(t, AddItemIdentifier(name, ex+"n"))
	before := canonical(tm)
	_, err = tm.CreateTopicByItemIdentifier(ex + "n")
	requireIdentityError(t, tm, before, err, nil, name, ex+"n")

	n := si(tm, "n")
	before = canonical(tm)
	_, err = tm.CreateTopicByItemIdentifier(ex + "n")
	requireIdentityError(t, tm, before, err, n, name, ex+"n")
}

func TestRemoveIdentifiers(t *testing.T) {
	tm := New()
	a, b := si(tm, "a"), si(tm, "b")
	require.NoError(t, a.AddSubjectLocator(ex+"l"))
	require.NoError(t, AddItemIdentifier(a, ex+"i"))
	before := canonical(tm)
	b.RemoveSubjectIdentifier(ex + "a")
	b.RemoveSubjectLocator(ex + "l")
	RemoveItemIdentifier(b, ex+"i")
	assert.Equal(t, before, canonical(tm), "identifiers of another topic")

	a.RemoveSubjectIdentifier(ex + "a")
	a.RemoveSubjectLocator(ex + "l")
	RemoveItemIdentifier(a, ex+"i")
	assert.Nil(t, tm.TopicBySubjectIdentifier(ex+"a"))
	assert.Nil(t, tm.TopicBySubjectLocator(ex+"l"))
	assert.Nil(t, tm.ConstructByItemIdentifier(ex+"i"))
	assert.Empty(t, a.SubjectIdentifiers())
	require.NoError(t, b.AddSubjectIdentifier(ex+"a"), "it is free again")
	require.NoError(t, b.AddSubjectLocator(ex+"l"))
	require.NoError(t, AddItemIdentifier(b, ex+"i"))
	checkInvariants(t, tm)
}

// Items can be removed while the result of an accessor is walked.
func TestRemoveWhileWalking(t *testing.T) {
	tm := New()
	a, typ := si(tm, "a"), si(tm, "type")
	for _, s := range []string{"a1", "a2", "a3", "a4"} {
		require.NoError(t, a.AddSubjectIdentifier(Locator(ex+s)))
		require.NoError(t, a.AddSubjectLocator(Locator(ex+s)))
		require.NoError(t, AddItemIdentifier(a, Locator(ex+s)))
		a.AddName("name", nil).AddVariant(s, XSDString, typ)
		a.Names()[0].AddVariant(s, XSDString, typ)
		a.AddOccurrence(s, XSDString, typ)
		a.AddType(typ)
	}
	for _, l := range a.SubjectIdentifiers() {
		a.RemoveSubjectIdentifier(l)
	}
	for _, l := range a.SubjectLocators() {
		a.RemoveSubjectLocator(l)
	}
	for _, l := range a.ItemIdentifiers() {
		RemoveItemIdentifier(a, l)
	}
	for _, v := range a.Names()[0].Variants() {
		v.Remove()
	}
	assert.Empty(t, a.Names()[0].Variants())
	for _, n := range a.Names() {
		n.Remove()
	}
	for _, o := range a.Occurrences() {
		o.Remove()
	}
	for _, r := range a.RolesPlayed() {
		r.Association().Remove()
	}
	assert.Equal(t, "a topic without identifiers", Describe(a))
	assert.Empty(t, a.Names())
	assert.Empty(t, a.Occurrences())
	assert.Empty(t, a.RolesPlayed())
	assert.Empty(t, typ.RolesPlayed())
	checkInvariants(t, tm)
}

func TestDescribe(t *testing.T) {
	tm := New()
	a := si(tm, "a")
	n := a.AddName("A", nil)
	v := n.AddVariant("a", XSDString, a)
	o := a.AddOccurrence("1", XSDInteger, a)
	as := tm.CreateAssociation(a)
	r := as.AddRole(a, a)
	topic := "topic http://example.org/a"
	for want, c := range map[string]Construct{
		"the topic map":                       tm,
		topic:                                 a,
		`name "A" of ` + topic:                n,
		`variant "a" of name "A" of ` + topic: v,
		`occurrence "1" of ` + topic:          o,
		"an association of type " + topic:     as,
		"the role of " + topic + " in an association of type " + topic: r,
		"nothing": nil,
	} {
		assert.Equal(t, want, Describe(c))
	}
}

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

// The table of identifiers behaves as two maps would, whatever is added and
// removed, and lists that were made of it stay as they are.
func TestIdentifiersAreMaps(t *testing.T) {
	testenv.Check(t, 50, 300, func(t *rapid.T) {
		var x identifiers
		known := map[role]map[Locator]*Topic{asSubject: {}, asItem: {}}
		lists := map[Locator][]Locator{}
		topic := &Topic{}
		locators := rapid.SampledFrom([]int{5, 300}).Draw(t, "locators")
		for range rapid.IntRange(1, 1000).Draw(t, "steps") {
			loc := Locator(fmt.Sprint("http://example.org/", rapid.IntRange(0, locators).Draw(t, "locator")))
			as := rapid.SampledFrom([]role{asSubject, asItem}).Draw(t, "as")
			if rapid.Bool().Draw(t, "remove") {
				x.remove(loc, as)
				delete(known[as], loc)
				continue
			}
			owner := topic
			for _, m := range known {
				if m[loc] != nil {
					owner = m[loc]
				}
			}
			list, other := x.add(loc, owner, as)
			require.Nil(t, other)
			require.Equal(t, known[as][loc] == nil, list != nil)
			if list != nil {
				lists[loc] = list
			}
			_, other = x.add(loc, &Topic{}, asSubject|asItem)
			require.Same(t, owner, other)
			known[as][loc] = owner
			topic = &Topic{}
		}
		for as, m := range known {
			for i := range locators + 1 {
				loc := Locator(fmt.Sprint("http://example.org/", i))
				require.Same(t, m[loc], x.topic(loc, as), "%s as %d", loc, as)
			}
			require.Equal(t, len(m), count(x, as))
		}
		for loc, list := range lists {
			require.Equal(t, []Locator{loc}, list)
		}
	})
}

// Adding and removing without end takes no more space than the items that exist at once.
func TestIdentifiersAreReused(t *testing.T) {
	var x identifiers
	for i := range 100_000 {
		loc := Locator(fmt.Sprint("http://example.org/", i))
		x.add(loc, &Topic{}, asItem)
		x.remove(loc, asItem)
	}
	require.LessOrEqual(t, len(x.slots), 64)
	require.LessOrEqual(t, len(x.chunks), 2)
}
