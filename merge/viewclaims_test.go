package merge_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// TestTheViewOfPublishers compares view and map where editors edit maps that
// share identifiers and statements, after each commit.
func TestTheViewOfPublishers(t *testing.T) {
	counts := map[string]int{}
	for n := range uint64(max(histories()/12, 1)) {
		seed := testenv.Seed() + n
		rng := rand.New(rand.NewPCG(seed, 19))
		s := &sources{t: t}
		var editors []*testedit.Editor
		for i := range 1 + rng.IntN(4) {
			h := newHistory(t)
			h.at = fmt.Sprintf("http://%d.example.org/maps/", i)
			s.publishers, s.subscribers = append(s.publishers, h), append(s.subscribers, &subscriber{})
			editors = append(editors, testedit.New(testedit.SmallMap(sp), h.at, seed*8+uint64(i)))
		}
		for commit := range 6 {
			i := rng.IntN(len(editors))
			for range 1 + rng.IntN(4) {
				editors[i].Edit()
				shareIdentifier(rng, editors[i].Map)
				shareStatement(rng, editors[i].Map)
			}
			s.publishers[i].publish(editors[i].Map, commit)
			s.subscribers[i].round(s.publishers[i].publisher, len(s.publishers[i].log), false, false)
			compareViewWithJoin(t, fmt.Sprintf("seed %d, commit %d", seed, commit), counts, s.parts())
		}
	}
	require.Greater(t, counts["joined"], histories()/12)
}

// countedMemory counts the records that a source gives.
type countedMemory struct {
	*merge.Memory
	records int
}

func (c *countedMemory) Topic(si fragment.Ref) (*fragment.Topic, error) {
	c.records++
	return c.Memory.Topic(si)
}

func (c *countedMemory) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	c.records++
	return c.Memory.TopicBySubjectLocator(sl)
}

func (c *countedMemory) Topics() iter.Seq2[*fragment.Topic, error] {
	return countedSeq(c, c.Memory.Topics())
}

func (c *countedMemory) Associations() iter.Seq2[*fragment.Association, error] {
	return countedSeq(c, c.Memory.Associations())
}

func (c *countedMemory) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return countedSeq(c, c.Memory.AssociationsOf(player, part))
}

func countedSeq[T any](c *countedMemory, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		seq(func(x T, err error) bool {
			c.records++
			return yield(x, err)
		})
	}
}

// The records read for a topic depend on the topic, not on the map, although the map has reified statements and a
// class with all other topics as instances.
func TestATopicOfTheViewCostsItsRecords(t *testing.T) {
	reads := func(n int, read func(*merge.View)) (records int) {
		var parts []merge.Part
		var counters []*countedMemory
		for i := range 3 {
			c := &countedMemory{Memory: crowdState(t, n)}
			require.NoError(t, c.PutTopic(&fragment.Topic{Identity: identity(a), Names: []fragment.Name{{Value: "n", Type: tmdm.PSIDefaultNameType, Reifier: []fragment.Ref{b, d, e}[i]}}}))
			counters = append(counters, c)
			parts = append(parts, merge.Part{SP: fmt.Sprintf("http://%d.example.org/", i), Source: c, Claims: true})
		}
		read(merge.NewView(t.Context(), parts...))
		for _, c := range counters {
			records += c.records
		}
		return records
	}
	for name, read := range map[string]func(*merge.View){
		"Topic": func(v *merge.View) {
			topic, err := v.Topic(instance(7))
			require.NoError(t, err)
			require.NotEmpty(t, topic.Names)
		},
		"AssociationsOf": func(v *merge.View) {
			n := 0
			for _, err := range v.AssociationsOf(instance(7), fragment.AsInstance) {
				require.NoError(t, err)
				n++
			}
			require.Equal(t, 1, n)
		},
		"Claims": func(v *merge.View) {
			c, err := v.Claims(instance(7), false)
			require.NoError(t, err)
			require.Equal(t, []int{0, 1, 2}, c.Names[0].By)
		},
		"joined reifier": func(v *merge.View) {
			topic, err := v.Topic(d)
			require.NoError(t, err)
			require.Equal(t, []tmdm.Locator{b, d, e}, topic.SubjectIdentifiers)
		},
	} {
		small, large := reads(100, read), reads(3_000, read)
		require.Equal(t, small, large, name)
		require.Less(t, large, 150, name)
	}
	all := func(v *merge.View) { exported(t, v, "") }
	require.Less(t, reads(1_000, all), 11*reads(100, all), "the whole map costs in proportion")
}

// A topic with more associations than may be held at a time is read several
// times.
func TestAHubIsReadInPieces(t *testing.T) {
	defer merge.HoldAssociations(7)()
	parts := []merge.Part{{SP: "http://0.example.org/"}, {SP: "http://1.example.org/"}}
	for i := range parts {
		var m merge.Memory
		for _, si := range []tmdm.Locator{a, b} { // all play with a, which comes first, and with each other
			require.NoError(t, m.PutTopic(&fragment.Topic{Identity: identity(si)}))
		}
		for n := range 100 {
			p := tmdm.Locator(fmt.Sprintf("http://players.example.org/%d", n+30*i))
			require.NoError(t, m.PutTopic(&fragment.Topic{Identity: identity(p)}))
			assoc := &fragment.Association{Type: x, Roles: []fragment.Role{{Type: x, Player: a}, {Type: x, Player: p}}}
			require.NoError(t, m.PutAssociation(assoc))
		}
		parts[i].Source = &m
	}
	compareViewWithJoin(t, "hub", map[string]int{}, parts)
	n := 0
	for _, err := range merge.NewView(t.Context(), parts...).AssociationsOf(a, fragment.AsPlayer) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 130, n)
}

func TestClaimsTellWhoSaysWhat(t *testing.T) {
	s := newSources(t,
		func(m draft) {
			n := m.Topic(a, c).AddName("same", nil)
			n.AddVariant("both", tmdm.XSDString, m.Topic(d))
			n.AddVariant("first", tmdm.XSDString, m.Topic(d))
			m.Associate(x, m.Topic(a), m.Topic(b))
			m.Topic(e).AddType(m.Topic(a))
		},
		func(m draft) {
			n := m.Topic(b, c).AddName("same", nil)
			n.AddVariant("both", tmdm.XSDString, m.Topic(d))
			m.Topic(b).AddOccurrence("second", tmdm.XSDString, m.Topic(d))
			m.Associate(x, m.Topic(b), m.Topic(b))
			m.Topic(e).AddType(m.Topic(b))
		},
		func(m draft) { m.Named("unrelated", d) })
	view := merge.NewView(t.Context(), s.parts()...)
	claims := func(instances bool) (lines []string) {
		claims, err := view.Claims(c, instances)
		require.NoError(t, err)
		say := func(what string, by []int) { lines = append(lines, fmt.Sprint(what, " ", by)) }
		for _, si := range claims.SubjectIdentifiers {
			say(string(si.Value), si.By)
		}
		for _, n := range claims.Names {
			say(n.Value.Value, n.By)
			for _, v := range n.Variants {
				say(v.Value.Value, v.By)
			}
		}
		for _, o := range claims.Occurrences {
			say(o.Value.Value, o.By)
		}
		for _, a := range claims.Associations {
			say(fmt.Sprint(string(a.Value.Type), len(a.Value.Roles)), a.By)
		}
		return lines
	}
	want := []string{
		"http://a [0]", "http://b [0 1]", "http://c [0 1]",
		"same [0 1]", "both [0 1]", "first [0]", "second [1]", "http://x1 [0 1]",
	}
	for i, l := range want {
		want[i] = strings.NewReplacer("http://a", string(a), "http://b", string(b), "http://c", string(c), "http://x", string(x)).Replace(l)
	}
	require.Equal(t, want, claims(false))
	require.Equal(t, append(want, string(tmdm.PSITypeInstance)+"2 [0 1]"), claims(true))

	none, err := view.Claims("http://nobody.example.org/", true)
	require.NoError(t, err)
	require.Nil(t, none)
	require.Equal(t, "http://1.example.org/maps/", view.Parts()[1].SP)
}

// The view of one published state is that state: not even records are made.
func TestTheViewOfOnePublishedStateIsThatState(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) { m.Associate(x, m.Named("n", a), m.Topic(b)) })
	counted := &countedMemory{Memory: &h.state}
	view := merge.NewView(t.Context(), merge.Part{SP: sp, Source: counted, Published: true})
	want, err := h.state.Topic(a)
	require.NoError(t, err)
	got, err := view.Topic(a)
	require.NoError(t, err)
	require.Same(t, want, got)
	require.Equal(t, 1, counted.records, "nothing is looked up")
	require.Equal(t, dump(t, &h.state), dump(t, view))
	id, err := view.Identity(a)
	require.NoError(t, err)
	require.Equal(t, want.Identity, *id)
	claims, err := view.Claims(a, false)
	require.NoError(t, err)
	require.Len(t, claims.Associations, 1)

	h.version(func(m draft) { require.NoError(t, m.Named("n", a).AddSubjectLocator(c)) })
	located, err := view.TopicBySubjectLocator(c)
	require.NoError(t, err)
	require.Equal(t, a, located.TopicSI())
	withClaims := merge.NewView(t.Context(), merge.Part{SP: sp, Source: &h.state, Published: true, Claims: true})
	got, err = withClaims.Topic(a)
	require.NoError(t, err)
	require.NotEmpty(t, got.Names[0].ItemIdentifiers)
}

// A subscriber of another server may hold references by any identifier. Its
// state, written as it is, would lose the type of a.
func TestTheViewOfOneStateRewritesItsReferences(t *testing.T) {
	var m merge.Memory
	require.NoError(t, m.PutTopic(&fragment.Topic{Identity: identity(a, b)}))
	require.NoError(t, m.PutTopic(&fragment.Topic{Identity: identity(c)}))
	require.NoError(t, m.PutAssociation(&fragment.Association{Type: tmdm.PSITypeInstance, Roles: []fragment.Role{
		{Type: tmdm.PSIInstance, Player: b}, {Type: tmdm.PSIType, Player: c}}}))
	types := func(published bool) int {
		tm, _ := exported(t, merge.NewView(t.Context(), merge.Part{SP: sp, Source: &m, Published: published}), "")
		return len(slices.Collect(tm.TopicBySubjectIdentifier(a).Types()))
	}
	require.Equal(t, 1, types(false))
	require.Equal(t, 0, types(true), "a subscriber's state is not a publisher's")
}

// Records know type-instance associations by the names of the standard, so these
// are the TopicSIs of their topics, whatever else those are called.
func TestTheVocabularyKeepsItsNames(t *testing.T) {
	s := newSources(t, func(m draft) { m.Topic(a).AddType(m.Topic(b)) })
	var other merge.Memory
	require.NoError(t, other.PutTopic(&fragment.Topic{Identity: identity("http://aaa.example.org/", tmdm.PSITypeInstance)}))
	view := merge.NewView(t.Context(), s.parts()[0], merge.Part{SP: sp, Source: &other})
	topic, err := view.Topic("http://aaa.example.org/")
	require.NoError(t, err)
	require.Equal(t, tmdm.PSITypeInstance, topic.TopicSI())
	n := 0
	for _, err := range view.AssociationsOf(a, fragment.AsInstance) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1, n)
}

// No good source has equal names in one record. Identifiers may be many.
func TestTheViewOfOddRecords(t *testing.T) {
	name := func(reifier fragment.Ref) fragment.Name {
		return fragment.Name{Value: "n", Type: tmdm.PSIDefaultNameType, Reifier: reifier}
	}
	var one, other merge.Memory
	require.NoError(t, one.PutTopic(&fragment.Topic{Identity: identity(a), Names: []fragment.Name{name(""), name(b)}}))
	topic, err := merge.NewView(t.Context(), merge.Part{SP: sp, Source: &one}).Topic(a)
	require.NoError(t, err)
	require.Equal(t, []fragment.Name{name(b)}, topic.Names)
	var many []tmdm.Locator
	for i := range 40 {
		many = append(many, tmdm.Locator(fmt.Sprintf("http://many.example.org/%02d", i)))
	}
	require.NoError(t, one.PutTopic(&fragment.Topic{Identity: identity(many[:30]...)}))
	require.NoError(t, other.PutTopic(&fragment.Topic{Identity: identity(many[10:]...)}))
	compareViewWithJoin(t, "", map[string]int{}, []merge.Part{{SP: "http://0.example.org/", Source: &one}, {SP: "http://1.example.org/", Source: &other}})
}

func TestTheViewReturnsTheErrorOfASource(t *testing.T) {
	boom := errors.New("boom")
	h := newHistory(t)
	h.version(func(m draft) { reified(m, "n", a, b); m.Associate(x, m.Topic(a), m.Topic(c)) })
	other := newHistory(t)
	other.version(func(m draft) { reified(m, "n", a, d) })
	for _, read := range []func(*merge.View) error{
		func(v *merge.View) error { _, err := v.Topic(a); return err },
		func(v *merge.View) error { _, err := v.Identity(a); return err },
		func(v *merge.View) error { _, err := v.TopicBySubjectLocator(x); return err },
		func(v *merge.View) error { _, err := v.Claims(a, true); return err },
		func(v *merge.View) error { _, err := v.Conflicts(); return err },
		func(v *merge.View) error {
			return fragment.WriteSnapshot(&bytes.Buffer{}, v, fragment.Form{Version: xtm.V21, SP: sp})
		},
	} {
		failed := 0
		for after := range 1_000 {
			f := &failing{State: &h.state, after: after, err: boom}
			v := merge.NewView(t.Context(), merge.Part{SP: sp, Source: f}, merge.Part{SP: sp, Source: &other.state})
			err := read(v)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, boom)
			failed++
			f.after = 1_000_000
			require.NoError(t, read(v), "what failed can be tried again")
			require.Equal(t, 1, merge.JoinedReifiers(v))
		}
		require.Greater(t, failed, 1)
		require.Less(t, failed, 1_000)
	}
}
