package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// session returns the cookie that a browser has of the server.
func (b *browser) session() *http.Cookie {
	u, err := url.Parse(b.n.BaseURL)
	require.NoError(b.n.T, err)
	for _, c := range b.jar.Cookies(u) {
		return c
	}
	return nil
}

// The cookie is for the server alone, and has no token in it.
func TestSessionCookie(t *testing.T) {
	t.Parallel()
	n := guarded(t)
	b := n.browser()
	f, a := b.open("/sign-in.html")
	assert.Empty(t, a.Cookies(), "nobody has given a token")
	a = b.do(f.at, f.set("token", " "+token+" ", "to", "/topicmaps/secret.html").fields)
	require.Equal(t, http.StatusSeeOther, a.StatusCode)
	assert.Equal(t, n.URL("/topicmaps/secret.html"), a.Header.Get("Location"))
	require.Len(t, a.Cookies(), 1)
	c := a.Cookies()[0]
	assert.True(t, c.HttpOnly)
	assert.Equal(t, http.SameSiteStrictMode, c.SameSite)
	assert.Equal(t, "/", c.Path)
	assert.Empty(t, c.Domain)
	assert.Zero(t, c.MaxAge)
	assert.False(t, c.Secure, "it would not come back over HTTP")
	assert.NotContains(t, c.Value, token)
	assert.Contains(t, a.Header.Get("Cache-Control"), "no-store")
	a = b.do("/topicmaps/secret.html", nil)
	assert.Equal(t, http.StatusOK, a.StatusCode)
	assert.Contains(t, a.Header.Get("Cache-Control"), "private")
	assert.Contains(t, strings.Join(a.Header.Values("Vary"), ","), "Cookie")
	assert.NotContains(t, n.Logs.String(), token)

	secure := start(t, func(c *server.Config) { c.Tokens, c.BaseURL = []string{token}, "https://maps.example.org" })
	secure.DialAll()
	a = secure.Do(http.MethodPost, "http://maps.example.org/sign-in.html", strings.NewReader("token="+token),
		"Content-Type", "application/x-www-form-urlencoded", "Origin", "https://maps.example.org")
	require.Len(t, a.Cookies(), 1, "%s", a.Bytes)
	c = a.Cookies()[0]
	assert.True(t, c.Secure)
	assert.True(t, strings.HasPrefix(c.Name, "__Host-"))
	assert.Equal(t, "https://maps.example.org/topicmaps.html", a.Header.Get("Location"))
}

// A wrong token is told so, slowly, and begins no session.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	n := guarded(t)
	b := n.browser()
	f, _ := b.open("/sign-in.html")
	for _, wrong := range []string{"", "wrong", token[:16], token + "x", "Bearer " + token} {
		begun := time.Now()
		a := b.do(f.at, f.set("token", wrong).fields)
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode)
		assert.GreaterOrEqual(t, time.Since(begun), 900*time.Millisecond)
		assert.Empty(t, a.Cookies())
		assert.Contains(t, textOf(t, a), "no token of this server")
	}
	assert.Contains(t, n.Logs.String(), "path=/sign-in.html status=401")
	assert.NotContains(t, n.Logs.String(), token[:16])
}

// Whoever opens a page of a map that is not for all is led to the page to sign in, and back; to nowhere else.
func TestSigningInLeadsBack(t *testing.T) {
	t.Parallel()
	n := guarded(t)
	var b *browser
	for _, path := range []string{"/topicmaps/secret.html", "/topicmaps/secret/fragments.html?before=9", "/topicmaps/secret", topicPath("open", osloSI) + "/edit.html"} {
		b = n.browser()
		a := b.do(path, nil)
		require.Equal(t, http.StatusSeeOther, a.StatusCode, path)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		f, _ := b.open(a.Header.Get("Location"))
		a = b.do(f.at, f.set("token", token).fields)
		assert.Equal(t, n.URL(path), a.Header.Get("Location"))
		b.open(path)
	}
	assert.Equal(t, http.StatusUnauthorized, n.Get("/topicmaps/secret.html").StatusCode, "programs are told")
	for _, to := range []string{"//evil.example", "https://evil.example/", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)", "evil.example", "", "/x\r\nSet-Cookie: a=b", "http:evil", "/" + strings.Repeat("x", 9000)} {
		b = n.browser()
		a := b.do("/sign-in.html", url.Values{"token": {token}, "to": {to}})
		at, err := url.Parse(a.Header.Get("Location"))
		require.NoError(t, err)
		assert.Equal(t, strings.TrimPrefix(n.BaseURL, "http://"), at.Host, to)
		assert.Equal(t, "http", at.Scheme)
	}
	// A reader's token opens its map, and no form.
	b = n.browser()
	b.signIn(readToken)
	assert.Equal(t, http.StatusOK, b.do("/topicmaps/secret.html", nil).StatusCode)
	assert.Contains(t, textOf(t, b.do("/topicmaps.html", nil)), "secret")
	for _, path := range []string{"/topicmaps/other.html", topicPath("secret", osloSI) + "/edit.html"} {
		f, a := b.open(path)
		assert.Contains(t, f.at, "/sign-in.html", path)
		assert.Contains(t, textOf(t, a), "You are signed in")
	}
	assert.NotContains(t, string(b.do(topicPath("secret", osloSI)+pages.Ending, nil).Bytes), "/edit.html")
}

// The cookie opens nothing that programs use to write, and what is not of a form of this session does nothing.
func TestForgedForms(t *testing.T) {
	t.Parallel()
	n, b := editor(t, served.Small())
	before := n.State("m")
	cookie := b.session().Name + "=" + b.session().Value
	for _, a := range []served.Answer{
		n.Put("m", served.Small("Oslo", "X"), "Cookie", cookie), n.Delete("m", osloSI, "Cookie", cookie),
		n.Do(http.MethodPost, "/topicmaps/m/topics", strings.NewReader(string(served.Small("Oslo", "X"))), "Cookie", cookie),
		n.Do(http.MethodPost, "/topicmaps/m/snapshots", nil, "Cookie", cookie), n.Do(http.MethodPost, "/topicmaps/m/gc", nil, "Cookie", cookie),
		n.Do(http.MethodDelete, "/topicmaps/m", nil, "Cookie", cookie), n.Do(http.MethodPut, "/topicmaps/new", strings.NewReader("{}"), "Cookie", cookie, "Content-Type", "application/json"),
	} {
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode, "%s %s", a.Request.Method, a.Request.URL)
	}
	at := topicPath("m", osloSI) + "/edit.html"
	f, _ := b.open(at)
	f = formOf(t, f.at, b.send(f.set("name-0-value", "Forged"), "preview")).set("do", "publish")
	code := f.fields.Get("code")
	stranger := n.browser()
	stranger.signIn(token) // another session, of the same token
	other, _ := stranger.open(at)
	for why, send := range map[string]func() served.Answer{
		"no code":                 func() served.Answer { f.fields.Del("code"); return b.do(at, f.fields) },
		"a wrong one":             func() served.Answer { return b.do(at, f.set("code", altered(code)).fields) },
		"of another session":      func() served.Answer { return b.do(at, f.set("code", other.fields.Get("code")).fields) },
		"another origin":          func() served.Answer { return b.do(at, f.set("code", code).fields, "Origin", "http://evil.example") },
		"no origin that is known": func() served.Answer { return b.do(at, f.set("code", code).fields, "Origin", "null") },
		"another site":            func() served.Answer { return b.do(at, f.set("code", code).fields, "Sec-Fetch-Site", "cross-site") },
		"another host of it":      func() served.Answer { return b.do(at, f.set("code", code).fields, "Sec-Fetch-Site", "same-site") },
	} {
		a := send()
		assert.Equal(t, http.StatusForbidden, a.StatusCode, why)
	}
	for why, value := range map[string]string{"none": "", "cut": b.session().Value[:20], "altered": altered(b.session().Value), "no cookie of ours": "x"} {
		a := b.do(at, f.set("code", code).fields, "Cookie", b.session().Name+"="+value)
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode, why)
	}
	assert.Equal(t, http.StatusForbidden, b.do("/sign-in.html", url.Values{"token": {token}}, "Sec-Fetch-Site", "cross-site").StatusCode)
	assert.Equal(t, http.StatusForbidden, b.do("/sign-in.html", url.Values{"out": {"1"}}).StatusCode, "nobody else signs people out")
	assert.Equal(t, before, n.State("m"))
	assert.Equal(t, http.StatusSeeOther, b.do(at, f.set("code", code).fields, "Origin", "", "Sec-Fetch-Site", "").StatusCode, "a browser that says neither")

	f, _ = b.open("/sign-in.html")
	out, a := formOfAll(t, b), served.Answer{}
	a = b.do("/sign-in.html", out)
	require.Equal(t, http.StatusSeeOther, a.StatusCode, "%s", a.Bytes)
	assert.Nil(t, b.session())
	assert.Equal(t, http.StatusSeeOther, b.do(at, nil).StatusCode)
}

// formOfAll returns the form that signs out.
func formOfAll(t *testing.T, b *browser) url.Values {
	a := b.do("/sign-in.html", nil)
	_, rest, found := strings.Cut(string(a.Bytes), `name="code" value="`)
	require.True(t, found)
	code, _, _ := strings.Cut(rest, `"`)
	return url.Values{"out": {"1"}, "code": {code}}
}

// A session outlives the server, but not its token, nor its time.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	with := func(tokens ...string) func(*server.Config) {
		return func(c *server.Config) {
			c.Tokens, c.BaseURL, c.Now = tokens, "http://127.0.0.1:8080", func() time.Time { return now }
		}
	}
	reach := func(n *node, cookie string) int {
		n.DialAll()
		return n.Get("http://127.0.0.1:8080"+topicPath("m", osloSI)+"/edit.html", "Cookie", cookie).StatusCode
	}
	n := startOn(t, store.Options{Dir: dir}, with(token, other))
	n.Publish("m", served.Small())
	n.DialAll()
	a := n.Do(http.MethodPost, "http://127.0.0.1:8080/sign-in.html", strings.NewReader("token="+token), "Content-Type", "application/x-www-form-urlencoded")
	require.Len(t, a.Cookies(), 1)
	cookie := a.Cookies()[0].Name + "=" + a.Cookies()[0].Value
	assert.Equal(t, http.StatusOK, reach(n, cookie))
	n.Stop()
	n = startOn(t, store.Options{Dir: dir}, with(token, other))
	assert.Equal(t, http.StatusOK, reach(n, cookie))
	now = now.Add(8 * 24 * time.Hour)
	assert.Equal(t, http.StatusUnauthorized, reach(n, cookie))
	now = now.Add(-8 * 24 * time.Hour)
	n.Stop()
	n = startOn(t, store.Options{Dir: dir}, with(other))
	assert.Equal(t, http.StatusUnauthorized, reach(n, cookie))
}

// Pages of those who may not edit are what they were, for all the same, and no answer sets a cookie.
func TestReadersGetNoCookie(t *testing.T) {
	t.Parallel()
	n, b := editor(t, served.Small())
	for _, path := range []string{"/topicmaps.html", "/topicmaps/m.html", "/topicmaps/m/types.html", topicPath("m", osloSI) + ".html", "/topicmaps/m/fragments.html", "/topicmaps/m", "/sign-in.html"} {
		a := n.Get(path, chromium...)
		assert.Empty(t, a.Header.Values("Set-Cookie"), path)
		if path != "/sign-in.html" {
			assert.NotContains(t, a.Header.Get("Cache-Control"), "private", path)
			assert.NotContains(t, strings.Join(a.Header.Values("Vary"), ","), "Cookie", path)
		}
		again := n.Get(path, append([]string{"Cookie", "other=1; " + b.session().Name + "=wrong"}, chromium...)...)
		assert.Equal(t, a.Bytes, again.Bytes, path)
		assert.Equal(t, a.Header.Get("ETag"), again.Header.Get("ETag"), path)
	}
	topic := topicPath("m", osloSI) + ".html"
	mine, theirs := b.do(topic, nil), n.Get(topic)
	assert.Contains(t, string(mine.Bytes), "/edit.html")
	assert.NotContains(t, string(theirs.Bytes), "/edit.html")
	assert.NotEqual(t, mine.Header.Get("ETag"), theirs.Header.Get("ETag"))
	assert.Contains(t, mine.Header.Get("Cache-Control"), "private")
	assert.Equal(t, http.StatusOK, b.do(topic, nil, "If-None-Match", theirs.Header.Get("ETag")).StatusCode)
}

// Without tokens, a browser on the machine may edit, under an address of the machine alone.
func TestEditingWithoutTokens(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("m", served.Small())
	b := n.browser()
	at := topicPath("m", osloSI) + "/edit.html"
	f, _ := b.open(at)
	assert.Nil(t, b.session())
	for why, headers := range map[string][]string{
		"another origin": {"Origin", "http://evil.example"}, "another site": {"Sec-Fetch-Site", "cross-site"}, "a proxy": {"X-Forwarded-For", "127.0.0.1"},
		"another server here": {"Origin", "http://127.0.0.1:1"}, "HTTPS": {"Origin", strings.Replace(n.BaseURL, "http:", "https:", 1)},
	} {
		assert.Equal(t, http.StatusForbidden, b.do(at, f.set("do", "preview").fields, headers...).StatusCode, why)
	}
	n.DialAll()
	rebound := "http://evil.example:" + n.BaseURL[strings.LastIndex(n.BaseURL, ":")+1:]
	assert.Equal(t, http.StatusForbidden, b.do(rebound+at, f.fields, "Origin", rebound).StatusCode, "a name that leads to this machine")
	assert.Equal(t, http.StatusForbidden, b.do(rebound+at, nil).StatusCode)
	code := f.fields.Get("code")
	assert.Equal(t, http.StatusForbidden, b.do(at, f.set("code", "").fields).StatusCode)
	b.publish(f.set("code", code, "name-0-value", "Here", "author", "me"))
	local := strings.Replace(n.BaseURL, "127.0.0.1", "localhost", 1)
	f, _ = b.open(at)
	assert.Equal(t, http.StatusOK, b.do(local+at, f.set("do", "preview").fields, "Origin", local).StatusCode, "this machine has several names")
	assert.Contains(t, textOf(t, b.do("/sign-in.html", nil)), "has no tokens")
	assert.Contains(t, textOf(t, b.do(topicPath("m", osloSI)+".html", nil)), "by me")
}

// Where only reading needs a token, a form of a closed map needs it too: it shows what the map says.
func TestFormsOfClosedMaps(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.ReadTokens = map[string][]string{"m": {readToken}} })
	n.Publish("m", served.Small("Oslo", "Hidden place"))
	at := topicPath("m", osloSI) + "/edit.html"
	b := n.browser()
	assert.Contains(t, b.do(at, nil).Header.Get("Location"), "/sign-in.html")
	a := b.do(at, url.Values{"do": {"preview"}})
	assert.Equal(t, http.StatusUnauthorized, a.StatusCode)
	assert.NotContains(t, string(a.Bytes), "Hidden")
	b.signIn(readToken)
	f, _ := b.open(at)
	b.publish(f.set("name-0-value", "Known place"))
}

// altered returns a text with another first letter.
func altered(text string) string {
	if text[0] == 'A' {
		return "B" + text[1:]
	}
	return "A" + text[1:]
}
