package pages_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/merge"
)

// The page of a derived map leads to its origins, as far as the reader may see them.
func TestPageOfADerivedMapLeadsToItsInputs(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	n := served.Start(t, func(c *server.Config) { c.ReadTokens = map[string][]string{"hidden": {token}} })
	n.Publish("open", served.Small())
	n.Publish("hidden", served.Small())
	db := n.Store.(*store.DB)
	require.NoError(t, db.AddSubscription(t.Context(), store.Subscription{Name: "far", FragmentsFeed: "http://far.example.org/fragments?token=secret"}))
	c := store.Collection{Name: "all", SP: n.URL("/topicmaps/all/"), DerivedFrom: []string{"open", "hidden", "far"}}
	_, err := db.CreateCollection(t.Context(), c, &merge.Memory{}, nil)
	require.NoError(t, err)
	_, err = derive.CatchUp(t.Context(), db, "all")
	require.NoError(t, err)
	p := n.Page("/topicmaps/all.html")
	assert.Contains(t, p.Text, "Derived from")
	assert.Contains(t, p.Text, "http://far.example.org/fragments?…")
	assert.Contains(t, p.Links, n.URL("/topicmaps/open.html"))
	assert.NotContains(t, p.Text, "hidden")
	assert.NotContains(t, p.Text, "secret")
	assert.Contains(t, string(n.MustGet("/topicmaps/all.html", "Authorization", "Bearer "+token).Bytes), `<bdi>hidden</bdi>`)
	require.NoError(t, db.DeleteCollection(t.Context(), "open", ""))
	p = n.Page("/topicmaps/all.html")
	assert.NotContains(t, p.Links, n.URL("/topicmaps/open.html"))
	assert.Contains(t, p.Text, "open")
}

// The page of a topic of a derived map names the inputs that say each statement, of this server those that who asks may
// read.
func TestTopicsOfADerivedMapSayWhoSaysWhat(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	n := served.Start(t, func(c *server.Config) {
		c.Tokens, c.ReadTokens = []string{"the-token-of-a-writer"}, map[string][]string{"hidden": {token}}
	})
	n.Publish("open", served.Small())
	n.Publish("hidden", served.Small("Oslo", "Kristiania"))
	c := store.Collection{Name: "all", SP: n.URL("/topicmaps/all/"), DerivedFrom: []string{"open", "hidden"}}
	db := n.Store.(*store.DB)
	_, err := db.CreateCollection(t.Context(), c, &merge.Memory{}, nil)
	require.NoError(t, err)
	_, err = derive.CatchUp(t.Context(), db, "all")
	require.NoError(t, err)
	at := served.TopicPath("all", served.Oslo) + ".html"
	text := n.Page(at).Text
	assert.Contains(t, text, "Oslo said by open")
	assert.Regexp(t, `Kristiania\s`, text, "the statement is shown, its source is not")
	assert.NotContains(t, text, "hidden")
	assert.Regexp(t, `the capital[^\n]* said by open\s`, text)
	assert.Regexp(t, `Norway said by open\s`, text, "an association")
	assert.NotContains(t, n.Page(served.TopicPath("open", served.Oslo)+".html").Text, "said by")

	assert.NotContains(t, string(n.MustGet("/topicmaps/all/settings").Bytes), "hidden")
	assert.Contains(t, string(n.MustGet("/topicmaps/all/settings", "Authorization", "Bearer the-token-of-a-writer").Bytes), "hidden")

	first := n.Get(at, "Authorization", "Bearer "+token)
	all := served.TextOf(t, first)
	assert.Contains(t, all, "Kristiania said by hidden")
	assert.Contains(t, all, "Norway said by hidden, open")
	assert.Contains(t, first.Header.Get("Cache-Control"), "private")
	again := n.Get(at, "Authorization", "Bearer "+token, "If-None-Match", first.Header.Get("ETag"))
	assert.Equal(t, http.StatusNotModified, again.StatusCode)
	assert.Equal(t, http.StatusOK, n.Get(at, "If-None-Match", first.Header.Get("ETag")).StatusCode, "who asks sees another page")
}

// The pages of the node are for those who may write.
func TestWhoMaySeeTheNode(t *testing.T) {
	t.Parallel()
	const token, reader = "0123456789abcdef", "fedcba9876543210"
	code := ""
	about := func(codeOf func(*http.Request) string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			code = codeOf(r)
			_, _ = w.Write([]byte("all about the node"))
			if r.Method == http.MethodPost {
				_, _ = w.Write([]byte(", and " + r.PostForm.Get("do")))
			}
		})
	}
	shown := func(c *server.Config) {
		c.Parts = []func(*server.Server) (*server.Part, error){pages.WithNode(about)}
	}
	n := served.Start(t, shown, func(c *server.Config) {
		c.Tokens, c.ReadTokens = []string{token}, map[string][]string{"m": {reader}}
	})
	n.Publish("m", served.Small())
	for _, path := range []string{"/node.html", "/node.json", "/node/m.html"} {
		assert.Equal(t, http.StatusUnauthorized, n.Get(path).StatusCode)
		assert.Equal(t, http.StatusUnauthorized, n.Get(path, "Authorization", "Bearer "+reader).StatusCode)
		a := n.Get(path, "Authorization", "Bearer "+token)
		assert.Equal(t, http.StatusOK, a.StatusCode)
		assert.Equal(t, "all about the node", string(a.Bytes))
		want := http.StatusMethodNotAllowed
		if path == "/node/m.html" { // forms are for people
			want = http.StatusUnauthorized
		}
		assert.Equal(t, want, n.Do(http.MethodPost, path, nil, "Authorization", "Bearer "+token).StatusCode)
	}
	assert.NotContains(t, n.Page("/topicmaps.html").Links, n.URL("/node.html"))
	assert.Contains(t, string(n.MustGet("/topicmaps.html", "Authorization", "Bearer "+token).Bytes), n.URL("/node.html"))

	b := n.Browser()
	assert.Contains(t, b.Do("/node.html", nil).Header.Get("Location"), "/sign-in.html")
	b.SignIn(token)
	assert.Equal(t, "all about the node", string(b.Do("/node.html", nil).Bytes), "in a session")
	assert.Contains(t, string(b.Do("/topicmaps.html", nil).Bytes), n.URL("/node.html"))
	require.NotEmpty(t, code)
	form := url.Values{layout.CodeField: {code}, "do": {"retry"}}
	assert.Equal(t, "all about the node, and retry", string(b.Do("/node/m.html", form).Bytes))
	assert.Equal(t, http.StatusForbidden, b.Do("/node/m.html", form, "Origin", "http://evil.example.org").StatusCode)
	assert.Equal(t, http.StatusForbidden, b.Do("/node/m.html", form, "Sec-Fetch-Site", "cross-site").StatusCode)
	assert.Equal(t, http.StatusForbidden, b.Do("/node/m.html", url.Values{"do": {"retry"}}).StatusCode)
	assert.Equal(t, http.StatusUnauthorized, n.Browser().Do("/node/m.html", form).StatusCode)
	b = n.Browser()
	b.SignIn(reader)
	assert.Equal(t, http.StatusSeeOther, b.Do("/node.html", nil).StatusCode)

	local := served.Start(t, shown)
	assert.Equal(t, http.StatusOK, local.Get("/node.html").StatusCode)
	assert.Equal(t, http.StatusForbidden, local.Get("/node.html", "Sec-Fetch-Site", "cross-site").StatusCode)
	assert.Equal(t, http.StatusForbidden, local.Get("/node.html", "X-Forwarded-For", "192.0.2.1").StatusCode)
	assert.Contains(t, local.Page("/topicmaps.html").Links, local.URL("/node.html"))
	without := served.Start(t)
	assert.Equal(t, http.StatusNotFound, without.Get("/node.html").StatusCode)
}
