package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/docs"
)

// inStep starts a server with a map, and a follower that is in step with it.
func inStep(t *testing.T) (*server.Server, *node) {
	s := startServer(t, server.Config{})
	importMap(t, s, "egov", []byte(docs.Map(docs.Topics(200, "v1")...)))
	c := newClient(t)
	_, err := c.Subscribe(t.Context(), s.BaseURL+"/topicmaps/egov", client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	r, err := c.Sync(t.Context(), "egov")
	require.NoError(t, err)
	require.True(t, r.Proven)
	return s, c
}

// "go run ./bench/executed" counts the code that runs for one PUT and one sync: the code that runs more often in the
// second test than in the first.
func TestBeforeOnePutAndOneSync(t *testing.T) { inStep(t) }

func TestOnePutAndOneSync(t *testing.T) {
	s, c := inStep(t)
	changed := docs.Topics(200, "v1")
	changed[7] = docs.Topics(8, "v2")[7]
	require.Equal(t, 1, put(t, s, "egov", []byte(docs.Map(changed...))).Updated)
	r, err := c.Sync(t.Context(), "egov")
	require.NoError(t, err)
	require.Equal(t, 1, r.Applied)
	require.True(t, r.Proven)
}
