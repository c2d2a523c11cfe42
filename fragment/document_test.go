package fragment_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const sp = "http://maps.example.org/topicmaps/test/"

// Subject identifiers of the topics that tests are about. a{a,b} is the topic
// with TopicSI a and the identifiers a and b.
const (
	a tmdm.Locator = "http://a"
	b tmdm.Locator = "http://b"
	c tmdm.Locator = "http://c"
	d tmdm.Locator = "http://d"
	e tmdm.Locator = "http://e"
	x tmdm.Locator = "http://x"
)

// read reads the elements between the tags of an XTM 2.1 document.
func read(t testing.TB, base, body string) *tmdm.TopicMap {
	t.Helper()
	tm, err := xtm.Read(t.Context(), strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`+body+`</topicMap>`), xtm.Options{Base: tmdm.Locator(base), Limits: xtm.Limits{Locator: 1 << 20}})
	require.NoError(t, err)
	return tm
}

type draft = testedit.Draft

// published builds a map and prepares it for publication after prior.
func published(t testing.TB, prior fragment.Source, build func(draft)) *fragment.Map {
	t.Helper()
	tm := tmdm.New()
	build(draft{TopicMap: tm})
	require.NoError(t, tm.Normalize(t.Context()))
	m, err := fragment.NameTopics(t.Context(), tm, sp, prior)
	require.NoError(t, err)
	return m
}

// written returns the fragment of a topic as XTM 2.1.
func written(t testing.TB, src fragment.Source, ref fragment.Ref, omitInstances bool) []byte {
	t.Helper()
	var doc bytes.Buffer
	require.NoError(t, fragment.Write(&doc, src, ref, fragment.Form{Version: xtm.V21, SP: sp, OmitInstances: omitInstances}))
	return doc.Bytes()
}

// topicOf returns the record of a topic, which must be there.
func topicOf(t testing.TB, src fragment.Source, si fragment.Ref) *fragment.Topic {
	t.Helper()
	topic, err := src.Topic(si)
	require.NoError(t, err)
	require.NotNil(t, topic, "topic %s", si)
	return topic
}

// associationsOf returns the associations of a topic in which it takes part in
// one of the given ways.
func associationsOf(t testing.TB, src fragment.Source, si fragment.Ref, parts ...fragment.Part) (found []*fragment.Association) {
	t.Helper()
	for _, part := range parts {
		for a, err := range src.AssociationsOf(si, part) {
			require.NoError(t, err)
			found = append(found, a)
		}
	}
	return found
}

// refs returns the TopicSIs of all topics but those of the model.
func refs(t testing.TB, src fragment.Source) (list []fragment.Ref) {
	t.Helper()
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		if !strings.HasPrefix(string(topic.TopicSI()), "http://psi.topicmaps.org/iso13250/") {
			list = append(list, topic.TopicSI())
		}
	}
	return list
}

func describe(t testing.TB, src fragment.Source, ref fragment.Ref) []string {
	t.Helper()
	lines, err := fragment.Describe(src, ref)
	require.NoError(t, err)
	return lines
}

func TestDescribeSaysEverything(t *testing.T) {
	m := published(t, nil, func(m draft) {
		topic := m.Topic(a, b)
		require.NoError(t, topic.AddSubjectLocator("http://document"))
		plain := topic.AddName("plain", nil)
		plain.AddVariant("other form", tmdm.XSDString, m.Topic(c))
		typed := topic.AddName("typed", m.Topic(d), m.Topic(e), m.Topic(c))
		m.Reify(typed, x)
		m.Reify(typed.AddVariant("http://variant", tmdm.XSDAnyURI, m.Topic(x)), c)
		topic.AddOccurrence("text", tmdm.XSDString, m.Topic(d))
		m.Reify(topic.AddOccurrence("12", tmdm.XSDInteger, m.Topic(d), m.Topic(e)), "http://r1")
		topic.AddType(m.Topic(e))
		association := m.CreateAssociation(m.Topic(x), m.Topic(c))
		association.AddRole(m.Topic(d), topic)
		m.Reify(association.AddRole(m.Topic(e), m.Topic(c)), "http://r2")
		m.Reify(association, "http://r3")
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

// Two states differ in their description of a topic if and only if it has an entry.
func TestDescriptionsDifferWhereDiffFindsAChange(t *testing.T) {
	prior := published(t, nil, base)
	next := published(t, prior, func(m draft) {
		base(m)
		m.Named("another", c)
		m.Reify(m.Topic(a).Names()[0], e)
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
