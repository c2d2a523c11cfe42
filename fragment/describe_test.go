package fragment_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

func describe(t testing.TB, src fragment.Source, ref fragment.Ref) []string {
	t.Helper()
	lines, err := fragment.Describe(src, ref)
	require.NoError(t, err)
	return lines
}

func TestDescribeSaysEverything(t *testing.T) {
	m := published(t, nil, func(m draft) {
		topic := m.topic(a, b)
		require.NoError(t, topic.AddSubjectLocator("http://document"))
		plain := topic.AddName("plain", nil)
		plain.AddVariant("other form", tmdm.XSDString, m.topic(c))
		typed := topic.AddName("typed", m.topic(d), m.topic(e), m.topic(c))
		m.reify(typed, x)
		m.reify(typed.AddVariant("http://variant", tmdm.XSDAnyURI, m.topic(x)), c)
		topic.AddOccurrence("text", tmdm.XSDString, m.topic(d))
		m.reify(topic.AddOccurrence("12", tmdm.XSDInteger, m.topic(d), m.topic(e)), "http://r1")
		topic.AddType(m.topic(e))
		association := m.CreateAssociation(m.topic(x), m.topic(c))
		association.AddRole(m.topic(d), topic)
		m.reify(association.AddRole(m.topic(e), m.topic(c)), "http://r2")
		m.reify(association, "http://r3")
	})
	require.Equal(t, []string{
		"subject identifier http://a",
		"subject identifier http://b",
		"subject locator http://document",
		`name "plain"`,
		`variant "other form" of name "plain" in scope http://c`,
		`name "typed" (http://d) in scope http://c, http://e reified by http://x`,
		`variant "http://variant" of name "typed" (http://www.w3.org/2001/XMLSchema#anyURI) in scope http://c, http://e, http://x reified by http://c`,
		`occurrence "12" of type http://d (http://www.w3.org/2001/XMLSchema#integer) in scope http://e reified by http://r1`,
		`occurrence "text" of type http://d`,
		"instance of http://e",
		"association http://x (http://d: http://a, http://e: http://c reified by http://r2) in scope http://c reified by http://r3",
	}, describe(t, m, a))
	require.Equal(t, []string{"is an identifier of topic http://a"}, describe(t, m, b))
	require.Equal(t, []string{"subject identifier http://e"}, describe(t, m, e), "a class is not described by its instances")
	require.Empty(t, describe(t, m, "http://not-there"))
}

// Two states differ in what they say of a topic if and only if its entry says so.
func TestDescriptionsDifferWhereDiffFindsAChange(t *testing.T) {
	prior := published(t, nil, base)
	next := published(t, prior, func(m draft) {
		base(m)
		m.named("another", c)
		m.reify(m.topic(a).Names()[0], e)
	})
	changed := map[fragment.Ref]bool{}
	for _, entry := range diff(t, prior, next).Entries {
		changed[entry.TopicSI] = true
	}
	require.Len(t, changed, 2)
	for _, ref := range refs(t, next) {
		if changed[ref] {
			require.NotEqual(t, describe(t, prior, ref), describe(t, next, ref))
		} else {
			require.Equal(t, describe(t, prior, ref), describe(t, next, ref))
		}
	}
}

func TestDescribeReturnsTheErrorOfTheState(t *testing.T) {
	boom := errors.New("boom")
	m := published(t, nil, base)
	n := 0
	for ; ; n++ {
		_, err := fragment.Describe(&broken{Map: m, after: n, err: boom}, a)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, boom)
	}
	require.Equal(t, 5, n, "the topic, and two associations in two iterations, have failed")
}
