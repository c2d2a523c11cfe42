package merge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// TestCounterexamples runs the histories in which subscribers lost data, or
// kept what was gone, as long as one rule of the protocol was left out. Each is
// named for its rule. In what is said of them, a{b,c} is the topic with TopicSI
// a and the identifiers b and c. Entries of one commit come in the order of
// their TopicSIs, so which letter is which can matter.
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
	h.version(func(m draft) { m.named("A", a); m.named("B", b) })
	before, fromStart := h.subscriber(), &subscriber{}
	require.Equal(t, []string{"http://a", "http://b of http://a"}, h.version(func(m draft) { m.named("A", a, b) }))
	require.Equal(t, []string{"http://a"}, h.version(func(m draft) { m.named("A", a) }))
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
	h.version(func(m draft) { m.topic(c, d).AddType(m.named("class", a)) })
	h.version(func(m draft) { m.topic(c, d).AddType(m.named("renamed", a)) })
	require.Equal(t, []string{"no http://c", "http://d"}, h.version(func(m draft) { m.topic(d).AddType(m.named("renamed", a)) }))
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
	h.version(func(m draft) { m.named("A", a); m.named("B", b, x) })
	s := h.subscriber()
	require.Equal(t, []string{"http://a", "no http://b"}, h.version(func(m draft) { m.named("A", a, x) }))
	h.follow(s, false)
	require.Equal(t, "A", s.topic(t, x).Names[0].Value)
	h.requireInStep(s, "tombstone after the fragment")
}

// b{a,b} becomes a{a}: a fragment of a, and a tombstone for b. Both speak of
// "the same topic", but each has a TopicSI of its own, and both are needed.
func renamedTopic(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.named("T", b, a) })
	s := h.subscriber()
	require.Equal(t, []string{"http://a", "no http://b"}, h.version(func(m draft) { m.named("T", a) }))
	h.follow(s, true)
	require.Equal(t, "T", s.topic(t, a).Names[0].Value)
	h.requireInStep(s, "coalesced by TopicSI")

	onlyTheLast := &subscriber{}
	require.NoError(t, merge.Apply(&onlyTheLast.state, h.log[h.from(1, b)].parsed))
	require.False(t, has(t, &onlyTheLast.state, a), "the tombstone alone does not stand for the topic")
}

// The class a{a,b} of c splits into a{a} and b{b}, and c stays an instance of
// what has the identifier b. c's own identity and statements read as before;
// what changed is the TopicSI of the class that it belongs to.
func splitClass(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) {
		class := m.named("class", a, b)
		m.topic(c).AddType(class)
		m.topic(d).AddName("typed by the class", class)
		m.topic(e).AddOccurrence("scoped by the class", tmdm.XSDString, m.topic(x), class)
	})
	s := h.subscriber()
	require.Equal(t, []string{"http://a", "http://b", "http://c", "http://d", "http://e"}, h.version(func(m draft) {
		m.named("class", a)
		class := m.topic(b)
		m.topic(c).AddType(class)
		m.topic(d).AddName("typed by the class", class)
		m.topic(e).AddOccurrence("scoped by the class", tmdm.XSDString, m.topic(x), class)
	}))
	h.follow(s, false)
	require.Empty(t, playing(t, &s.state, a), "c is no instance of a any more")
	h.requireInStep(s, "class split")
}

// An instance refers to its class a{a,b} as "b". What is published says "a":
// otherwise the split of the class would change nothing that c says, and c
// would not be published again.
func referenceByAnotherIdentifier(t *testing.T) {
	h := newHistory(t)
	asB := func(m draft) { // b is the first identifier by which the document knows the class
		class := m.topic(b)
		m.topic(c).AddType(class)
		require.NoError(t, class.AddSubjectIdentifier(a))
	}
	h.version(func(m draft) { m.topic(a) })
	h.version(asB)
	fragmentOfC := h.log[h.from(1, c)].parsed
	require.Len(t, fragmentOfC.Associations, 1)
	class, _, _ := fragmentOfC.Associations[0].TypeInstance()
	require.Equal(t, a, class)
	s := h.subscriber()
	require.Equal(t, []string{"http://a", "http://b", "http://c"}, h.version(func(m draft) { m.topic(a); m.topic(c).AddType(m.topic(b)) }))
	h.follow(s, false)
	h.requireInStep(s, "class split")
	s.mark = h.from(1, c)
	h.follow(s, true)
	h.requireInStep(s, "replayed")
}
