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

// A tombstone takes the topics that have one of its identifiers, wherever the
// entry's TopicSI is among them, and nothing that refers to them.
func TestATombstoneTakesEveryTopicThatItNames(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) {
		m.named("A", a)
		m.named("B", b)
		require.NoError(t, m.named("C", c).AddSubjectLocator(x))
		m.topic(d).AddName("typed by A", m.topic(a))
	})
	s := h.subscriber()
	f := tombstone(a, b)
	f.Topic.SubjectLocators = []tmdm.Locator{x}
	requireApply(t, s, f)
	for _, si := range []tmdm.Locator{a, b, c} {
		require.False(t, has(t, &s.state, si))
	}
	require.Equal(t, a, s.topic(t, d).Names[0].Type, "deletion never cascades: what is typed by the topic stays")
}

// The entry is live: a topic with identifiers and nothing else is announced.
func TestABareTopicThatIsAnnouncedStays(t *testing.T) {
	s := &subscriber{}
	f := tombstone(a)
	f.Deleted = false
	requireApply(t, s, f)
	require.False(t, s.topic(t, a).Provisional)
}

// A topic that is only referred to is there as long as it is: provisionally,
// with what its stub said of it.
func TestAProvisionalTopicLivesAsLongAsItIsReferredTo(t *testing.T) {
	refer := map[string]func(m draft, t *tmdm.Topic){
		"type of a name":         func(m draft, t *tmdm.Topic) { m.topic(a).AddName("n", t) },
		"theme of a name":        func(m draft, t *tmdm.Topic) { m.topic(a).AddName("n", nil, t) },
		"theme of a variant":     func(m draft, t *tmdm.Topic) { m.topic(a).AddName("n", nil).AddVariant("v", tmdm.XSDString, t) },
		"reifier of a name":      func(m draft, t *tmdm.Topic) { _ = tmdm.SetReifier(m.topic(a).AddName("n", nil), t) },
		"type of an occurrence":  func(m draft, t *tmdm.Topic) { m.topic(a).AddOccurrence("o", tmdm.XSDString, t) },
		"class":                  func(m draft, t *tmdm.Topic) { m.topic(a).AddType(t) },
		"player":                 func(m draft, t *tmdm.Topic) { m.associate(x, m.topic(a), t) },
		"type of a role":         func(m draft, t *tmdm.Topic) { m.CreateAssociation(m.topic(x)).AddRole(t, m.topic(a)) },
		"type of an association": func(m draft, t *tmdm.Topic) { m.CreateAssociation(t).AddRole(m.topic(x), m.topic(a)) },
	}
	for name, say := range refer {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			h.version(func(m draft) { say(m, m.named("not to be seen by a", b, c)) })
			h.version(func(m draft) { m.topic(a); m.named("not to be seen by a", b, c) })
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
	h.version(func(m draft) { m.associate(x, m.topic(a), m.named("B", b, c)) })
	h.version(func(m draft) { m.topic(a); m.topic(x); m.named("B", b, c) })
	s := &subscriber{}
	requireApply(t, s, h.log[h.from(0, a)].parsed)
	requireApply(t, s, h.log[h.from(0, b)].parsed)
	announced := s.topic(t, b)
	require.False(t, announced.Provisional)
	require.Equal(t, "B", announced.Names[0].Value)
	requireApply(t, s, h.log[h.from(1, a)].parsed)
	require.True(t, has(t, &s.state, b), "it stays without anything that refers to it")
}

// Once a reference resolves, a stub says nothing: it neither adds identifiers
// to the topic nor takes them.
func TestAStubOfAKnownTopicIsIgnored(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.associate(x, m.topic(a), m.topic(b, c)) })
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

// Two stubs of one topic, by servers that name it differently: the second makes
// a topic of what nobody has, and joins nothing.
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
	h.version(func(m draft) { m.reified("A", a, c); m.named("B", b) })
	s := h.subscriber()
	h.version(func(m draft) { m.named("A", a); m.reified("B", b, c) })
	requireApply(t, s, h.log[h.from(1, b)].parsed)
	_, conflicts, err := merge.Join(t.Context(), merge.Part{SP: sp, Source: &s.state})
	require.NoError(t, err)
	require.Len(t, conflicts, 1, "the view has to choose, and says so")
	h.follow(s, false)
	h.requireInStep(s, "both ends have arrived")
}

// Whatever call of the state fails, Apply returns that error.
func TestApplyReturnsTheErrorsOfTheState(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) {
		m.associate(x, m.named("A", a), m.topic(b))
		require.NoError(t, m.topic(a).AddSubjectLocator(d))
		m.topic(a).AddType(m.topic(c))
	})
	h.version(func(m draft) {
		m.named("A", a)
		m.associate(e, m.topic(a), m.topic("http://new", "http://newer"))
		require.NoError(t, m.topic("http://new").AddSubjectLocator("http://newest"))
		require.NoError(t, m.topic(a).AddSubjectLocator(d))
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
