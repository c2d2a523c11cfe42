package tmdm

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAddType(t *testing.T) {
	tm := New()
	a, class, other := si(tm, "a"), si(tm, "class"), si(tm, "other")
	as := a.AddType(class)
	a.AddType(other)
	assert.Same(t, tm.TopicBySubjectIdentifier(PSITypeInstance), as.Type())
	gotClass, gotInstance, ok := as.TypeInstance()
	require.True(t, ok)
	assert.Same(t, class, gotClass)
	assert.Same(t, a, gotInstance)
	assert.Equal(t, []*Topic{class, other}, slices.Collect(a.Types()))
	assert.Empty(t, slices.Collect(class.Types()), "a class is no instance for that")
	for range a.Types() {
		break // and no more is yielded
	}
	checkInvariants(t, tm)
}

func TestTopicThatIsItsOwnClass(t *testing.T) {
	tm := New()
	a := si(tm, "a")
	a.AddType(a)
	assert.Equal(t, []*Topic{a}, slices.Collect(a.Types()))
}

// The roles may come in either order, and the identities through a merge.
func TestTypeInstanceRoles(t *testing.T) {
	tm := New()
	a, class := si(tm, "a"), si(tm, "class")
	as := tm.CreateAssociation(si(tm, "x"))
	as.AddRole(si(tm, "y"), a)
	as.AddRole(si(tm, "z"), class)
	assert.Empty(t, slices.Collect(a.Types()))
	for name, psi := range map[string]Locator{"x": PSITypeInstance, "y": PSIInstance, "z": PSIType} {
		require.NoError(t, tm.CreateTopicBySubjectIdentifier(psi).Merge(si(tm, name)))
	}
	gotClass, gotInstance, ok := as.TypeInstance()
	require.True(t, ok)
	assert.Same(t, class, gotClass)
	assert.Same(t, a, gotInstance)
	assert.Equal(t, []*Topic{class}, slices.Collect(a.Types()))
}

// A statement that says more than "is an instance of", or something else, is an association.
func TestNotTypeInstance(t *testing.T) {
	changes := map[string]func(tm *TopicMap, as *Association) *Association{
		"third role": func(tm *TopicMap, as *Association) *Association {
			as.AddRole(si(tm, "a"), si(tm, "a"))
			return as
		},
		"reifier": func(tm *TopicMap, as *Association) *Association { reify(as, si(tm, "r")); return as },
		"reifier of the class": func(tm *TopicMap, as *Association) *Association {
			reify(as.Roles()[0], si(tm, "r"))
			return as
		},
		"reifier of the instance": func(tm *TopicMap, as *Association) *Association {
			reify(as.Roles()[1], si(tm, "r"))
			return as
		},
		"scope": func(tm *TopicMap, as *Association) *Association {
			return copyOf(as, tm.CreateAssociation(as.Type(), si(tm, "a")))
		},
		"type": func(tm *TopicMap, as *Association) *Association {
			return copyOf(as, tm.CreateAssociation(si(tm, "a")))
		},
		"two classes": func(tm *TopicMap, as *Association) *Association {
			other := tm.CreateAssociation(as.Type())
			other.AddRole(as.Roles()[0].Type(), si(tm, "a"))
			other.AddRole(as.Roles()[0].Type(), si(tm, "b"))
			return other
		},
	}
	for what, change := range changes {
		t.Run(what, func(t *testing.T) {
			tm := New()
			as := si(tm, "instance").AddType(si(tm, "class"))
			as = change(tm, as)
			_, _, ok := as.TypeInstance()
			assert.False(t, ok)
		})
	}
}

// copyOf moves the roles of as to other.
func copyOf(as, other *Association) *Association {
	for _, r := range as.Roles() {
		other.AddRole(r.Type(), r.Player())
	}
	as.Remove()
	return other
}
