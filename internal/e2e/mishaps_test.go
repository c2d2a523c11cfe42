//go:build !race

package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/browser"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// Mishaps while editing lose no input, and publish no change that the editor has not seen: the back button, two tabs, a
// session that ends, a topic and a map that are deleted meanwhile.
func mishapsOfEditors(t *testing.T, b *browser.Browser) {
	const token = "0123456789abcdef0123"
	s := startServer(t, server.Config{Tokens: []string{token}, TokenNames: map[string]string{token: "Ada"}})
	importMap(t, s, "libraries", maps.Libraries)
	const si = "https://psi.libraries.example.org/library/fjordstad"
	base := s.BaseURL + "/topicmaps/libraries"
	page := base + "/topics/" + fragment.Key(si) + ".html"
	edit := strings.TrimSuffix(page, ".html") + "/edit.html"
	remove := func(url string) {
		r, err := http.NewRequest(http.MethodDelete, url, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	entries := func() int { return strings.Count(string(fetched(t, base+"/fragments")), "<entry ") }
	rename := func(b *browser.Browser, name string) {
		t.Helper()
		b.Visit(edit)
		b.Fill("Name", name)
	}
	b.Visit(edit)
	b.Fill("Token", token)
	require.Equal(t, http.StatusOK, b.Press("Sign in"))

	// Back to the preview, and sent again: it is published once.
	rename(b, "First")
	b.Press("Show what will be published")
	before := entries()
	b.Press("Publish")
	b.Back()
	assert.Equal(t, http.StatusOK, b.Press("Publish"))
	assert.Equal(t, page, b.URL())
	assert.Equal(t, before+1, entries())

	// Two tabs: the second editor sees the first one's change.
	other := b.Tab()
	rename(b, "Here")
	rename(other, "There")
	other.Press("Show what will be published")
	other.Press("Publish")
	assert.Equal(t, http.StatusPreconditionFailed, b.Press("Show what will be published"))
	assert.Regexp(t, "(?s)What you wanted.*Here.*What others have changed since.*There", b.Text())
	assert.Equal(t, http.StatusOK, b.Press("Go on editing what it is now"))
	assert.Contains(t, browser.Eval[string](b, `[...document.querySelectorAll("textarea")].map(e => e.value).join()`), "Here")

	// The session ends before the form is sent, and again before it is published.
	rename(b, "Third")
	b.Forget()
	assert.Equal(t, http.StatusUnauthorized, b.Press("Show what will be published"))
	assert.Contains(t, b.Text(), "You are no longer signed in, so nothing is done yet.")
	b.Fill("Token", "not the token")
	assert.Equal(t, http.StatusUnauthorized, b.Press("Sign in"))
	b.Fill("Token", token)
	assert.Equal(t, http.StatusOK, b.Press("Sign in"))
	assert.Equal(t, http.StatusOK, b.Press("Go on"))
	assert.Contains(t, b.Text(), "“Third”")
	b.Forget()
	before = entries()
	assert.Equal(t, http.StatusUnauthorized, b.Press("Publish"))
	b.Fill("Token", token)
	assert.Equal(t, http.StatusOK, b.Press("Sign in"))
	assert.Equal(t, http.StatusOK, b.Press("Go on"))
	assert.Equal(t, before, entries(), "it is shown once more")
	b.Press("Publish")
	assert.Contains(t, b.Text(), "Third")
	assert.Equal(t, before+1, entries())

	// The topic, and then the map, is deleted while a form is open.
	rename(b, "Fourth")
	remove(base + "/topics?si=" + url.QueryEscape(si))
	assert.Equal(t, http.StatusPreconditionFailed, b.Press("Show what will be published"))
	assert.Regexp(t, "(?s)What you wanted.*Fourth.*deleted by Ada.*The topic is gone", b.Text())
	b.Visit(base + "/topics/new.html")
	b.Fill("Name", "Fifth")
	remove(base)
	assert.Equal(t, http.StatusGone, b.Press("Show what will be published"))
	b.Follow("all topic maps")
	assert.Equal(t, "Topic maps", b.Title())
	assert.Empty(t, b.Complaints())
}
