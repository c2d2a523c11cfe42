package merge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/tmdm"
)

// One source is read as it stands, until it refers to a topic by another identifier than its TopicSI.
func TestOneSourceIsPlainUntilItUsesAnAlias(t *testing.T) {
	t.Parallel()
	association := func(player fragment.Ref) *fragment.Association {
		a := &fragment.Association{Type: "http://a/type", Roles: []fragment.Role{{Type: "http://a/role", Player: player}, {Type: "http://a/role", Player: "http://a/other"}}}
		a.Canonical()
		return a
	}
	players := func(m *Memory, plain bool) (all []fragment.Ref) {
		v := NewView(t.Context(), Part{SP: "http://a/", Source: m})
		for a, err := range v.Associations() {
			require.NoError(t, err)
			all = append(all, a.Players()...)
		}
		require.Equal(t, plain, v.plain)
		var topics []fragment.Ref
		for a, err := range v.AssociationsOf("http://a/one", fragment.AsPlayer) {
			require.NoError(t, err)
			topics = append(topics, a.Players()...)
		}
		require.Equal(t, all, topics)
		return all
	}
	m := &Memory{}
	require.NoError(t, m.PutTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{"http://a/one", "http://a/uno"}}}))
	require.NoError(t, m.PutAssociation(association("http://a/one")))
	require.Equal(t, []fragment.Ref{"http://a/one", "http://a/other"}, players(m, true))
	require.NoError(t, m.DeleteAssociation(association("http://a/one")))
	require.NoError(t, m.PutAssociation(association("http://a/uno")))
	require.Equal(t, []fragment.Ref{"http://a/one", "http://a/other"}, players(m, false))

	// Types, themes and reifiers are references as well.
	require.NoError(t, m.DeleteAssociation(association("http://a/uno")))
	typed := association("http://a/one")
	typed.Type = "http://a/uno"
	require.NoError(t, m.PutAssociation(typed))
	players(m, false)

	// A role that an association has twice is one in the view.
	require.NoError(t, m.DeleteAssociation(typed))
	twice := association("http://a/one")
	twice.Roles = append(twice.Roles, twice.Roles[0])
	twice.Canonical()
	require.NoError(t, m.PutAssociation(twice))
	players(m, false)
}
