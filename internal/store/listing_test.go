package store

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/merge"
)

// A listing is the same until a change, and knows the differences from an earlier one.
func TestListingsKnowWhatDiffers(t *testing.T) {
	db, err := openSmall(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer db.Close()
	listing := func() *Listing {
		l, err := db.Listing(t.Context())
		require.NoError(t, err)
		return l
	}
	create := func(name string) {
		_, err := db.CreateCollection(t.Context(), Collection{Name: name, SP: "http://" + name + ".example.org/"}, &merge.Memory{}, nil)
		require.NoError(t, err)
	}
	var before *Listing
	differ := func(others bool, names ...string) {
		t.Helper()
		now := listing()
		got, other := now.Since(before)
		assert.Equal(t, names, got)
		assert.Equal(t, others, other)
		own, err := db.Collections(t.Context())
		require.NoError(t, err)
		assert.Equal(t, own, now.Collections)
		followed, err := db.Subscriptions(t.Context())
		require.NoError(t, err)
		assert.Equal(t, followed, now.Subscriptions)
		assert.Same(t, now, listing())
		before = now
	}
	differ(true)
	create("b")
	create("d")
	differ(false, "b", "d")
	create("a")
	create("c")
	create("e")
	differ(false, "a", "c", "e")
	_, err = db.ChangeSettings(t.Context(), "c", func(s *Settings) error { s.Title = "C"; return nil })
	require.NoError(t, err)
	require.NoError(t, db.DeleteCollection(t.Context(), "a", ""))
	require.NoError(t, db.DeleteCollection(t.Context(), "e", ""))
	differ(false, "a", "c", "e")
	require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: "s", FragmentsFeed: "http://s.example.org/fragments", SP: "http://s.example.org/"}))
	differ(true)
	require.NoError(t, db.UpdateSubscription(t.Context(), "s", func(s *Subscription) { s.DerivedFrom = []string{"x"} }))
	differ(true)
	_, err = db.ChangeSettings(t.Context(), "c", func(s *Settings) error { s.Title = "C"; return nil })
	require.NoError(t, err)
	assert.Same(t, before, listing(), "it says the same")
	require.NoError(t, db.DeleteCollection(t.Context(), "b", ""))
	create("b")
	differ(false, "b")
	require.NoError(t, db.DeleteCollection(t.Context(), "c", ""))
	create("a0")
	_, err = db.ChangeSettings(t.Context(), "d", func(s *Settings) error { s.Title = "D"; return nil })
	require.NoError(t, err)
	differ(false, "a0", "c", "d")
}
