package tmdm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/tmdm"
)

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
	assert.Equal(t, []*tmdm.TopicName{names[0], names[2]}, list(a.NamesByType(held)), "by what it has become")
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
	assert.Equal(t, roles(author), list(ibsen.RolesPlayedByType(oldRole, oldType)), "by what they have become")
	assert.Len(t, list(also.Others()), 2, "the one that the same topic plays is another")
	for range also.Others() {
		break // and no more is yielded
	}
	for first := range ibsen.RolesPlayedByType(nil, nil) {
		assert.Same(t, author, first)
		break
	}
}
