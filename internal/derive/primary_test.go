package derive_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/merge"
)

// TestInputsArePrimary follows a source that becomes derived: its statements are not derived again until it is primary
// again.
func TestInputsArePrimary(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer db.Close()
	const from = "http://one.example.org/"
	src, err := fragment.NameTopics(t.Context(), testedit.SmallMap(from), from, &merge.Memory{})
	require.NoError(t, err)
	require.NoError(t, db.AddSubscription(t.Context(), store.Subscription{Name: "one", FragmentsFeed: from + "fragments", SP: from}))
	require.NoError(t, db.StageSource(t.Context(), "one", fragment.Records(src), store.Mark{}, nil))
	all, err := db.Subscriptions(t.Context())
	require.NoError(t, err)
	require.NoError(t, db.SwitchSource(t.Context(), "one", all[0].Staging.Generation, ""))
	create := func(name string) error {
		_, err := db.CreateCollection(t.Context(), store.Collection{Name: name, SP: sp, DerivedFrom: []string{"one"}}, &merge.Memory{}, nil)
		return err
	}
	topics := func() int {
		c, err := derive.CatchUp(t.Context(), db, "view")
		require.NoError(t, err)
		return c.Topics
	}
	state := func(feeds ...string) {
		require.NoError(t, db.UpdateSubscription(t.Context(), "one", func(s *store.Subscription) { s.DerivedFrom = feeds }))
	}
	require.NoError(t, create("view"))
	n := topics()
	require.Positive(t, n)

	state("http://two.example.org/fragments")
	require.Zero(t, topics())
	err = create("more")
	require.ErrorContains(t, err, "follows a collection that is derived itself")
	require.ErrorContains(t, err, "http://two.example.org/fragments")

	state()
	require.Equal(t, n, topics())
	require.NoError(t, create("more"))
}
