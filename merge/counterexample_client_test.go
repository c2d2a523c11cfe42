package merge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
)

// These are the histories of TestCounterexamples that need a rule of the
// subscriber.

// c{c} types a name of d. It gains b, and splits into c{c} and b{b} again. d
// says nothing new all the while, so what the subscriber has stored of it must
// still mean c, not the smallest identifier that the type had when it was read.
func gainedAndSplitType(t *testing.T) {
	h := newHistory(t)
	typed := func(m draft) { m.topic(d).AddName("typed", m.topic(c)) }
	h.version(typed)
	first := h.subscriber()
	require.Equal(t, []string{"http://c"}, h.version(func(m draft) { typed(m); require.NoError(t, m.topic(c).AddSubjectIdentifier(b)) }))
	meanwhile := h.subscriber()
	require.Equal(t, []string{"http://b", "http://c"}, h.version(func(m draft) { typed(m); m.topic(b) }))
	for _, s := range []*subscriber{first, meanwhile} {
		h.follow(s, false)
		require.Equal(t, c, s.topic(t, d).Names[0].Type)
		h.requireInStep(s, "type split")
	}
}

// a{a} and b{b} become a{a,b} at a server that publishes no closing entries.
// The one fragment that there is takes the place of both.
func mergeWithoutClosingEntry(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) {
		m.named("A", a)
		m.associate(x, m.named("B", b), m.topic(c))
	})
	s := h.subscriber()
	h.version(func(m draft) { m.named("A", a, b); m.topic(c); m.topic(x) })
	require.NoError(t, merge.Apply(&s.state, h.log[h.from(1, a)].parsed))
	merged := s.topic(t, b)
	require.Equal(t, a, merged.TopicSI())
	require.Len(t, merged.Names, 1, "what the lost half was called is gone")
	require.Empty(t, playing(t, &s.state, b), "and so are its associations")
	h.follow(s, true)
	h.requireInStep(s, "after the other entries")
}

// a{a,x} loses x.
func lostIdentifier(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { require.NoError(t, m.topic(a, x).AddSubjectLocator(d)) })
	s := h.subscriber()
	require.Equal(t, []string{"http://a"}, h.version(func(m draft) { m.topic(a) }))
	h.follow(s, false)
	require.Equal(t, fragment.Identity{SubjectIdentifiers: []fragment.Ref{a}}, s.topic(t, a).Identity)
	require.False(t, has(t, &s.state, x))
	h.requireInStep(s, "identifier lost")
}

// c's fragment has a stub of a{a,x}. Then a is deleted and x moves to b. When
// the old fragment is replayed, its stub names what is b's by now: it makes a
// topic of the rest, and leaves b alone.
func staleStub(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) {
		m.named("B", b)
		m.associate(e, m.topic(c), m.topic(a, x))
	})
	h.version(func(m draft) {
		m.named("B", b, x)
		m.topic(c)
		m.topic(e)
	})
	s := h.subscriber()
	live := fragment.MarshalTopic(s.topic(t, b))
	old := h.from(0, c)
	require.NoError(t, merge.Apply(&s.state, h.log[old].parsed))
	require.Equal(t, live, fragment.MarshalTopic(s.topic(t, x)), "b as it was, x included")
	stub := s.topic(t, a)
	require.True(t, stub.Provisional)
	require.Equal(t, fragment.Identity{SubjectIdentifiers: []fragment.Ref{a}}, stub.Identity)
	s.mark = old + 1
	h.follow(s, false)
	h.requireInStep(s, "every later entry followed")
}

// b is known only as a player of an association of a: there is no record of it.
// Its tombstone takes the association all the same.
func playerWithoutRecord(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.associate(x, m.topic(a), m.topic(b)) })
	h.version(func(m draft) { m.topic(a); m.topic(x) })
	s := &subscriber{}
	withoutStubs := *h.log[h.from(0, a)].parsed
	withoutStubs.Stubs = nil
	require.NoError(t, merge.Apply(&s.state, &withoutStubs))
	require.False(t, has(t, &s.state, b))
	require.Len(t, playing(t, &s.state, b), 1)
	require.NoError(t, merge.Apply(&s.state, h.log[h.from(1, b)].parsed))
	require.Empty(t, playing(t, &s.state, a))
	require.Empty(t, playing(t, &s.state, b))
}

// A server that leaves instances out of the fragments of classes renames one.
func classWithoutInstances(t *testing.T) {
	h := newHistory(t)
	h.omit = true
	h.version(func(m draft) { m.topic(c).AddType(m.named("class", a)) })
	s := h.subscriber()
	require.Equal(t, []string{"http://a"}, h.version(func(m draft) { m.topic(c).AddType(m.named("renamed", a)) }))
	require.Empty(t, h.log[h.from(1, a)].parsed.Associations)
	h.follow(s, false)
	require.Len(t, playing(t, &s.state, c), 1, "c is still an instance")
	h.requireInStep(s, "class renamed")
}

// That no old entry is applied on its own is the client's job: it skips entries
// at or below its mark by id. Here is why, and that going back does no harm as
// long as every later entry follows.
func singleOldEntry(t *testing.T) {
	h := newHistory(t)
	for _, name := range []string{"first", "second", "third"} {
		h.version(func(m draft) { m.named(name, a) })
	}
	s := h.subscriber()
	now := dump(t, &s.state)
	old := h.from(1, a)
	require.NoError(t, merge.Apply(&s.state, h.log[old].parsed))
	require.NotEqual(t, now, dump(t, &s.state), "the entry brings back what it says")
	s.mark = old + 1
	h.follow(s, true)
	h.requireInStep(s, "every later entry followed")
}
