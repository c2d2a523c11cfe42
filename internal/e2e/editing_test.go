//go:build !race

package e2e_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/browser"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// A person signs in, edits a topic, and sees the entry among the changes; followers of the map have it, proven. All
// visited pages conform to WCAG 2.2 AA, in a narrow window too, and the keyboard alone is sufficient.
func editingByKeyboard(t *testing.T, b *browser.Browser) {
	const token = "0123456789abcdef0123"
	axe := browser.Axe(t)
	s := startServer(t, server.Config{Tokens: []string{token}, TokenNames: map[string]string{token: "Ada"}, ReadTokens: map[string][]string{"closed": {"fedcba9876543210"}}})
	importMap(t, s, "libraries", maps.Libraries)
	importMap(t, s, "closed", maps.Libraries)
	ctx := context.Background()
	c := newClient(t)
	_, err := c.Subscribe(ctx, s.BaseURL+"/topicmaps/libraries", client.SubscribeOptions{})
	require.NoError(t, err)
	_, err = c.Sync(ctx, "libraries")
	require.NoError(t, err)

	looks := func() {
		t.Helper()
		b.Audit(axe)
	}
	write := func(label, text string) { // replacing the content of the field
		t.Helper()
		require.True(t, browser.Eval[bool](b, `(() => {
			const label = [...document.querySelectorAll("label")].find(e => e.textContent.trim() === `+strconv.Quote(label)+`)
			if (label) { label.closest("details:not([open])")?.querySelector("summary").click(); label.control.focus(); label.control.select() }
			return !!label
		})()`), "%s has no field %q", b.URL(), label)
		b.Keys(text)
	}
	const si = "https://psi.libraries.example.org/library/fjordstad"
	topic := s.BaseURL + "/topicmaps/libraries/topics/" + fragment.Key(si)
	b.Visit(topic + ".html")
	assert.NotContains(t, b.Text(), "Edit this topic")
	b.Visit(topic + "/edit.html")
	assert.Equal(t, "Sign in", b.Title())
	looks()
	b.Fill("Token", "not the token of anybody")
	assert.Equal(t, http.StatusUnauthorized, b.Press("Sign in"))
	looks()
	b.Fill("Token", token)
	assert.Equal(t, http.StatusOK, b.Enter())
	assert.True(t, strings.HasSuffix(b.URL(), "/edit.html"), "the form that was asked for")
	looks()
	assert.Zero(t, browser.Eval[int](b, `document.cookie.length`), "no script could read it")

	write("Name Fjordstad Public Library", "Library of Fjordstad")
	write("Note: why", "Shorter")
	other := []byte(strings.ReplaceAll(string(maps.Libraries), "Fjordstad folkebibliotek", "Folkebiblioteket i Fjordstad"))
	edited := b.URL()
	assert.Equal(t, http.StatusOK, b.Press("Show what will be published"))
	looks()
	assert.Contains(t, b.Text(), "Library of Fjordstad")
	assert.Equal(t, http.StatusOK, b.Press("Go on editing"))
	assert.Equal(t, edited, b.URL())
	write("Name Library of Fjordstad", "The Library")
	assert.Equal(t, http.StatusOK, b.Press("Show what will be published"))
	assert.Equal(t, http.StatusOK, b.Press("Publish"))
	assert.Equal(t, topic+".html", b.URL())
	assert.Contains(t, b.Text(), "The Library")
	b.Follow("libraries")
	looks()
	assert.Contains(t, b.Text(), "Ada: Shorter")

	round, err := c.Sync(ctx, "libraries")
	require.NoError(t, err)
	assert.Equal(t, 1, round.Entries)
	verdict, err := c.Verify(ctx, "libraries", true)
	require.NoError(t, err)
	assert.True(t, verdict.Equal)

	// Others change the topic while the form is open.
	b.Visit(topic + "/edit.html")
	write("Name The Library", "Our Library")
	putAs(t, s, "libraries", other, token)
	assert.Equal(t, http.StatusPreconditionFailed, b.Press("Show what will be published"))
	looks()
	for _, text := range []string{"Our Library", "Folkebiblioteket i Fjordstad", "What others have changed since"} {
		assert.Contains(t, b.Text(), text)
	}
	assert.Equal(t, http.StatusOK, b.Press("Publish your change on what it is now"))
	b.Visit(topic + "/delete.html")
	looks()

	b.Visit(s.BaseURL + "/topicmaps/libraries/topics/new.html")
	looks()
	write("Name", "Branch")
	assert.Equal(t, http.StatusOK, b.Press("Show what will be published"))
	assert.Equal(t, http.StatusOK, b.Press("Publish"))
	assert.Equal(t, "Branch", b.Title())
	b.Follow("Edit this topic")
	b.Follow("Delete the topic")
	assert.Equal(t, http.StatusOK, b.Press("Delete the topic"))
	assert.Contains(t, b.Text(), "any more")
	_, err = c.Sync(ctx, "libraries")
	require.NoError(t, err)
	verdict, err = c.Verify(ctx, "libraries", true)
	require.NoError(t, err)
	assert.True(t, verdict.Equal)

	b.Visit(s.BaseURL + "/topicmaps/closed.html")
	b.Visit(s.BaseURL + "/sign-in.html")
	assert.Equal(t, http.StatusOK, b.Press("Sign out"))
	assert.NotContains(t, b.Text(), "closed")
	assert.Empty(t, b.Complaints())
}

// A field proposes topics with the typed name. The selected one is used, also if its name is ambiguous. The form works
// under another host name of the machine, and without scripts.
func proposalsWhileOneTypes(t *testing.T, b *browser.Browser) {
	s := startServer(t, server.Config{})
	importMap(t, s, "rocks", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`))
	putTurtle(t, s, "rocks", []byte(rocks+":alias skos:altLabel \"gabbro\"@en ; skos:prefLabel \"gabbroic rock\"@en ."))
	b.Visit(s.BaseURL + "/topicmaps/rocks/topics/" + fragment.Key("http://x/basalt") + "/edit.html")
	theme := browser.Eval[string](b, `(() => {
		const field = [...document.querySelectorAll("label")].find(e => e.textContent.trim() === "Scope").control
		field.closest("details").open = true
		field.focus()
		return field.id
	})()`)
	b.Keys("gabb")
	testenv.Eventually(t, func() bool {
		return browser.Eval[bool](b, `[...document.getElementById("`+theme+`").list?.options ?? []].some(o => o.value === "gabbro")`)
	})
	for _, base := range []string{s.BaseURL, strings.Replace(s.BaseURL, "127.0.0.1", "localhost", 1)} {
		b.Visit(base + "/topicmaps/rocks/topics/" + fragment.Key("http://x/basalt") + "/edit.html")
		b.Audit(browser.Axe(t))
		field := browser.Eval[string](b, `(() => {
			const field = [...document.querySelectorAll("label")].find(e => e.textContent.trim() === "Played by").control
			field.closest("details").open = true
			field.focus()
			return field.id
		})()`)
		b.Keys("gabb")
		testenv.Eventually(t, func() bool {
			return browser.Eval[bool](b, `[...document.getElementById("`+field+`").list?.options ?? []].some(o => o.value === "gabbro" && o.label.includes("concept"))`)
		})
		b.Keys("ro")
		assert.Equal(t, "http://x/gabbro gabbro", browser.Eval[string](b, `document.getElementsByName("`+field+`-is")[0].value`))
		browser.Eval[string](b, `document.getElementById("`+field+`").closest("fieldset").querySelector("[id$=-type]").value = "related"`)
		require.Equal(t, http.StatusOK, b.Press("Show what will be published"))
		assert.Regexp(t, "(?s)New:.*related.*gabbro", b.Text())
	}
	assert.Empty(t, b.Complaints())
}
