package tmdm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/tmdm"
)

func TestScopeValidIn(t *testing.T) {
	tm := tmdm.New()
	a, b, c := topic(tm, "a"), topic(tm, "b"), topic(tm, "c")
	assert.True(t, tm.Scope().ValidIn(), "the unconstrained scope is valid everywhere")
	assert.True(t, tm.Scope().ValidIn(a))
	assert.True(t, tm.Scope(a, b).ValidIn(b, c, a))
	assert.False(t, tm.Scope(a, b).ValidIn(a, c), "all themes must apply")
	assert.False(t, tm.Scope(a).ValidIn())

	held := topic(tm, "held")
	require.NoError(t, a.Merge(held))
	assert.True(t, tm.Scope(a).ValidIn(held))
}

// Each case has the names of a topic in order of creation; the value of the best one is "best". Package titles has
// the whole rule.
func TestDisplayName(t *testing.T) {
	tm := tmdm.New()
	nb, en, nickname := topic(tm, "nb"), topic(tm, "en"), topic(tm, "nickname")
	require.NoError(t, nb.AddSubjectIdentifier("http://www.topicmaps.org/xtm/1.0/language.xtm#nb"))
	require.NoError(t, en.AddSubjectIdentifier("http://psi.oasis-open.org/iso/639/#eng"))
	official := topic(tm, "official")
	type name struct {
		value string
		typ   *tmdm.Topic
		scope []*tmdm.Topic
	}
	in := func(themes ...*tmdm.Topic) []*tmdm.Topic { return themes }
	for what, c := range map[string]struct {
		languages []string
		names     []name
	}{
		"the text decides in the end":            {nil, []name{{"x", nil, nil}, {"best", nil, nil}}},
		"without languages the unconstrained":    {nil, []name{{"x", nil, in(nb)}, {"best", nil, nil}}},
		"the language":                           {[]string{"en"}, []name{{"x", nil, nil}, {"y", nil, in(nb)}, {"best", nil, in(en)}}},
		"another language is worse than none":    {[]string{"en"}, []name{{"x", nil, in(nb)}, {"best", nil, nil}}},
		"it holds everywhere":                    {[]string{"en"}, []name{{"x", nil, in(en, official)}, {"best", nil, in(en)}}},
		"the default type, in whatever language": {[]string{"nb"}, []name{{"x", nickname, in(nb)}, {"best", nil, in(en)}}},
		"another type, if there is no other":     {[]string{"nb"}, []name{{"", nil, in(nb)}, {"best", nickname, in(nb)}}},
	} {
		t.Run(what, func(t *testing.T) {
			about := tm.CreateTopic()
			for _, n := range c.names {
				about.AddName(n.value, n.typ, n.scope...)
			}
			assert.Equal(t, "best", about.DisplayName(c.languages...).Value())
		})
	}
	assert.Nil(t, tm.CreateTopic().DisplayName("nb"))

	held, about := topic(tm, "held"), tm.CreateTopic()
	about.AddName("x", nil)
	about.AddName("best", nil, held)
	require.NoError(t, nb.Merge(held))
	assert.Equal(t, "best", about.DisplayName("nb").Value(), "the theme has become a language")
}

func TestSortKey(t *testing.T) {
	tm := tmdm.New()
	nb := topic(tm, "nb")
	n := topic(tm, "a").AddName("The Wild Duck", nil)
	n.AddVariant("vildanden", tmdm.XSDString, nb)
	assert.Equal(t, "The Wild Duck", n.SortKey(), "the map has no topic for sorting")
	sort := tm.CreateTopicBySubjectIdentifier(tmdm.PSISort)
	assert.Equal(t, "The Wild Duck", n.SortKey())
	n.AddVariant("wild duck", tmdm.XSDString, nb, sort)
	n.AddVariant("duck", tmdm.XSDString, sort)
	assert.Equal(t, "wild duck", n.SortKey(), "the first")
}
