package tmdm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/tmdm"
)

// The tests here go through ISO 13250-2 §5, clause by clause: each property can be read, and statements can be
// changed afterwards.

// requireReification requires that the topic and the construct know of each other, before
// and after it changes.
func requireReification(t *testing.T, c tmdm.Reifiable) {
	t.Helper()
	tm := c.TopicMap()
	one, two := tm.CreateTopic(), tm.CreateTopic()
	require.Nil(t, c.Reifier())
	for _, reifier := range []*tmdm.Topic{one, two} {
		require.NoError(t, tmdm.SetReifier(c, reifier))
		assert.Same(t, reifier, c.Reifier())
		assert.Same(t, c, reifier.Reified())
	}
	assert.Nil(t, one.Reified())
	require.NoError(t, tmdm.SetReifier(c, nil))
	assert.Nil(t, c.Reifier())
	assert.Nil(t, two.Reified())
}

func requireItemIdentifiers(t *testing.T, c tmdm.Construct) {
	t.Helper()
	tm := c.TopicMap()
	require.Empty(t, c.ItemIdentifiers())
	require.NoError(t, tmdm.AddItemIdentifier(c, ex+"item/1"))
	require.NoError(t, tmdm.AddItemIdentifier(c, ex+"item/2"))
	assert.Equal(t, []tmdm.Locator{ex + "item/1", ex + "item/2"}, c.ItemIdentifiers())
	assert.Same(t, c, tm.ConstructByItemIdentifier(ex+"item/2"))
	tmdm.RemoveItemIdentifier(c, ex+"item/1")
	tmdm.RemoveItemIdentifier(c, ex+"item/2")
	assert.Empty(t, c.ItemIdentifiers())
	assert.Nil(t, tm.ConstructByItemIdentifier(ex+"item/2"))
}

func themes(c tmdm.Scoped) []*tmdm.Topic { return c.Scope().Themes() }

// ISO 13250-2 §5.2: [topics], [associations], [reifier], [item identifiers].
func TestTopicMapItem(t *testing.T) {
	tm := tmdm.New()
	a, b := topic(tm, "a"), topic(tm, "b")
	one, two := tm.CreateAssociation(a), tm.CreateAssociation(b)
	assert.Equal(t, []*tmdm.Topic{a, b}, list(tm.Topics()))
	assert.Equal(t, []*tmdm.Association{one, two}, list(tm.Associations()))
	two.Remove()
	require.NoError(t, b.Remove())
	assert.Equal(t, []*tmdm.Topic{a}, list(tm.Topics()))
	assert.Equal(t, []*tmdm.Association{one}, list(tm.Associations()))
	requireReification(t, tm)
	requireItemIdentifiers(t, tm)
}

// ISO 13250-2 §5.3: [topic names], [occurrences], [subject identifiers],
// [subject locators], [item identifiers], [roles played], [reified], [parent].
func TestTopicItem(t *testing.T) {
	tm := tmdm.New()
	a, typ := tm.CreateTopic(), topic(tm, "type")
	require.NoError(t, a.AddSubjectIdentifier(ex+"1"))
	require.NoError(t, a.AddSubjectIdentifier(ex+"2"))
	require.NoError(t, a.AddSubjectLocator(ex+"1"))
	require.NoError(t, a.AddSubjectLocator(ex+"2"))
	assert.Equal(t, []tmdm.Locator{ex + "1", ex + "2"}, a.SubjectIdentifiers())
	assert.Equal(t, []tmdm.Locator{ex + "1", ex + "2"}, a.SubjectLocators())
	assert.Same(t, a, tm.TopicBySubjectIdentifier(ex+"2"))
	assert.Same(t, a, tm.TopicBySubjectLocator(ex+"1"))
	a.RemoveSubjectIdentifier(ex + "1")
	a.RemoveSubjectLocator(ex + "2")
	assert.Equal(t, []tmdm.Locator{ex + "2"}, a.SubjectIdentifiers())
	assert.Equal(t, []tmdm.Locator{ex + "1"}, a.SubjectLocators())
	requireItemIdentifiers(t, a)

	n, o, r := a.AddName("A", typ), a.AddOccurrence("1", tmdm.XSDInteger, typ), tm.CreateAssociation(typ).AddRole(typ, a)
	assert.Equal(t, []*tmdm.TopicName{n}, a.Names())
	assert.Equal(t, []*tmdm.Occurrence{o}, a.Occurrences())
	assert.Equal(t, []*tmdm.AssociationRole{r}, a.RolesPlayed())
	require.NoError(t, tmdm.SetReifier(n, typ))
	assert.Same(t, n, typ.Reified())
	assert.Nil(t, a.Reified())
	assert.Same(t, tm, a.TopicMap())
}

// ISO 13250-2 §5.4: [value], [type], [scope], [variants], [reifier], [item
// identifiers], [parent].
func TestTopicNameItem(t *testing.T) {
	tm := tmdm.New()
	a, x, y, z := topic(tm, "a"), topic(tm, "x"), topic(tm, "y"), topic(tm, "z")
	n := a.AddName("A", x, y)
	assert.Equal(t, "A", n.Value())
	assert.Same(t, x, n.Type())
	assert.Equal(t, []*tmdm.Topic{y}, themes(n))
	assert.Same(t, a, n.Topic())

	v := n.AddVariant("v", tmdm.XSDString, x)
	assert.Equal(t, []*tmdm.Variant{v}, n.Variants())
	n.SetValue("B")
	n.SetType(y)
	n.SetScope(z)
	assert.Equal(t, "B", n.Value())
	assert.Same(t, y, n.Type())
	assert.Equal(t, []*tmdm.Topic{z}, themes(n))
	assert.Equal(t, []*tmdm.Topic{x, z}, themes(v), "the scope of a variant is a superset of that of its name (§5.5)")
	n.SetScope()
	assert.Empty(t, themes(n))
	assert.Equal(t, []*tmdm.Topic{x}, themes(v))
	n.SetType(nil)
	assert.Equal(t, []tmdm.Locator{tmdm.PSIDefaultNameType}, n.Type().SubjectIdentifiers())
	assert.Same(t, n.Type(), a.AddName("C", nil).Type(), "the default name type (§7.5)")
	requireReification(t, n)
	requireItemIdentifiers(t, n)
	n.Remove()
	assert.Len(t, a.Names(), 1)
}

// ISO 13250-2 §5.5: [value], [datatype], [scope], [reifier], [item identifiers],
// [parent].
func TestVariantItem(t *testing.T) {
	tm := tmdm.New()
	x, y, z := topic(tm, "x"), topic(tm, "y"), topic(tm, "z")
	n := topic(tm, "a").AddName("A", x, y)
	v := n.AddVariant("v", tmdm.XSDString, x)
	assert.Equal(t, "v", v.Value())
	assert.Equal(t, tmdm.XSDString, v.Datatype())
	assert.Equal(t, []*tmdm.Topic{x, y}, themes(v))
	assert.Same(t, n, v.Name())
	v.SetValue("http://example.org/v.ogg", tmdm.XSDAnyURI)
	v.SetScope(z)
	assert.Equal(t, "http://example.org/v.ogg", v.Value())
	assert.Equal(t, tmdm.XSDAnyURI, v.Datatype())
	assert.Equal(t, []*tmdm.Topic{y, z}, themes(v), "with that of the name")
	requireReification(t, v)
	requireItemIdentifiers(t, v)
	v.Remove()
	assert.Empty(t, n.Variants())
}

// ISO 13250-2 §5.6: [value], [datatype], [type], [scope], [reifier], [item
// identifiers], [parent].
func TestOccurrenceItem(t *testing.T) {
	tm := tmdm.New()
	a, x, y := topic(tm, "a"), topic(tm, "x"), topic(tm, "y")
	o := a.AddOccurrence("1", tmdm.XSDInteger, x, y)
	assert.Equal(t, "1", o.Value())
	assert.Equal(t, tmdm.XSDInteger, o.Datatype())
	assert.Same(t, x, o.Type())
	assert.Equal(t, []*tmdm.Topic{y}, themes(o))
	assert.Same(t, a, o.Topic())
	o.SetValue("one", tmdm.XSDString)
	o.SetType(y)
	o.SetScope(x, a)
	assert.Equal(t, "one", o.Value())
	assert.Equal(t, tmdm.XSDString, o.Datatype())
	assert.Same(t, y, o.Type())
	assert.Equal(t, []*tmdm.Topic{a, x}, themes(o))
	requireReification(t, o)
	requireItemIdentifiers(t, o)
	o.Remove()
	assert.Empty(t, a.Occurrences())
}

// ISO 13250-2 §5.7: [type], [scope], [roles], [reifier], [item identifiers],
// [parent].
func TestAssociationItem(t *testing.T) {
	tm := tmdm.New()
	x, y := topic(tm, "x"), topic(tm, "y")
	a := tm.CreateAssociation(x, y)
	one, two := a.AddRole(x, y), a.AddRole(y, x)
	assert.Same(t, x, a.Type())
	assert.Equal(t, []*tmdm.Topic{y}, themes(a))
	assert.Equal(t, []*tmdm.AssociationRole{one, two}, a.Roles())
	assert.Same(t, tm, a.TopicMap())
	a.SetType(y)
	a.SetScope(x)
	assert.Same(t, y, a.Type())
	assert.Equal(t, []*tmdm.Topic{x}, themes(a))
	requireReification(t, a)
	requireItemIdentifiers(t, a)
	a.Remove()
	assert.Empty(t, list(tm.Associations()))
	assert.Empty(t, x.RolesPlayed())
}

// ISO 13250-2 §5.8: [player], [type], [reifier], [item identifiers], [parent].
func TestAssociationRoleItem(t *testing.T) {
	tm := tmdm.New()
	x, y := topic(tm, "x"), topic(tm, "y")
	a := tm.CreateAssociation(x)
	r, other := a.AddRole(x, y), a.AddRole(x, x)
	assert.Same(t, x, r.Type())
	assert.Same(t, y, r.Player())
	assert.Same(t, a, r.Association())
	r.SetType(y)
	r.SetPlayer(x)
	assert.Same(t, y, r.Type())
	assert.Same(t, x, r.Player())
	assert.Empty(t, y.RolesPlayed())
	assert.ElementsMatch(t, []*tmdm.AssociationRole{r, other}, x.RolesPlayed())
	r.SetPlayer(x)
	assert.Len(t, x.RolesPlayed(), 2, "it plays it already")
	requireReification(t, r)
	requireItemIdentifiers(t, r)
	r.Remove()
	assert.Equal(t, []*tmdm.AssociationRole{other}, a.Roles())
	assert.Equal(t, []*tmdm.AssociationRole{other}, x.RolesPlayed())
}

// A statement that a change makes equal to another one is a duplicate like any other (ISO 13250-2 §6.3 to §6.7).
func TestStatementsChangedToBeEqual(t *testing.T) {
	tm := tmdm.New()
	a, x, y := topic(tm, "a"), topic(tm, "x"), topic(tm, "y")
	n, m := a.AddName("A", x, y), a.AddName("B", y)
	v, w := n.AddVariant("v", tmdm.XSDString, a), n.AddVariant("w", tmdm.XSDAnyURI, x)
	o, p := a.AddOccurrence("1", tmdm.XSDString, x, y), a.AddOccurrence("2", tmdm.XSDInteger, y)
	one, two := tm.CreateAssociation(x, y), tm.CreateAssociation(y)
	one.AddRole(x, y)
	r := two.AddRole(y, x)
	third := two.AddRole(x, x)
	require.NoError(t, tm.Normalize(t.Context()))

	m.SetValue("A")
	m.SetType(x)
	m.SetScope(y)
	w.SetValue("v", tmdm.XSDString)
	w.SetScope(a)
	p.SetValue("1", tmdm.XSDString)
	p.SetType(x)
	p.SetScope(y)
	two.SetType(x)
	two.SetScope(y)
	r.SetType(x)
	r.SetPlayer(y)
	third.Remove()
	for _, pair := range [][2]tmdm.Reifiable{{n, m}, {v, w}, {o, p}, {one, two}} {
		assert.True(t, tmdm.Equal(pair[0], pair[1]), tmdm.Describe(pair[1]))
	}
	require.NoError(t, tm.Normalize(t.Context()))
	assert.Equal(t, []*tmdm.TopicName{n}, a.Names())
	assert.Equal(t, []*tmdm.Variant{v}, n.Variants())
	assert.Equal(t, []*tmdm.Occurrence{o}, a.Occurrences())
	assert.Equal(t, []*tmdm.Association{one}, list(tm.Associations()))
	assert.Equal(t, one.Roles(), y.RolesPlayed())
	assert.Empty(t, x.RolesPlayed())
}

// ISO 13250-2 §4.4: a value without a datatype is a string.
func TestAnEmptyDatatypeIsString(t *testing.T) {
	tm := tmdm.New()
	a, typ := topic(tm, "a"), topic(tm, "type")
	o, n := a.AddOccurrence("1", "", typ), a.AddName("A", typ)
	v := n.AddVariant("v", "", typ)
	assert.Equal(t, tmdm.XSDString, o.Datatype())
	assert.Equal(t, tmdm.XSDString, v.Datatype())
	assert.True(t, tmdm.Equal(o, a.AddOccurrence("1", tmdm.XSDString, typ)))
	assert.True(t, tmdm.Equal(v, n.AddVariant("v", tmdm.XSDString, typ)))
	o.SetValue("2", tmdm.XSDInteger)
	v.SetValue("2", tmdm.XSDInteger)
	o.SetValue("3", "")
	v.SetValue("3", "")
	assert.Equal(t, tmdm.XSDString, o.Datatype())
	assert.Equal(t, tmdm.XSDString, v.Datatype())
}

func TestConstructsAndParents(t *testing.T) {
	tm := tmdm.New()
	a, b := topic(tm, "a"), topic(tm, "b")
	o := a.AddOccurrence("1", tmdm.XSDInteger, b)
	n := a.AddName("A", b)
	v, w := n.AddVariant("v", tmdm.XSDString, b), n.AddVariant("w", tmdm.XSDString, b)
	m := b.AddName("B", b)
	as := tm.CreateAssociation(b)
	r, s := as.AddRole(a, b), as.AddRole(b, a)
	all := []tmdm.Construct{tm, a, n, v, w, o, b, m, as, r, s}
	assert.Equal(t, all, list(tm.Constructs()))
	for i := range all {
		var met []tmdm.Construct
		for c := range tm.Constructs() {
			met = append(met, c)
			if len(met) > i {
				break
			}
		}
		assert.Equal(t, all[:i+1], met, "and no more is yielded")
	}

	assert.Nil(t, tmdm.Parent(tm))
	for _, pair := range [][2]tmdm.Construct{{a, tm}, {n, a}, {v, n}, {o, a}, {m, b}, {as, tm}, {r, as}} {
		assert.Same(t, pair[1], tmdm.Parent(pair[0]), tmdm.Describe(pair[0]))
	}
	assert.Nil(t, tmdm.Parent(nil))
}

func TestStatementsByType(t *testing.T) {
	tm := tmdm.New()
	a, home, other, unused := topic(tm, "a"), topic(tm, "home"), topic(tm, "other"), topic(tm, "unused")
	names := []*tmdm.TopicName{a.AddName("1", home), a.AddName("2", other), a.AddName("3", home)}
	os := []*tmdm.Occurrence{a.AddOccurrence("1", "", other), a.AddOccurrence("2", "", home), a.AddOccurrence("3", "", other)}
	as := []*tmdm.Association{tm.CreateAssociation(home), tm.CreateAssociation(other), tm.CreateAssociation(home)}
	roles := []*tmdm.AssociationRole{as[0].AddRole(other, a), as[0].AddRole(home, a), as[0].AddRole(other, home)}

	assert.Equal(t, []*tmdm.TopicName{names[0], names[2]}, list(a.NamesByType(home)))
	assert.Equal(t, []*tmdm.Occurrence{os[0], os[2]}, list(a.OccurrencesByType(other)))
	assert.Equal(t, []*tmdm.Association{as[0], as[2]}, list(tm.AssociationsByType(home)))
	assert.Equal(t, []*tmdm.AssociationRole{roles[0], roles[2]}, list(as[0].RolesByType(other)))
	assert.Empty(t, list(a.NamesByType(unused)))
	assert.Empty(t, list(a.OccurrencesByType(unused)))
	assert.Empty(t, list(tm.AssociationsByType(unused)))
	assert.Empty(t, list(as[0].RolesByType(unused)))
	for first := range a.NamesByType(home) {
		assert.Same(t, names[0], first)
		break
	}

	held := topic(tm, "held")
	assert.NoError(t, home.Merge(held))
	assert.Equal(t, []*tmdm.TopicName{names[0], names[2]}, list(a.NamesByType(held)), "by the topic that it has become")
}

func TestRolesPlayedByType(t *testing.T) {
	tm := tmdm.New()
	ibsen, play, wrote, by := topic(tm, "ibsen"), topic(tm, "a-doll's-house"), topic(tm, "wrote"), topic(tm, "by")
	work, lived, who, where := topic(tm, "work"), topic(tm, "lived"), topic(tm, "who"), topic(tm, "skien")
	authorship := tm.CreateAssociation(wrote)
	author, written := authorship.AddRole(by, ibsen), authorship.AddRole(work, play)
	home := tm.CreateAssociation(lived)
	inhabitant := home.AddRole(who, ibsen)
	home.AddRole(where, where)
	also := home.AddRole(by, ibsen)

	roles := func(r ...*tmdm.AssociationRole) []*tmdm.AssociationRole { return r }
	assert.Equal(t, roles(author), list(ibsen.RolesPlayedByType(by, wrote)))
	assert.Equal(t, roles(author, also), list(ibsen.RolesPlayedByType(by, nil)))
	assert.Equal(t, roles(inhabitant, also), list(ibsen.RolesPlayedByType(nil, lived)))
	assert.Equal(t, ibsen.RolesPlayed(), list(ibsen.RolesPlayedByType(nil, nil)))
	assert.Empty(t, list(ibsen.RolesPlayedByType(work, nil)))
	assert.Equal(t, roles(written), list(author.Others()))
	assert.Equal(t, roles(author), list(written.Others()))
	oldRole, oldType := topic(tm, "old role"), topic(tm, "old type")
	assert.NoError(t, by.Merge(oldRole))
	assert.NoError(t, wrote.Merge(oldType))
	assert.Equal(t, roles(author), list(ibsen.RolesPlayedByType(oldRole, oldType)), "by the topics that they have become")
	assert.Len(t, list(also.Others()), 2, "the one that the same topic plays is another")
	for range also.Others() {
		break // and no more is yielded
	}
	for first := range ibsen.RolesPlayedByType(nil, nil) {
		assert.Same(t, author, first)
		break
	}
}
