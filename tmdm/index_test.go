package tmdm_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/tmdm"
)

func TestIndex(t *testing.T) {
	tm, oslo, city, port, _, _ := hierarchy()
	nb, kind := topic(tm, "nb"), topic(tm, "kind")
	name := oslo.AddName("Oslo", kind, nb)
	variant := name.AddVariant("oslo", tmdm.XSDString, city)
	o := city.AddOccurrence("Oslo", tmdm.XSDString, kind, nb)
	as := tm.CreateAssociation(kind, nb)
	role := as.AddRole(kind, oslo)
	require.Empty(t, tm.Normalize())

	x := tmdm.NewIndex(tm)
	assert.Equal(t, []*tmdm.Topic{city, port}, x.TopicTypes())
	assert.Equal(t, []*tmdm.Topic{oslo}, x.TopicsByType(city))
	assert.Empty(t, x.TopicsByType(oslo))
	assert.NotContains(t, x.UntypedTopics(), oslo)
	assert.Contains(t, x.UntypedTopics(), city)
	assert.Equal(t, []*tmdm.Topic{kind}, x.NameTypes())
	assert.Equal(t, []*tmdm.TopicName{name}, x.NamesByType(kind))
	assert.Equal(t, []*tmdm.Topic{kind}, x.OccurrenceTypes())
	assert.Equal(t, []*tmdm.Occurrence{o}, x.OccurrencesByType(kind))
	assert.Equal(t, []*tmdm.Topic{tm.TopicBySubjectIdentifier(tmdm.PSISupertypeSubtype),
		tm.TopicBySubjectIdentifier(tmdm.PSITypeInstance), kind}, x.AssociationTypes())
	assert.Equal(t, []*tmdm.Association{as}, x.AssociationsByType(kind))
	assert.Len(t, x.RoleTypes(), 5)
	assert.Equal(t, []*tmdm.AssociationRole{role}, x.RolesByType(kind))
	assert.Equal(t, []*tmdm.Topic{nb, city}, x.Themes())
	assert.Equal(t, []tmdm.Scoped{name, variant, o, as}, x.ByTheme(nb))
	assert.Equal(t, []tmdm.Scoped{variant}, x.ByTheme(city))
	assert.Equal(t, []tmdm.Valued{name, o}, x.ByValue("Oslo"))
	assert.Equal(t, []tmdm.Valued{variant}, x.ByValue("oslo"))
	assert.Empty(t, x.ByValue(""))

	oslo.AddType(nb)
	assert.Empty(t, x.TopicsByType(nb), "it shows the map as it was")
}

func TestIndexOfAnEmptyMap(t *testing.T) {
	x := tmdm.NewIndex(tmdm.New())
	assert.Empty(t, x.TopicTypes())
	assert.Empty(t, x.TopicsByType(nil))
	assert.Empty(t, x.ByValue("x"))
}

// items returns the items of a kind that a walk through the map finds.
func items[C tmdm.Construct](tm *tmdm.TopicMap, keep func(C) bool) (found []C) {
	for c := range tm.Constructs() {
		if c, ok := c.(C); ok && keep(c) {
			found = append(found, c)
		}
	}
	return found
}

// The index has what a walk finds, in the same order, whichever topic is asked
// for, be it one that was merged into another.
func TestIndexOfRandomMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tm, topics := randomMap(t)
		x := tmdm.NewIndex(tm)
		for _, asked := range slices.Concat(topics, list(tm.Topics())) {
			topic := asked
			if ids := asked.SubjectIdentifiers(); len(ids) > 0 {
				topic = tm.TopicBySubjectIdentifier(ids[0])
			}
			instances := items(tm, func(i *tmdm.Topic) bool { return count(topic.Instances(), i) > 0 })
			names := items(tm, func(n *tmdm.TopicName) bool { return n.Type() == topic })
			occurrences := items(tm, func(o *tmdm.Occurrence) bool { return o.Type() == topic })
			associations := items(tm, func(a *tmdm.Association) bool { return a.Type() == topic })
			roles := items(tm, func(r *tmdm.AssociationRole) bool { return r.Type() == topic })
			scoped := items(tm, func(c tmdm.Scoped) bool { return slices.Contains(c.Scope().Themes(), topic) })

			require.Equal(t, instances, x.TopicsByType(asked))
			require.Equal(t, names, x.NamesByType(asked))
			require.Equal(t, occurrences, x.OccurrencesByType(asked))
			require.Equal(t, associations, x.AssociationsByType(asked))
			require.Equal(t, roles, x.RolesByType(asked))
			require.Equal(t, scoped, x.ByTheme(asked))

			require.Equal(t, len(instances) > 0, slices.Contains(x.TopicTypes(), topic))
			require.Equal(t, len(names) > 0, slices.Contains(x.NameTypes(), topic))
			require.Equal(t, len(occurrences) > 0, slices.Contains(x.OccurrenceTypes(), topic))
			require.Equal(t, len(associations) > 0, slices.Contains(x.AssociationTypes(), topic))
			require.Equal(t, len(roles) > 0, slices.Contains(x.RoleTypes(), topic))
			require.Equal(t, len(scoped) > 0, slices.Contains(x.Themes(), topic))
			require.Equal(t, len(list(topic.AllTypes())) == 0, slices.Contains(x.UntypedTopics(), topic))
		}
		for _, value := range []string{"x", "y", "z", ""} {
			require.Equal(t, items(tm, func(c tmdm.Valued) bool { return c.Value() == value }), x.ByValue(value))
		}
	})
}
