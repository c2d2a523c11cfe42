package merge_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

func requireApply(t *testing.T, s *subscriber, f *fragment.Fragment) {
	t.Helper()
	require.NoError(t, merge.Apply(&s.state, f))
	once := dump(t, &s.state)
	require.NoError(t, merge.Apply(&s.state, f))
	require.Equal(t, once, dump(t, &s.state), "applying a fragment again changes nothing")
}

func tombstone(sis ...tmdm.Locator) *fragment.Fragment {
	return &fragment.Fragment{
		TopicSI: sis[0], Deleted: true,
		Topic: &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: sis}},
	}
}

func TestDeletingWhatIsNotThereIsSuccess(t *testing.T) {
	s := &subscriber{}
	requireApply(t, s, tombstone(a, b))
	require.Empty(t, dump(t, &s.state))
}

// A tombstone removes the topics with one of its identifiers, if the entry's TopicSI is among them, and no others.
func TestATombstoneTakesEveryTopicThatItNames(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) {
		m.Named("A", a)
		m.Named("B", b)
		require.NoError(t, m.Named("C", c).AddSubjectLocator(x))
		m.Topic(d).AddName("typed by A", m.Topic(a))
	})
	s := h.subscriber()
	f := tombstone(a, b)
	f.Topic.SubjectLocators = []tmdm.Locator{x}
	requireApply(t, s, f)
	for _, si := range []tmdm.Locator{a, b, c} {
		require.False(t, has(t, &s.state, si))
	}
	require.Equal(t, a, s.topic(t, d).Names[0].Type, "deletion never cascades: statements typed by the topic stay")
}

// The entry is live: a topic with identifiers only is announced.
func TestABareTopicThatIsAnnouncedStays(t *testing.T) {
	s := &subscriber{}
	f := tombstone(a)
	f.Deleted = false
	requireApply(t, s, f)
	require.False(t, s.topic(t, a).Provisional)
}

// A topic that is only referred to exists as long as it is: provisionally, with the content of its stub.
func TestAProvisionalTopicLivesAsLongAsItIsReferredTo(t *testing.T) {
	refer := map[string]func(m draft, t *tmdm.Topic){
		"type of a name":         func(m draft, t *tmdm.Topic) { m.Topic(a).AddName("n", t) },
		"theme of a name":        func(m draft, t *tmdm.Topic) { m.Topic(a).AddName("n", nil, t) },
		"theme of a variant":     func(m draft, t *tmdm.Topic) { m.Topic(a).AddName("n", nil).AddVariant("v", tmdm.XSDString, t) },
		"reifier of a name":      func(m draft, t *tmdm.Topic) { _ = tmdm.SetReifier(m.Topic(a).AddName("n", nil), t) },
		"type of an occurrence":  func(m draft, t *tmdm.Topic) { m.Topic(a).AddOccurrence("o", tmdm.XSDString, t) },
		"class":                  func(m draft, t *tmdm.Topic) { m.Topic(a).AddType(t) },
		"player":                 func(m draft, t *tmdm.Topic) { m.Associate(x, m.Topic(a), t) },
		"type of a role":         func(m draft, t *tmdm.Topic) { m.CreateAssociation(m.Topic(x)).AddRole(t, m.Topic(a)) },
		"type of an association": func(m draft, t *tmdm.Topic) { m.CreateAssociation(t).AddRole(m.Topic(x), m.Topic(a)) },
	}
	for name, say := range refer {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			h.version(func(m draft) { say(m, m.Named("not to be seen by a", b, c)) })
			h.version(func(m draft) { m.Topic(a); m.Named("not to be seen by a", b, c) })
			s := &subscriber{}
			requireApply(t, s, h.log[h.from(0, a)].parsed)
			stub := s.topic(t, b)
			require.True(t, stub.Provisional)
			require.Equal(t, []tmdm.Locator{b, c}, stub.SubjectIdentifiers)
			require.Empty(t, stub.Names)
			requireApply(t, s, h.log[h.from(1, a)].parsed)
			require.False(t, has(t, &s.state, b), "nothing refers to it any more")
			require.True(t, has(t, &s.state, a))
		})
	}
}

func TestAProvisionalTopicIsAnnouncedByItsFragment(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Associate(x, m.Topic(a), m.Named("B", b, c)) })
	h.version(func(m draft) { m.Topic(a); m.Topic(x); m.Named("B", b, c) })
	s := &subscriber{}
	requireApply(t, s, h.log[h.from(0, a)].parsed)
	requireApply(t, s, h.log[h.from(0, b)].parsed)
	announced := s.topic(t, b)
	require.False(t, announced.Provisional)
	require.Equal(t, "B", announced.Names[0].Value)
	requireApply(t, s, h.log[h.from(1, a)].parsed)
	require.True(t, has(t, &s.state, b), "it stays without anything that refers to it")
}

// Once a reference resolves, a stub has no effect: it neither adds identifiers to the topic nor removes them.
func TestAStubOfAKnownTopicIsIgnored(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Associate(x, m.Topic(a), m.Topic(b, c)) })
	for _, known := range [][]tmdm.Locator{{b}, {b, d}, {d, b}} {
		s := &subscriber{}
		f := tombstone(known...)
		f.Deleted = false
		requireApply(t, s, f)
		requireApply(t, s, h.log[h.from(0, a)].parsed)
		require.Equal(t, known, s.topic(t, b).SubjectIdentifiers)
		require.False(t, has(t, &s.state, c))
	}
}

// Two stubs of one topic, by servers that name it differently: the second makes a topic of the identifiers that no
// topic has, and merges none.
func TestAStubGetsOnlyWhatNoTopicHas(t *testing.T) {
	s := &subscriber{}
	refer := func(topic tmdm.Locator, stub ...tmdm.Locator) *fragment.Fragment {
		f := tombstone(topic)
		f.Deleted = false
		f.Topic.Names = []fragment.Name{{Value: "n", Type: stub[0]}}
		f.Stubs = []fragment.Identity{{SubjectIdentifiers: stub, SubjectLocators: []tmdm.Locator{x}}}
		return f
	}
	requireApply(t, s, refer(a, c, d))
	requireApply(t, s, refer(b, e, d))
	require.Equal(t, fragment.Identity{SubjectIdentifiers: []tmdm.Locator{c, d}, SubjectLocators: []tmdm.Locator{x}}, s.topic(t, c).Identity)
	require.Equal(t, fragment.Identity{SubjectIdentifiers: []tmdm.Locator{e}}, s.topic(t, e).Identity)
}

// A reifier has moved from a to b, and only b's fragment has arrived.
func TestASourceMayContradictItselfBetweenEntries(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { reified(m, "A", a, c); m.Named("B", b) })
	s := h.subscriber()
	h.version(func(m draft) { m.Named("A", a); reified(m, "B", b, c) })
	requireApply(t, s, h.log[h.from(1, b)].parsed)
	_, conflicts, err := merge.Join(t.Context(), merge.Part{SP: sp, Source: &s.state})
	require.NoError(t, err)
	require.Len(t, conflicts, 1, "the view has to choose, and reports it")
	h.follow(s, false)
	h.requireInStep(s, "both ends have arrived")
}

// Whatever call of the state fails, Apply returns that error.
func TestApplyReturnsTheErrorsOfTheState(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) {
		m.Associate(x, m.Named("A", a), m.Topic(b))
		require.NoError(t, m.Topic(a).AddSubjectLocator(d))
		m.Topic(a).AddType(m.Topic(c))
	})
	h.version(func(m draft) {
		m.Named("A", a)
		m.Associate(e, m.Topic(a), m.Topic("http://new", "http://newer"))
		require.NoError(t, m.Topic("http://new").AddSubjectLocator("http://newest"))
		require.NoError(t, m.Topic(a).AddSubjectLocator(d))
	})
	boom := errors.New("boom")
	calls := 0
	for ; ; calls++ {
		var m merge.Memory // a's fragment alone: all others are provisional
		require.NoError(t, merge.Apply(&m, h.log[h.from(0, a)].parsed))
		err := merge.Apply(&failing{State: &m, after: calls, err: boom}, h.log[h.from(1, a)].parsed)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, boom)
	}
	require.Greater(t, calls, 25, "each call has failed once")
}
