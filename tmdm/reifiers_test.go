package tmdm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whichever of two duplicates has a reifier, the one that stays has it.
func TestNormalizeKeepsTheReifier(t *testing.T) {
	for reified := range 2 {
		tm := New()
		a, r := si(tm, "a"), si(tm, "r")
		names := []*TopicName{a.AddName("1", nil), a.AddName("1", nil)}
		require.NoError(t, SetReifier(names[reified], r))
		require.NoError(t, tm.Normalize(t.Context()))
		assert.Same(t, r, names[0].Reifier())
		assert.Same(t, names[0], r.Reified())
		checkNormal(t, tm)
	}
}

// Duplicates of every kind join their reifiers.
func TestNormalizeJoinsReifiers(t *testing.T) {
	kinds := map[string]func(tm *TopicMap) [2]Reifiable{
		"name": func(tm *TopicMap) [2]Reifiable {
			return [2]Reifiable{si(tm, "a").AddName("1", nil), si(tm, "a").AddName("1", nil)}
		},
		"variant": func(tm *TopicMap) [2]Reifiable {
			n := si(tm, "a").AddName("1", nil)
			return [2]Reifiable{n.AddVariant("v", XSDString, si(tm, "b")), n.AddVariant("v", XSDString, si(tm, "b"))}
		},
		"variant of duplicate names": func(tm *TopicMap) [2]Reifiable {
			n, m := si(tm, "a").AddName("1", nil), si(tm, "a").AddName("1", nil)
			return [2]Reifiable{n.AddVariant("v", XSDString, si(tm, "b")), m.AddVariant("v", XSDString, si(tm, "b"))}
		},
		"occurrence": func(tm *TopicMap) [2]Reifiable {
			a := si(tm, "a")
			return [2]Reifiable{a.AddOccurrence("1", XSDString, a), a.AddOccurrence("1", XSDString, a)}
		},
		"association": func(tm *TopicMap) [2]Reifiable {
			return [2]Reifiable{si(tm, "a").AddType(si(tm, "b")), si(tm, "a").AddType(si(tm, "b"))}
		},
		"role": func(tm *TopicMap) [2]Reifiable {
			as := tm.CreateAssociation(si(tm, "a"))
			return [2]Reifiable{as.AddRole(si(tm, "a"), si(tm, "b")), as.AddRole(si(tm, "a"), si(tm, "b"))}
		},
		"role of duplicate associations": func(tm *TopicMap) [2]Reifiable {
			return [2]Reifiable{si(tm, "a").AddType(si(tm, "b")).Roles()[1], si(tm, "a").AddType(si(tm, "b")).Roles()[1]}
		},
	}
	for kind, create := range kinds {
		t.Run(kind, func(t *testing.T) {
			tm := New()
			pair := create(tm)
			r, s := si(tm, "r"), si(tm, "s")
			require.NoError(t, SetReifier(pair[0], r))
			require.NoError(t, SetReifier(pair[1], s))
			require.NoError(t, tm.Normalize(t.Context()))
			assert.Equal(t, []Locator{ex + "r", ex + "s"}, r.SubjectIdentifiers())
			assert.Same(t, r, pair[0].Reifier())
			assert.Same(t, pair[0], r.Reified())
			assert.Nil(t, pair[1].Reifier())
			checkNormal(t, tm)
		})
	}
}

// Each pair of reifiers that is joined makes the next pair of names equal.
func TestNormalizeJoinsReifiersInTurn(t *testing.T) {
	tm := New()
	a := si(tm, "a")
	const n = 10
	for i := n; i > 0; i-- {
		for _, side := range []string{"l", "r"} {
			name := a.AddName(fmt.Sprint(i), nil, si(tm, fmt.Sprint(side, i)))
			require.NoError(t, SetReifier(name, si(tm, fmt.Sprint(side, i+1))))
		}
	}
	require.NoError(t, tm.Normalize(t.Context()))
	require.Len(t, a.Names(), 2*n, "nothing is equal yet")
	require.NoError(t, si(tm, "l1").Merge(si(tm, "r1")))
	require.NoError(t, tm.Normalize(t.Context()))
	assert.Len(t, a.Names(), n)
	assert.Same(t, si(tm, fmt.Sprint("l", n+1)), si(tm, fmt.Sprint("r", n+1)))
	checkNormal(t, tm)
}

// Statements that share a reifier while they are equal, and then come to differ:
// the roles of associations are added after the reifier was set.
func sharedReifier(t *testing.T, tm *TopicMap, r *Topic) (one, two *Association) {
	t.Helper()
	typ := si(tm, "type")
	one, two = tm.CreateAssociation(typ), tm.CreateAssociation(typ)
	require.NoError(t, SetReifier(one, r))
	require.NoError(t, SetReifier(two, r))
	one.AddRole(typ, si(tm, "a"))
	two.AddRole(typ, si(tm, "b"))
	return one, two
}

func TestNormalizeReportsASharedReifier(t *testing.T) {
	tm := New()
	r := si(tm, "r")
	one, two := sharedReifier(t, tm, r)
	checkInvariants(t, tm)
	assert.Equal(t, Conflicts{{r, two, one}}, tm.Normalize(t.Context()))
	assert.Same(t, r, one.Reifier())
	assert.Nil(t, two.Reifier())
	checkNormal(t, tm)
}

// A duplicate's reifier that stands for something else as well cannot be joined.
func TestNormalizeReportsReifiersThatCannotJoin(t *testing.T) {
	tm := New()
	r, s := si(tm, "r"), si(tm, "s")
	first := tm.CreateAssociation(si(tm, "type"))
	first.AddRole(si(tm, "type"), si(tm, "b"))
	require.NoError(t, SetReifier(first, s))
	one, two := sharedReifier(t, tm, r) // two is equal to first

	assert.Equal(t, Conflicts{{r, first, one}}, tm.Normalize(t.Context()))
	assert.Same(t, s, first.Reifier())
	assert.Same(t, first, s.Reified())
	assert.Same(t, one, r.Reified())
	assert.True(t, two.removed())
	checkNormal(t, tm)
}

// A conflict is reported for the topics that exist after the merge.
func TestNormalizeReportsMergedReifiers(t *testing.T) {
	tm := New()
	q, r, s := si(tm, "q"), si(tm, "r"), si(tm, "s")
	association := func(player string, reifier *Topic) *Association {
		as := tm.CreateAssociation(si(tm, "type"))
		as.AddRole(si(tm, "type"), si(tm, player))
		require.NoError(t, SetReifier(as, reifier))
		return as
	}
	likeOne, likeTwo := association("a", q), association("b", s)
	sharedReifier(t, tm, r)
	assert.Equal(t, Conflicts{{q, likeTwo, likeOne}}, tm.Normalize(t.Context()))
	assert.Same(t, q, si(tm, "r"))
	checkNormal(t, tm)
}

// No conflict: the two that r stands for become equal through another pair of
// reifiers, which is merged later in the same pass.
func TestNormalizeJoinsReifiersThatHadToWait(t *testing.T) {
	tm := New()
	r, s, a, b := si(tm, "r"), si(tm, "s"), si(tm, "a"), si(tm, "b")
	first := tm.CreateAssociation(si(tm, "type"))
	first.AddRole(si(tm, "type"), b)
	require.NoError(t, SetReifier(first, s))
	sharedReifier(t, tm, r)
	for _, reifier := range []*Topic{a, b} {
		as := tm.CreateAssociation(si(tm, "last"))
		as.AddRole(si(tm, "type"), si(tm, "type"))
		require.NoError(t, SetReifier(as, reifier))
	}
	require.NoError(t, tm.Normalize(t.Context()))
	assert.Same(t, si(tm, "a"), si(tm, "b"))
	assert.Same(t, si(tm, "s"), si(tm, "r"))
	assert.Same(t, first, si(tm, "s").Reified())
	checkNormal(t, tm)
}
