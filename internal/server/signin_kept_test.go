package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages/signin"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// A form that is sent after its session has ended is kept while its writer signs in, and what it would publish is shown
// before it is published.
func TestFormsAreKeptWhileSigningIn(t *testing.T) {
	t.Parallel()
	n, b := editor(t, served.Small())
	f, _ := b.open(topicPath("m", osloSI) + "/edit.html")
	preview := b.send(f.set("name-0-value", "Kristiania <&\"'>\n"), "preview")
	before := n.State("m")

	stranger := n.browser()
	asked := stranger.do(f.at, formOf(t, f.at, preview).set("do", "publish").fields)
	require.Equal(t, http.StatusUnauthorized, asked.StatusCode)
	kept := formOf(t, "/sign-in.html", asked)
	assert.Equal(t, http.StatusUnauthorized, stranger.do("/sign-in.html", kept.set("token", "wrong").fields).StatusCode)
	assert.NotContains(t, string(asked.Bytes), formOf(t, f.at, preview).fields.Get("code"), "the code of a session that has ended")
	in := stranger.do("/sign-in.html", kept.set("token", token).fields)
	require.Equal(t, http.StatusOK, in.StatusCode)
	again := stranger.do(f.at, formOf(t, f.at, in).fields)
	require.Equal(t, http.StatusOK, again.StatusCode)
	assert.Contains(t, textOf(t, again), "Kristiania <&\"'>")
	assert.Equal(t, before, n.State("m"), "nothing is published yet")
	assert.Equal(t, http.StatusSeeOther, stranger.send(formOf(t, f.at, again), "publish").StatusCode)
	assert.NotEqual(t, before, n.State("m"))
}

// What another site, or a program, sends is not kept: whoever signs in would send it.
func TestFormsOfOthersAreNotKept(t *testing.T) {
	t.Parallel()
	n, b := editor(t, served.Small())
	f, _ := b.open(topicPath("m", osloSI) + "/edit.html")
	f.set("name-0-value", "Planted")
	for why, headers := range map[string][]string{
		"another site":            {"Sec-Fetch-Site", "cross-site"},
		"another origin":          {"Origin", "http://evil.example"},
		"nobody knows where from": {"Sec-Fetch-Site", "", "Origin", ""},
		"a program":               {"Sec-Fetch-Mode", ""},
	} {
		a := n.browser().do(f.at, f.fields, headers...)
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode, why)
		assert.NotContains(t, string(a.Bytes), "Planted", why)
	}
	f.set("name-0-value", strings.Repeat("x", signin.MaxForm))
	assert.Equal(t, http.StatusRequestEntityTooLarge, n.browser().do(f.at, f.fields).StatusCode)
}
