package merge_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// together applies all entries that the subscribers have not had yet to them and
// to one map for all, in the order of the sources.
func (s *sources) together(tm *tmdm.TopicMap) {
	for i, h := range s.publishers {
		for _, l := range h.log[s.subscribers[i].mark:] {
			require.NoError(s.t, merge.ApplyLiteral(tm, h.prefix(), l.parsed))
		}
		h.follow(s.subscribers[i], false)
	}
}

// Source 0 has a (name x) and b (name y), and source 1 says that a is b.
func TestTheLiteralFormLosesWhatASourceJoins(t *testing.T) {
	s := newSources(t)
	for i := range 2 {
		h := newHistory(t)
		h.at = fmt.Sprintf("http://%d.example.org/maps/", i)
		s.publishers, s.subscribers = append(s.publishers, h), append(s.subscribers, &subscriber{})
	}
	tm := tmdm.New()
	version := func(i int, build func(draft)) {
		s.publishers[i].version(build)
		s.together(tm)
	}
	version(0, func(m draft) { m.named("x", a); m.named("y", b) })
	version(1, func(m draft) { m.topic(a, b) })
	require.Equal(t, []string{"x", "y"}, names(t, tm, a), "nothing is lost yet")
	require.Equal(t, string(canonical(t, s.view())), string(canonical(t, tm)))

	version(1, func(m draft) { m.topic(a) })
	require.Equal(t, []string{"x"}, names(t, s.view(), a))
	require.Equal(t, []string{"x", "y"}, names(t, tm, a), "what was one stays one")
	require.Equal(t, []tmdm.Locator{a, b}, identifiers(tm, a))

	version(0, func(m draft) { m.named("x2", a); m.named("y", b) })
	require.Equal(t, []string{"y"}, names(t, s.view(), b))
	require.Equal(t, []string{"x2"}, names(t, tm, a), "y is gone: it was b's, and only a was updated")
	require.Nil(t, tm.TopicBySubjectIdentifier(b), "and with it all that source 0 says of b")
}

func TestTheLiteralFormCountsClaims(t *testing.T) {
	s := newSources(t)
	for i := range 2 {
		h := newHistory(t)
		h.at = fmt.Sprintf("http://%d.example.org/maps/", i)
		s.publishers, s.subscribers = append(s.publishers, h), append(s.subscribers, &subscriber{})
	}
	tm := tmdm.New()
	version := func(i int, build func(draft)) {
		s.publishers[i].version(build)
		s.together(tm)
		require.Equal(t, string(canonical(t, s.view())), string(canonical(t, tm)))
	}
	both := func(m draft) {
		m.topic(a).AddName("both", nil).AddVariant("v", tmdm.XSDString, m.topic(d))
		m.associate(x, m.topic(a), m.topic(b))
	}
	version(0, both)
	version(1, both)
	name := tm.TopicBySubjectIdentifier(a).Names()[0]
	require.Len(t, name.ItemIdentifiers(), 2)
	require.Len(t, name.Variants()[0].ItemIdentifiers(), 2)

	version(0, func(m draft) { m.topic(a).AddName("both", nil) }) // a variant is a statement of its own
	name = tm.TopicBySubjectIdentifier(a).Names()[0]
	require.Len(t, name.ItemIdentifiers(), 2)
	require.Len(t, name.Variants()[0].ItemIdentifiers(), 1)
	version(1, func(m draft) { m.topic(c) })
	require.Empty(t, tm.TopicBySubjectIdentifier(a).Names()[0].Variants())
	require.Nil(t, tm.TopicBySubjectIdentifier(b), "what nobody gives and nothing needs is gone")
	version(0, func(m draft) { m.topic(c) })
	require.Nil(t, tm.TopicBySubjectIdentifier(a))
}

// What a source does with its own topics is followed, whichever fragment comes
// first.
func TestTheLiteralFormFollowsItsSource(t *testing.T) {
	for name, versions := range map[string][]func(draft){
		"a topic is split, and what refers to the new one comes first": {
			func(m draft) { m.topic(a).AddName("n", m.topic(b, c)) },
			func(m draft) { m.topic(b); m.topic(a).AddName("n", m.topic(c)) },
		},
		"a class changes": {
			func(m draft) { m.topic(a).AddType(m.topic(b)) },
			func(m draft) { m.topic(a).AddType(m.named("class", b)) },
		},
		"a reifier moves to what comes first": {
			func(m draft) { m.topic(a); m.reified("n", b, d) },
			func(m draft) { m.named("n", b); m.reified("n", a, d) },
		},
		"a subject locator goes": {
			func(m draft) { require.NoError(t, m.topic(a).AddSubjectLocator(x)) },
			func(m draft) { m.topic(a) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			h.omit = true // instances do not come with their class
			s := &sources{t: t, publishers: []*history{h}, subscribers: []*subscriber{{}}}
			tm := tmdm.New()
			for _, v := range versions {
				h.version(v)
				s.together(tm)
				require.Equal(t, string(canonical(t, s.view())), string(canonical(t, tm)))
			}
		})
	}
}

// Source 0 says no longer that c is the b of source 1, but that a is.
func TestTheLiteralFormLosesWhatASourceTakesBack(t *testing.T) {
	s := &sources{t: t}
	for i := range 2 {
		h := newHistory(t)
		h.at = fmt.Sprintf("http://%d.example.org/maps/", i)
		s.publishers, s.subscribers = append(s.publishers, h), append(s.subscribers, &subscriber{})
	}
	tm := tmdm.New()
	for _, v := range []struct {
		source int
		build  func(draft)
	}{
		{0, func(m draft) { m.topic(d).AddName("n", m.topic(c, b)) }},
		{1, func(m draft) { m.topic(b) }},
		{0, func(m draft) { m.topic(a, b); m.topic(d).AddName("n", m.topic(c)) }},
	} {
		s.publishers[v.source].version(v.build)
		s.together(tm)
	}
	typ := func(tm *tmdm.TopicMap) []tmdm.Locator {
		return tm.TopicBySubjectIdentifier(d).Names()[0].Type().SubjectIdentifiers()
	}
	require.Equal(t, []tmdm.Locator{c}, typ(s.view()))
	require.Contains(t, typ(tm), b, "what referred to c has gone with b")
}

// TestTheLiteralFormAgrees runs random histories of sources none of which joins
// two topics of another: a topic that several sources have keeps its common
// identifier, by which all refer to it. Within a source identifiers move, topics
// are merged, split, deleted and created again. After each commit the map is what
// the sources' states say together.
func TestTheLiteralFormAgrees(t *testing.T) {
	counts := map[string]int{}
	for n := range uint64(max(*histories/6, 1)) {
		seed := *firstSeed + n
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runLiteral(t, seed, counts) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%v", counts)
	require.Greater(t, counts["shared"], *histories/6)
	require.Greater(t, counts["deleted"], *histories/12)
}

func runLiteral(t *testing.T, seed uint64, counts map[string]int) {
	rng := rand.New(rand.NewPCG(seed, 23))
	s := newSources(t)
	var all []*unbridging
	for i := range 1 + rng.IntN(3) {
		h := newHistory(t)
		h.at = fmt.Sprintf("http://%d.example.org/maps/", i)
		s.publishers, s.subscribers = append(s.publishers, h), append(s.subscribers, &subscriber{})
		all = append(all, newUnbridging(rng, i))
	}
	tm := tmdm.New()
	for range 3 + rng.IntN(6) {
		i := rng.IntN(len(all))
		all[i].change()
		entries := s.publishers[i].version(all[i].build)
		if slices.ContainsFunc(entries, func(e string) bool { return strings.HasPrefix(e, "no ") }) {
			counts["deleted"]++
		}
		s.together(tm)
		view, conflicts, err := merge.Join(s.parts()...)
		require.NoError(t, err)
		require.Empty(t, conflicts)
		require.Equal(t, string(canonical(t, view)), string(canonical(t, tm)), "entries %v", entries)
		topics := 0
		for _, sub := range s.subscribers {
			for range sub.state.Topics() {
				topics++
			}
		}
		if len(slices.Collect(view.Topics())) < topics {
			counts["shared"]++
		}
	}
}

// unbridging is a source that says nothing of the topics of others but by their
// common identifiers. Its private identifiers are dealt out to topics anew from
// time to time.
type unbridging struct {
	rng        *rand.Rand
	source     int
	owner      []int // of each private identifier: the topic that has it, or -1
	statements []func(draft, func(int) *tmdm.Topic)
}

const (
	sharedTopics  = 3
	privateTopics = 4
	privateSIs    = 8
	anchors       = 4 // of them, those by which private topics are referred to
)

func newUnbridging(rng *rand.Rand, source int) *unbridging {
	u := &unbridging{rng: rng, source: source, owner: make([]int, privateSIs)}
	for i := range u.owner {
		u.owner[i] = u.deal(i)
	}
	for range 3 {
		u.state()
	}
	return u
}

// deal deals out a private identifier. One by which the source may refer to a
// topic does not come to a shared one: if it left, so would the shared identifier.
func (u *unbridging) deal(i int) int {
	owner := u.rng.IntN(sharedTopics+privateTopics+1) - 1
	for i < anchors && owner >= 0 && owner < sharedTopics {
		owner = u.rng.IntN(sharedTopics+privateTopics+1) - 1
	}
	return owner
}

func (u *unbridging) change() {
	for range 1 + u.rng.IntN(3) {
		switch u.rng.IntN(3) {
		case 0:
			i := u.rng.IntN(privateSIs)
			u.owner[i] = u.deal(i)
		case 1:
			u.state()
		case 2:
			if n := len(u.statements); n > 0 {
				u.statements = slices.Delete(u.statements, n-1, n)
				u.rng.Shuffle(len(u.statements), func(i, j int) { u.statements[i], u.statements[j] = u.statements[j], u.statements[i] })
			}
		}
	}
}

func (u *unbridging) build(m draft) {
	exists := func(i int) bool { return i < sharedTopics || slices.Contains(u.owner[:anchors], i) }
	topic := func(i int) *tmdm.Topic { // what does not exist is replaced by a shared topic
		if !exists(i) {
			i = 0
		}
		if i < sharedTopics {
			return m.topic(tmdm.Locator(fmt.Sprintf("http://shared.example.org/%d", i)))
		}
		return m.topic(u.private(slices.Index(u.owner, i)))
	}
	for _, state := range u.statements {
		state(m, topic)
	}
	for si, owner := range u.owner {
		if owner < 0 || !exists(owner) {
			continue
		}
		if t := topic(owner); m.TopicBySubjectIdentifier(u.private(si)) == nil {
			if err := t.AddSubjectIdentifier(u.private(si)); err != nil {
				panic(err)
			}
		}
	}
	m.Normalize()
}

func (u *unbridging) private(i int) tmdm.Locator {
	return tmdm.Locator(fmt.Sprintf("http://%d.example.org/private/%d", u.source, i))
}

// state adds a statement about topics, each of which is whatever has its
// identifiers when the map is built.
func (u *unbridging) state() {
	any := func() int { return u.rng.IntN(sharedTopics + privateTopics) }
	one, two, three := any(), any(), any()
	value := fmt.Sprint("value ", u.rng.IntN(2))
	n := len(u.statements)*1_000 + u.rng.IntN(1_000)
	own := func(m draft) *tmdm.Topic { return m.topic(u.private(-1)) } // marks what no other source says
	reifier := func(m draft) *tmdm.Topic { return m.topic(u.private(1_000 + n)) }
	all := []func(draft, func(int) *tmdm.Topic){
		func(m draft, t func(int) *tmdm.Topic) { t(one).AddName(value, t(two)) },
		func(m draft, t func(int) *tmdm.Topic) { t(one).AddName(value, nil, t(three)) },
		func(m draft, t func(int) *tmdm.Topic) {
			t(one).AddName(value, nil).AddVariant("v", tmdm.XSDString, t(two))
		},
		func(m draft, t func(int) *tmdm.Topic) { t(one).AddOccurrence(value, tmdm.XSDString, t(two), t(three)) },
		func(m draft, t func(int) *tmdm.Topic) { t(one).AddType(t(two)) },
		func(m draft, t func(int) *tmdm.Topic) {
			a := m.CreateAssociation(t(one))
			a.AddRole(t(two), t(three))
			a.AddRole(t(three), t(two))
		},
		func(m draft, t func(int) *tmdm.Topic) {
			if r := reifier(m); r.Reified() == nil {
				_ = tmdm.SetReifier(t(one).AddName(fmt.Sprint("reified ", n), t(two), own(m)), r)
			}
		},
		func(m draft, t func(int) *tmdm.Topic) {
			a := m.CreateAssociation(t(one), own(m))
			a.AddRole(t(two), t(three))
			a.AddRole(t(two), reifier(m))
			if r := reifier(m); r.Reified() == nil {
				_ = tmdm.SetReifier(a, r)
			}
		},
	}
	u.statements = append(u.statements, all[u.rng.IntN(len(all))])
}
