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

// Each case has the names of a topic in order of creation, by what they are
// called; the best one is called "best".
func TestDisplayName(t *testing.T) {
	tm := tmdm.New()
	nb, en, official, nickname := topic(tm, "nb"), topic(tm, "en"), topic(tm, "official"), topic(tm, "nickname")
	type name struct {
		value string
		typ   *tmdm.Topic
		scope []*tmdm.Topic
	}
	in := func(themes ...*tmdm.Topic) []*tmdm.Topic { return themes }
	for what, c := range map[string]struct {
		context []*tmdm.Topic
		names   []name
	}{
		"the first of equal ones":                {in(), []name{{"best", nil, nil}, {"x", nil, nil}}},
		"without context the unconstrained":      {in(), []name{{"x", nil, in(nb)}, {"best", nil, nil}}},
		"the language":                           {in(en), []name{{"x", nil, nil}, {"y", nil, in(nb)}, {"best", nil, in(en)}}},
		"another language is worse than none":    {in(en), []name{{"x", nil, in(nb)}, {"best", nil, nil}}},
		"most of the context":                    {in(en, official), []name{{"x", nil, in(en)}, {"best", nil, in(en, official)}}},
		"valid, though another has a theme":      {in(en), []name{{"x", nil, in(en, official)}, {"best", nil, nil}}},
		"the default type, though less specific": {in(nb), []name{{"x", nickname, in(nb)}, {"best", nil, nil}}},
		"another type, if it alone is valid":     {in(nb), []name{{"x", nil, in(en)}, {"best", nickname, in(nb)}}},
		"if none is valid, what lacks least":     {in(nb), []name{{"x", nil, in(en, official)}, {"best", nil, in(en)}}},
		"if none is valid, what has a theme":     {in(nb), []name{{"x", nil, in(en)}, {"best", nil, in(nb, en)}}},
	} {
		t.Run(what, func(t *testing.T) {
			about := tm.CreateTopic()
			for _, n := range c.names {
				about.AddName(n.value, n.typ, n.scope...)
			}
			assert.Equal(t, "best", about.DisplayName(c.context...).Value())
		})
	}
	assert.Nil(t, tm.CreateTopic().DisplayName(nb))

	held, about := topic(tm, "held"), tm.CreateTopic()
	about.AddName("x", nil)
	about.AddName("best", nil, nb)
	require.NoError(t, nb.Merge(held))
	assert.Equal(t, "best", about.DisplayName(held).Value())
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
