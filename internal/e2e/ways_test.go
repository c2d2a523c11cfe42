package e2e_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/server"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// TestClientFollowsEveryWayIn subscribes to a collection that is empty, and stays
// equal to it while it is filled, edited topic by topic, and replaced by another
// of the name.
func TestClientFollowsEveryWayIn(t *testing.T) {
	ctx := context.Background()
	s := startServer(t, server.Config{})
	do := func(method, path, contentType string, body []byte, status int) []byte {
		t.Helper()
		req, err := http.NewRequest(method, s.BaseURL+path, bytes.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", contentType)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, status, res.StatusCode, "%s", answer)
		return answer
	}
	do("PUT", "/topicmaps/egov", "application/json", []byte(`{"title": "E-Government"}`), http.StatusCreated)
	c := newClient(t)
	_, err := c.Subscribe(ctx, s.BaseURL+"/topicmaps/egov", client.SubscribeOptions{})
	require.NoError(t, err)
	inStep := func(entries int, clean bool) {
		t.Helper()
		round, err := c.Sync(ctx, "egov")
		require.NoError(t, err)
		require.Equal(t, entries, round.Entries)
		require.Equal(t, clean, round.CleanStart)
		verdict, err := c.Verify(ctx, "egov")
		require.NoError(t, err)
		require.True(t, verdict.Equal)
	}
	inStep(0, true)
	filled := put(t, s, "egov", maps.EGov)
	require.Greater(t, filled.Added, 200)
	inStep(filled.Added, false)

	si := "https://psi.egov.example.org/service/dog-licence"
	topic := s.BaseURL + "/topicmaps/egov/topics?" + url.Values{"si": {si}}.Encode()
	res, err := http.Get(topic)
	require.NoError(t, err)
	defer res.Body.Close()
	res, err = http.Get(res.Request.URL.String() + ".xtm21")
	require.NoError(t, err)
	defer res.Body.Close()
	doc, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(doc), "<value>Dog licence</value>")
	do("POST", "/topicmaps/egov/topics", "application/xml", bytes.Replace(doc, []byte("<value>Dog licence</value>"), []byte("<value>Licence for a dog</value>"), 1), http.StatusOK)
	inStep(1, false)
	do("POST", "/topicmaps/egov/topics", "application/xml", doc, http.StatusOK)
	inStep(1, false)
	require.Zero(t, entries(put(t, s, "egov", maps.EGov)), "all is as it was")

	do("DELETE", "/topicmaps/egov", "", nil, http.StatusOK)
	_, err = c.Sync(ctx, "egov")
	require.Error(t, err, "it is gone, and the copy stays")
	do("PUT", "/topicmaps/egov", "application/json", []byte(`{}`), http.StatusCreated)
	put(t, s, "egov", maps.Libraries)
	round, err := c.Sync(ctx, "egov")
	require.NoError(t, err)
	require.True(t, round.CleanStart)
	verdict, err := c.Verify(ctx, "egov")
	require.NoError(t, err)
	require.True(t, verdict.Equal)
}
