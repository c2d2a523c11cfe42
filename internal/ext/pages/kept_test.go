package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// A form that is sent after its session has ended is kept while its writer signs in, and its changes are shown before
// they are published.
func TestFormsAreKeptWhileSigningIn(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	f, _ := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	preview := b.Send(f.Set("name-0-value", "Kristiania <&\"'>\n"), "preview")
	before := n.State("m")

	stranger := n.Browser()
	asked := stranger.Do(f.At, served.FormOf(t, f.At, preview).Set("do", "publish").Fields)
	require.Equal(t, http.StatusUnauthorized, asked.StatusCode)
	kept := served.FormOf(t, "/sign-in.html", asked)
	assert.Equal(t, http.StatusUnauthorized, stranger.Do("/sign-in.html", kept.Set("token", "wrong").Fields).StatusCode)
	assert.NotContains(t, string(asked.Bytes), served.FormOf(t, f.At, preview).Fields.Get("code"), "the code of a session that has ended")
	in := stranger.Do("/sign-in.html", kept.Set("token", served.Token).Fields)
	require.Equal(t, http.StatusOK, in.StatusCode)
	again := stranger.Do(f.At, served.FormOf(t, f.At, in).Fields)
	require.Equal(t, http.StatusOK, again.StatusCode)
	assert.Contains(t, served.TextOf(t, again), "Kristiania <&\"'>")
	assert.Equal(t, before, n.State("m"), "nothing is published yet")
	assert.Equal(t, http.StatusSeeOther, stranger.Send(served.FormOf(t, f.At, again), "publish").StatusCode)
	assert.NotEqual(t, before, n.State("m"))
}

// A form that another site, or a program, sends is not kept: the next person who signs in would send it.
func TestFormsOfOthersAreNotKept(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	f, _ := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	f.Set("name-0-value", "Planted")
	for why, headers := range map[string][]string{
		"another site":            {"Sec-Fetch-Site", "cross-site"},
		"another origin":          {"Origin", "http://evil.example"},
		"the origin is not known": {"Sec-Fetch-Site", "", "Origin", ""},
		"a program":               {"Sec-Fetch-Mode", ""},
	} {
		a := n.Browser().Do(f.At, f.Fields, headers...)
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode, why)
		assert.NotContains(t, string(a.Bytes), "Planted", why)
	}
	f.Set("name-0-value", strings.Repeat("x", pages.MaxForm))
	assert.Equal(t, http.StatusRequestEntityTooLarge, n.Browser().Do(f.At, f.Fields).StatusCode)
}
