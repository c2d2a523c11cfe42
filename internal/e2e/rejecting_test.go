//go:build !race

package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/browser"
	"github.com/tmshare/tmshare/merge"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// Writers on a node see the sources of each statement about a topic, and reject it: the derived collection no longer
// has it. They can restore it.
func rejectingOnANode(t *testing.T, b *browser.Browser) {
	const token, si = "0123456789abcdef0123", "https://psi.libraries.example.org/library/fjordstad"
	origin := startServer(t, server.Config{})
	importMap(t, origin, "libraries", maps.Libraries)

	db := openStore(t)
	base := startNode(t, &extension.Holding{DB: db, Execute: clientcmd.Executing(ext.All)}, token)
	c, err := client.New(client.Config{Protocols: ext.Protocols(), Store: db, Logger: quiet})
	require.NoError(t, err)
	_, err = c.Subscribe(t.Context(), origin.BaseURL+"/topicmaps/libraries", client.SubscribeOptions{})
	require.NoError(t, err)
	_, err = c.Sync(t.Context(), "libraries")
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), store.Collection{Name: "all", SP: base + "/topicmaps/all/", DerivedFrom: []string{"libraries"}}, &merge.Memory{}, nil)
	require.NoError(t, err)
	derived := func() string {
		_, err := derive.CatchUp(t.Context(), db, "all")
		require.NoError(t, err)
		return string(fetched(t, base+"/topicmaps/all/snapshots/current.xtm21"))
	}
	require.Contains(t, derived(), "Fjordstad Public Library")

	page := base + "/topicmaps/all/topics/" + fragment.Key(si) + ".html"
	b.Visit(page)
	assert.Contains(t, b.Text(), "Fjordstad Public Library said by libraries")
	assert.NotContains(t, b.Text(), "what to reject")
	b.Visit(base + "/topic.html?si=" + si)
	assert.Equal(t, "Sign in", b.Title())
	b.Fill("Token", token)
	require.Equal(t, http.StatusOK, b.Press("Sign in"))
	b.Visit(page)
	b.Follow("Who says what, and what to reject")
	b.Audit(browser.Axe(t))
	assert.Regexp(t, `Types\s+Library said by libraries`, b.Text())
	assert.Regexp(t, `Location: Authority: Fjordstad Public Library, Municipality: Fjordstad said by libraries`, b.Text())
	require.True(t, browser.Eval[bool](b, `(e => {
		e.open = true
		const reason = e.querySelector("input[name=reason]")
		reason.focus()
		return document.activeElement === reason
	})([...document.querySelectorAll("li")].find(e => e.innerText.startsWith("Fjordstad Public Library")).querySelector("details"))`))
	b.Keys("It has another name now")
	require.Equal(t, http.StatusOK, b.Enter())
	assert.Contains(t, b.URL(), "done=reject")
	assert.Contains(t, b.Text(), "Rejected: it no longer shows")
	assert.NotContains(t, derived(), "Fjordstad Public Library")
	assert.Regexp(t, "(?s)Rejected.*Fjordstad Public Library said by libraries: It has another name now", b.Text())
	require.Equal(t, http.StatusOK, b.Press("Show again"))
	assert.Contains(t, derived(), "Fjordstad Public Library")

	// Forms from other sites have no effect.
	answer, err := http.PostForm(base+"/topic.html", map[string][]string{"do": {"reject"}, "kind": {"name"}, "source": {"libraries"}})
	require.NoError(t, err)
	answer.Body.Close()
	assert.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	b.Follow("Node")
	b.Fill("Subject identifier", "http://nobody.example.org/x")
	assert.Equal(t, http.StatusNotFound, b.Press("Find the topic in all maps"))
	b.Follow(strings.TrimPrefix(base, "http://"))
	assert.Equal(t, "Topic maps", b.Title())
	assert.Empty(t, b.Complaints())
}
