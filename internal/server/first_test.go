package server_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// The first version of a map that was created empty shows at once, as if it had
// been created with it: an entry for each topic, and a snapshot of all.
func TestFirstVersionOfAnEmptyCollection(t *testing.T) {
	n := start(t)
	require.Equal(t, http.StatusCreated, n.putSettings("new", `{"title": "New"}`).StatusCode)
	var empty store.Collection
	require.NoError(t, n.Store.View(n.t.Context(), "new", func(v *store.View) error { empty = v.Collection; return nil }))

	a := n.put("new", maps.EGov)
	require.Equal(t, http.StatusOK, a.StatusCode, string(a.body))
	var p server.Published
	require.NoError(t, json.Unmarshal(a.body, &p))
	assert.Equal(t, 226, p.Added)
	require.NoError(t, n.Store.View(n.t.Context(), "new", func(v *store.View) error {
		assert.EqualValues(t, 226, v.Head)
		assert.Equal(t, 226, v.Topics)
		assert.Equal(t, "New", v.Title)
		assert.Equal(t, empty.Epoch, v.Epoch)
		snapshots, err := v.Snapshots()
		require.NoError(t, err)
		require.Len(t, snapshots, 1, "that of the empty map is of no use any more")
		assert.Equal(t, v.Head, snapshots[0].Seq)
		return nil
	}))
	again := n.put("new", maps.EGov)
	require.Equal(t, http.StatusOK, again.StatusCode)
	require.NoError(t, json.Unmarshal(again.body, &p))
	assert.Zero(t, p.Added+p.Updated+p.Deleted, "the same again publishes nothing")
}
