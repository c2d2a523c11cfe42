package inputs_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/store"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/merge"
)

// The links follow where the inputs are. Each other set of them is another state.
func TestLinksLeadToTheInputs(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer db.Close()
	create := func(name string, from ...string) *store.Collection {
		c, err := db.CreateCollection(t.Context(), store.Collection{Name: name, SP: "http://x.example.org/" + name + "/", DerivedFrom: from}, &merge.Memory{}, nil)
		require.NoError(t, err)
		return c
	}
	subscribe := func(feed string) {
		require.NoError(t, db.AddSubscription(t.Context(), store.Subscription{Name: "libraries", FragmentsFeed: feed, SP: "http://y.example.org/"}))
	}
	subscribe("http://y.example.org/fragments")
	egov := create("egov")
	all := create("all", "egov", "libraries")
	states := map[string]bool{}
	require.Equal(t, []string{"http://x.example.org/egov", "http://y.example.org/fragments"}, linked(t, db, all, states))
	require.Empty(t, linked(t, db, egov, states))
	require.NoError(t, db.RemoveSubscription(t.Context(), "libraries"))
	require.Equal(t, []string{"http://x.example.org/egov", "http://y.example.org/fragments"}, linked(t, db, all, states), "what it has said is kept")
	subscribe("http://z.example.org/fragments")
	require.Equal(t, []string{"http://x.example.org/egov", "http://y.example.org/fragments"}, linked(t, db, all, states), "it is not an input")
	all, err = db.DeriveAgain(t.Context(), "all", []string{"egov", "libraries"}, nil, func(*store.Settings) error { return nil })
	require.NoError(t, err)
	require.Equal(t, []string{"http://x.example.org/egov", "http://z.example.org/fragments"}, linked(t, db, all, states))
	require.NoError(t, db.UpdateSubscription(context.Background(), "libraries", func(s *store.Subscription) { s.DerivedFrom = []string{"http://w.example.org/"} }))
	require.Equal(t, []string{"http://x.example.org/egov"}, linked(t, db, all, map[string]bool{}), "what is derived itself says nothing there")
	assert.Len(t, states, 3)
}

func linked(t *testing.T, db *store.DB, c *store.Collection, states map[string]bool) (urls []string) {
	links, err := inputs.Links(t.Context(), db, c, func(c *store.Collection) string { return "http://x.example.org/" + c.Name })
	require.NoError(t, err)
	for _, l := range links {
		require.Equal(t, feeds.RelDerivedFrom, l.Rel)
		urls = append(urls, l.Href)
	}
	states[inputs.State(links)] = true
	return urls
}
