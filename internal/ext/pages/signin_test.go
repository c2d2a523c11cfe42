package pages_test

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

// The cookie is for the server alone, and has no token in it.
func TestSessionCookie(t *testing.T) {
	t.Parallel()
	n := served.Guarded(t)
	b := n.Browser()
	f, a := b.Open("/sign-in.html")
	assert.Empty(t, a.Cookies(), "no person has given a token")
	a = b.Do(f.At, f.Set("token", " "+served.Token+" ", "to", "/topicmaps/secret.html").Fields)
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
	assert.NotContains(t, c.Value, served.Token)
	assert.Contains(t, a.Header.Get("Cache-Control"), "no-store")
	a = b.Do("/topicmaps/secret.html", nil)
	assert.Equal(t, http.StatusOK, a.StatusCode)
	assert.Contains(t, a.Header.Get("Cache-Control"), "private")
	assert.Contains(t, strings.Join(a.Header.Values("Vary"), ","), "Cookie")
	assert.NotContains(t, n.Logs.String(), served.Token)

	secure := served.Start(t, func(c *server.Config) { c.Tokens, c.BaseURL = []string{served.Token}, "https://maps.example.org" })
	secure.DialAll()
	a = secure.Do(http.MethodPost, "http://maps.example.org/sign-in.html", strings.NewReader("token="+served.Token),
		"Content-Type", "application/x-www-form-urlencoded", "Origin", "https://maps.example.org")
	require.Len(t, a.Cookies(), 1, "%s", a.Bytes)
	c = a.Cookies()[0]
	assert.True(t, c.Secure)
	assert.True(t, strings.HasPrefix(c.Name, "__Host-"))
	assert.Equal(t, "https://maps.example.org/topicmaps.html", a.Header.Get("Location"))

	// Below a path, other servers on the host do not get it.
	below := served.Start(t, func(c *server.Config) {
		c.Tokens, c.BaseURL = []string{served.Token}, "https://maps.example.org/maps"
	})
	below.DialAll()
	a = below.Do(http.MethodPost, "http://maps.example.org/sign-in.html", strings.NewReader("token="+served.Token),
		"Content-Type", "application/x-www-form-urlencoded", "Origin", "https://maps.example.org")
	require.Len(t, a.Cookies(), 1, "%s", a.Bytes)
	assert.Equal(t, "/maps/", a.Cookies()[0].Path)
	assert.True(t, strings.HasPrefix(a.Cookies()[0].Name, "__Secure-"))
}

// The answer to a wrong token reports the error, slowly, and begins no session.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	n := served.Guarded(t)
	b := n.Browser()
	f, _ := b.Open("/sign-in.html")
	for _, wrong := range []string{"", "wrong", served.Token[:16], served.Token + "x", "Bearer " + served.Token} {
		begun := time.Now()
		a := b.Do(f.At, f.Set("token", wrong).Fields)
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode)
		assert.GreaterOrEqual(t, time.Since(begun), 900*time.Millisecond)
		assert.Empty(t, a.Cookies())
		assert.Contains(t, served.TextOf(t, a), "no token of this server")
	}
	assert.Contains(t, n.Logs.String(), "path=/sign-in.html status=401")
	assert.NotContains(t, n.Logs.String(), served.Token[:16])
}

// A person who opens a page of a map that is not for all is led to the page to sign in, and back; to nowhere else.
func TestSigningInLeadsBack(t *testing.T) {
	t.Parallel()
	n := served.Guarded(t)
	var b *served.Browser
	for _, path := range []string{"/topicmaps/secret.html", "/topicmaps/secret/fragments.html?before=9", "/topicmaps/secret", served.TopicPath("open", served.Oslo) + "/edit.html"} {
		b = n.Browser()
		a := b.Do(path, nil)
		require.Equal(t, http.StatusSeeOther, a.StatusCode, path)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		f, _ := b.Open(a.Header.Get("Location"))
		a = b.Do(f.At, f.Set("token", served.Token).Fields)
		assert.Equal(t, n.URL(path), a.Header.Get("Location"))
		b.Open(path)
	}
	assert.Equal(t, http.StatusUnauthorized, n.Get("/topicmaps/secret.html").StatusCode, "programs get the error")
	for _, to := range []string{"//evil.example", "https://evil.example/", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)", "evil.example", "", "/x\r\nSet-Cookie: a=b", "http:evil", "/" + strings.Repeat("x", 9000)} {
		b = n.Browser()
		a := b.Do("/sign-in.html", url.Values{"token": {served.Token}, "to": {to}})
		at, err := url.Parse(a.Header.Get("Location"))
		require.NoError(t, err)
		assert.Equal(t, strings.TrimPrefix(n.BaseURL, "http://"), at.Host, to)
		assert.Equal(t, "http", at.Scheme)
	}
	// A reader's token opens its map, and no form.
	b = n.Browser()
	b.SignIn(served.ReadToken)
	assert.Equal(t, http.StatusOK, b.Do("/topicmaps/secret.html", nil).StatusCode)
	assert.Contains(t, served.TextOf(t, b.Do("/topicmaps.html", nil)), "secret")
	for _, path := range []string{"/topicmaps/other.html", served.TopicPath("secret", served.Oslo) + "/edit.html"} {
		f, a := b.Open(path)
		assert.Contains(t, f.At, "/sign-in.html", path)
		assert.Contains(t, served.TextOf(t, a), "You are signed in")
	}
	assert.NotContains(t, string(b.Do(served.TopicPath("secret", served.Oslo)+pages.Ending, nil).Bytes), "/edit.html")
}

// The cookie gives no right to write by the addresses of programs, and a request that is not of a form of this
// session does nothing.
func TestForgedForms(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	before := n.State("m")
	cookie := b.Session().Name + "=" + b.Session().Value
	for _, a := range []served.Answer{
		n.Put("m", served.Small("Oslo", "X"), "Cookie", cookie), n.Delete("m", served.Oslo, "Cookie", cookie),
		n.Do(http.MethodPost, "/topicmaps/m/topics", strings.NewReader(string(served.Small("Oslo", "X"))), "Cookie", cookie),
		n.Do(http.MethodPost, "/topicmaps/m/snapshots", nil, "Cookie", cookie), n.Do(http.MethodPost, "/topicmaps/m/gc", nil, "Cookie", cookie),
		n.Do(http.MethodDelete, "/topicmaps/m", nil, "Cookie", cookie), n.Do(http.MethodPut, "/topicmaps/new", strings.NewReader("{}"), "Cookie", cookie, "Content-Type", "application/json"),
	} {
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode, "%s %s", a.Request.Method, a.Request.URL)
	}
	at := served.TopicPath("m", served.Oslo) + "/edit.html"
	f, _ := b.Open(at)
	f = served.FormOf(t, f.At, b.Send(f.Set("name-0-value", "Forged"), "preview")).Set("do", "publish")
	code := f.Fields.Get("code")
	stranger := n.Browser()
	stranger.SignIn(served.Token) // another session, of the same token
	other, _ := stranger.Open(at)
	for why, send := range map[string]func() served.Answer{
		"no code":                 func() served.Answer { f.Fields.Del("code"); return b.Do(at, f.Fields) },
		"a wrong one":             func() served.Answer { return b.Do(at, f.Set("code", altered(code)).Fields) },
		"of another session":      func() served.Answer { return b.Do(at, f.Set("code", other.Fields.Get("code")).Fields) },
		"another origin":          func() served.Answer { return b.Do(at, f.Set("code", code).Fields, "Origin", "http://evil.example") },
		"no origin that is known": func() served.Answer { return b.Do(at, f.Set("code", code).Fields, "Origin", "null") },
		"another site":            func() served.Answer { return b.Do(at, f.Set("code", code).Fields, "Sec-Fetch-Site", "cross-site") },
		"another host of it":      func() served.Answer { return b.Do(at, f.Set("code", code).Fields, "Sec-Fetch-Site", "same-site") },
	} {
		a := send()
		assert.Equal(t, http.StatusForbidden, a.StatusCode, why)
	}
	for why, value := range map[string]string{"none": "", "cut": b.Session().Value[:20], "altered": altered(b.Session().Value), "no cookie of ours": "x"} {
		a := b.Do(at, f.Set("code", code).Fields, "Cookie", b.Session().Name+"="+value)
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode, why)
	}
	assert.Equal(t, http.StatusForbidden, b.Do("/sign-in.html", url.Values{"token": {served.Token}}, "Sec-Fetch-Site", "cross-site").StatusCode)
	assert.Equal(t, http.StatusForbidden, b.Do("/sign-in.html", url.Values{"out": {"1"}}).StatusCode, "no other site signs people out")
	assert.Equal(t, before, n.State("m"))
	assert.Equal(t, http.StatusSeeOther, b.Do(at, f.Set("code", code).Fields, "Origin", "", "Sec-Fetch-Site", "").StatusCode, "a browser without both")

	f, _ = b.Open("/sign-in.html")
	out, a := formOfAll(t, b), served.Answer{}
	a = b.Do("/sign-in.html", out)
	require.Equal(t, http.StatusSeeOther, a.StatusCode, "%s", a.Bytes)
	assert.Nil(t, b.Session())
	assert.Equal(t, http.StatusSeeOther, b.Do(at, nil).StatusCode)
}

// formOfAll returns the form that signs out.
func formOfAll(t *testing.T, b *served.Browser) url.Values {
	a := b.Do("/sign-in.html", nil)
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
	reach := func(n *served.Node, cookie string) int {
		n.DialAll()
		return n.Get("http://127.0.0.1:8080"+served.TopicPath("m", served.Oslo)+"/edit.html", "Cookie", cookie).StatusCode
	}
	n := served.StartOn(t, store.Options{Dir: dir}, with(served.Token, served.OtherToken))
	n.Publish("m", served.Small())
	n.DialAll()
	a := n.Do(http.MethodPost, "http://127.0.0.1:8080/sign-in.html", strings.NewReader("token="+served.Token), "Content-Type", "application/x-www-form-urlencoded")
	require.Len(t, a.Cookies(), 1)
	cookie := a.Cookies()[0].Name + "=" + a.Cookies()[0].Value
	assert.Equal(t, http.StatusOK, reach(n, cookie))
	n.Stop()
	n = served.StartOn(t, store.Options{Dir: dir}, with(served.Token, served.OtherToken))
	assert.Equal(t, http.StatusOK, reach(n, cookie))
	now = now.Add(8 * 24 * time.Hour)
	assert.Equal(t, http.StatusUnauthorized, reach(n, cookie))
	now = now.Add(-8 * 24 * time.Hour)
	n.Stop()
	n = served.StartOn(t, store.Options{Dir: dir}, with(served.OtherToken))
	assert.Equal(t, http.StatusUnauthorized, reach(n, cookie))
}

// Pages for readers without the right to edit stay as before, for all the same, and no answer sets a cookie.
func TestReadersGetNoCookie(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	for _, path := range []string{"/topicmaps.html", "/topicmaps/m.html", "/topicmaps/m/types.html", served.TopicPath("m", served.Oslo) + ".html", "/topicmaps/m/fragments.html", "/topicmaps/m", "/sign-in.html"} {
		a := n.Get(path, chromium...)
		assert.Empty(t, a.Header.Values("Set-Cookie"), path)
		if path != "/sign-in.html" {
			assert.NotContains(t, a.Header.Get("Cache-Control"), "private", path)
			assert.NotContains(t, strings.Join(a.Header.Values("Vary"), ","), "Cookie", path)
		}
		again := n.Get(path, append([]string{"Cookie", "other=1; " + b.Session().Name + "=wrong"}, chromium...)...)
		assert.Equal(t, a.Bytes, again.Bytes, path)
		assert.Equal(t, a.Header.Get("ETag"), again.Header.Get("ETag"), path)
	}
	topic := served.TopicPath("m", served.Oslo) + ".html"
	mine, theirs := b.Do(topic, nil), n.Get(topic)
	assert.Contains(t, string(mine.Bytes), "/edit.html")
	assert.NotContains(t, string(theirs.Bytes), "/edit.html")
	assert.NotEqual(t, mine.Header.Get("ETag"), theirs.Header.Get("ETag"))
	assert.Contains(t, mine.Header.Get("Cache-Control"), "private")
	assert.Equal(t, http.StatusOK, b.Do(topic, nil, "If-None-Match", theirs.Header.Get("ETag")).StatusCode)
}

// Without tokens, a browser on the machine may edit, under an address of the machine alone.
func TestEditingWithoutTokens(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	b := n.Browser()
	at := served.TopicPath("m", served.Oslo) + "/edit.html"
	f, _ := b.Open(at)
	assert.Nil(t, b.Session())
	for why, headers := range map[string][]string{
		"another origin": {"Origin", "http://evil.example"}, "another site": {"Sec-Fetch-Site", "cross-site"}, "a proxy": {"X-Forwarded-For", "127.0.0.1"},
		"another server here": {"Origin", "http://127.0.0.1:1"}, "HTTPS": {"Origin", strings.Replace(n.BaseURL, "http:", "https:", 1)},
	} {
		assert.Equal(t, http.StatusForbidden, b.Do(at, f.Set("do", "preview").Fields, headers...).StatusCode, why)
	}
	n.DialAll()
	rebound := "http://evil.example:" + n.BaseURL[strings.LastIndex(n.BaseURL, ":")+1:]
	assert.Equal(t, http.StatusForbidden, b.Do(rebound+at, f.Fields, "Origin", rebound).StatusCode, "a name that leads to this machine")
	assert.Equal(t, http.StatusForbidden, b.Do(rebound+at, nil).StatusCode)
	code := f.Fields.Get("code")
	assert.Equal(t, http.StatusForbidden, b.Do(at, f.Set("code", "").Fields).StatusCode)
	b.Publish(f.Set("code", code, "name-0-value", "Here", "author", "me"))
	local := strings.Replace(n.BaseURL, "127.0.0.1", "localhost", 1)
	f, _ = b.Open(at)
	assert.Equal(t, http.StatusOK, b.Do(local+at, f.Set("do", "preview").Fields, "Origin", local).StatusCode, "this machine has several names")
	assert.Contains(t, served.TextOf(t, b.Do("/sign-in.html", nil)), "has no tokens")
	assert.Contains(t, served.TextOf(t, b.Do(served.TopicPath("m", served.Oslo)+".html", nil)), "by me")
}

// A form of a closed map needs a token, also if only reading needs one: it shows the statements of the map.
func TestFormsOfClosedMaps(t *testing.T) {
	t.Parallel()
	n := served.Start(t, func(c *server.Config) { c.ReadTokens = map[string][]string{"m": {served.ReadToken}} })
	n.Publish("m", served.Small("Oslo", "Hidden place"))
	at := served.TopicPath("m", served.Oslo) + "/edit.html"
	b := n.Browser()
	assert.Contains(t, b.Do(at, nil).Header.Get("Location"), "/sign-in.html")
	a := b.Do(at, url.Values{"do": {"preview"}})
	assert.Equal(t, http.StatusUnauthorized, a.StatusCode)
	assert.NotContains(t, string(a.Bytes), "Hidden")
	b.SignIn(served.ReadToken)
	f, _ := b.Open(at)
	b.Publish(f.Set("name-0-value", "Known place"))
}

// altered returns a text with another first letter.
func altered(text string) string {
	if text[0] == 'A' {
		return "B" + text[1:]
	}
	return "A" + text[1:]
}
