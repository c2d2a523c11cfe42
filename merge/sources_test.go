package merge_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// sources is an aggregator: publishers, and a subscriber to each that has read
// a snapshot and follows. The subscribers' states are kept apart; a view joins them.
type sources struct {
	t           *testing.T
	publishers  []*history
	subscribers []*subscriber
}

func newSources(t *testing.T, first ...func(draft)) *sources {
	s := &sources{t: t}
	for i, build := range first {
		h := newHistory(t)
		h.at = fmt.Sprintf("http://%d.example.org/maps/", i)
		h.version(build)
		s.publishers = append(s.publishers, h)
		s.subscribers = append(s.subscribers, h.subscriber())
	}
	return s
}

// update publishes a version of one source and follows it. The records of the
// others must stay as they are, byte for byte.
func (s *sources) update(i int, build func(draft)) {
	s.t.Helper()
	before := s.dumps()
	s.publishers[i].version(build)
	s.publishers[i].follow(s.subscribers[i], false)
	s.publishers[i].requireInStep(s.subscribers[i], "source")
	after := s.dumps()
	after[i] = before[i]
	require.Equal(s.t, before, after, "an update of source %d leaves the others alone", i)
}

func (s *sources) dumps() (dumps []string) {
	for _, sub := range s.subscribers {
		dumps = append(dumps, dump(s.t, &sub.state))
	}
	return dumps
}

func (s *sources) parts() (parts []merge.Part) {
	for i, sub := range s.subscribers {
		parts = append(parts, merge.Part{SP: s.publishers[i].prefix(), Source: &sub.state, Claims: true})
	}
	return parts
}

// view returns the merged view, which must be free of conflicts.
func (s *sources) view() *tmdm.TopicMap {
	s.t.Helper()
	tm, conflicts, err := merge.Join(s.t.Context(), s.parts()...)
	require.NoError(s.t, err)
	require.Empty(s.t, conflicts)
	return tm
}

// names returns the values of the names of the topic with an identifier, sorted.
func names(t *testing.T, tm *tmdm.TopicMap, si tmdm.Locator) []string {
	t.Helper()
	topic := tm.TopicBySubjectIdentifier(si)
	require.NotNil(t, topic, "topic %s", si)
	values := []string{}
	for _, n := range topic.Names() {
		values = append(values, n.Value())
	}
	slices.Sort(values)
	return values
}

// identifiers returns the subject identifiers of a topic, sorted.
func identifiers(tm *tmdm.TopicMap, si tmdm.Locator) []tmdm.Locator {
	return slices.Sorted(slices.Values(tm.TopicBySubjectIdentifier(si).SubjectIdentifiers()))
}

// Source 0 has a (name x) and b (name y), and source 1 states that a is b. On one map for both, an update of a by
// source 0 drops y, which only the fragment of b could bring back, and a and b stay merged when source 1 removes its
// statement.
func TestASourceThatJoinsTopicsOfAnotherTakesNothingFromThem(t *testing.T) {
	s := newSources(t,
		func(m draft) { m.Named("x", a); m.Associate(c, m.Named("y", b), m.Topic(d)) },
		func(m draft) { m.Topic(a, b) })
	require.Equal(t, []string{"x", "y"}, names(t, s.view(), a))

	s.update(0, func(m draft) { m.Named("x2", a); m.Associate(c, m.Named("y", b), m.Topic(d)) })
	require.Equal(t, []string{"x2", "y"}, names(t, s.view(), a), "the sibling keeps its statements")
	require.Equal(t, []tmdm.Locator{a, b}, identifiers(s.view(), a))
	require.Len(t, s.view().TopicBySubjectIdentifier(a).RolesPlayed(), 1)

	s.update(1, func(m draft) { m.Topic(a) })
	require.Equal(t, []string{"x2"}, names(t, s.view(), a), "the topics come apart again")
	require.Equal(t, []string{"y"}, names(t, s.view(), b))
	require.Equal(t, []tmdm.Locator{a}, identifiers(s.view(), a))
	require.Len(t, s.view().TopicBySubjectIdentifier(b).RolesPlayed(), 1)
}

func TestADeletedTopicDoesNotRemainInTheView(t *testing.T) {
	s := newSources(t,
		func(m draft) { m.Named("x", a); m.Associate(c, m.Named("y", b), m.Topic(d)) },
		func(m draft) { m.Named("elsewhere", e) })
	s.update(0, func(m draft) { m.Named("x", a); m.Topic(c); m.Topic(d) })
	require.Nil(t, s.view().TopicBySubjectIdentifier(b), "not even as a bare topic")
	require.Empty(t, s.view().TopicBySubjectIdentifier(d).RolesPlayed())
}

func TestATopicDeletedByOneSourceKeepsWhatOthersSay(t *testing.T) {
	s := newSources(t,
		func(m draft) { m.Named("x", a); m.Named("y", b) },
		func(m draft) { m.Named("z", a, b) })
	s.update(0, func(m draft) { m.Named("y", b) })
	require.Equal(t, []string{"y", "z"}, names(t, s.view(), a), "x went; y is a statement about b, which source 1 merges with a")
	s.update(1, func(m draft) { m.Named("unrelated", e) })
	require.Nil(t, s.view().TopicBySubjectIdentifier(a), "the last that announced it is gone")
	require.Equal(t, []string{"y"}, names(t, s.view(), b))
}

func TestALostIdentifierGoesUnlessAnotherSourceGivesIt(t *testing.T) {
	s := newSources(t,
		func(m draft) { m.Topic(a, x, c); m.Topic(b) },
		func(m draft) { m.Topic(a, c) })
	s.update(0, func(m draft) { m.Topic(a); m.Topic(b, x) })
	require.Equal(t, []tmdm.Locator{a, c}, identifiers(s.view(), a))
	require.Equal(t, []tmdm.Locator{b, x}, identifiers(s.view(), x))
}

func TestAStatementOfTwoSourcesIsOneWithTwoClaims(t *testing.T) {
	say := func(m draft) {
		t := m.Named("same", a)
		t.AddOccurrence("value", tmdm.XSDString, m.Topic(c))
		t.AddType(m.Topic(d))
		m.Associate(e, t, m.Topic(b))
	}
	s := newSources(t, say, say)
	claims := func() (counts []int) {
		topic := s.view().TopicBySubjectIdentifier(a)
		require.Len(t, topic.Names(), 1)
		require.Len(t, topic.Occurrences(), 1)
		require.Len(t, topic.RolesPlayed(), 2)
		counts = append(counts, len(topic.Names()[0].ItemIdentifiers()), len(topic.Occurrences()[0].ItemIdentifiers()))
		for _, r := range topic.RolesPlayed() {
			counts = append(counts, len(r.Association().ItemIdentifiers()))
		}
		return counts
	}
	require.Equal(t, []int{2, 2, 2, 2}, claims())
	s.update(0, func(m draft) { m.Named("other", b) })
	require.Equal(t, []int{1, 1, 1, 1}, claims(), "the statements stay on the word of the other source")
	for _, l := range s.view().TopicBySubjectIdentifier(a).Names()[0].ItemIdentifiers() {
		require.Regexp(t, `^http://1\.example\.org/maps/`, string(l))
	}
}

// The map of a publisher may be reified. A view of several maps may not be.
func TestAReifierOfARemoteMapDoesNotReifyTheView(t *testing.T) {
	s := newSources(t, func(m draft) { require.NoError(t, tmdm.SetReifier(m.TopicMap, m.Named("the map", a))) })
	require.Nil(t, s.view().Reifier())
	require.Equal(t, []string{"the map"}, names(t, s.view(), a), "but its reifier is a topic like others")
}
