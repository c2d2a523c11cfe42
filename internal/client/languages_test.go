package client_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/words"
)

// labelled returns a topic that has its id and the tag of a language as its name in each of some languages.
func labelled(id string, tags ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<topic><subjectIdentifier href=%q/>", si(id))
	for _, tag := range tags {
		fmt.Fprintf(&b, "<name><scope><subjectIdentifierRef href=%q/></scope><value>%s %s</value></name>",
			words.LanguageNamespace+tag, id, tag)
	}
	return b.String() + "</topic>"
}

// mostlyFinnish has most names in Finnish.
var mostlyFinnish = doc(labelled("oslo", "ar", "fi", "sv"), labelled("bergen", "fi"))

// callIn sets the language of a collection.
func callIn(t *testing.T, o *origin, name, tag string) {
	t.Helper()
	_, err := o.DB.ChangeSettings(t.Context(), name, func(s *store.Settings) error { s.Language = tag; return nil })
	require.NoError(t, err)
}

// called returns the title of a topic in the merged view for a reader of some languages.
func (s *subscriber) called(id string, languages ...string) string {
	s.t.Helper()
	topic, err := s.merged().Topic(s.t.Context(), si(id), false, languages...)
	require.NoError(s.t, err)
	return topic.Title
}

// forgetLanguage removes data from a subscription that older stores do not have.
func (s *subscriber) forgetLanguage(name string) {
	require.NoError(s.t, s.db.UpdateSubscription(s.t.Context(), name, func(kept *store.Subscription) { kept.Language = nil }))
}

// Titles are in the languages of the reader, and then in the language stated by the feeds of the source. Sources
// without feeds state none: the language of most names is used.
func TestTopicsAreCalledInTheLanguageOfTheirSource(t *testing.T) {
	t.Parallel()
	for _, form := range append([]string{"/fragments"}, forms...) {
		t.Run(strings.ReplaceAll(form[1:], "/", " "), func(t *testing.T) {
			t.Parallel()
			o := publishing(t, mostlyFinnish)
			s := newSubscriber(t)
			_, err := s.Subscribe(t.Context(), o.RecordsURL("egov", form), client.SubscribeOptions{Name: "egov"})
			require.NoError(t, err)
			s.sync()
			assert.Equal(t, "oslo fi", s.called("oslo"))
			assert.Equal(t, "oslo ar", s.called("oslo", "ar"), "the reader comes first")

			callIn(t, o, "egov", "sv")
			now := "oslo sv"
			if form == lists {
				now = "oslo fi"
			}
			s.sync()
			assert.Equal(t, now, s.called("oslo"), "the setting alone has changed")
			assert.Equal(t, "bergen fi", s.called("bergen"))
			s.forgetLanguage("egov")
			require.Equal(t, "oslo ar", s.called("oslo"))
			s.sync()
			assert.Equal(t, now, s.called("oslo"), "a store of before learns it at the next round, though the source has not changed")
			callIn(t, o, "egov", "")
			s.sync()
			assert.Equal(t, now, s.called("oslo"), "it stays until another is stated")
		})
	}
}

// Titles of a source whose feeds state no language are in that of most names, even if these come later.
func TestTheLanguageOfASourceIsThatOfMostNames(t *testing.T) {
	t.Parallel()
	o := publishing(t, mostlyFinnish)
	callIn(t, o, "egov", "")
	s := inStep(t, o)
	assert.Equal(t, "oslo fi", s.called("oslo"))

	o = publishing(t, doc(topics(5, "")...))
	s = inStep(t, o)
	put := func(more ...string) {
		o.Put(doc(append(topics(5, ""), more...)...))
		callIn(t, o, "egov", "")
		s.sync()
	}
	require.Equal(t, "", *s.known("egov").Language)
	put(labelled("bergen", "fi"), labelled("oslo", "ar", "fi", "sv"))
	assert.Equal(t, "oslo fi", s.called("oslo"))
}

// In the merged view, the languages of the sources are in the order of the sources: subscriptions by name, then the
// collections of the node.
func TestLanguagesOfSourcesComeInTheirOrder(t *testing.T) {
	t.Parallel()
	s, first, second := both(t, doc(labelled("egov", "sv")), doc(labelled("oslo", "ar", "fi", "sv")))
	callIn(t, second, "libraries", "fi")
	s.syncLibraries()
	assert.Equal(t, "oslo sv", s.called("oslo"))
	callIn(t, first, "egov", "en")
	s.sync()
	assert.Equal(t, "oslo fi", s.called("oslo"), "no source has a name in the first one")
}

// The feeds of a replica state the language that those of its origin state. Nobody sets another one.
func TestReplicasStateTheLanguageOfTheirOrigin(t *testing.T) {
	t.Parallel()
	o := publishing(t, mostlyFinnish)
	first := newReplica(t, o)
	first.sync(t)
	second := newReplica(t, first.origin)
	same := func(tag string) {
		t.Helper()
		first.sync(t)
		second.sync(t)
		original, _ := headOf(t, o)
		require.Equal(t, tag, original.Language)
		for _, r := range []*replica{first, second} {
			head, _ := headOf(t, r.origin)
			assert.Equal(t, []string{tag, original.TitleLanguage}, []string{head.Language, head.TitleLanguage})
			sameLog(t, r.origin, o)
		}
	}
	same("fi")
	callIn(t, o, "egov", "sv")
	same("sv")
	o.Put(doc(labelled("oslo", "ar", "fi", "sv"), labelled("lofoten", "fi", "sv")))
	same("sv")
	callIn(t, o, "egov", "")
	same("")
	callIn(t, o, "egov", "fi")
	same("fi")
	first.peer.forgetLanguage("egov")
	same("fi")
	_, err := first.peer.Replace(t.Context(), "egov")
	require.NoError(t, err)
	same("fi")
	_, err = first.DB.ChangeSettings(t.Context(), "egov", func(s *store.Settings) error { s.Language = "de"; return nil })
	assert.ErrorContains(t, err, "egov is a replica, which only follows its origin")
}
