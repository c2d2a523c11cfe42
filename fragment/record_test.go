package fragment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

func typing(instance, class fragment.Ref) *fragment.Association {
	a := &fragment.Association{Type: tmdm.PSITypeInstance, Roles: []fragment.Role{
		{Type: tmdm.PSIInstance, Player: instance}, {Type: tmdm.PSIType, Player: class}}}
	a.Canonical()
	return a
}

// A type-instance association belongs to the instance. It is one only in the
// unconstrained scope, with just the two roles, and if nothing of it is reified.
func TestTheClassOnlyPlaysTypeInAnUnscopedUnreifiedBinaryTyping(t *testing.T) {
	one := typing(a, b)
	class, instance, ok := one.TypeInstance()
	require.True(t, ok)
	require.Equal(t, b, class)
	require.Equal(t, a, instance)
	require.Equal(t, fragment.AsInstance, one.Part(a))
	require.Equal(t, fragment.AsType, one.Part(b))
	require.Equal(t, fragment.AsInstance, typing(a, a).Part(a), "its own class")

	for name, change := range map[string]func(*fragment.Association){
		"other type":         func(t *fragment.Association) { t.Type = x },
		"scoped":             func(t *fragment.Association) { t.Scope = []fragment.Ref{x} },
		"reified":            func(t *fragment.Association) { t.Reifier = x },
		"reified instance":   func(t *fragment.Association) { t.Roles[0].Reifier = x },
		"reified class":      func(t *fragment.Association) { t.Roles[1].Reifier = x },
		"third role":         func(t *fragment.Association) { t.Roles = append(t.Roles, fragment.Role{Type: x, Player: c}) },
		"one role":           func(t *fragment.Association) { t.Roles = t.Roles[:1] },
		"two instances":      func(t *fragment.Association) { t.Roles[1].Type = tmdm.PSIInstance },
		"two classes":        func(t *fragment.Association) { t.Roles[0].Type = tmdm.PSIType },
		"other type of role": func(t *fragment.Association) { t.Roles[1].Type = x },
	} {
		association := typing(a, b)
		change(association)
		_, _, ok := association.TypeInstance()
		require.False(t, ok, name)
		for _, p := range association.Players() {
			require.Equal(t, fragment.AsPlayer, association.Part(p), name)
		}
	}
}

func TestPlayersComeOnceAndInOrder(t *testing.T) {
	association := &fragment.Association{Type: x, Roles: []fragment.Role{{Type: a, Player: c}, {Type: b, Player: a}, {Type: d, Player: c}, {Type: e, Player: b}}}
	require.Equal(t, []fragment.Ref{a, b, c}, association.Players())
}

func TestMentionsAreTypesThemesAndReifiersAsOftenAsTheyOccur(t *testing.T) {
	collect := func(mentions func(func(fragment.Ref))) map[fragment.Ref]int {
		counts := map[fragment.Ref]int{}
		mentions(func(r fragment.Ref) { counts[r]++ })
		return counts
	}
	topic := &fragment.Topic{
		Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{x}},
		Names: []fragment.Name{
			{Value: "n", Type: "name-type", Scope: []fragment.Ref{"theme", "other"}, Reifier: "name-reifier",
				Variants: []fragment.Variant{{Value: "v", Scope: []fragment.Ref{"theme", "other", "variant-theme"}, Reifier: "variant-reifier"}}},
			{Value: "m", Type: "name-type"}},
		Occurrences: []fragment.Occurrence{{Value: "o", Type: "occurrence-type", Scope: []fragment.Ref{"theme"}, Reifier: "occurrence-reifier"}},
	}
	require.Equal(t, map[fragment.Ref]int{
		"name-type": 2, "theme": 3, "other": 2, "variant-theme": 1, "name-reifier": 1, "variant-reifier": 1, "occurrence-type": 1, "occurrence-reifier": 1,
	}, collect(topic.Mentions))
	association := &fragment.Association{Type: "type", Scope: []fragment.Ref{"theme"}, Reifier: "reifier", Roles: []fragment.Role{
		{Type: "role", Player: "player"}, {Type: "role", Player: "other", Reifier: "role-reifier"}}}
	require.Equal(t, map[fragment.Ref]int{"type": 1, "theme": 1, "reifier": 1, "role": 2, "role-reifier": 1}, collect(association.Mentions))
}

func TestTheTitleIsTheBestName(t *testing.T) {
	topic := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{a, b}}}
	require.Equal(t, "http://a", topic.Title(), "the TopicSI, where there is no name")
	for _, n := range []fragment.Name{
		{Value: "", Type: tmdm.PSIDefaultNameType},
		{Value: "typed and scoped", Type: x, Scope: []fragment.Ref{c}},
		{Value: "scoped", Type: tmdm.PSIDefaultNameType, Scope: []fragment.Ref{c}},
		{Value: "typed", Type: x},
		{Value: "plain", Type: tmdm.PSIDefaultNameType},
	} { // each better than those before
		before := topic.Title()
		topic.Names = append([]fragment.Name{n}, topic.Names...)
		if n.Value == "" {
			require.Equal(t, before, topic.Title())
			continue
		}
		require.Equal(t, n.Value, topic.Title())
	}
	topic.Names = append(topic.Names, fragment.Name{Value: "plain too", Type: tmdm.PSIDefaultNameType})
	require.Equal(t, "plain", topic.Title(), "the first of equally good ones")
}

// A record without a datatype equals one with that of strings: the canonical forms, the claims and the stored forms are
// equal.
func TestAnEmptyDatatypeIsString(t *testing.T) {
	record := func(datatype string) *fragment.Topic {
		topic := &fragment.Topic{
			Identity:    fragment.Identity{SubjectIdentifiers: []tmdm.Locator{a}},
			Names:       []fragment.Name{{Value: "n", Type: x, Variants: []fragment.Variant{{Value: "v", Datatype: datatype, Scope: []fragment.Ref{b}}}}},
			Occurrences: []fragment.Occurrence{{Value: "o", Datatype: datatype, Type: x}},
		}
		topic.Canonical()
		return topic
	}
	require.Equal(t, record(tmdm.XSDString), record(""))
	n, v, o := &fragment.Name{Value: "n"}, &fragment.Variant{Value: "v"}, &fragment.Occurrence{Value: "o"}
	require.Equal(t, fragment.VariantClaim(sp, a, n, &fragment.Variant{Value: "v", Datatype: tmdm.XSDString}), fragment.VariantClaim(sp, a, n, v))
	require.Equal(t, fragment.OccurrenceClaim(sp, a, &fragment.Occurrence{Value: "o", Datatype: tmdm.XSDString}), fragment.OccurrenceClaim(sp, a, o))
}
