package merge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// TestCounterexamples runs the histories in which subscribers lost data, or
// kept what was gone, as long as one rule of the protocol was left out. Each is
// named for its rule. In their comments, a{b,c} is the topic with TopicSI a and the identifiers b and c. Entries of
// one commit come in the order of their TopicSIs, so which letter is which can matter.
func TestCounterexamples(t *testing.T) {
	for _, x := range []struct {
		rule    string
		history func(*testing.T)
	}{
		{"closing entry on merge", mergedTopic},
		{"tombstone for a lost TopicSI of a topic that lives on", lostTopicSI},
		{"tombstones minus live identifiers", movedIdentifier},
		{"coalescing by TopicSI string", renamedTopic},
		{"republishing owners when a written reference changes", splitClass},
		{"verbatim references at the client", gainedAndSplitType},
		{"references as TopicSI at the server", referenceByAnotherIdentifier},
		{"targets by all identifiers", mergeWithoutClosingEntry},
		{"identifiers replaced, not united", lostIdentifier},
		{"stubs take nothing", staleStub},
		{"clearing without a record", playerWithoutRecord},
		{"instances are not cleared with their class", classWithoutInstances},
		{"never applying a single old entry", singleOldEntry},
		{"a late tombstone removes one TopicSI", lateTombstone},
		{"a late closing entry removes one TopicSI", lateClosingEntry},
		{"a late closing entry leaves its owner alone", lateClosingEntryOfAnOwner},
		{"a late fragment of a class brings no instances", lateClass},
		{"other identifiers of a stub clear nothing", clearedByAStub},
	} {
		t.Run(x.rule, x.history)
	}
}

const (
	a tmdm.Locator = "http://a"
	b tmdm.Locator = "http://b"
	c tmdm.Locator = "http://c"
	d tmdm.Locator = "http://d"
	e tmdm.Locator = "http://e"
	x tmdm.Locator = "http://x"
)

// Of a{a} and b{b}, a{a,b} is left, which then loses b. A round that only sees
// the last entry of each TopicSI must still learn that b is gone.
func mergedTopic(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Named("A", a); m.Named("B", b) })
	before, fromStart := h.subscriber(), &subscriber{}
	require.Equal(t, []string{"http://a", "http://b of http://a"}, h.version(func(m draft) { m.Named("A", a, b) }))
	require.Equal(t, []string{"http://a"}, h.version(func(m draft) { m.Named("A", a) }))
	for _, s := range []*subscriber{before, fromStart} {
		h.follow(s, true)
		require.False(t, has(t, &s.state, b))
		h.requireInStep(s, "coalesced")
	}
}

// Class a lists its instance c{c,d}. The topic loses c and lives on as d{d}.
// When a's fragment from before that is replayed, it brings "c is an instance
// of a" back; only an entry under c can take it away again.
func lostTopicSI(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Topic(c, d).AddType(m.Named("class", a)) })
	h.version(func(m draft) { m.Topic(c, d).AddType(m.Named("renamed", a)) })
	require.Equal(t, []string{"no http://c", "http://d"}, h.version(func(m draft) { m.Topic(d).AddType(m.Named("renamed", a)) }))
	s := h.subscriber()
	s.mark = h.from(1, a)
	h.follow(s, false)
	require.False(t, has(t, &s.state, c))
	require.Empty(t, playing(t, &s.state, c))
	h.requireInStep(s, "replayed from the class's old fragment on")
}

// b{b,x} is deleted, and in the same commit its identifier x moves to a. The
// tombstone of b comes last and must not meet the live topic.
func movedIdentifier(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Named("A", a); m.Named("B", b, x) })
	s := h.subscriber()
	require.Equal(t, []string{"http://a", "no http://b"}, h.version(func(m draft) { m.Named("A", a, x) }))
	h.follow(s, false)
	require.Equal(t, "A", s.topic(t, x).Names[0].Value)
	h.requireInStep(s, "tombstone after the fragment")
}

// b{a,b} becomes a{a}: a fragment of a, and a tombstone for b. Both speak of
// "the same topic", but each has a TopicSI of its own, and both are needed.
func renamedTopic(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Named("T", b, a) })
	s := h.subscriber()
	require.Equal(t, []string{"http://a", "no http://b"}, h.version(func(m draft) { m.Named("T", a) }))
	h.follow(s, true)
	require.Equal(t, "T", s.topic(t, a).Names[0].Value)
	h.requireInStep(s, "coalesced by TopicSI")

	onlyTheLast := &subscriber{}
	require.NoError(t, merge.Apply(&onlyTheLast.state, h.log[h.from(1, b)].parsed))
	require.False(t, has(t, &onlyTheLast.state, a), "the tombstone alone does not stand for the topic")
}

// The class a{a,b} of c splits into a{a} and b{b}, and c stays an instance of the topic with the identifier b. c's
// own identity and statements read as before; only the TopicSI of its class has changed.
func splitClass(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) {
		class := m.Named("class", a, b)
		m.Topic(c).AddType(class)
		m.Topic(d).AddName("typed by the class", class)
		m.Topic(e).AddOccurrence("scoped by the class", tmdm.XSDString, m.Topic(x), class)
	})
	s := h.subscriber()
	require.Equal(t, []string{"http://a", "http://b", "http://c", "http://d", "http://e"}, h.version(func(m draft) {
		m.Named("class", a)
		class := m.Topic(b)
		m.Topic(c).AddType(class)
		m.Topic(d).AddName("typed by the class", class)
		m.Topic(e).AddOccurrence("scoped by the class", tmdm.XSDString, m.Topic(x), class)
	}))
	h.follow(s, false)
	require.Empty(t, playing(t, &s.state, a), "c is no instance of a any more")
	h.requireInStep(s, "class split")
}

// An instance refers to its class a{a,b} as "b". The published record refers to "a": otherwise the split of the class
// would change no statement of c, and c would not be published again.
func referenceByAnotherIdentifier(t *testing.T) {
	h := newHistory(t)
	asB := func(m draft) { // b is the first identifier by which the document knows the class
		class := m.Topic(b)
		m.Topic(c).AddType(class)
		require.NoError(t, class.AddSubjectIdentifier(a))
	}
	h.version(func(m draft) { m.Topic(a) })
	h.version(asB)
	fragmentOfC := h.log[h.from(1, c)].parsed
	require.Len(t, fragmentOfC.Associations, 1)
	class, _, _ := fragmentOfC.Associations[0].TypeInstance()
	require.Equal(t, a, class)
	s := h.subscriber()
	require.Equal(t, []string{"http://a", "http://b", "http://c"}, h.version(func(m draft) { m.Topic(a); m.Topic(c).AddType(m.Topic(b)) }))
	h.follow(s, false)
	h.requireInStep(s, "class split")
	s.mark = h.from(1, c)
	h.follow(s, true)
	h.requireInStep(s, "replayed")
}

// These are the histories of TestCounterexamples that need a rule of the
// subscriber.

// c{c} types a name of d. It gains b, and splits into c{c} and b{b} again. The record of d does not change meanwhile,
// so what the subscriber has stored of it must still mean c, not the smallest identifier that the type had when it
// was read.
func gainedAndSplitType(t *testing.T) {
	h := newHistory(t)
	typed := func(m draft) { m.Topic(d).AddName("typed", m.Topic(c)) }
	h.version(typed)
	first := h.subscriber()
	require.Equal(t, []string{"http://c"}, h.version(func(m draft) { typed(m); require.NoError(t, m.Topic(c).AddSubjectIdentifier(b)) }))
	meanwhile := h.subscriber()
	require.Equal(t, []string{"http://b", "http://c"}, h.version(func(m draft) { typed(m); m.Topic(b) }))
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
		m.Named("A", a)
		m.Associate(x, m.Named("B", b), m.Topic(c))
	})
	s := h.subscriber()
	h.version(func(m draft) { m.Named("A", a, b); m.Topic(c); m.Topic(x) })
	require.NoError(t, merge.Apply(&s.state, h.log[h.from(1, a)].parsed))
	merged := s.topic(t, b)
	require.Equal(t, a, merged.TopicSI())
	require.Len(t, merged.Names, 1, "the name of the lost half is gone")
	require.Empty(t, playing(t, &s.state, b), "and so are its associations")
	h.follow(s, true)
	h.requireInStep(s, "after the other entries")
}

// a{a,x} loses x.
func lostIdentifier(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { require.NoError(t, m.Topic(a, x).AddSubjectLocator(d)) })
	s := h.subscriber()
	require.Equal(t, []string{"http://a"}, h.version(func(m draft) { m.Topic(a) }))
	h.follow(s, false)
	require.Equal(t, fragment.Identity{SubjectIdentifiers: []fragment.Ref{a}}, s.topic(t, a).Identity)
	require.False(t, has(t, &s.state, x))
	h.requireInStep(s, "identifier lost")
}

// c's fragment has a stub of a{a,x}. Then a is deleted and x moves to b. When
// the old fragment is replayed, its stub has an identifier that b has now: the rest becomes a topic, and b does not
// change.
func staleStub(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) {
		m.Named("B", b)
		m.Associate(e, m.Topic(c), m.Topic(a, x))
	})
	h.version(func(m draft) {
		m.Named("B", b, x)
		m.Topic(c)
		m.Topic(e)
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
	h.version(func(m draft) { m.Associate(x, m.Topic(a), m.Topic(b)) })
	h.version(func(m draft) { m.Topic(a); m.Topic(x) })
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
	h.version(func(m draft) { m.Topic(c).AddType(m.Named("class", a)) })
	s := h.subscriber()
	require.Equal(t, []string{"http://a"}, h.version(func(m draft) { m.Topic(c).AddType(m.Named("renamed", a)) }))
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
		h.version(func(m draft) { m.Named(name, a) })
	}
	s := h.subscriber()
	now := dump(t, &s.state)
	old := h.from(1, a)
	require.NoError(t, merge.Apply(&s.state, h.log[old].parsed))
	require.NotEqual(t, now, dump(t, &s.state), "the entry brings its statements back")
	s.mark = old + 1
	h.follow(s, true)
	h.requireInStep(s, "every later entry followed")
}

// The tombstone of a{a,x} comes late. The topic c{c,x} has x by then.
func lateTombstone(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Named("A", a, x) })
	s := h.subscriber()
	require.Equal(t, []string{"no http://a", "http://e"}, h.version(func(m draft) { m.Named("E", e) }))
	h.version(func(m draft) { m.Named("E", e); m.Named("C", c, x) })
	h.followBut(s, h.from(1, a))
	h.requireInStep(s, "the tombstone came late")
}

// e{e} is merged into a{a,e}, which is then deleted. The closing entry of e comes late. It describes a
// topic that is gone.
func lateClosingEntry(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Named("A", a, d); m.Named("E", e) })
	s := h.subscriber()
	require.Equal(t, []string{"http://a", "http://e of http://a"}, h.version(func(m draft) { m.Named("A", a, d, e) }))
	closing := h.from(1, e)
	h.version(func(m draft) { m.Named("C", c) })
	h.followBut(s, closing)
	require.False(t, has(t, &s.state, a))
	h.requireInStep(s, "the closing entry came late")
}

// e{e} is merged into a{a,e}, which is then renamed. The closing entry of e comes late, and has the old name.
// Another subscriber has nothing of the merged topic by then: its records of e go, and no record comes.
func lateClosingEntryOfAnOwner(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Named("A", a); m.Named("E", e) })
	s, other := h.subscriber(), h.subscriber()
	h.version(func(m draft) { m.Named("A", a, e) })
	closing := h.from(1, e)
	h.version(func(m draft) { m.Named("renamed", a, e) })
	h.followBut(s, closing)
	h.requireInStep(s, "the closing entry came late")

	require.NoError(t, merge.ApplyLate(&other.state, h.log[closing].parsed))
	require.False(t, has(t, &other.state, e))
	require.Equal(t, "A", other.topic(t, a).Names[0].Value)
}

// The class a is renamed while c is its instance, and then c is one no more: an entry of c alone. The fragment of a
// comes late.
func lateClass(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Topic(c).AddType(m.Named("class", a)) })
	s := h.subscriber()
	require.Equal(t, []string{"http://a"}, h.version(func(m draft) { m.Topic(c).AddType(m.Named("renamed", a)) }))
	require.Len(t, h.log[h.from(1, a)].parsed.Associations, 1)
	h.version(func(m draft) { m.Named("renamed", a); m.Topic(c) })
	h.followBut(s, h.from(1, a))
	require.Empty(t, playing(t, &s.state, c))
	h.requireInStep(s, "the fragment of the class came late")
}

// Of d{d,x} there is but a stub, since its fragment cannot be had. Then x becomes a topic of its own, and c plays a
// role with it. The fragment of x cannot be had either, and that of d must not take the statements of c.
func clearedByAStub(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Topic(a); m.Topic(b); m.Topic(c) })
	s := h.subscriber()
	h.version(func(m draft) { m.Associate(b, m.Topic(a), m.Topic(d, x)); m.Topic(c) })
	require.NoError(t, merge.Apply(&s.state, h.log[h.from(1, a)].parsed))
	require.True(t, s.topic(t, x).Provisional)
	h.version(func(m draft) { m.Associate(b, m.Topic(a), m.Topic(d)); m.Associate(b, m.Topic(c), m.Topic(x)) })
	require.NoError(t, merge.Apply(&s.state, h.log[h.from(2, c)].parsed))
	require.NoError(t, merge.Apply(&s.state, h.log[h.from(2, d)].parsed))
	require.Len(t, playing(t, &s.state, c), 1, "it is in no quarantine")
	require.NoError(t, merge.ApplyLate(&s.state, h.log[h.from(2, x)].parsed))
	s.mark = len(h.log)
	h.requireInStep(s, "the fragment of x came late")
}
