package server_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

func TestConfigNamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*server.Config)
		says   string
	}{
		"Store":                   {func(c *server.Config) { c.Store = nil }, "Store is missing"},
		"BaseURL missing":         {func(c *server.Config) { c.BaseURL = "" }, "the base URL "},
		"BaseURL relative":        {func(c *server.Config) { c.BaseURL = "/maps" }, "the base URL "},
		"BaseURL without scheme":  {func(c *server.Config) { c.BaseURL = "maps.example.org" }, "the base URL "},
		"BaseURL not http":        {func(c *server.Config) { c.BaseURL = "ftp://maps.example.org" }, "the base URL "},
		"BaseURL without host":    {func(c *server.Config) { c.BaseURL = "http://" }, "the base URL "},
		"BaseURL of a port only":  {func(c *server.Config) { c.BaseURL = "http://:8080" }, "the base URL "},
		"BaseURL with query":      {func(c *server.Config) { c.BaseURL = "http://a/?x=y" }, "the base URL "},
		"BaseURL, empty query":    {func(c *server.Config) { c.BaseURL = "http://a?" }, "the base URL "},
		"BaseURL with fragment":   {func(c *server.Config) { c.BaseURL = "http://a/#x" }, "the base URL "},
		"BaseURL, empty fragment": {func(c *server.Config) { c.BaseURL = "http://a#" }, "the base URL "},
		"BaseURL with a space":    {func(c *server.Config) { c.BaseURL = "http://a b/" }, "the base URL "},
		"token":                   {func(c *server.Config) { c.Tokens = []string{served.Token, "short"} }, "a token has 5 characters"},
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
	n.Server.Config.BaseURL = public // expected by the helpers
	n.Publish("small", served.Small())
	n.Server.Config.BaseURL = local
	for _, path := range []string{"/topicmaps", "/topicmaps/small", "/topicmaps/small/fragments", "/topicmaps/small/snapshots", "/topicmaps/small.atom"} {
		w := served.Record(s, path, "Host", "evil.example", "X-Forwarded-Host", "evil.example")
		require.Equal(t, 200, w.Code)
		assert.NotContains(t, w.Body.String(), "evil.example")
		assert.NotContains(t, w.Body.String(), local)
		assert.Contains(t, w.Body.String(), `href="`+public+`/topicmaps`)
	}
	w := served.Record(s, "/topicmaps/small/topics?si=http://psi.example.org/oslo", "Host", "evil.example")
	assert.True(t, strings.HasPrefix(w.Header().Get("Location"), public+"/topicmaps/small/topics/"))
}

func TestNamesOfCollectionsStandInURLs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"egov", "EGov-2_1", "0", strings.Repeat("a", 64)} {
		assert.NoError(t, store.ValidateName(name), name)
	}
	for _, name := range []string{"", "-a", "_a", ".", "..", "../a", "a/b", `a\b`, "a.b", "a.atom", "a b", "a%2fb", "a?b", "a#b", "é", "a\x00", "a\n", "\xff", strings.Repeat("a", 65)} {
		assert.Error(t, store.ValidateName(name), "%q", name)
	}
}

// Two servers with one base URL that is not public give their collections prefixes of their own.
func TestPrefixesOfServersThatAreNotPublicDiffer(t *testing.T) {
	t.Parallel()
	a, b := start(t), start(t)
	for base, public := range map[string]bool{
		"http://127.0.0.1:8080": false, "http://localhost": false, "http://[::1]:8080": false, "http://10.0.0.7": false,
		"http://192.168.1.5:80": false, "http://169.254.3.4": false, "http://[fe80::1]": false, "http://[fd00::1]": false,
		"http://[::ffff:10.1.2.3]": false, "http://100.64.1.1": false, "http://maps:8080": false, "https://maps.internal": false,
		"https://Maps.local.": false, "https://maps.example.org": true, "https://maps.example.org/tm": true, "http://203.0.113.7": true,
		"http://[2001:db8::1]:8080": true,
	} {
		c := a.Config
		c.BaseURL = base
		one, err := server.New(c)
		require.NoError(t, err)
		c.Store = b.Store
		other, err := server.New(c)
		require.NoError(t, err)
		first, err := one.PrefixFor(t.Context(), "egov", nil)
		require.NoError(t, err)
		second, err := other.PrefixFor(t.Context(), "egov", nil)
		require.NoError(t, err)
		plain := server.DefaultPrefix(base, "egov")
		assert.Equal(t, public, first == second, base)
		assert.Equal(t, public, first == plain, base)
		assert.True(t, strings.HasPrefix(first, plain) && strings.HasSuffix(first, "/"), first)
		one.Close()
		other.Close()
	}
	for _, n := range []*node{a, b} {
		require.Equal(t, http.StatusCreated, n.PutSettings("towns", "{}").StatusCode)
		assert.Regexp(t, `^http://127\.0\.0\.1:[0-9]+/topicmaps/towns/[0-9a-f]{12}/$`, n.SP("towns"))
		before := n.SP("towns")
		n.MustPut("towns", served.TopicMap(served.Topic("x", "X")))
		require.Equal(t, http.StatusOK, n.remove("towns").StatusCode)
		require.Equal(t, http.StatusCreated, n.PutSettings("towns", "{}").StatusCode)
		assert.Equal(t, before, n.SP("towns"), "it is that of the data folder")
	}
}

// A server that is started with another base URL reports the prefixes that are not changed, and the remedy.
func TestPrefixesOfAnotherBaseURLAreReported(t *testing.T) {
	t.Parallel()
	n := start(t)
	require.NoError(t, n.Start())
	for name, settings := range map[string]string{
		"minted": "{}", "given": `{"sp": "https://id.example.org/maps/"}`, "moved": `{"sp": "https://old.example.org/topicmaps/moved/"}`,
	} {
		require.Equal(t, http.StatusCreated, n.PutSettings(name, settings).StatusCode)
	}
	require.NotContains(t, n.Logs.String(), "was made of another base URL")
	assert.Len(t, n.lines("to go public, publish the map afresh, with the public --base-url and another --data"), 1)
	c := n.Config
	c.BaseURL = "https://maps.example.org"
	other, err := server.New(c)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Start())
	lines := n.lines("was made of another base URL")
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0], "collection=minted")
	assert.Contains(t, lines[0], "publish the map afresh, with this --base-url and another --data")
	assert.Contains(t, lines[1], "collection=moved")
	assert.Contains(t, lines[1], "nothing needs to be done")
	moved := n.lines("the base URL has changed")
	require.Len(t, moved, 1)
	assert.Contains(t, moved[0], "followers go on once the former one leads to it for good (308)")
	assert.Contains(t, moved[0], "base-url=https://maps.example.org former="+n.BaseURL)

	// It is reported once.
	again, err := server.New(c)
	require.NoError(t, err)
	defer again.Close()
	require.NoError(t, again.Start())
	assert.Len(t, n.lines("base URL"), 3)
}
