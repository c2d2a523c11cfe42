package e2e_test

import (
	"runtime/coverage"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/docs"
)

// What is executed for one PUT and one sync is what "go run ./bench/executed" counts: so nothing else runs here once the
// counters are cleared.
func TestOnePutAndOneSync(t *testing.T) {
	s := startServer(t, server.Config{})
	importMap(t, s, "egov", []byte(docs.Of(docs.Topics(200, "v1")...)))
	c := newClient(t)
	_, err := c.Subscribe(t.Context(), s.BaseURL+"/topicmaps/egov", client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	_, err = c.Sync(t.Context(), "egov")
	require.NoError(t, err)

	_ = coverage.ClearCounters() // an error says that nothing counts
	changed := docs.Topics(200, "v1")
	changed[7] = docs.Topics(8, "v2")[7]
	require.Equal(t, 1, put(t, s, "egov", []byte(docs.Of(changed...))).Updated)
	r, err := c.Sync(t.Context(), "egov")
	require.NoError(t, err)
	require.Equal(t, 1, r.Applied)
	require.True(t, r.Proven)
}
