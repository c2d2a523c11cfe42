package fragment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// Whatever bytes are read, they are corrupt or a record that can be stored,
// put in order and asked for its parts.

func FuzzUnmarshalTopic(f *testing.F) {
	topic := &fragment.Topic{
		Identity:    fragment.Identity{SubjectIdentifiers: []tmdm.Locator{a, b}, SubjectLocators: []tmdm.Locator{c}},
		Names:       []fragment.Name{{Value: "n", Type: a, Scope: []fragment.Ref{b}, Variants: []fragment.Variant{{Value: "v", Scope: []fragment.Ref{b, c}}}}},
		Occurrences: []fragment.Occurrence{{Value: "o", Datatype: tmdm.XSDString, Type: a, Reifier: d, ItemIdentifiers: []tmdm.Locator{e}}},
	}
	f.Add(fragment.MarshalTopic(topic))
	f.Add([]byte{})
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, stored []byte) {
		topic, err := fragment.UnmarshalTopic(stored)
		if err != nil {
			require.ErrorIs(t, err, fragment.ErrCorrupt)
			return
		}
		again, err := fragment.UnmarshalTopic(fragment.MarshalTopic(topic))
		require.NoError(t, err)
		require.Equal(t, topic, again)
		topic.Canonical()
		topic.Mentions(func(fragment.Ref) {})
		_ = topic.TopicSI() + fragment.Ref(topic.Title())
	})
}

func FuzzUnmarshalAssociation(f *testing.F) {
	association := &fragment.Association{Type: tmdm.PSITypeInstance, Scope: []fragment.Ref{b}, Roles: []fragment.Role{
		{Type: tmdm.PSIInstance, Player: a}, {Type: tmdm.PSIType, Player: c, Reifier: d, ItemIdentifiers: []tmdm.Locator{e}}}}
	f.Add(fragment.MarshalAssociation(association))
	f.Add([]byte{})
	f.Add([]byte{4, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, stored []byte) {
		association, err := fragment.UnmarshalAssociation(stored)
		if err != nil {
			require.ErrorIs(t, err, fragment.ErrCorrupt)
			return
		}
		again, err := fragment.UnmarshalAssociation(fragment.MarshalAssociation(association))
		require.NoError(t, err)
		require.Equal(t, association, again)
		association.Canonical()
		association.Mentions(func(fragment.Ref) {})
		require.NotEqual(t, fragment.AssociationKey{}, association.Key())
		_ = association.Part(association.Players()[0])
	})
}
