package fragment_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// change publishes two versions and returns what the second one changes.
func change(t testing.TB, before, after func(draft)) *fragment.Change {
	t.Helper()
	prior := published(t, nil, before)
	return diff(t, prior, published(t, prior, after))
}

func diff(t testing.TB, prior fragment.Source, next *fragment.Map) *fragment.Change {
	t.Helper()
	c, err := fragment.Diff(t.Context(), prior, next)
	require.NoError(t, err)
	return c
}

// entries says what is published: "a" for a fragment of a, "b of a" for the
// closing entry of b that describes a, "no b" for a tombstone.
func entries(c *fragment.Change) (said []string) {
	for _, e := range c.Entries {
		s := string(e.TopicSI)
		switch {
		case e.Deleted:
			s = "no " + s
		case e.Topic != e.TopicSI:
			s += " of " + string(e.Topic)
		}
		said = append(said, s)
	}
	return said
}

// base is a version in which everything is mentioned that the cases below add,
// so that they change nothing else.
func base(m draft) {
	m.named("A", a).AddType(m.named("B", b))
	m.topic(c).AddOccurrence("o", tmdm.XSDString, m.topic(d))
	m.associate(x, m.topic(a), m.topic(c))
	m.topic(e)
}

// Each case is what is done to base, and whose fragments are published for it.
func TestWhatChangesATopic(t *testing.T) {
	names := func(t *tmdm.Topic) *tmdm.TopicName { return t.Names()[0] }
	association := func(m draft) *tmdm.Association {
		for a := range m.Associations() {
			if len(a.Scope().Themes()) == 0 && a.Type() == m.topic(x) {
				return a
			}
		}
		panic("no association")
	}
	for name, o := range map[string]struct {
		edit      func(draft)
		published []string
	}{
		"nothing":                   {func(draft) {}, nil},
		"subject identifier gained": {func(m draft) { m.topic(a, "http://new") }, []string{"http://a"}},
		"subject locator gained":    {func(m draft) { _ = m.topic(a).AddSubjectLocator("http://new") }, []string{"http://a"}},
		"name":                      {func(m draft) { m.named("another", a) }, []string{"http://a"}},
		"theme of a name":           {func(m draft) { names(m.topic(a)).Remove(); m.topic(a).AddName("A", nil, m.topic(e)) }, []string{"http://a"}},
		"type of a name":            {func(m draft) { names(m.topic(a)).Remove(); m.topic(a).AddName("A", m.topic(e)) }, []string{"http://a"}},
		"reifier of a name":         {func(m draft) { m.reify(names(m.topic(a)), e) }, []string{"http://a"}},
		"variant":                   {func(m draft) { names(m.topic(a)).AddVariant("v", tmdm.XSDString, m.topic(e)) }, []string{"http://a"}},
		"reifier of a variant":      {func(m draft) { m.reify(names(m.topic(a)).AddVariant("v", tmdm.XSDString, m.topic(e)), e) }, []string{"http://a"}},
		"occurrence":                {func(m draft) { m.topic(a).AddOccurrence("o", tmdm.XSDString, m.topic(d)) }, []string{"http://a"}},
		"datatype": {func(m draft) {
			m.topic(c).Occurrences()[0].Remove()
			m.topic(c).AddOccurrence("o", tmdm.XSDAnyType, m.topic(d))
		}, []string{"http://c"}},
		"reifier of an occurrence":     {func(m draft) { m.reify(m.topic(c).Occurrences()[0], e) }, []string{"http://c"}},
		"association, for each player": {func(m draft) { m.associate(x, m.topic(a), m.topic(e)) }, []string{"http://a", "http://e"}},
		"association gone":             {func(m draft) { association(m).Remove() }, []string{"http://a", "http://c"}},
		"reifier of an association":    {func(m draft) { m.reify(association(m), e) }, []string{"http://a", "http://c"}},
		"reifier of a role":            {func(m draft) { m.reify(association(m).Roles()[0], e) }, []string{"http://a", "http://c"}},
		"theme of an association": {func(m draft) {
			association(m).Remove()
			scoped := m.CreateAssociation(m.topic(x), m.topic(e))
			scoped.AddRole(m.topic(x), m.topic(a))
			scoped.AddRole(m.topic(x), m.topic(c))
		}, []string{"http://a", "http://c"}},
		"player":                            {func(m draft) { association(m).AddRole(m.topic(x), m.topic(e)) }, []string{"http://a", "http://c", "http://e"}},
		"type: the instance, not the class": {func(m draft) { m.topic(e).AddType(m.topic(b)) }, []string{"http://e"}},
		"type gone": {func(m draft) {
			for r := range slices.Values(m.topic(b).RolesPlayed()) {
				r.Association().Remove()
			}
		}, []string{"http://a"}},
		"scoped type: the class as well": {func(m draft) {
			typing := m.CreateAssociation(m.topic(tmdm.PSITypeInstance), m.topic(e))
			typing.AddRole(m.topic(tmdm.PSIType), m.topic(b))
			typing.AddRole(m.topic(tmdm.PSIInstance), m.topic(c))
		}, []string{"http://b", "http://c"}},
		"reified type: the class as well": {func(m draft) { m.reify(m.topic(b).RolesPlayed()[0].Association(), e) }, []string{"http://a", "http://b"}},
		"a topic without statements":      {func(m draft) { m.topic("http://new") }, []string{"http://new"}},
	} {
		t.Run(name, func(t *testing.T) {
			after := func(m draft) { base(m); o.edit(m) }
			there := change(t, base, after)
			require.Equal(t, o.published, entries(there))
			require.Equal(t, len(o.published) == 0, there.Empty())
			for _, e := range there.Entries {
				require.Equal(t, e.TopicSI, e.Topic)
			}
			back := change(t, after, base)
			if name != "a topic without statements" {
				require.Equal(t, o.published, entries(back), "and back again")
			}
		})
	}
}

// Others mention a topic by its TopicSI: they change with that, and not with
// the topic's other identifiers.
func TestWhoMentionsATopicChangesWithItsTopicSIAlone(t *testing.T) {
	mention := func(m draft, t *tmdm.Topic) {
		m.topic("http://m1").AddName("typed", t)
		m.topic("http://m2").AddName("scoped", nil, t)
		m.topic("http://m3").AddName("n", nil).AddVariant("scoped", tmdm.XSDString, t)
		if err := tmdm.SetReifier(m.topic("http://m4").AddName("reified", nil), t); err != nil {
			panic(err)
		}
		m.topic("http://m5").AddOccurrence("typed", tmdm.XSDString, t)
		m.topic("http://m6").AddOccurrence("scoped", tmdm.XSDString, m.topic(x), t)
		m.CreateAssociation(t).AddRole(m.topic(x), m.topic("http://m7"))
		m.CreateAssociation(m.topic(x), t).AddRole(m.topic(x), m.topic("http://m8"))
		m.CreateAssociation(m.topic(x)).AddRole(t, m.topic("http://m9"))
		m.associate(x, t, m.topic("http://m91"))
		m.topic("http://m92").AddType(t)
		t.AddType(m.topic("http://m93"))
	}
	full := func(m draft) { mention(m, m.topic(a, b)) }
	require.Equal(t, []string{"http://a"}, entries(change(t, func(m draft) { mention(m, m.topic(a)) }, full)), "an identifier gained")
	require.Equal(t, []string{"http://a"}, entries(change(t, full, func(m draft) { mention(m, m.topic(a)) })), "an identifier lost")
	renamed := change(t, full, func(m draft) { mention(m, m.topic(b)) })
	require.Equal(t, []string{"no http://a", "http://b", "http://m1", "http://m2", "http://m3", "http://m4", "http://m5", "http://m6",
		"http://m7", "http://m8", "http://m9", "http://m91", "http://m92"}, entries(renamed), "TopicSI lost; m93 is only a class")
}
