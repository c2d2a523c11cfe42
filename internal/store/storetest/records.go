package storetest

import (
	"fmt"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// topic returns the record of a topic with subject identifiers, the first of
// them its TopicSI, and nothing else.
func topic(sis ...tmdm.Locator) *fragment.Topic {
	t := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: sis}}
	t.Canonical()
	return t
}

func named(t *fragment.Topic, value string) *fragment.Topic {
	t.Names = append(t.Names, fragment.Name{Value: value, Type: tmdm.PSIDefaultNameType})
	t.Canonical()
	return t
}

func located(t *fragment.Topic, sls ...tmdm.Locator) *fragment.Topic {
	t.SubjectLocators = append(t.SubjectLocators, sls...)
	t.Canonical()
	return t
}

// association returns an association of a type with players of one role type.
func association(typ fragment.Ref, players ...fragment.Ref) *fragment.Association {
	a := &fragment.Association{Type: typ}
	for _, p := range players {
		a.Roles = append(a.Roles, fragment.Role{Type: "http://role", Player: p})
	}
	a.Canonical()
	return a
}

func typing(class, instance fragment.Ref) *fragment.Association {
	a := &fragment.Association{Type: tmdm.PSITypeInstance, Roles: []fragment.Role{
		{Type: tmdm.PSIType, Player: class}, {Type: tmdm.PSIInstance, Player: instance},
	}}
	a.Canonical()
	return a
}

// crowd returns n players.
func crowd(n int) []fragment.Ref {
	players := make([]fragment.Ref, n)
	for i := range players {
		players[i] = fragment.Ref(fmt.Sprintf("http://crowd/%03d", i))
	}
	return players
}

// full is a topic with everything that a topic record can have.
func full() *fragment.Topic {
	t := &fragment.Topic{
		Identity: fragment.Identity{
			SubjectIdentifiers: []tmdm.Locator{"http://full", "http://full/2", "http://a/full"},
			SubjectLocators:    []tmdm.Locator{"http://full.example.org/", "ftp://full"},
		},
		Names: []fragment.Name{
			{Value: "", Type: tmdm.PSIDefaultNameType},
			{
				Value: "東京 <&> \x00", Type: "http://type", Scope: []fragment.Ref{"http://theme/2", "http://theme/1"}, Reifier: "http://reifier/1",
				ItemIdentifiers: []tmdm.Locator{"http://sp/#n1", "http://sp/#n0"},
				Variants: []fragment.Variant{{
					Value: "v", Datatype: tmdm.XSDString, Scope: []fragment.Ref{"http://theme/1", "http://theme/2", "http://theme/3"},
					Reifier: "http://reifier/2", ItemIdentifiers: []tmdm.Locator{"http://sp/#v1"},
				}},
			},
		},
		Occurrences: []fragment.Occurrence{{
			Value: "42", Datatype: tmdm.XSDInteger, Type: "http://type", Scope: []fragment.Ref{"http://theme/1"},
			Reifier: "http://reifier/3", ItemIdentifiers: []tmdm.Locator{"http://sp/#o1"},
		}},
	}
	t.Canonical()
	return t
}

// fullAssociation is an association with everything that its record can have.
func fullAssociation() *fragment.Association {
	a := &fragment.Association{
		Type: "http://type", Scope: []fragment.Ref{"http://theme/2", "http://theme/1"}, Reifier: "http://reifier/4",
		ItemIdentifiers: []tmdm.Locator{"http://sp/#a1"},
		Roles: []fragment.Role{
			{Type: "http://role/2", Player: "http://player/1", Reifier: "http://reifier/5", ItemIdentifiers: []tmdm.Locator{"http://sp/#r1"}},
			{Type: "http://role/1", Player: "http://player/2"},
		},
	}
	a.Canonical()
	return a
}
