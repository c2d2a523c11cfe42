package merge_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// The fragments of this file are such as other servers write: XTM 1.0, topics
// referred to by their ids, more than the minimum on the stubs, no state.

const foreignSP = "http://foreign.example.org/"

const people = "http://foreign.example.org/people#"

// foreign reads an XTM 1.0 fragment as the subscriber of a server that gives its
// entries no state.
func foreign(t *testing.T, topicSI tmdm.Locator, body string) *fragment.Fragment {
	t.Helper()
	f, err := fragment.Read(t.Context(), strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink">`+
		body+`</topicMap>`), xtm.Options{Base: foreignSP}, topicSI)
	require.NoError(t, err)
	return f
}

func topicElement(id, content string) string {
	return `<topic id="` + id + `"><subjectIdentity><subjectIndicatorRef xlink:href="` + people + id + `"/></subjectIdentity>` + content + `</topic>`
}

func nameElement(id, value string) string {
	return `<baseName id="` + id + `"><baseNameString>` + value + `</baseNameString></baseName>`
}

const knows = `<association id="a1"><instanceOf><topicRef xlink:href="#knows"/></instanceOf>
  <member><roleSpec><topicRef xlink:href="#person"/></roleSpec><topicRef xlink:href="#ann"/><topicRef xlink:href="#bob"/></member>
</association>`

// ann is a fragment of ann with full topics for stubs, and with things that
// have nothing to do with her.
var ann = topicElement("ann", `<instanceOf><topicRef xlink:href="#person"/></instanceOf>`+nameElement("n1", "Ann")) +
	topicElement("bob", `<instanceOf><topicRef xlink:href="#robot"/></instanceOf>`+nameElement("n2", "Bob, as ann's fragment has it")) +
	topicElement("person", nameElement("n3", "Person")) + topicElement("knows", "") +
	topicElement("robot", "") + topicElement("unrelated", "") + knows +
	`<association><member><topicRef xlink:href="#bob"/><topicRef xlink:href="#unrelated"/></member></association>`

func si(id string) tmdm.Locator { return tmdm.Locator(people + id) }

// The content of stubs arrives with their own fragments. Taken from this fragment, it would never be removed.
func TestMoreOnStubsIsIgnored(t *testing.T) {
	s := &subscriber{}
	requireApply(t, s, foreign(t, si("ann"), ann))
	require.Equal(t, "Ann", s.topic(t, si("ann")).Names[0].Value)
	require.Equal(t, []tmdm.Locator{foreignSP + "#n1"}, s.topic(t, si("ann")).Names[0].ItemIdentifiers)
	require.Empty(t, s.topic(t, si("bob")).Names)
	require.True(t, s.topic(t, si("bob")).Provisional)
	require.Len(t, playing(t, &s.state, si("bob")), 1, "only the association with ann")
	require.Len(t, playing(t, &s.state, si("ann")), 2)
}

// A topic is there while it is announced or referred to. A topic that the fragment only mentions in ignored parts is
// neither.
func TestTopicsThatNothingTakenRefersToAreNotMade(t *testing.T) {
	s := &subscriber{}
	requireApply(t, s, foreign(t, si("ann"), ann))
	for _, id := range []string{"robot", "unrelated"} {
		require.False(t, has(t, &s.state, si(id)), id)
	}
	require.True(t, has(t, &s.state, si("person")))
	require.True(t, has(t, &s.state, si("knows")))
}

func TestABareTopicWithoutStateIsDeleted(t *testing.T) {
	s := &subscriber{}
	requireApply(t, s, foreign(t, si("ann"), ann))
	requireApply(t, s, foreign(t, si("bob"), topicElement("bob", nameElement("n1", "Bob"))+knows+topicElement("ann", "")+topicElement("person", "")+topicElement("knows", "")))
	f := foreign(t, si("ann"), topicElement("ann", "")+topicElement("bob", nameElement("n1", "Bob")))
	require.True(t, f.Deleted)
	requireApply(t, s, f)
	require.False(t, has(t, &s.state, si("ann")))
	require.Empty(t, playing(t, &s.state, si("bob")))
	require.Equal(t, "Bob", s.topic(t, si("bob")).Names[0].Value)
	require.False(t, has(t, &s.state, si("knows")), "nothing refers to it any more")
}

// Servers number ids anew in each document: t1 is one topic here and another
// there, n1 one name here and another there.
func TestIdsOfTopicsMeanNothingOutsideTheirDocument(t *testing.T) {
	s := &subscriber{}
	for _, name := range []string{"ann", "bob"} {
		body := strings.ReplaceAll(topicElement(name, nameElement("n1", name)), `id="`+name+`"`, `id="t1"`)
		requireApply(t, s, foreign(t, si(name), body))
	}
	for _, name := range []string{"ann", "bob"} {
		topic := s.topic(t, si(name))
		require.Equal(t, []tmdm.Locator{si(name)}, topic.SubjectIdentifiers)
		require.Equal(t, name, topic.Names[0].Value)
	}
	require.NotEmpty(t, joined(t, &s.state))
}

// Ann's identifiers come in another order each time. They are one topic, and
// what refers to it by either identifier is hers.
func TestTheOrderOfIdentifiersMayChange(t *testing.T) {
	identified := func(first, second string) string {
		return `<topic id="t"><subjectIdentity><subjectIndicatorRef xlink:href="` + people + first + `"/><subjectIndicatorRef xlink:href="` + people + second + `"/></subjectIdentity>`
	}
	refer := func(id, annFirst, annSecond string) string {
		return identified(annFirst, annSecond) + `</topic>` + topicElement(id, "") +
			`<association><member><topicRef xlink:href="#t"/><topicRef xlink:href="#` + id + `"/></member></association>`
	}
	s := &subscriber{}
	requireApply(t, s, foreign(t, si("bob"), refer("bob", "ann", "anne")))
	requireApply(t, s, foreign(t, si("cy"), refer("cy", "anne", "ann")))
	requireApply(t, s, foreign(t, si("anne"), identified("anne", "ann")+nameElement("n", "Ann")+`</topic>`))
	for _, id := range []string{"ann", "anne"} {
		require.Equal(t, "Ann", s.topic(t, si(id)).Names[0].Value)
		require.Empty(t, playing(t, &s.state, si(id)), "her fragment has no associations")
	}
}
