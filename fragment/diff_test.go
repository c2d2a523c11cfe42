package fragment_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// change publishes two versions and returns the changes of the second one.
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

// entries describes the published entries: "a" for a fragment of a, "b of a" for the closing entry of b that describes
// a, "no b" for a tombstone.
func entries(c *fragment.Change) (changes []string) {
	for _, e := range c.Entries {
		s := string(e.TopicSI)
		switch {
		case e.Deleted:
			s = "no " + s
		case e.Topic != e.TopicSI:
			s += " of " + string(e.Topic)
		}
		changes = append(changes, s)
	}
	return changes
}

// base is a version in which everything is mentioned that the cases below add,
// so that they change nothing else.
func base(m draft) {
	m.Named("A", a).AddType(m.Named("B", b))
	m.Topic(c).AddOccurrence("o", tmdm.XSDString, m.Topic(d))
	m.Associate(x, m.Topic(a), m.Topic(c))
	m.Topic(e)
}

// Each case has the edit of base, and the topics whose fragments are published for it.
func TestWhatChangesATopic(t *testing.T) {
	names := func(t *tmdm.Topic) *tmdm.TopicName { return t.Names()[0] }
	association := func(m draft) *tmdm.Association {
		for a := range m.Associations() {
			if len(a.Scope().Themes()) == 0 && a.Type() == m.Topic(x) {
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
		"subject identifier gained": {func(m draft) { m.Topic(a, "http://new") }, []string{"http://a"}},
		"subject locator gained":    {func(m draft) { _ = m.Topic(a).AddSubjectLocator("http://new") }, []string{"http://a"}},
		"name":                      {func(m draft) { m.Named("another", a) }, []string{"http://a"}},
		"theme of a name":           {func(m draft) { names(m.Topic(a)).Remove(); m.Topic(a).AddName("A", nil, m.Topic(e)) }, []string{"http://a"}},
		"type of a name":            {func(m draft) { names(m.Topic(a)).Remove(); m.Topic(a).AddName("A", m.Topic(e)) }, []string{"http://a"}},
		"reifier of a name":         {func(m draft) { m.Reify(names(m.Topic(a)), e) }, []string{"http://a"}},
		"variant":                   {func(m draft) { names(m.Topic(a)).AddVariant("v", tmdm.XSDString, m.Topic(e)) }, []string{"http://a"}},
		"reifier of a variant":      {func(m draft) { m.Reify(names(m.Topic(a)).AddVariant("v", tmdm.XSDString, m.Topic(e)), e) }, []string{"http://a"}},
		"occurrence":                {func(m draft) { m.Topic(a).AddOccurrence("o", tmdm.XSDString, m.Topic(d)) }, []string{"http://a"}},
		"datatype": {func(m draft) {
			m.Topic(c).Occurrences()[0].Remove()
			m.Topic(c).AddOccurrence("o", tmdm.XSDAnyType, m.Topic(d))
		}, []string{"http://c"}},
		"reifier of an occurrence":     {func(m draft) { m.Reify(m.Topic(c).Occurrences()[0], e) }, []string{"http://c"}},
		"association, for each player": {func(m draft) { m.Associate(x, m.Topic(a), m.Topic(e)) }, []string{"http://a", "http://e"}},
		"association gone":             {func(m draft) { association(m).Remove() }, []string{"http://a", "http://c"}},
		"reifier of an association":    {func(m draft) { m.Reify(association(m), e) }, []string{"http://a", "http://c"}},
		"reifier of a role":            {func(m draft) { m.Reify(association(m).Roles()[0], e) }, []string{"http://a", "http://c"}},
		"theme of an association": {func(m draft) {
			association(m).Remove()
			scoped := m.CreateAssociation(m.Topic(x), m.Topic(e))
			scoped.AddRole(m.Topic(x), m.Topic(a))
			scoped.AddRole(m.Topic(x), m.Topic(c))
		}, []string{"http://a", "http://c"}},
		"player":                            {func(m draft) { association(m).AddRole(m.Topic(x), m.Topic(e)) }, []string{"http://a", "http://c", "http://e"}},
		"type: the instance, not the class": {func(m draft) { m.Topic(e).AddType(m.Topic(b)) }, []string{"http://e"}},
		"type gone": {func(m draft) {
			for r := range slices.Values(m.Topic(b).RolesPlayed()) {
				r.Association().Remove()
			}
		}, []string{"http://a"}},
		"scoped type: the class as well": {func(m draft) {
			typing := m.CreateAssociation(m.Topic(tmdm.PSITypeInstance), m.Topic(e))
			typing.AddRole(m.Topic(tmdm.PSIType), m.Topic(b))
			typing.AddRole(m.Topic(tmdm.PSIInstance), m.Topic(c))
		}, []string{"http://b", "http://c"}},
		"reified type: the class as well": {func(m draft) { m.Reify(m.Topic(b).RolesPlayed()[0].Association(), e) }, []string{"http://a", "http://b"}},
		"a topic without statements":      {func(m draft) { m.Topic("http://new") }, []string{"http://new"}},
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
		m.Topic("http://m1").AddName("typed", t)
		m.Topic("http://m2").AddName("scoped", nil, t)
		m.Topic("http://m3").AddName("n", nil).AddVariant("scoped", tmdm.XSDString, t)
		if err := tmdm.SetReifier(m.Topic("http://m4").AddName("reified", nil), t); err != nil {
			panic(err)
		}
		m.Topic("http://m5").AddOccurrence("typed", tmdm.XSDString, t)
		m.Topic("http://m6").AddOccurrence("scoped", tmdm.XSDString, m.Topic(x), t)
		m.CreateAssociation(t).AddRole(m.Topic(x), m.Topic("http://m7"))
		m.CreateAssociation(m.Topic(x), t).AddRole(m.Topic(x), m.Topic("http://m8"))
		m.CreateAssociation(m.Topic(x)).AddRole(t, m.Topic("http://m9"))
		m.Associate(x, t, m.Topic("http://m91"))
		m.Topic("http://m92").AddType(t)
		t.AddType(m.Topic("http://m93"))
	}
	full := func(m draft) { mention(m, m.Topic(a, b)) }
	require.Equal(t, []string{"http://a"}, entries(change(t, func(m draft) { mention(m, m.Topic(a)) }, full)), "an identifier gained")
	require.Equal(t, []string{"http://a"}, entries(change(t, full, func(m draft) { mention(m, m.Topic(a)) })), "an identifier lost")
	renamed := change(t, full, func(m draft) { mention(m, m.Topic(b)) })
	require.Equal(t, []string{"no http://a", "http://b", "http://m1", "http://m2", "http://m3", "http://m4", "http://m5", "http://m6",
		"http://m7", "http://m8", "http://m9", "http://m91", "http://m92"}, entries(renamed), "TopicSI lost; m93 is only a class")
}
