package fragment_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/tmdm"
)

// The answers of a Map are consistent: parts with records, keys with order, the associations of all topics with all
// associations.
func TestMapAnswersConsistently(t *testing.T) {
	for seed := range uint64(60) {
		tm := read(t, sp, `<topic id="t1"><subjectIdentifier href="http://a"/><name><value>n</value></name></topic><topic id="t2"/>`)
		editor := testedit.New(tm, sp, seed)
		for range 60 {
			editor.Edit()
		}
		if seed%3 == 0 { // the vocabulary of typing gets mixed up
			_ = tm.CreateTopicBySubjectIdentifier(tmdm.PSIType).Merge(tm.CreateTopicBySubjectIdentifier(tmdm.PSIInstance))
			tm.Normalize(t.Context())
		}
		m, err := fragment.NameTopics(t.Context(), tm, sp, nil)
		require.NoError(t, err)

		inAll := map[fragment.AssociationKey]int{}
		for a, err := range m.Associations() {
			require.NoError(t, err)
			inAll[a.Key()] = len(a.Players())
		}
		last := fragment.Ref("")
		for topic, err := range m.Topics() {
			require.NoError(t, err)
			ref := topic.TopicSI()
			require.Less(t, last, ref, "topics come by TopicSI")
			last = ref
			for _, si := range topic.SubjectIdentifiers {
				require.Equal(t, topic, topicOf(t, m, si))
				id, err := m.Identity(si)
				require.NoError(t, err)
				require.Equal(t, topic.Identity, *id)
				if si != ref {
					require.Empty(t, associationsOf(t, m, si, fragment.Parts[:]...), "records know players by their TopicSI")
				}
			}
			for _, sl := range topic.SubjectLocators {
				found, err := m.TopicBySubjectLocator(sl)
				require.NoError(t, err)
				require.Equal(t, topic, found)
			}
			for _, part := range fragment.Parts {
				var keys [][]byte
				for _, a := range associationsOf(t, m, ref, part) {
					require.Equal(t, part, a.Part(ref), "%+v", a)
					key := a.Key()
					keys = append(keys, key[:])
					inAll[key]--
				}
				require.True(t, slices.IsSortedFunc(keys, bytes.Compare), "associations come by key")
			}
		}
		for key, left := range inAll {
			require.Zero(t, left, "association %x comes once for each of its players", key)
		}
	}
}

func TestWhatIsNotThereIsNil(t *testing.T) {
	m := published(t, nil, func(m draft) { m.Named("n", a) })
	topic, err := m.Topic(b)
	require.NoError(t, err)
	require.Nil(t, topic)
	topic, err = m.TopicBySubjectLocator(a)
	require.NoError(t, err)
	require.Nil(t, topic)
	id, err := m.Identity(b)
	require.NoError(t, err)
	require.Nil(t, id)
	require.Empty(t, associationsOf(t, m, b, fragment.Parts[:]...))
}

func TestTheFirstIdentifierOfAPublishersTopicIsItsTopicSI(t *testing.T) {
	m, err := fragment.NewMap(read(t, sp, `<topic><subjectIdentifier href="http://b"/><subjectIdentifier href="http://a"/></topic>`), sp)
	require.NoError(t, err)
	require.Equal(t, []fragment.Ref{b}, refs(t, m))
	_, err = fragment.NewMap(read(t, sp, `<topic><subjectLocator href="http://a"/></topic>`), sp)
	require.ErrorContains(t, err, "http://a has no subject identifier")
}

// Only a source's own item identifiers are its claims.
func TestForeignItemIdentifiersAreLeftOut(t *testing.T) {
	m, err := fragment.NewMap(read(t, sp, `<topic><subjectIdentifier href="http://a"/>
		<name><itemIdentity href="#own"/><itemIdentity href="http://elsewhere.example.org/#n"/><value>n</value></name></topic>`), sp)
	require.NoError(t, err)
	require.Equal(t, []tmdm.Locator{sp + "#own"}, topicOf(t, m, a).Names[0].ItemIdentifiers)
}

func TestATooLongLocatorIsRefused(t *testing.T) {
	fits := "http://long.example.org/" + strings.Repeat("x", fragment.MaxLocator-len("http://long.example.org/"))
	for _, element := range []string{"subjectIdentifier", "subjectLocator"} {
		topic := `<topic><subjectIdentifier href="http://a"/><%s href="%s"/></topic>`
		_, err := fragment.NewMap(read(t, sp, fmt.Sprintf(topic, element, fits)), sp)
		require.NoError(t, err)
		_, err = fragment.NewMap(read(t, sp, fmt.Sprintf(topic, element, fits+"x")), sp)
		require.ErrorContains(t, err, "a locator of 8193 bytes, with spaces as %20, is too long (8192 at most): http://long.example.org/")
		require.Less(t, len(err.Error()), 300)
		_, err = fragment.NameTopics(t.Context(), read(t, sp, fmt.Sprintf(topic, element, fits+"x")), sp, nil)
		require.ErrorContains(t, err, "too long")
	}
	spaces := "http://a/" + strings.Repeat("b ", fragment.MaxLocator/4) // each is three bytes in a feed
	_, err := fragment.NewMap(read(t, sp, fmt.Sprintf(`<topic><subjectIdentifier href="%s"/></topic>`, spaces+"b")), sp)
	require.ErrorContains(t, err, "a locator of 8202 bytes, with spaces as %20, is too long (8192 at most): http://a/b b")
	_, err = fragment.NewMap(read(t, sp, fmt.Sprintf(`<topic><subjectIdentifier href="%s"/></topic>`, spaces[:len(spaces)-len("b b b ")]+"123")), sp)
	require.NoError(t, err)
	_, err = fragment.NameTopics(t.Context(), read(t, sp, fmt.Sprintf(`<topic id="%s"/>`, strings.Repeat("x", fragment.MaxLocator))), sp, nil)
	require.ErrorContains(t, err, "too long", "an assigned one too")
}

// XTM 1.0 can hold an association whose members have no players. It belongs to no topic, so a publisher refuses to
// publish it, and a subscriber does not store it.
func TestAnAssociationWithoutRolesCannotBePublished(t *testing.T) {
	tm := tmdm.New()
	draft{TopicMap: tm}.Associate(x)
	_, err := fragment.NameTopics(t.Context(), tm, sp, nil)
	require.ErrorContains(t, err, "has no roles")
	m, err := fragment.NewMap(tm, sp)
	require.NoError(t, err)
	for range m.Associations() {
		t.Error("the map shows an association without roles")
	}
}
