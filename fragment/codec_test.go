package fragment_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
)

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	testenv.Check(t, 50, 200, func(t *rapid.T) {
		topic := genTopic.Draw(t, "topic")
		stored := fragment.MarshalTopic(topic)
		languages := rapid.SampledFrom([][]string{nil, {"de"}, {"en", "de"}}).Draw(t, "languages")
		title, err := (&fragment.Names{Languages: languages}).Stored(stored)
		require.NoError(t, err)
		require.Equal(t, topic.Title(languages...), title)
		read, err := fragment.UnmarshalTopic(stored)
		require.NoError(t, err)
		require.Equal(t, topic, read)
		association := genAssociation.Draw(t, "association")
		readAssociation, err := fragment.UnmarshalAssociation(fragment.MarshalAssociation(association))
		require.NoError(t, err)
		require.Equal(t, association, readAssociation)
	})
}

// Whatever order a map or a document has things in, the bytes are the same.
func TestCanonicalRecordsHaveOneOrder(t *testing.T) {
	testenv.Check(t, 50, 200, func(t *rapid.T) {
		topic, association := genTopic.Draw(t, "topic"), genAssociation.Draw(t, "association")
		mixed, err := fragment.UnmarshalTopic(fragment.MarshalTopic(topic))
		require.NoError(t, err)
		mix(t, mixed.SubjectIdentifiers[1:]) // the first is the TopicSI and stays
		mix(t, mixed.SubjectLocators)
		mix(t, mixed.Names)
		for i := range mixed.Names {
			mix(t, mixed.Names[i].Scope)
			mix(t, mixed.Names[i].ItemIdentifiers)
			mix(t, mixed.Names[i].Variants)
			for j := range mixed.Names[i].Variants {
				mix(t, mixed.Names[i].Variants[j].Scope)
				mix(t, mixed.Names[i].Variants[j].ItemIdentifiers)
			}
		}
		mix(t, mixed.Occurrences)
		for i := range mixed.Occurrences {
			mix(t, mixed.Occurrences[i].Scope)
			mix(t, mixed.Occurrences[i].ItemIdentifiers)
		}
		mixed.Canonical()
		require.Equal(t, fragment.MarshalTopic(topic), fragment.MarshalTopic(mixed))

		mixedAssociation, err := fragment.UnmarshalAssociation(fragment.MarshalAssociation(association))
		require.NoError(t, err)
		mix(t, mixedAssociation.Scope)
		mix(t, mixedAssociation.ItemIdentifiers)
		mix(t, mixedAssociation.Roles)
		for i := range mixedAssociation.Roles {
			mix(t, mixedAssociation.Roles[i].ItemIdentifiers)
		}
		mixedAssociation.Canonical()
		require.Equal(t, fragment.MarshalAssociation(association), fragment.MarshalAssociation(mixedAssociation))
	})
}

func mix[T any](t *rapid.T, list []T) {
	copy(list, rapid.Permutation(slices.Clone(list)).Draw(t, "order"))
}

// Item identifiers depend on the document that was read, and Provisional on the subscriber. Neither is part of a
// record's content.
func TestItemIdentifiersDoNotMakeRecordsDifferent(t *testing.T) {
	testenv.Check(t, 50, 200, func(t *rapid.T) {
		topic, association := genTopic.Draw(t, "topic"), genAssociation.Draw(t, "association")
		other, err := fragment.UnmarshalTopic(fragment.MarshalTopic(topic))
		require.NoError(t, err)
		other.Provisional = !topic.Provisional
		ids := genIDs.Draw(t, "other ids")
		for i := range other.Names {
			other.Names[i].ItemIdentifiers = ids
			for j := range other.Names[i].Variants {
				other.Names[i].Variants[j].ItemIdentifiers = ids
			}
		}
		for i := range other.Occurrences {
			other.Occurrences[i].ItemIdentifiers = ids
		}
		require.True(t, fragment.SameTopic(topic, other))

		otherAssociation, err := fragment.UnmarshalAssociation(fragment.MarshalAssociation(association))
		require.NoError(t, err)
		otherAssociation.ItemIdentifiers = ids
		for i := range otherAssociation.Roles {
			otherAssociation.Roles[i].ItemIdentifiers = ids
		}
		require.True(t, fragment.SameAssociation(association, otherAssociation))
		require.Equal(t, association.Key(), otherAssociation.Key())
	})
}

func TestEveryPropertyMakesTopicsDifferent(t *testing.T) {
	full := func() *fragment.Topic {
		return &fragment.Topic{
			Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{a, b}, SubjectLocators: []tmdm.Locator{x}},
			Names: []fragment.Name{{Value: "n", Type: a, Scope: []fragment.Ref{b}, Reifier: c,
				Variants: []fragment.Variant{{Value: "v", Datatype: tmdm.XSDString, Scope: []fragment.Ref{b, c}, Reifier: d}}}},
			Occurrences: []fragment.Occurrence{{Value: "o", Datatype: tmdm.XSDString, Type: a, Scope: []fragment.Ref{b}, Reifier: e}},
		}
	}
	require.True(t, fragment.SameTopic(full(), full()))
	for name, change := range map[string]func(*fragment.Topic){
		"TopicSI":    func(t *fragment.Topic) { slices.Reverse(t.SubjectIdentifiers) },
		"identifier": func(t *fragment.Topic) { t.SubjectIdentifiers = t.SubjectIdentifiers[:1] },
		"locator":    func(t *fragment.Topic) { t.SubjectLocators = nil },
		"kind of identifier": func(t *fragment.Topic) {
			t.SubjectIdentifiers, t.SubjectLocators = []tmdm.Locator{a}, []tmdm.Locator{b, x}
		},
		"no names":           func(t *fragment.Topic) { t.Names = nil },
		"name":               func(t *fragment.Topic) { t.Names[0].Value = "m" },
		"name type":          func(t *fragment.Topic) { t.Names[0].Type = b },
		"name scope":         func(t *fragment.Topic) { t.Names[0].Scope = nil },
		"name reifier":       func(t *fragment.Topic) { t.Names[0].Reifier = "" },
		"no variants":        func(t *fragment.Topic) { t.Names[0].Variants = nil },
		"variant":            func(t *fragment.Topic) { t.Names[0].Variants[0].Value = "w" },
		"variant datatype":   func(t *fragment.Topic) { t.Names[0].Variants[0].Datatype = tmdm.XSDAnyURI },
		"variant scope":      func(t *fragment.Topic) { t.Names[0].Variants[0].Scope = []fragment.Ref{b, d} },
		"variant reifier":    func(t *fragment.Topic) { t.Names[0].Variants[0].Reifier = e },
		"no occurrences":     func(t *fragment.Topic) { t.Occurrences = nil },
		"occurrence":         func(t *fragment.Topic) { t.Occurrences[0].Value = "p" },
		"datatype":           func(t *fragment.Topic) { t.Occurrences[0].Datatype = tmdm.XSDInteger },
		"occurrence type":    func(t *fragment.Topic) { t.Occurrences[0].Type = b },
		"occurrence scope":   func(t *fragment.Topic) { t.Occurrences[0].Scope = []fragment.Ref{c} },
		"occurrence reifier": func(t *fragment.Topic) { t.Occurrences[0].Reifier = d },
	} {
		other := full()
		change(other)
		require.False(t, fragment.SameTopic(full(), other), name)
	}
}

// Keys hold the properties that the data model compares: a reifier makes a record differ, but not another
// association.
func TestUnequalAssociationsHaveDifferentKeys(t *testing.T) {
	role := func(typ, player tmdm.Locator) fragment.Role { return fragment.Role{Type: typ, Player: player} }
	distinct := []*fragment.Association{
		{Type: "h:a", Roles: []fragment.Role{role("h:b", "h:c")}},
		{Type: "h:b", Roles: []fragment.Role{role("h:b", "h:c")}},
		{Type: "h:a", Roles: []fragment.Role{role("h:c", "h:c")}},
		{Type: "h:a", Roles: []fragment.Role{role("h:b", "h:b")}},
		{Type: "h:a", Roles: []fragment.Role{role("h:c", "h:b")}},
		{Type: "h:a", Scope: []fragment.Ref{"h:b"}, Roles: []fragment.Role{role("h:b", "h:c")}},
		{Type: "h:a", Scope: []fragment.Ref{"h:b", "h:c"}, Roles: []fragment.Role{role("h:b", "h:c")}},
		{Type: "h:a", Roles: []fragment.Role{role("h:b", "h:c"), role("h:b", "h:d")}},
		{Type: "h:a", Roles: []fragment.Role{role("h:b", "h:d")}},
		{Type: "h:a", Scope: []fragment.Ref{"h:b"}, Roles: []fragment.Role{role("h:c", "h:d")}},
		{Type: "h:a", Roles: []fragment.Role{role("h:b", "h:c"), role("h:d", "h:d")}},
		{Type: "h:a", Roles: []fragment.Role{role("h:bh", ":c")}}, // where one locator ends shows
	}
	keys := map[fragment.AssociationKey]int{}
	for i, a := range distinct {
		if other, taken := keys[a.Key()]; taken {
			require.Failf(t, "equal keys", "of %+v and %+v", distinct[other], a)
		}
		keys[a.Key()] = i
		reified := *a
		reified.Reifier, reified.Roles = "h:r", slices.Clone(a.Roles)
		reified.Roles[0].Reifier = "h:s"
		require.Equal(t, a.Key(), reified.Key())
		require.False(t, fragment.SameAssociation(a, &reified))
	}
	testenv.Check(t, 50, 200, func(t *rapid.T) {
		one, two := genAssociation.Draw(t, "one"), genAssociation.Draw(t, "two")
		equal := one.Type == two.Type && slices.Equal(one.Scope, two.Scope) && slices.EqualFunc(one.Roles, two.Roles, func(r, s fragment.Role) bool {
			return r.Type == s.Type && r.Player == s.Player
		})
		require.Equal(t, equal, one.Key() == two.Key())
	})
}

// The next version must be able to read stored bytes. They change with the version of the on-disk format only.
// The key of a topic is part of its URL, and never changes.
func TestTheStoredFormIsFixed(t *testing.T) {
	topic := &fragment.Topic{
		Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{"s:1", "s:2"}, SubjectLocators: []tmdm.Locator{"l:"}}, Provisional: true,
		Names: []fragment.Name{{Value: "n", Type: "t:", Scope: []fragment.Ref{"h:"}, Reifier: "r:", ItemIdentifiers: []tmdm.Locator{"i:"},
			Variants: []fragment.Variant{{Value: "v", Datatype: "d:", Scope: []fragment.Ref{"h:", "k:"}}}}},
		Occurrences: []fragment.Occurrence{{Value: "o", Datatype: "d:", Type: "t:"}},
	}
	require.Equal(t, "013302"+"03733a31"+"03733a32"+"01026c3a"+
		"01"+"016e"+"02743a"+"0102683a"+"02723a"+"01"+"0176"+"02643a"+"0202683a026b3a"+"00"+
		"01"+"016f"+"02643a"+"02743a"+"00"+"00"+
		"0102693a"+"00"+"00", hex.EncodeToString(fragment.MarshalTopic(topic)))
	association := &fragment.Association{Type: "t:", Scope: []fragment.Ref{"h:"}, ItemIdentifiers: []tmdm.Locator{"i:"},
		Roles: []fragment.Role{{Type: "u:", Player: "p:", Reifier: "r:"}}}
	require.Equal(t, "12"+"02743a"+"0102683a"+"00"+"01"+"02753a"+"02703a"+"02723a"+"0102693a"+"00", hex.EncodeToString(fragment.MarshalAssociation(association)))
	key := association.Key()
	require.Equal(t, "8f4cd40590977ab10fcffe68a11b86da6d50a2d8c1bdeb7fad7a37f98bcc3506", hex.EncodeToString(key[:]))
	require.Equal(t, "tkcmdh6ptggu3xhhz7monbia4i", fragment.Key("http://psi.example.org/東京"))
}

func TestDamagedRecordsAreCorrupt(t *testing.T) {
	testenv.Check(t, 50, 200, func(t *rapid.T) {
		topic := fragment.MarshalTopic(genTopic.Draw(t, "topic"))
		association := fragment.MarshalAssociation(genAssociation.Draw(t, "association"))
		cut := rapid.IntRange(0, len(topic)-1).Draw(t, "cut")
		_, err := fragment.UnmarshalTopic(topic[:cut])
		require.ErrorIs(t, err, fragment.ErrCorrupt)
		_, err = fragment.UnmarshalTopic(append(topic, 0))
		require.ErrorIs(t, err, fragment.ErrCorrupt)
		cut = rapid.IntRange(0, len(association)-1).Draw(t, "cut")
		_, err = fragment.UnmarshalAssociation(association[:cut])
		require.ErrorIs(t, err, fragment.ErrCorrupt)
		_, err = fragment.UnmarshalAssociation(append(association, 0))
		require.ErrorIs(t, err, fragment.ErrCorrupt)
	})
	huge := strings.Repeat("\xff", 9) + "\x01" // a length of 2^63 and more
	for _, damaged := range []string{"", huge, "\x00" + huge, "\x04" + huge[:4], "\x0b\x00" + huge, "\x05\x01t\x00\x00\x00\x00", "\x00\x03\x00\x00\x00"} {
		_, err := fragment.UnmarshalTopic([]byte(damaged))
		require.ErrorIs(t, err, fragment.ErrCorrupt, "%q", damaged)
		_, err = fragment.UnmarshalAssociation([]byte(damaged))
		require.ErrorIs(t, err, fragment.ErrCorrupt, "%q", damaged)
	}
}

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
		title, err := (&fragment.Names{}).Stored(stored)
		require.NoError(t, err)
		require.Equal(t, again.Title(), title)
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

// A key is read as it is written, and nothing else is a key.
func TestKeysAreRead(t *testing.T) {
	key := fragment.Key(a)
	h, ok := fragment.ParseKey(key)
	require.True(t, ok)
	require.Equal(t, fragment.KeyHash(a), h)
	require.Equal(t, key, h.String())
	for _, other := range []string{"", "a", key[:25], key + "a", key[:25] + "z", strings.ToUpper(key), key[:13] + "\n" + key[13:], strings.Repeat("1", 26)} {
		_, ok := fragment.ParseKey(other)
		require.False(t, ok, "%q", other)
	}
}
