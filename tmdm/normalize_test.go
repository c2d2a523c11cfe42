package tmdm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// identify gives each of the items an item identifier: 1, 2 and so on.
func identify(t *testing.T, items ...Construct) {
	t.Helper()
	for i, c := range items {
		require.NoError(t, AddItemIdentifier(c, Locator(fmt.Sprint(i+1))))
	}
}

// requireJoined requires that kept has the item identifiers that identify gave,
// and that the look-ups know.
func requireJoined(t *testing.T, tm *TopicMap, kept Construct, n int) {
	t.Helper()
	var want []Locator
	for i := range n {
		loc := Locator(fmt.Sprint(i + 1))
		want = append(want, loc)
		require.Same(t, kept, tm.ConstructByItemIdentifier(loc))
	}
	require.Equal(t, want, kept.ItemIdentifiers())
	checkNormal(t, tm)
}

func TestNormalizeNames(t *testing.T) {
	tm := New()
	a, b := si(tm, "a"), si(tm, "b")
	names := []*TopicName{a.AddName("1", nil), a.AddName("2", nil), a.AddName("1", nil), a.AddName("1", b), a.AddName("1", nil)}
	v := names[0].AddVariant("v", XSDString, b)
	same := names[2].AddVariant("v", XSDString, b)
	w := names[4].AddVariant("w", XSDString, b)
	identify(t, names[0], names[2], names[4])
	require.NoError(t, AddItemIdentifier(same, ex+"v"))

	require.NoError(t, tm.Normalize(t.Context()))
	assert.Equal(t, []*TopicName{names[0], names[1], names[3]}, a.Names())
	assert.Equal(t, []*Variant{v, w}, names[0].Variants())
	assert.Same(t, names[0], w.Name())
	assert.Same(t, v, tm.ConstructByItemIdentifier(ex+"v"))
	requireJoined(t, tm, names[0], 3)

	require.NoError(t, AddItemIdentifier(w, ex+"w"))
	names[4].Remove() // it is no part of the map any more, while its variant is
	assert.Same(t, w, tm.ConstructByItemIdentifier(ex+"w"))
	checkNormal(t, tm)
}

func TestNormalizeOccurrences(t *testing.T) {
	tm := New()
	a, typ := si(tm, "a"), si(tm, "type")
	os := []*Occurrence{
		a.AddOccurrence("1", XSDString, typ), a.AddOccurrence("1", XSDInteger, typ),
		a.AddOccurrence("1", XSDString, typ), a.AddOccurrence("1", XSDString, typ, typ),
	}
	identify(t, os[0], os[2])
	require.NoError(t, tm.Normalize(t.Context()))
	assert.Equal(t, []*Occurrence{os[0], os[1], os[3]}, a.Occurrences())
	requireJoined(t, tm, os[0], 2)
}

func TestNormalizeAssociations(t *testing.T) {
	tm := New()
	a, b, typ := si(tm, "a"), si(tm, "b"), si(tm, "type")
	association := func(players ...*Topic) *Association {
		as := tm.CreateAssociation(typ)
		for _, p := range players {
			as.AddRole(typ, p)
		}
		return as
	}
	one, other, two := association(a, b), association(a), association(b, a)
	identify(t, one, two)
	require.NoError(t, AddItemIdentifier(two.Roles()[0], ex+"role"))
	role := one.Roles()[1]

	require.NoError(t, tm.Normalize(t.Context()))
	assert.Equal(t, []*Association{one, other}, slices.Collect(tm.Associations()))
	assert.Same(t, role, tm.ConstructByItemIdentifier(ex+"role"), "the role of b")
	assert.Equal(t, []*AssociationRole{one.Roles()[0], other.Roles()[0]}, a.RolesPlayed(), "no role of a removed item")
	assert.Equal(t, []*AssociationRole{role}, b.RolesPlayed())
	requireJoined(t, tm, one, 2)

	two.Remove() // it is no part of the map any more
	checkNormal(t, tm)
	assert.Equal(t, []*AssociationRole{role}, b.RolesPlayed())
}

func TestNormalizeRoles(t *testing.T) {
	tm := New()
	a, b, typ := si(tm, "a"), si(tm, "b"), si(tm, "type")
	as := tm.CreateAssociation(typ)
	one, other, two := as.AddRole(typ, a), as.AddRole(a, a), as.AddRole(typ, b)
	identify(t, one, two)
	require.NoError(t, a.Merge(b))
	require.NoError(t, tm.Normalize(t.Context()))
	assert.Equal(t, []*AssociationRole{one, other}, as.Roles())
	assert.ElementsMatch(t, []*AssociationRole{one, other}, a.RolesPlayed())
	requireJoined(t, tm, one, 2)
	assert.Same(t, tm, two.TopicMap(), "who still holds the other role may ask it")
	assert.NotPanics(t, func() { Describe(two) })
}

// A statement that is removed before Normalize stays removed, and removes no equal one.
func TestNormalizeAfterRemoval(t *testing.T) {
	tm := New()
	a, typ := si(tm, "a"), si(tm, "type")
	first, second, third := a.AddType(typ), a.AddType(typ), typ.AddType(a)
	first.Remove()
	require.NoError(t, tm.Normalize(t.Context()))
	assert.Equal(t, []*Association{second, third}, slices.Collect(tm.Associations()))
	checkNormal(t, tm)
	second.Remove()
	assert.Equal(t, []*Association{third}, slices.Collect(tm.Associations()))
	checkNormal(t, tm)
}

// Equal statements of one topic are found among very many of another, and after.
func TestNormalizeManyStatements(t *testing.T) {
	tm := New()
	a, b, typ := si(tm, "a"), si(tm, "b"), si(tm, "type")
	as := tm.CreateAssociation(typ)
	for i := range 1000 {
		a.AddName(fmt.Sprint(i%500), nil)
		as.AddRole(typ, si(tm, fmt.Sprint(i%500)))
	}
	for i := range 4 {
		b.AddName(fmt.Sprint(i%2), nil)
	}
	require.NoError(t, tm.Normalize(t.Context()))
	assert.Len(t, a.Names(), 500)
	assert.Len(t, b.Names(), 2)
	assert.Len(t, as.Roles(), 500)
}

// After Normalize, several goroutines may read, even what referred to topics
// through chains of merges. The race detector tells whether reading changes
// anything.
func TestReadTogether(t *testing.T) {
	tm := New()
	a, b, c, other := si(tm, "a"), si(tm, "b"), si(tm, "c"), si(tm, "other")
	name := other.AddName("N", c, c)
	name.AddVariant("v", XSDString, c, other)
	other.AddOccurrence("O", XSDString, c, c)
	tm.CreateAssociation(c, c).AddRole(c, c)
	c.AddName("N", nil)
	c.AddOccurrence("O", XSDString, c)
	require.NoError(t, SetReifier(name, c))
	x, y, z := si(tm, "x"), si(tm, "y"), si(tm, "z")
	require.NoError(t, SetReifier(tm, z))
	for _, pair := range [][2]*Topic{{b, c}, {a, b}, {y, z}, {x, y}} { // c and z are two steps off
		require.NoError(t, pair[0].Merge(pair[1]))
	}
	require.NoError(t, tm.Normalize(t.Context()))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { canonical(tm) })
	}
	group.Wait()
	checkNormal(t, tm)
}

func TestNormalizingEndsWithItsContext(t *testing.T) {
	tm := New()
	topic := tm.CreateTopic()
	topic.AddName("twice", nil)
	topic.AddName("twice", nil)
	stop := errors.New("stop")
	ended, end := context.WithCancelCause(t.Context())
	end(stop)
	require.ErrorIs(t, tm.Normalize(ended), stop)
	require.Len(t, topic.Names(), 2)
	require.NoError(t, tm.Normalize(t.Context()))
	require.Len(t, topic.Names(), 1)
}

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
