package tmdm_test

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
)

func list[T any](seq iter.Seq[T]) []T { return slices.Collect(seq) }

// hierarchy makes a map with a hierarchy: oslo and bergen are cities, a city is a
// settlement and a port may be one, and a settlement is a place.
func hierarchy() (tm *tmdm.TopicMap, oslo, city, port, settlement, place *tmdm.Topic) {
	tm = tmdm.New()
	oslo, city, port = topic(tm, "oslo"), topic(tm, "city"), topic(tm, "port")
	settlement, place = topic(tm, "settlement"), topic(tm, "place")
	settlement.AddSupertype(place)
	city.AddSupertype(settlement)
	port.AddSupertype(settlement)
	port.AddSupertype(place)
	oslo.AddType(city)
	oslo.AddType(port)
	return tm, oslo, city, port, settlement, place
}

func TestDirectRelations(t *testing.T) {
	tm, oslo, city, port, settlement, place := hierarchy()
	bergen := topic(tm, "bergen")
	bergen.AddType(city)
	assert.Equal(t, []*tmdm.Topic{oslo, bergen}, list(city.Instances()))
	assert.Equal(t, []*tmdm.Topic{oslo}, list(port.Instances()))
	assert.Empty(t, list(settlement.Instances()), "only those of its subtypes")
	assert.Equal(t, []*tmdm.Topic{settlement}, list(city.Supertypes()))
	assert.Equal(t, []*tmdm.Topic{settlement, place}, list(port.Supertypes()))
	assert.Equal(t, []*tmdm.Topic{city, port}, list(settlement.Subtypes()))
	assert.Equal(t, []*tmdm.Topic{settlement, port}, list(place.Subtypes()))
	assert.Empty(t, list(city.Subtypes()))
	assert.Empty(t, list(oslo.Supertypes()), "a class is no supertype")
}

func TestTransitiveRelations(t *testing.T) {
	_, oslo, city, port, settlement, place := hierarchy()
	assert.Equal(t, []*tmdm.Topic{settlement, place}, list(city.AllSupertypes()))
	assert.Equal(t, []*tmdm.Topic{settlement, place}, list(port.AllSupertypes()), "place once, though there are two ways")
	assert.Equal(t, []*tmdm.Topic{settlement, port, city}, list(place.AllSubtypes()), "the nearest first")
	assert.Equal(t, []*tmdm.Topic{city, port, settlement, place}, list(oslo.AllTypes()))
	assert.Equal(t, []*tmdm.Topic{oslo}, list(place.AllInstances()))
	for _, class := range []*tmdm.Topic{city, port, settlement, place} {
		assert.True(t, oslo.IsInstanceOf(class))
		assert.False(t, city.IsInstanceOf(class), "a subtype is no instance")
	}
	assert.False(t, oslo.IsInstanceOf(oslo))
	assert.False(t, oslo.IsInstanceOf(nil))
}

// ISO 13250-2 §7.3 allows loops: the types in it have the same instances.
func TestSupertypesInALoop(t *testing.T) {
	tm := tmdm.New()
	a, b, c, x := topic(tm, "a"), topic(tm, "b"), topic(tm, "c"), topic(tm, "x")
	a.AddSupertype(b)
	b.AddSupertype(c)
	c.AddSupertype(a)
	c.AddSupertype(c)
	x.AddType(b)
	assert.Equal(t, []*tmdm.Topic{b, c}, list(a.AllSupertypes()))
	assert.Equal(t, []*tmdm.Topic{c, b}, list(a.AllSubtypes()))
	assert.Equal(t, []*tmdm.Topic{b, c, a}, list(x.AllTypes()))
	for _, class := range []*tmdm.Topic{a, b, c} {
		assert.Equal(t, []*tmdm.Topic{x}, list(class.AllInstances()))
		assert.True(t, x.IsInstanceOf(class))
	}
}

func TestWalksStopWhenAsked(t *testing.T) {
	_, oslo, city, _, _, place := hierarchy()
	for _, seq := range []iter.Seq[*tmdm.Topic]{
		oslo.AllTypes(), city.AllSupertypes(), place.AllSubtypes(), place.Subtypes(), city.Instances(), place.AllInstances(),
	} {
		n := 0
		for range seq {
			n++
			break
		}
		assert.Equal(t, 1, n)
	}
}

// Only statements without condition count, and a reifier is no condition.
func TestWhatCountsAsARelation(t *testing.T) {
	tm, oslo, city, _, _, place := hierarchy()
	roles := list(oslo.RolesPlayed()[0].Association().RolesByType(tm.TopicBySubjectIdentifier(tmdm.PSIInstance)))
	require.Len(t, roles, 1)
	require.NoError(t, tmdm.SetReifier(roles[0].Association(), topic(tm, "reifier")))
	require.NoError(t, tmdm.SetReifier(roles[0], topic(tm, "reifier of the role")))
	assert.Equal(t, []*tmdm.Topic{oslo}, list(city.Instances()))
	assert.True(t, oslo.IsInstanceOf(city))

	psi := tm.CreateTopicBySubjectIdentifier
	relation := func(typ, role, other tmdm.Locator, themes ...*tmdm.Topic) *tmdm.Association {
		a := tm.CreateAssociation(psi(typ), themes...)
		a.AddRole(psi(role), oslo)
		a.AddRole(psi(other), place)
		return a
	}
	relation(tmdm.PSITypeInstance, tmdm.PSIInstance, tmdm.PSIType, city)
	relation(tmdm.PSITypeInstance, tmdm.PSIInstance, tmdm.PSIType).AddRole(city, city)
	relation(tmdm.PSISupertypeSubtype, tmdm.PSIInstance, tmdm.PSIType)
	relation(tmdm.PSITypeInstance, tmdm.PSIInstance, tmdm.PSIInstance)
	tm.CreateAssociation(psi(tmdm.PSITypeInstance)).AddRole(psi(tmdm.PSIInstance), oslo)
	assert.Empty(t, list(place.Instances()))
	assert.Len(t, list(oslo.AllTypes()), 4, "those of the hierarchy")

	relation(tmdm.PSITypeInstance, tmdm.PSIInstance, tmdm.PSIType)
	assert.Equal(t, []*tmdm.Topic{oslo}, list(place.Instances()))
}

func TestRemoveTypeAndSupertype(t *testing.T) {
	tm, oslo, city, port, settlement, place := hierarchy()
	oslo.AddType(city) // twice
	before := len(list(tm.Associations()))
	oslo.RemoveType(city)
	assert.Len(t, list(tm.Associations()), before-2)
	assert.Equal(t, []*tmdm.Topic{port}, list(oslo.Types()))
	assert.Empty(t, list(city.Instances()))

	oslo.RemoveType(settlement)
	assert.True(t, oslo.IsInstanceOf(settlement), "it is one through port")
	port.RemoveSupertype(settlement)
	assert.False(t, oslo.IsInstanceOf(settlement))
	assert.Equal(t, []*tmdm.Topic{place}, list(port.Supertypes()))
	assert.Equal(t, []*tmdm.Topic{city}, list(settlement.Subtypes()))
}

// A topic that was merged into another asks the other, and changes it.
func TestRelationsOfMergedTopics(t *testing.T) {
	tm, oslo, city, port, settlement, place := hierarchy()
	old := topic(tm, "old")
	old.AddType(place)
	require.NoError(t, place.Merge(old))
	assert.True(t, oslo.IsInstanceOf(old))
	assert.Equal(t, []*tmdm.Topic{place}, list(old.Instances()), "it is its own class now")
	assert.Equal(t, []*tmdm.Topic{settlement, port, city}, list(old.AllSubtypes()))
	assert.Equal(t, []*tmdm.Topic{place, oslo}, list(old.AllInstances()))
	place.AddSupertype(city)
	assert.Equal(t, []*tmdm.Topic{city, settlement}, list(old.AllSupertypes()), "not itself, though it is in a loop")
	settlement.RemoveSupertype(old)
	assert.Equal(t, []*tmdm.Topic{port}, list(place.Subtypes()))
}

// pairs collects from a plain walk over the associations who stands to whom in a
// relation of §7.
func pairs(tm *tmdm.TopicMap, association, from, to tmdm.Locator) map[[2]*tmdm.Topic]bool {
	found := map[[2]*tmdm.Topic]bool{}
	is := func(t *tmdm.Topic, psi tmdm.Locator) bool { return slices.Contains(t.SubjectIdentifiers(), psi) }
	for a := range tm.Associations() {
		if !is(a.Type(), association) || len(a.Scope().Themes()) > 0 || len(a.Roles()) != 2 {
			continue
		}
		for i, r := range a.Roles() {
			if other := a.Roles()[1-i]; is(r.Type(), from) && is(other.Type(), to) {
				found[[2]*tmdm.Topic{r.Player(), other.Player()}] = true
			}
		}
	}
	return found
}

// The relations agree with a plain walk over the associations and with the
// definition of transitivity, whatever loops there are.
func TestHierarchyOfRandomMaps(t *testing.T) {
	testenv.Check(t, 50, 300, func(t *rapid.T) {
		tm, _ := randomMap(t)
		instances := pairs(tm, tmdm.PSITypeInstance, tmdm.PSIInstance, tmdm.PSIType)
		direct := pairs(tm, tmdm.PSISupertypeSubtype, tmdm.PSISubtype, tmdm.PSISupertype)
		above := map[[2]*tmdm.Topic]bool{}
		for p := range direct {
			above[p] = true
		}
		topics := list(tm.Topics())
		for _, middle := range topics {
			for _, a := range topics {
				for _, b := range topics {
					if above[[2]*tmdm.Topic{a, middle}] && above[[2]*tmdm.Topic{middle, b}] {
						above[[2]*tmdm.Topic{a, b}] = true
					}
				}
			}
		}
		for _, a := range topics {
			for _, b := range topics {
				pair := [2]*tmdm.Topic{a, b}
				require.Equal(t, instances[pair], count(b.Instances(), a) == 1)
				require.Equal(t, direct[pair], count(a.Supertypes(), b) == 1)
				require.Equal(t, direct[pair], count(b.Subtypes(), a) == 1)
				require.Equal(t, above[pair] && a != b, count(a.AllSupertypes(), b) == 1)
				require.Equal(t, above[pair] && a != b, count(b.AllSubtypes(), a) == 1)
				is := instances[pair] || slices.ContainsFunc(topics, func(class *tmdm.Topic) bool {
					return instances[[2]*tmdm.Topic{a, class}] && above[[2]*tmdm.Topic{class, b}]
				})
				require.Equal(t, is, a.IsInstanceOf(b))
				require.Equal(t, is, count(a.AllTypes(), b) == 1)
				require.Equal(t, is, count(b.AllInstances(), a) == 1)
			}
		}
	})
}

// count returns how often a walk meets a topic.
func count(seq iter.Seq[*tmdm.Topic], topic *tmdm.Topic) (n int) {
	for t := range seq {
		if t == topic {
			n++
		}
	}
	return n
}
