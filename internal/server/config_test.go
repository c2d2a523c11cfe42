package server_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

func TestConfigNamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*server.Config)
		says   string
	}{
		"Store":                   {func(c *server.Config) { c.Store = nil }, "Store is missing"},
		"BaseURL missing":         {func(c *server.Config) { c.BaseURL = "" }, "BaseURL"},
		"BaseURL relative":        {func(c *server.Config) { c.BaseURL = "/maps" }, "BaseURL"},
		"BaseURL without scheme":  {func(c *server.Config) { c.BaseURL = "maps.example.org" }, "BaseURL"},
		"BaseURL not http":        {func(c *server.Config) { c.BaseURL = "ftp://maps.example.org" }, "BaseURL"},
		"BaseURL without host":    {func(c *server.Config) { c.BaseURL = "http://" }, "BaseURL"},
		"BaseURL of a port only":  {func(c *server.Config) { c.BaseURL = "http://:8080" }, "BaseURL"},
		"BaseURL with query":      {func(c *server.Config) { c.BaseURL = "http://a/?x=y" }, "BaseURL"},
		"BaseURL, empty query":    {func(c *server.Config) { c.BaseURL = "http://a?" }, "BaseURL"},
		"BaseURL with fragment":   {func(c *server.Config) { c.BaseURL = "http://a/#x" }, "BaseURL"},
		"BaseURL, empty fragment": {func(c *server.Config) { c.BaseURL = "http://a#" }, "BaseURL"},
		"BaseURL with a space":    {func(c *server.Config) { c.BaseURL = "http://a b/" }, "BaseURL"},
		"token":                   {func(c *server.Config) { c.Tokens = []string{token, "short"} }, "a token has 5 characters"},
		"empty token":             {func(c *server.Config) { c.Tokens = []string{""} }, "a token has 0 characters"},
		"SnapshotEvery":           {func(c *server.Config) { c.SnapshotEvery = -1 }, "SnapshotEvery is negative"},
		"SnapshotsKept":           {func(c *server.Config) { c.SnapshotsKept = -1 }, "SnapshotsKept is negative"},
		"DocumentSize":            {func(c *server.Config) { c.DocumentSize = -1 }, "DocumentSize is negative"},
		"MaxBody":                 {func(c *server.Config) { c.MaxBody = -1 }, "MaxBody is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			config := server.Config{Store: &store.DB{}, BaseURL: "http://a"}
			require.NoError(t, config.Validate())
			config = server.Config{Store: &store.DB{}, BaseURL: "http://a"}
			c.change(&config)
			assert.ErrorContains(t, config.Validate(), c.says)
			_, err := server.New(config)
			assert.ErrorContains(t, err, c.says)
		})
	}
}

func TestTokensDoNotShowInErrors(t *testing.T) {
	t.Parallel()
	c := server.Config{Store: &store.DB{}, BaseURL: "http://a", Tokens: []string{"secret"}}
	assert.NotContains(t, c.Validate().Error(), "secret")
}

func TestConfigHasDefaults(t *testing.T) {
	t.Parallel()
	c := server.Config{Store: &store.DB{}, BaseURL: "https://maps.example.org/tm/"}
	require.NoError(t, c.Validate())
	assert.Equal(t, "https://maps.example.org/tm", c.BaseURL, "without a slash at the end")
	assert.EqualValues(t, 1<<30, c.MaxBody)
	assert.Equal(t, 1000, c.SnapshotEvery)
	assert.Equal(t, 3, c.SnapshotsKept)
	assert.Equal(t, 100, c.DocumentSize)
	assert.Equal(t, slog.Default(), c.Logger)
	require.NotNil(t, c.Now)
	assert.False(t, c.Now().IsZero())
	require.NoError(t, c.Validate(), "twice is once")
	assert.Equal(t, "https://maps.example.org/tm/topicmaps/egov/", server.DefaultPrefix(c.BaseURL, "egov"))
}

// Links are made from the public address, never from the Host of a request.
func TestLinksAreMadeFromTheBaseURL(t *testing.T) {
	t.Parallel()
	const public = "https://maps.example.org/tm"
	n := start(t)
	c := n.Config
	c.BaseURL = public + "/"
	s, err := server.New(c)
	require.NoError(t, err)
	defer s.Close()
	local := n.BaseURL
	n.Server.Config.BaseURL = public // what the helpers expect
	n.publish("small", small())
	n.Server.Config.BaseURL = local
	for _, path := range []string{"/topicmaps", "/topicmaps/small", "/topicmaps/small/fragments", "/topicmaps/small/snapshots", "/topicmaps/small.atom"} {
		w := record(s, path, "Host", "evil.example", "X-Forwarded-Host", "evil.example")
		require.Equal(t, 200, w.Code)
		assert.NotContains(t, w.Body.String(), "evil.example")
		assert.NotContains(t, w.Body.String(), local)
		assert.Contains(t, w.Body.String(), `href="`+public+`/topicmaps`)
	}
	w := record(s, "/topicmaps/small/topics?si=http://psi.example.org/oslo", "Host", "evil.example")
	assert.True(t, strings.HasPrefix(w.Header().Get("Location"), public+"/topicmaps/small/topics/"))
}

func TestTokensAreReadOneFromEachLine(t *testing.T) {
	t.Parallel()
	tokens, err := server.ReadTokens(strings.NewReader("# who may write\n\n  first-token \r\nsecond token#1\n#third\n\t\nlast"))
	require.NoError(t, err)
	assert.Equal(t, []string{"first-token", "second token#1", "last"}, tokens)
	for _, empty := range []string{"", "\n\n", "# nothing\n"} {
		_, err := server.ReadTokens(strings.NewReader(empty))
		assert.ErrorContains(t, err, "no token", "%q", empty)
	}
	_, err = server.ReadTokens(iotest.ErrReader(errors.New("disk is gone")))
	assert.ErrorContains(t, err, "disk is gone")
}

func TestNamesOfCollectionsStandInURLs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"egov", "EGov-2_1", "0", strings.Repeat("a", 64)} {
		assert.NoError(t, server.ValidateName(name), name)
	}
	for _, name := range []string{"", "-a", "_a", ".", "..", "../a", "a/b", `a\b`, "a.b", "a.atom", "a b", "a%2fb", "a?b", "a#b", "é", "a\x00", "a\n", "\xff", strings.Repeat("a", 65)} {
		assert.Error(t, server.ValidateName(name), "%q", name)
	}
}
