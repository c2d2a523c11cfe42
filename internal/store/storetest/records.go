package storetest

import (
	"fmt"
	"testing"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
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
				Value: "東京 <&> \x00", Type: "http://type", Scope: []fragment.Ref{"http://theme/2", "http://theme/1"},
				Reifier:         "http://reifier/1",
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
			{Type: "http://role/2", Player: "http://player/1", Reifier: "http://reifier/5",
				ItemIdentifiers: []tmdm.Locator{"http://sp/#r1"}},
			{Type: "http://role/1", Player: "http://player/2"},
		},
	}
	a.Canonical()
	return a
}

// Ref returns the i-th of the subject identifiers that tests use.
func Ref(i int) fragment.Ref { return fragment.Ref(fmt.Sprintf("http://example.org/%06d", i)) }

// Named returns the record of a topic with one name.
func Named(si fragment.Ref, name string) *fragment.Topic {
	return &fragment.Topic{
		Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{si}},
		Names:    []fragment.Name{{Value: name, Type: tmdm.PSIDefaultNameType}},
	}
}

// Everything lists the records and answers of a state.
func Everything(t testing.TB, s merge.State) string { return Dump(t, s) + Answers(t, s) }

// Reifying returns the records of n topics, each with a reified occurrence, and
// of n reified associations of two of them.
func Reifying(n int) []fragment.Record {
	var list []fragment.Record
	for i := range n {
		t := Named(Ref(i), "first")
		t.Occurrences = []fragment.Occurrence{{
			Value: "x", Datatype: tmdm.XSDString, Type: Ref(n), Scope: []fragment.Ref{Ref(n + 1)}, Reifier: Ref(n + 2 + i),
		}}
		a := &fragment.Association{Type: Ref(i % 7), Reifier: Ref(2*n + 2 + i), Roles: []fragment.Role{
			{Type: Ref(n), Player: Ref(i)}, {Type: Ref(n + 1), Player: Ref((i + 1) % n)},
		}}
		a.Canonical()
		list = append(list, fragment.Record{Topic: t}, fragment.Record{Association: a})
	}
	return list
}
