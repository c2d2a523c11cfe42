package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
)

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
		first, err := one.NewPrefix("egov")
		require.NoError(t, err)
		second, err := other.NewPrefix("egov")
		require.NoError(t, err)
		plain := server.DefaultPrefix(base, "egov")
		assert.Equal(t, public, first == second, base)
		assert.Equal(t, public, first == plain, base)
		assert.True(t, strings.HasPrefix(first, plain) && strings.HasSuffix(first, "/"), first)
		one.Close()
		other.Close()
	}
	for _, n := range []*node{a, b} {
		require.Equal(t, http.StatusCreated, n.putSettings("towns", "{}").StatusCode)
		assert.Regexp(t, `^http://127\.0\.0\.1:[0-9]+/topicmaps/towns/[0-9a-f]{12}/$`, n.sp("towns"))
		before := n.sp("towns")
		n.mustPut("towns", topicMap(topic("x", "X")))
		require.Equal(t, http.StatusOK, n.remove("towns").StatusCode)
		require.Equal(t, http.StatusCreated, n.putSettings("towns", "{}").StatusCode)
		assert.Equal(t, before, n.sp("towns"), "it is that of the data folder")
	}
}

// A server that is started with another base URL says which prefixes stay behind, and what to do.
func TestPrefixesOfAnotherBaseURLAreReported(t *testing.T) {
	t.Parallel()
	n := start(t)
	require.NoError(t, n.Start())
	for name, settings := range map[string]string{
		"minted": "{}", "given": `{"sp": "https://id.example.org/maps/"}`, "moved": `{"sp": "https://old.example.org/topicmaps/moved/"}`,
	} {
		require.Equal(t, http.StatusCreated, n.putSettings(name, settings).StatusCode)
	}
	require.NotContains(t, n.logs.String(), "was made of another base URL")
	c := n.Config
	c.BaseURL = "https://maps.example.org"
	other, err := server.New(c)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Start())
	lines := n.lines("was made of another base URL")
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0], "collection=minted")
	assert.Contains(t, lines[0], "import the map under another name with --sp")
	assert.Contains(t, lines[1], "collection=moved")
	assert.Contains(t, lines[1], "nothing needs to be done")
}
