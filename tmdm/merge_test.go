package tmdm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

func TestMergeTakesEverything(t *testing.T) {
	tm := New()
	a, b, typ := si(tm, "a"), si(tm, "b"), si(tm, "type")
	require.NoError(t, b.AddSubjectLocator(ex+"l"))
	require.NoError(t, AddItemIdentifier(b, ex+"i"))
	name, occurrence := b.AddName("B", nil), b.AddOccurrence("1", XSDInteger, typ)
	class := b.AddType(typ)
	reified := typ.AddName("Type", nil)
	require.NoError(t, SetReifier(reified, b))

	require.NoError(t, a.Merge(b))
	assert.Equal(t, []Locator{ex + "a", ex + "b"}, a.SubjectIdentifiers())
	assert.Equal(t, []Locator{ex + "l"}, a.SubjectLocators())
	assert.Equal(t, []Locator{ex + "i"}, a.ItemIdentifiers())
	assert.Same(t, a, tm.TopicBySubjectIdentifier(ex+"b"))
	assert.Same(t, a, tm.TopicBySubjectLocator(ex+"l"))
	assert.Same(t, a, tm.ConstructByItemIdentifier(ex+"i"))
	assert.Equal(t, []*TopicName{name}, a.Names())
	assert.Same(t, a, name.Topic())
	assert.Equal(t, []*Occurrence{occurrence}, a.Occurrences())
	assert.Same(t, a, occurrence.Topic())
	require.Len(t, a.RolesPlayed(), 1)
	assert.Same(t, class, a.RolesPlayed()[0].Association())
	assert.Same(t, reified, a.Reified())
	assert.Same(t, a, reified.Reifier())
	for other := range tm.Topics() {
		assert.NotSame(t, b, other)
	}
	checkInvariants(t, tm)
}

// Whatever refers to a merged topic refers to the one that is left.
func TestMergeReferencesFollow(t *testing.T) {
	tm := New()
	a, b, other := si(tm, "a"), si(tm, "b"), si(tm, "other")
	name := other.AddName("N", b, b)
	variant := name.AddVariant("V", XSDString, other)
	occurrence := other.AddOccurrence("O", XSDString, b, b)
	association := tm.CreateAssociation(b, b)
	role := association.AddRole(b, b)
	require.NoError(t, SetReifier(occurrence, b))

	require.NoError(t, a.Merge(b))
	for _, c := range []Typed{name, occurrence, association, role} {
		assert.Same(t, a, c.Type(), "type of %s", Describe(c))
	}
	for _, c := range []Scoped{name, occurrence, association} {
		assert.Equal(t, []*Topic{a}, c.Scope().Themes(), "scope of %s", Describe(c))
	}
	assert.Equal(t, []*Topic{a, other}, variant.Scope().Themes())
	assert.Same(t, a, role.Player())
	assert.Same(t, a, occurrence.Reifier())
	checkInvariants(t, tm)
	require.NoError(t, tm.Normalize(t.Context()))
	checkNormal(t, tm)
}

func TestMergeChain(t *testing.T) {
	tm := New()
	const n = 20
	topics := make([]*Topic, n)
	for i := range topics {
		topics[i] = si(tm, string(rune('a'+i)))
	}
	name := si(tm, "other").AddName("N", topics[n-1], topics[n-1])
	for i := n - 1; i > 0; i-- { // each into the one before it: references go n-1 steps
		require.NoError(t, topics[i-1].Merge(topics[i]))
	}
	assert.Same(t, topics[0], name.Type())
	assert.Equal(t, []*Topic{topics[0]}, name.Scope().Themes())
	assert.Len(t, topics[0].SubjectIdentifiers(), n)
	checkInvariants(t, tm)

	before := canonical(tm)
	require.NoError(t, topics[5].Merge(topics[9]), "they are one already")
	require.NoError(t, topics[9].Merge(topics[0]))
	assert.Equal(t, before, canonical(tm))
}

// A variable with a merged topic works with the topic that it has become: a reader has a topic on its stack while
// another element merges it.
func TestMergedTopicStandsForTheOther(t *testing.T) {
	tm := New()
	a, b, c, typ := si(tm, "a"), si(tm, "b"), si(tm, "c"), si(tm, "type")
	require.NoError(t, a.Merge(b))

	require.NoError(t, b.AddSubjectIdentifier(ex+"b2"))
	require.NoError(t, b.AddSubjectIdentifier(ex+"a"), "it is its own")
	require.NoError(t, b.AddSubjectLocator(ex+"bl"))
	require.NoError(t, AddItemIdentifier(b, ex+"bi"))
	require.NoError(t, AddItemIdentifier(a, ex+"bi"))
	require.NoError(t, AddItemIdentifier(b, ex+"a"))
	name, occurrence := b.AddName("B", b, b), b.AddOccurrence("O", XSDString, b)
	b.AddType(typ)
	typ.AddType(b)
	require.NoError(t, SetReifier(name, b))
	for _, topic := range []*Topic{a, b} {
		assert.Equal(t, []Locator{ex + "a", ex + "b", ex + "b2"}, topic.SubjectIdentifiers())
		assert.Equal(t, []Locator{ex + "bl"}, topic.SubjectLocators())
		assert.Equal(t, []Locator{ex + "bi", ex + "a"}, topic.ItemIdentifiers())
		assert.Equal(t, []*TopicName{name}, topic.Names())
		assert.Equal(t, []*Occurrence{occurrence}, topic.Occurrences())
		assert.Len(t, topic.RolesPlayed(), 2)
		assert.Same(t, name, topic.Reified())
		for class := range topic.Types() {
			assert.Same(t, typ, class)
		}
	}
	assert.Equal(t, []*Topic{a}, name.Scope().Themes())
	checkInvariants(t, tm)

	var identity *IdentityError
	require.ErrorAs(t, b.AddSubjectIdentifier(ex+"c"), &identity)
	assert.Same(t, a, identity.Construct)
	require.NoError(t, c.Merge(b))
	assert.Same(t, c, name.Topic())
	checkInvariants(t, tm)

	b.RemoveSubjectIdentifier(ex + "b2")
	b.RemoveSubjectLocator(ex + "bl")
	RemoveItemIdentifier(b, ex+"bi")
	assert.Nil(t, tm.TopicBySubjectIdentifier(ex+"b2"))
	assert.Nil(t, tm.TopicBySubjectLocator(ex+"bl"))
	assert.Nil(t, tm.ConstructByItemIdentifier(ex+"bi"))
	checkInvariants(t, tm)
}

func TestMergeOfReifiers(t *testing.T) {
	tm := New()
	a, b, c, other := si(tm, "a"), si(tm, "b"), si(tm, "c"), si(tm, "other")
	one, same, unequal := other.AddName("1", nil), other.AddName("1", nil), other.AddName("2", nil)
	require.NoError(t, SetReifier(one, a))
	require.NoError(t, SetReifier(same, b))
	require.NoError(t, SetReifier(unequal, c))

	before := canonical(tm)
	var reifier *ReifierError
	require.ErrorAs(t, a.Merge(c), &reifier)
	assert.Equal(t, &ReifierError{a, unequal, one}, reifier)
	assert.Contains(t, reifier.Error(), `cannot reify name "2"`)
	assert.Equal(t, before, canonical(tm))

	require.NoError(t, a.Merge(b), "equal statements are one to be")
	assert.Same(t, a, one.Reifier())
	assert.Same(t, a, same.Reifier())
	checkInvariants(t, tm)
	require.NoError(t, tm.Normalize(t.Context()))
	assert.Same(t, one, a.Reified())
	checkNormal(t, tm)
}

// A statement that goes leaves its reifier to an equal one that stays.
func TestReifierOfDuplicatesOutlivesOne(t *testing.T) {
	tm := New()
	a, other := si(tm, "a"), si(tm, "other")
	one, two := other.AddName("1", nil), other.AddName("1", nil)
	require.NoError(t, SetReifier(one, a))
	require.NoError(t, SetReifier(two, a))
	one.Remove()
	assert.Same(t, two, a.Reified())
	assert.Nil(t, one.Reifier())
	checkInvariants(t, tm)
	require.NoError(t, SetReifier(two, nil))
	assert.Nil(t, a.Reified())
	checkInvariants(t, tm)
}

func TestSetReifier(t *testing.T) {
	tm := New()
	a, b, other := si(tm, "a"), si(tm, "b"), si(tm, "other")
	one, two := other.AddName("1", nil), other.AddName("2", nil)
	require.NoError(t, SetReifier(one, a))
	require.NoError(t, SetReifier(one, a))
	assert.Same(t, one, a.Reified())

	before := canonical(tm)
	var reifier *ReifierError
	require.ErrorAs(t, SetReifier(two, a), &reifier)
	assert.Equal(t, &ReifierError{a, two, one}, reifier)
	require.ErrorAs(t, SetReifier(tm, a), &reifier)
	assert.Equal(t, before, canonical(tm))

	require.NoError(t, SetReifier(one, b), "in place of the other")
	assert.Nil(t, a.Reified())
	require.NoError(t, SetReifier(tm, a))
	assert.Same(t, tm, a.Reified())
	assert.Same(t, a, tm.Reifier())
	checkInvariants(t, tm)
}

// Equality of statements, case by case.
func TestEqual(t *testing.T) {
	tm := New()
	a, b, typ := si(tm, "a"), si(tm, "b"), si(tm, "type")
	association := func(themes []*Topic, players ...*Topic) *Association {
		as := tm.CreateAssociation(typ, themes...)
		for _, p := range players {
			as.AddRole(typ, p)
		}
		return as
	}
	ab, ba := association(nil, a, b), association(nil, b, a)
	name, twin := a.AddName("1", typ), a.AddName("1", typ)
	equal := [][2]Reifiable{
		{tm, tm},
		{name, twin},
		{name.AddVariant("v", XSDString, b), twin.AddVariant("v", XSDString, b, b)},
		{a.AddOccurrence("1", XSDString, typ, a, b), a.AddOccurrence("1", XSDString, typ, b, a)},
		{ab, ba},
		{ab.Roles()[0], ba.Roles()[1]},
		{ab, association(nil, a, b, a)},
	}
	for i, pair := range equal {
		assert.True(t, Equal(pair[0], pair[1]), "pair %d", i)
	}
	other := b.AddName("1", typ)
	unequal := [][2]Reifiable{
		{tm, name},
		{name, a.AddName("2", typ)},
		{name, a.AddName("1", nil)},
		{name, a.AddName("1", typ, b)},
		{name, other},
		{name, a.AddOccurrence("1", XSDString, typ)},
		{name.AddVariant("v", XSDString, b), name.AddVariant("w", XSDString, b)},
		{name.AddVariant("v", XSDString, b), name.AddVariant("v", XSDAnyURI, b)},
		{name.AddVariant("v", XSDString, b), name.AddVariant("v", XSDString, typ)},
		{name.AddVariant("v", XSDString, b), other.AddVariant("v", XSDString, b)},
		{a.AddOccurrence("1", XSDString, typ), a.AddOccurrence("2", XSDString, typ)},
		{a.AddOccurrence("1", XSDString, typ), a.AddOccurrence("1", XSDInteger, typ)},
		{a.AddOccurrence("1", XSDString, typ), a.AddOccurrence("1", XSDString, a)},
		{a.AddOccurrence("1", XSDString, typ), a.AddOccurrence("1", XSDString, typ, a)},
		{a.AddOccurrence("1", XSDString, typ), b.AddOccurrence("1", XSDString, typ)},
		{ab, association(nil, a)},
		{ab, association([]*Topic{a}, a, b)},
		{ab.Roles()[0], ba.Roles()[0]},
		{ab.Roles()[0], association(nil, a).Roles()[0]},
		{tm.CreateAssociation(a), tm.CreateAssociation(b)},
	}
	for i, pair := range unequal {
		assert.False(t, Equal(pair[0], pair[1]), "pair %d", i)
	}
}

// Scopes are one where their themes have become one.
func TestScopesThatBecomeEqual(t *testing.T) {
	tm := New()
	a, b, c := si(tm, "a"), si(tm, "b"), si(tm, "c")
	assert.Same(t, tm.Scope(a, b), tm.Scope(b, a, b))
	assert.NotSame(t, tm.Scope(a), tm.Scope(b))
	assert.Empty(t, tm.Scope().Themes())
	assert.True(t, tm.Scope(a, b).Contains(tm.Scope(b)))
	assert.True(t, tm.Scope(a).Contains(tm.Scope()))
	assert.False(t, tm.Scope(b).Contains(tm.Scope(a, b)))

	one, two := c.AddName("N", nil, a, c), c.AddName("N", nil, c, b)
	held := tm.Scope(a, b, c)
	require.NoError(t, b.Merge(a))
	assert.Same(t, one.Scope(), two.Scope())
	assert.Equal(t, []*Topic{b, c}, held.Themes())
	assert.True(t, one.Scope().Contains(held))
	require.NoError(t, tm.Normalize(t.Context()))
	assert.Equal(t, []*TopicName{one}, c.Names())
	checkNormal(t, tm)
}

// plan describes a map with many statements that a merge makes equal. It is built twice, and the same set of topics
// merged in two orders.
type plan struct {
	topics     int
	statements []statementPlan
	set        []int // the topics to merge
}

// statementPlan has topics by their numbers. Its reifier is a topic of its own.
type statementPlan struct {
	kind                       int
	topic, typ, theme, another int
	value                      string
	reified, identified        bool
}

func drawPlan(t *rapid.T) plan {
	p := plan{topics: rapid.IntRange(2, 7).Draw(t, "topics")}
	number := rapid.IntRange(0, p.topics-1)
	statement := rapid.Custom(func(t *rapid.T) statementPlan {
		return statementPlan{
			kind:  rapid.IntRange(0, 3).Draw(t, "kind"),
			topic: number.Draw(t, "topic"), typ: number.Draw(t, "type"), theme: number.Draw(t, "theme"), another: number.Draw(t, "another"),
			value:   rapid.SampledFrom([]string{"x", "y"}).Draw(t, "value"),
			reified: rapid.Bool().Draw(t, "reified"), identified: rapid.Bool().Draw(t, "identified"),
		}
	})
	p.statements = rapid.SliceOfN(statement, 1, 15).Draw(t, "statements")
	p.set = rapid.SliceOfNDistinct(number, 2, p.topics, rapid.ID[int]).Draw(t, "set")
	return p
}

// build returns the map and its topics; where it can, it refers to reifiers as
// well, so that joining those makes further statements equal.
func (p plan) build(t require.TestingT) (*TopicMap, []*Topic) {
	tm := New()
	var topics []*Topic
	for i := range p.topics {
		topics = append(topics, si(tm, fmt.Sprint("topic", i)))
	}
	for i, s := range p.statements {
		topic, typ, theme, another := topics[s.topic], topics[s.typ], topics[s.theme], topics[s.another]
		var c Reifiable
		switch s.kind {
		case 0:
			n := topic.AddName(s.value, typ, theme)
			n.AddVariant(s.value, XSDString, another)
			c = n
		case 1:
			c = topic.AddOccurrence(s.value, XSDString, typ, theme, another)
		case 2:
			a := tm.CreateAssociation(typ, theme)
			a.AddRole(typ, topic)
			a.AddRole(theme, another)
			c = a
		case 3:
			c = topic.AddName(s.value, typ).AddVariant(s.value, XSDString, theme)
		}
		if s.identified {
			require.NoError(t, AddItemIdentifier(c, Locator(fmt.Sprint(ex, "item", i))))
		}
		if s.reified {
			reifier := si(tm, fmt.Sprint("reifier", i))
			require.NoError(t, SetReifier(c, reifier))
			topic.AddOccurrence(s.value, XSDString, reifier)
		}
	}
	return tm, topics
}

// mergeSet merges the set in an order and in directions that it draws, with
// Normalize in between now and then.
func (p plan) mergeSet(t *rapid.T) *TopicMap {
	tm, topics := p.build(t)
	order := rapid.Permutation(p.set).Draw(t, "order")
	for i, number := range order[1:] {
		// Any of those that are one already, held since before they were.
		a, b := topics[rapid.SampledFrom(order[:i+1]).Draw(t, "with")], topics[number]
		if rapid.Bool().Draw(t, "swap") {
			a, b = b, a
		}
		require.NoError(t, a.Merge(b))
		if rapid.IntRange(0, 3).Draw(t, "normalize") == 0 {
			require.NoError(t, tm.Normalize(t.Context()))
		}
		checkInvariants(t, tm)
	}
	require.NoError(t, tm.Normalize(t.Context()))
	return tm
}

func TestMergeOrderDoesNotMatter(t *testing.T) {
	testenv.Check(t, 50, 300, func(t *rapid.T) {
		p := drawPlan(t)
		one, two := p.mergeSet(t), p.mergeSet(t)
		require.Equal(t, canonical(one), canonical(two))
		checkNormal(t, one)
	})
}
