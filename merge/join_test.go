package merge_test

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// reified gives the topic with the first identifier a name that the topic with
// the second one reifies, and returns the reifier.
func reified(d draft, value string, named, reifier tmdm.Locator) *tmdm.Topic {
	d.Reify(d.Topic(named).AddName(value, nil), reifier)
	return d.Topic(reifier)
}

func TestReifiersOfEqualStatementsAreJoined(t *testing.T) {
	s := newSources(t,
		func(m draft) { reified(m, "same", a, b).AddName("r0", nil) },
		func(m draft) { reified(m, "same", a, c).AddName("r1", nil) },
		func(m draft) { m.Named("same", a) })
	view := s.view()
	require.Equal(t, []tmdm.Locator{b, c}, identifiers(view, b))
	require.Equal(t, []string{"r0", "r1"}, names(t, view, c))
	require.Len(t, view.TopicBySubjectIdentifier(a).Names(), 1)

	s.update(1, func(m draft) { m.Named("same", a); m.Named("r1", c) })
	require.Equal(t, []string{"r0"}, names(t, s.view(), b), "the joined reifiers come apart again")
}

// Joined reifiers have equal names by that, whose reifiers are joined in turn.
func TestReifiersAreJoinedUntilNothingChanges(t *testing.T) {
	s := newSources(t,
		func(m draft) { reified(m, "same", a, b); reified(m, "of the reifier", b, d) },
		func(m draft) { reified(m, "same", a, c); reified(m, "of the reifier", c, e) })
	require.Equal(t, []tmdm.Locator{b, c}, identifiers(s.view(), b))
	require.Equal(t, []tmdm.Locator{d, e}, identifiers(s.view(), d))
}

// The topic b reifies a name in one source and an association in another. The
// one of the least prefix wins, whatever the order in which they are given.
func TestATopicThatReifiesDifferentThingsKeepsTheOneOfTheLeastPrefix(t *testing.T) {
	name := func(m draft) { reified(m, "name", a, b) }
	association := func(m draft) { require.NoError(t, tmdm.SetReifier(m.Associate(x, m.Topic(c)), m.Topic(b))) }
	for _, o := range []struct {
		wins    string
		sources *sources
	}{
		{"name", newSources(t, name, association)},
		{"association", newSources(t, association, name)},
	} {
		reversed := o.sources.parts()
		slices.Reverse(reversed)
		for _, parts := range [][]merge.Part{o.sources.parts(), reversed} {
			tm, conflicts, err := merge.Join(t.Context(), parts...)
			require.NoError(t, err)
			var kept, lost tmdm.Reifiable = tm.TopicBySubjectIdentifier(a).Names()[0], tm.TopicBySubjectIdentifier(c).RolesPlayed()[0].Association()
			if o.wins == "association" {
				kept, lost = lost, kept
			}
			reifier := tm.TopicBySubjectIdentifier(b)
			require.Equal(t, []*tmdm.ReifierError{{Topic: reifier, Construct: lost, Existing: kept}}, conflicts, "the conflict is reported")
			require.Same(t, reifier, kept.Reifier(), "the %s wins", o.wins)
			require.Nil(t, lost.Reifier())
		}
	}
}

// backwards is a source that gives its associations in the opposite order.
type backwards struct{ fragment.Source }

func (b backwards) Associations() iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		var all []*fragment.Association
		for a, err := range b.Source.Associations() {
			if err != nil {
				yield(nil, err)
				return
			}
			all = append(all, a)
		}
		for _, a := range slices.Backward(all) {
			if !yield(a, nil) {
				return
			}
		}
	}
}

// Between two entries of one source a reifier can stand at two associations: it
// has moved, and one end has not arrived. The least key wins, however the
// source orders them.
func TestATopicThatReifiesTwoThingsOfOneSourceKeepsTheOneOfTheLeastKey(t *testing.T) {
	var m merge.Memory
	players := map[fragment.AssociationKey]tmdm.Locator{}
	for _, player := range []tmdm.Locator{a, b, c, d} {
		association := &fragment.Association{Type: x, Reifier: e, Roles: []fragment.Role{{Type: x, Player: player}}}
		players[association.Key()] = player
		require.NoError(t, m.PutAssociation(association))
	}
	least := slices.SortedFunc(maps.Keys(players), func(a, b fragment.AssociationKey) int { return bytes.Compare(a[:], b[:]) })[0]
	for _, src := range []fragment.Source{&m, backwards{&m}} {
		tm, conflicts, err := merge.Join(t.Context(), merge.Part{SP: sp, Source: src})
		require.NoError(t, err)
		require.Len(t, conflicts, 3)
		kept := tm.TopicBySubjectIdentifier(e).Reified().(*tmdm.Association)
		require.Equal(t, []tmdm.Locator{players[least]}, kept.Roles()[0].Player().SubjectIdentifiers())
	}
}

// The associations of types b and c are one only after b and c, reifiers of the
// same name, have become one. Then d reifies one association, not two.
func TestStatementsThatTheJoiningOfReifiersMakesEqualAreNoConflict(t *testing.T) {
	typed := func(m draft, typ tmdm.Locator) {
		reified(m, "same", a, typ)
		require.NoError(t, tmdm.SetReifier(m.Associate(typ, m.Topic(e)), m.Topic(d)))
	}
	s := newSources(t, func(m draft) { typed(m, b) }, func(m draft) { typed(m, c) })
	view := s.view()
	require.Equal(t, []tmdm.Locator{b, c}, identifiers(view, b))
	require.Len(t, view.TopicBySubjectIdentifier(e).RolesPlayed(), 1)
	require.Equal(t, tmdm.Reifiable(view.TopicBySubjectIdentifier(e).RolesPlayed()[0].Association()), view.TopicBySubjectIdentifier(d).Reified())
}

// Servers use n1 again for another statement. It stays with the first; the second still needs an identifier for its
// source.
func TestAStatementWhoseIdentifierIsTakenGetsADerivedClaim(t *testing.T) {
	var m merge.Memory
	for _, si := range []tmdm.Locator{a, b} {
		require.NoError(t, m.PutTopic(&fragment.Topic{
			Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{si}},
			Names:    []fragment.Name{{Value: "n", Type: tmdm.PSIDefaultNameType, ItemIdentifiers: []tmdm.Locator{sp + "#n1"}}},
		}))
	}
	tm, _, err := merge.Join(t.Context(), merge.Part{SP: sp, Source: &m, Claims: true})
	require.NoError(t, err)
	first, second := tm.TopicBySubjectIdentifier(a).Names()[0], tm.TopicBySubjectIdentifier(b).Names()[0]
	require.Equal(t, []tmdm.Locator{sp + "#n1"}, first.ItemIdentifiers())
	record, _ := m.Topic(b)
	require.Equal(t, []tmdm.Locator{fragment.NameClaim(sp, b, &record.Names[0])}, second.ItemIdentifiers())
}

func TestWithoutClaimsOnlyGivenIdentifiersShow(t *testing.T) {
	s := newSources(t, func(m draft) { m.Named("n", a) })
	parts := s.parts()
	parts[0].Claims = false
	tm, _, err := merge.Join(t.Context(), parts...)
	require.NoError(t, err)
	require.Empty(t, tm.TopicBySubjectIdentifier(a).Names()[0].ItemIdentifiers())
}

// A reference that no record resolves denotes a topic with that one identifier.
func TestAReferenceWithoutARecordIsATopicInTheView(t *testing.T) {
	var m merge.Memory
	require.NoError(t, m.PutAssociation(&fragment.Association{Type: x, Roles: []fragment.Role{{Type: c, Player: a}, {Type: d, Player: b}}}))
	tm, conflicts, err := merge.Join(t.Context(), merge.Part{SP: sp, Source: &m})
	require.NoError(t, err)
	require.Empty(t, conflicts)
	for _, si := range []tmdm.Locator{a, b, c, d, x} {
		require.Equal(t, []tmdm.Locator{si}, identifiers(tm, si))
	}
}

func TestJoinReturnsTheErrorOfASource(t *testing.T) {
	boom := errors.New("boom")
	for n := range 2 {
		_, _, err := merge.Join(t.Context(), merge.Part{SP: sp, Source: &failing{State: &merge.Memory{}, after: n, err: boom}})
		require.ErrorIs(t, err, boom)
	}
}
