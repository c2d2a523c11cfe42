package pg

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
)

// Commits that were removed, as they are old, are asked for once. Those after them are known.
func TestRemovedCommitsAreAskedForOnce(t *testing.T) {
	var r recent
	state := func(n uint64) *counts { return &counts{7: n, 9: 100} }
	require.Empty(t, r.unread(state(5)), "nothing is known of the time before the first state")
	require.Len(t, r.unread(state(8)), 3)
	r.Add(kv.Place{Part: 7, Number: 8}, kv.Commit{ID: 1})
	r.reached(state(8))
	require.Empty(t, r.unread(state(8)))
	r.made(kv.Place{Part: 7, Number: 9}, kv.Commit{ID: 2})
	require.Empty(t, r.unread(state(8)), "an own commit shows in a later state")
	require.Equal(t, []kv.Place{{Part: 7, Number: 10}}, r.unread(state(10)))
	r.made(kv.Place{Part: 7, Number: 12}, kv.Commit{ID: 3})
	require.Len(t, r.unread(state(12)), 3, "others have committed before it")
	require.Empty(t, r.unread(state(13+kv.MostRecent)), "too many")
	require.Empty(t, r.unread(state(13+kv.MostRecent)))
}
