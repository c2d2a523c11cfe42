package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/moving"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// A server whose store is moved while it runs reports it, and accepts no changes. Only its operator gets the new place.
func TestAServerWhoseStoreIsMovedSaysSo(t *testing.T) {
	t.Parallel()
	n := startOn(t, store.Options{Dir: t.TempDir(), Engine: memory.New()})
	n.Publish("small", served.Small())
	n.MustGet("/topicmaps/small/fragments")
	require.Equal(t, http.StatusOK, n.Get("/readyz").StatusCode)
	version, err := n.Store.Version(t.Context())
	require.NoError(t, err)
	require.NoError(t, n.Store.(*store.DB).Leave(t.Context(), version, moving.Moved{To: "postgres://elsewhere", At: time.Now()}))
	for what, a := range map[string]served.Answer{
		"ready":  n.Get("/readyz"),
		"feed":   n.Get("/topicmaps/small/fragments"),
		"change": n.Put("small", served.Small("Oslo", "Oslo 1")),
	} {
		assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode, what)
		assert.Contains(t, string(a.Bytes), "was moved", what)
		assert.NotContains(t, string(a.Bytes), "elsewhere", what)
	}
	assert.Contains(t, n.Logs.String(), "moved to postgres://elsewhere")
}
