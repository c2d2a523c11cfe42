package fragment_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// versions names the topics of successive versions of a map. Each version is published after the one before.
func versions(t *testing.T, base string, bodies ...string) *fragment.Map {
	t.Helper()
	var m *fragment.Map
	for _, body := range bodies {
		var prior fragment.Source
		if m != nil {
			prior = m
		}
		next, err := fragment.NameTopics(t.Context(), read(t, base, body), base, prior)
		require.NoError(t, err)
		m = next
	}
	return m
}

// probe is a topic that refers to another one by id, subject locator or item
// identifier, so that a test can find the name of that topic.
const probe = `<topic><subjectIdentifier href="http://probe"/><occurrence><type>REF</type><resourceData>v</resourceData></occurrence></topic>`

func ref(element, href string) string { return `<` + element + ` href="` + href + `"/>` }

// calledBy returns the TopicSI of the topic that a reference means.
func calledBy(t *testing.T, base, reference string, bodies ...string) fragment.Ref {
	t.Helper()
	probed := make([]string, len(bodies))
	for i := range bodies {
		probed[i] = bodies[i] + strings.Replace(probe, "REF", reference, 1)
	}
	return topicOf(t, versions(t, base, probed...), "http://probe").Occurrences[0].Type
}

func TestAPrefixIsAbsoluteAndEndsInASlashOrAHash(t *testing.T) {
	for _, good := range []string{"http://example.org/", "http://example.org/map#", "https://example.org/topicmaps/é/", "urn:x:/"} {
		require.NoError(t, fragment.ValidatePrefix(good), good)
	}
	for bad, reason := range map[string]string{
		"":                         "not an absolute IRI",
		"/maps/":                   "not an absolute IRI",
		"maps#":                    "not an absolute IRI",
		"http://example.org/map":   `must end in "/" or "#"`,
		"http://example.org/?m=":   `must end in "/" or "#"`,
		"HTTP://example.org/":      `write "http://example.org/"`,
		"http://example.org/%7Ea/": `write "http://example.org/~a/"`,
		"http://example.org/a#b/":  `"#" before its end`,
		"http://example.org/a#b#":  `"#" before its end`,
	} {
		require.ErrorContains(t, fragment.ValidatePrefix(bad), reason, bad)
		tm := tmdm.New()
		tm.CreateTopic()
		_, err := fragment.NameTopics(t.Context(), tm, bad, nil)
		require.ErrorContains(t, err, reason, "NameTopics: %s", bad)
		for topic := range tm.Topics() {
			require.Empty(t, topic.SubjectIdentifiers(), "nothing is named")
		}
	}
}

func TestATopicWithoutIdentifierGetsOneFromItsId(t *testing.T) {
	require.Equal(t, tmdm.Locator(sp+"topic/t1"), calledBy(t, sp, ref("topicRef", "#t1"), `<topic id="t1"/>`))
	hash := "http://maps.example.org/test#"
	require.Equal(t, tmdm.Locator(hash+"topic/t1"), calledBy(t, hash, ref("topicRef", "#t1"), `<topic id="t1"/>`))
	require.Equal(t, a, calledBy(t, sp, ref("topicRef", "#t1"), `<topic id="t1"><subjectIdentifier href="http://a"/></topic>`), "one that has one gets no other")
	m := versions(t, sp, `<topic id="t1"><subjectIdentifier href="http://a"/></topic>`)
	require.Equal(t, []tmdm.Locator{a}, topicOf(t, m, a).SubjectIdentifiers)
}

// NameTopics adds the identifiers that it assigns to the map, and the result is published.
func TestAssignedIdentifiersAreAddedToTheMap(t *testing.T) {
	tm := read(t, sp, `<topic id="t1"/>`)
	m, err := fragment.NameTopics(t.Context(), tm, sp, nil)
	require.NoError(t, err)
	require.Same(t, tm, m.TopicMap())
	require.NotNil(t, tm.TopicBySubjectIdentifier(sp+"topic/t1"))
}

// Item identifiers that are no ids of the document, and subject locators, make
// an identifier that is the same in every version.
func TestATopicWithoutIdGetsAnIdentifierMadeFromItsLocators(t *testing.T) {
	for name, o := range map[string]struct{ topic, reference string }{
		"item identifier": {`<topic id="local"><itemIdentity href="http://elsewhere.example.org/#t1"/></topic>`, ref("topicRef", "http://elsewhere.example.org/#t1")},
		"subject locator": {`<topic><subjectLocator href="http://document"/></topic>`, ref("subjectLocatorRef", "http://document")},
	} {
		body := strings.Replace(o.topic, ` id="local"`, "", 1)
		first := calledBy(t, sp, o.reference, body)
		require.Regexp(t, `^`+sp+`topic/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, string(first), name)
		require.Equal(t, first, calledBy(t, sp, o.reference, body), name)
		other := "http://other.example.org/"
		require.True(t, strings.HasPrefix(string(calledBy(t, other, o.reference, body)), other+"topic/"), name)
	}
	require.Equal(t, tmdm.Locator(sp+"topic/local"), calledBy(t, sp, ref("topicRef", "#local"), `<topic id="local"><itemIdentity href="http://elsewhere.example.org/#t1"/></topic>`), "the id comes first")
}

// A topic keeps the identifier that was assigned to it when it gains others, and it stays its TopicSI.
func TestAnAssignedIdentifierStaysWhenTheTopicGainsOthers(t *testing.T) {
	for name, o := range map[string]struct{ reference, before, after string }{
		"by id": {ref("topicRef", "#t1"), `<topic id="t1"/>`, `<topic id="t1"><subjectIdentifier href="http://a"/></topic>`},
		"by subject locator": {ref("subjectLocatorRef", "http://d1"),
			`<topic><subjectLocator href="http://d1"/></topic>`, `<topic><subjectLocator href="http://d1"/><subjectIdentifier href="http://a"/></topic>`},
		"by subject locator, with a lesser locator beside it": {ref("subjectLocatorRef", "http://d1"),
			`<topic><subjectLocator href="http://d1"/></topic>`, `<topic><subjectLocator href="http://d0"/><subjectLocator href="http://d1"/><subjectIdentifier href="http://a"/></topic>`},
		"by item identifier": {ref("topicRef", "http://elsewhere/#t"),
			`<topic><itemIdentity href="http://elsewhere/#t"/></topic>`, `<topic><itemIdentity href="http://elsewhere/#t"/><itemIdentity href="http://elsewhere/#s"/><subjectIdentifier href="http://a"/></topic>`},
	} {
		t.Run(name, func(t *testing.T) {
			first := calledBy(t, sp, o.reference, o.before)
			bare := strings.ReplaceAll(o.after, `<subjectIdentifier href="http://a"/>`, "")
			for _, history := range [][]string{{o.before, o.after}, {o.before, o.after, o.after}, {o.before, o.after, bare, o.before}} {
				require.Equal(t, first, calledBy(t, sp, o.reference, history...))
			}
			m := versions(t, sp, o.before, o.after)
			require.Equal(t, []tmdm.Locator{first, a}, topicOf(t, m, a).SubjectIdentifiers)
			require.Equal(t, a, calledBy(t, sp, o.reference, o.after), "without a history there is nothing to keep")
		})
	}
}

// A topic known by locators alone is the same topic as long as one of them
// stays from version to version.
func TestATopicKnownByLocatorsAloneIsStable(t *testing.T) {
	locators := func(hrefs ...string) string {
		body := `<topic>`
		for _, h := range hrefs {
			body += `<subjectLocator href="http://d` + h + `"/>`
		}
		return body + `</topic>`
	}
	first := refs(t, versions(t, sp, locators("5")))
	require.Len(t, first, 1)
	require.Equal(t, first, refs(t, versions(t, sp, locators("5"), locators("3", "5"), locators("3"), locators("3", "9"), locators("9"))))
}

// Locators part: each of the two topics keeps the identifier made from its own.
func TestTopicsThatPartKeepTheirOwn(t *testing.T) {
	one := `<topic><subjectLocator href="http://d1"/></topic>`
	two := `<topic><subjectLocator href="http://d2"/></topic>`
	apart := refs(t, versions(t, sp, one+two))
	merged := `<topic><subjectLocator href="http://d2"/><subjectLocator href="http://d1"/></topic>`
	require.Equal(t, apart, refs(t, versions(t, sp, one+two, merged, two+one)))
	require.Equal(t, apart, refs(t, versions(t, sp, one+two, merged, one+two)))

	byID := `<topic id="t1"><subjectLocator href="http://d1"/></topic>`
	m := versions(t, sp, byID+two, `<topic id="t1"><subjectLocator href="http://d1"/><subjectLocator href="http://d2"/></topic>`, byID+two)
	require.Equal(t, []tmdm.Locator{sp + "topic/t1"}, topicOf(t, m, sp+"topic/t1").SubjectIdentifiers)
	require.Equal(t, refs(t, versions(t, sp, byID+two)), refs(t, m))
}

// Another topic may have the identifier that an id would make, for instance
// because it comes from an export. The topic with the id gets another, the same
// in every version, whichever of them the document has first.
func TestAnIdWhoseIdentifierIsTakenGetsAnother(t *testing.T) {
	holder := `<topic><subjectIdentifier href="` + sp + `topic/t1"/></topic>`
	topic := `<topic id="t1"/>`
	byID := ref("topicRef", "#t1")
	other := calledBy(t, sp, byID, holder+topic)
	require.NotEqual(t, tmdm.Locator(sp+"topic/t1"), other)
	require.True(t, strings.HasPrefix(string(other), sp+"topic/"))
	require.Equal(t, other, calledBy(t, sp, byID, topic+holder))
	require.Equal(t, other, calledBy(t, sp, byID, holder+topic, topic+holder, holder+topic))
	gains := `<topic id="t1"><subjectIdentifier href="http://a"/></topic>`
	require.Equal(t, other, calledBy(t, sp, byID, holder+topic, gains+holder), "it keeps that one, too, when it gains others")
}

func TestTheFirstIdentifierOfANewTopicIsItsTopicSI(t *testing.T) {
	require.Equal(t, []fragment.Ref{b}, refs(t, versions(t, sp, `<topic><subjectIdentifier href="http://b"/><subjectIdentifier href="http://a"/></topic>`)))
}

func TestATopicSIChangesOnlyWhenTheTopicLosesIt(t *testing.T) {
	body := func(sis ...string) string {
		topic := `<topic>`
		for _, si := range sis {
			topic += `<subjectIdentifier href="http://` + si + `"/>`
		}
		return topic + `</topic>`
	}
	require.Equal(t, []fragment.Ref{b}, refs(t, versions(t, sp, body("b"), body("a", "b", "c"))))
	require.Equal(t, []fragment.Ref{b}, refs(t, versions(t, sp, body("b"), body("a", "b"), body("c", "a", "b"))))
	require.Equal(t, []fragment.Ref{c}, refs(t, versions(t, sp, body("b"), body("c", "a"))), "lost: the first identifier left")
	require.Equal(t, []fragment.Ref{c}, refs(t, versions(t, sp, body("c")+body("d"), body("d", "c"))), "merged: the least of those that were")
	require.Equal(t, []fragment.Ref{d}, refs(t, versions(t, sp, body("c", "a")+body("d"), body("a", "d"))), "another identifier does not count")
	require.Equal(t, []fragment.Ref{a, b}, refs(t, versions(t, sp, body("b", "a"), body("a")+body("b"))), "split: the part with it keeps it")
}

// Records are distinguished by the subject identifiers of type, instance and typing: they are TopicSIs rather than
// others that a document has first, unless another is published already.
func TestTheIdentifiersOfTheStandardComeFirst(t *testing.T) {
	for _, psi := range []tmdm.Locator{tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance} {
		both := `<topic>` + ref("subjectIdentifier", "http://a") + ref("subjectIdentifier", string(psi)) + `</topic>`
		m := versions(t, sp, both)
		require.Equal(t, psi, topicOf(t, m, a).TopicSI())
		m = versions(t, sp, `<topic>`+ref("subjectIdentifier", "http://a")+`</topic>`, both)
		require.Equal(t, a, topicOf(t, m, psi).TopicSI())
		m = versions(t, sp, `<topic>`+ref("subjectIdentifier", "http://a")+`</topic><topic>`+ref("subjectIdentifier", string(psi))+`</topic>`, both)
		require.Equal(t, psi, topicOf(t, m, a).TopicSI(), "of two that are published, too")
	}
}

func TestNameTopicsReturnsTheErrorOfTheState(t *testing.T) {
	boom := errors.New("boom")
	const body = `<topic id="t1"/><topic><subjectLocator href="http://d"/></topic>` +
		`<topic><subjectIdentifier href="http://a"/><subjectIdentifier href="http://b"/></topic>`
	prior := versions(t, sp, body)
	n := 0
	for ; ; n++ {
		_, err := fragment.NameTopics(t.Context(), read(t, sp, body), sp, &broken{Map: prior, after: n, err: boom})
		if err == nil {
			break
		}
		require.ErrorIs(t, err, boom)
	}
	require.Greater(t, n, 4, "each call has failed once")
}

// A step that takes time in the size of a map ends with its context.
func TestMapsAreNotNamedAfterTheEnd(t *testing.T) {
	stop := errors.New("stop")
	ended, end := context.WithCancelCause(t.Context())
	end(stop)
	document := func() *tmdm.TopicMap {
		return read(t, sp, `<topic><subjectIdentifier href="http://a"/><name><value>n</value></name></topic>`)
	}
	_, err := fragment.NameTopics(ended, document(), sp, nil)
	require.ErrorIs(t, err, stop)
	prior, err := fragment.NameTopics(t.Context(), document(), sp, nil)
	require.NoError(t, err)
	_, err = fragment.Replace(ended, count(t, prior), document(), sp)
	require.ErrorIs(t, err, stop)
	_, err = fragment.ReadSnapshot(ended, strings.NewReader(head+`</topicMap>`), xtm.Options{Base: sp})
	require.ErrorIs(t, err, stop)
}
