package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testkit/webpage"
)

// browser is a browser with the pages of a data folder.
type browser struct {
	t    *testing.T
	http *http.Client
	root string
}

// ui starts "ui" and returns the address that it prints, in two parts.
func (n *node) ui() (root, path string, p *process) {
	n.t.Helper()
	p = &process{t: n.t, more: make(chan struct{}), ended: make(chan struct{})}
	p.cmd = n.command("ui", "--no-open")
	p.cmd.Stderr, p.cmd.Stdout = p, p
	require.NoError(n.t, p.cmd.Start())
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	n.t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.ended })
	m := p.says(`(http://127\.0\.0\.1:\d+)(/open\?key=\w+)\n`)
	return m[1], m[2], p
}

// browse starts "ui" and opens the address that it prints.
func (n *node) browse() (*browser, *process) {
	n.t.Helper()
	root, path, p := n.ui()
	jar, err := cookiejar.New(nil)
	require.NoError(n.t, err)
	b := &browser{n.t, &http.Client{Jar: jar}, root}
	assert.Equal(n.t, "Node", b.page(path).Title)
	return b, p
}

func (b *browser) answer(a *http.Response, err error) (*http.Response, webpage.Page) {
	b.t.Helper()
	require.NoError(b.t, err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	require.NoError(b.t, err)
	return a, webpage.Read(b.t, a.Request.URL.String(), a.Header, body)
}

func (b *browser) page(path string) webpage.Page {
	b.t.Helper()
	a, p := b.answer(b.http.Get(b.root + path))
	require.Equal(b.t, http.StatusOK, a.StatusCode, "%s: %s", path, p.Text)
	return p
}

// press sends the form with a button.
func (b *browser) press(p webpage.Page, name, value string, fields ...string) webpage.Page {
	b.t.Helper()
	at := slices.IndexFunc(p.Forms, func(f webpage.Form) bool {
		for i := 0; i < len(fields); i += 2 {
			if f.Fields.Get(fields[i]) != fields[i+1] {
				return false
			}
		}
		return slices.Contains(f.Fields[name], value)
	})
	require.GreaterOrEqual(b.t, at, 0, "no such form: %v", p.Forms)
	values := url.Values{}
	for k, v := range p.Forms[at].Fields {
		values[k] = v
	}
	values.Set(name, value)
	a, page := b.answer(b.http.PostForm(p.Forms[at].Action, values))
	require.Equal(b.t, http.StatusOK, a.StatusCode, page.Text)
	return page
}

// The pages work on a folder without another process, and on one that a daemon holds.
func TestUI(t *testing.T) {
	t.Parallel()
	o, n := newOrigin(t, version("1"), "egov", "libraries"), newNode(t)
	n.run("subscribe", o.collection("egov"))
	n.run("subscribe", o.collection("libraries"))
	n.run("sync")
	n.run("edit", "add", "name", "http://psi.example.org/a", "A eins", "--scope", "http://www.topicmaps.org/xtm/1.0/language.xtm#de", "--sp", "http://node.example.org/")
	b, p := n.browse()
	for _, held := range []bool{false, true} {
		var daemon *process
		if held {
			daemon = n.start(nil, "watch", "--interval", "1h")
			daemon.says("msg=watching")
		}
		home := b.page("/")
		assert.Contains(t, home.Links, b.root+"/node/egov.html")
		assert.Contains(t, b.page("/node/egov.html").Text, "the same digest")
		assert.Contains(t, b.page("/node/egov.html").Text, "None is among what was done lately.", "the first load is no repair")
		assert.Contains(t, b.page("/node/egov.html").Text, "Lag: how old the copy was at most")

		topic := b.page("/topic.html?si=http://psi.example.org/a")
		assert.Equal(t, "A 1", topic.Title)
		assert.Contains(t, topic.Text, "A 1 said by egov, libraries")
		inGerman, err := http.NewRequest(http.MethodGet, b.root+"/topic.html?si=http://psi.example.org/a", nil)
		require.NoError(t, err)
		inGerman.Header.Set("Accept-Language", "de-CH, en;q=0.5, *;q=0.1")
		_, called := b.answer(b.http.Do(inGerman))
		assert.Equal(t, "A eins", called.Title)
		topic = b.press(topic, "source", "egov", "kind", "name")
		assert.Contains(t, topic.Text, "Rejected: it no longer shows, unless another source says so too.")
		assert.Contains(t, topic.Text, "A 1 said by libraries")
		assert.Contains(t, n.run("edit", "rejections"), `egov: `)
		topic = b.press(topic, "source", "egov", "do", "unreject")
		assert.Contains(t, topic.Text, "It shows again")
		assert.Contains(t, topic.Text, "A 1 said by egov, libraries")

		a, page := b.answer(b.http.Get(b.root + "/topic.html?si=http://psi.example.org/nobody"))
		assert.Equal(t, http.StatusNotFound, a.StatusCode)
		assert.Contains(t, page.Text, "No source says anything of http://psi.example.org/nobody")
		a, _ = b.answer(b.http.Get(b.root + "/node/nope.html"))
		assert.Equal(t, http.StatusNotFound, a.StatusCode)
		if held {
			daemon.signal(syscall.SIGTERM)
			assert.Zero(t, daemon.ends())
		}
	}
	p.signal(syscall.SIGINT)
	assert.Zero(t, p.ends())
	n.run("status")
}

// What is in quarantine is tried again and given up by buttons.
func TestUIOfQuarantine(t *testing.T) {
	t.Parallel()
	o, n := newOrigin(t, version("1"), "egov"), newNode(t)
	n.run("subscribe", o.collection("egov"))
	n.run("sync")
	o.setFault(http.StatusNotFound, "/fragments/")
	require.NoError(t, o.put("egov", version("2")))
	_ = n.command("sync").Run() // code 3
	b, _ := n.browse()
	page := b.page("/node/egov.html")
	assert.Contains(t, page.Text, "could not be applied")
	page = b.press(page, "do", "retry", "all", "yes")
	assert.Contains(t, page.Text, "some changes still cannot be applied")
	page = b.press(page, "do", "forget", "topic", "http://psi.example.org/a")
	assert.Contains(t, page.Text, "Given up")
	o.setFault(0, "\x00")
	page = b.press(page, "do", "retry", "all", "yes")
	assert.Contains(t, page.Text, "nothing is in quarantine any more")
	assert.Contains(t, n.run("topic", "http://psi.example.org/b"), "B 2")
}

// Only the person who has started the program has access, by the address that it prints.
func TestUIIsForOnePerson(t *testing.T) {
	t.Parallel()
	o, n := newOrigin(t, version("1"), "egov"), newNode(t)
	n.run("subscribe", o.collection("egov"))
	b, _ := n.browse()
	at, err := url.Parse(b.root)
	require.NoError(t, err)
	cookies := b.http.Jar.Cookies(at)
	require.Len(t, cookies, 1)
	send := func(method, path, host, body string, cookie bool, headers ...string) (int, http.Header) {
		r, err := http.NewRequest(method, b.root+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		if cookie {
			r.AddCookie(cookies[0])
		}
		if host != "" {
			r.Host = host
		}
		a, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		a.Body.Close()
		return a.StatusCode, a.Header
	}
	form := b.page("/node.html").Forms[0]
	assert.Equal(t, http.MethodGet, form.Method)
	for _, c := range []struct {
		what, host string
		cookie     bool
		headers    []string
		want       int
	}{
		{"the person", "", true, nil, http.StatusOK},
		{"by another name of this machine", "localhost:" + at.Port(), true, nil, http.StatusOK},
		{"another user of the machine", "", false, nil, http.StatusForbidden},
		{"a wrong cookie", "", false, []string{"Cookie", cookies[0].Name + "=wrong"}, http.StatusForbidden},
		{"a name that was made to lead here", "evil.example.org:" + at.Port(), true, nil, http.StatusForbidden},
		{"the same with no port", "evil.example.org", true, nil, http.StatusForbidden},
		{"another port", "127.0.0.1:1", true, nil, http.StatusForbidden},
	} {
		code, header := send("GET", "/node.html", c.host, "", c.cookie, c.headers...)
		assert.Equal(t, c.want, code, c.what)
		assert.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'", c.what)
		code, _ = send("GET", "/topic.html?si=http://psi.example.org/a", c.host, "", c.cookie, c.headers...)
		assert.Equal(t, c.want == http.StatusForbidden, code == http.StatusForbidden, c.what)
	}
	const body = "do=retry&all=yes&code="
	for what, c := range map[string]struct {
		body    string
		headers []string
	}{
		"no code":            {"do=retry&all=yes", nil},
		"a wrong code":       {body + "AAAA", nil},
		"a page of another":  {body, []string{"Origin", "http://evil.example.org"}},
		"another port":       {body, []string{"Origin", "http://127.0.0.1:1"}},
		"an opaque origin":   {body, []string{"Origin", "null"}},
		"a cross-site form":  {body, []string{"Sec-Fetch-Site", "cross-site"}},
		"a same-site form":   {body, []string{"Sec-Fetch-Site", "same-site"}},
		"a code in the path": {"do=retry&all=yes", []string{"X-Csrf", "x"}},
	} {
		for _, path := range []string{"/node/egov.html", "/topic.html"} {
			code, _ := send("POST", path, "", c.body, true, c.headers...)
			assert.Equal(t, http.StatusForbidden, code, what)
		}
	}
	code, header := send("GET", "/open?key=wrong", "", "", false)
	assert.Equal(t, http.StatusForbidden, code)
	assert.Empty(t, header.Values("Set-Cookie"))
	assert.True(t, regexp.MustCompile(`style-\w+\.css$`).MatchString(b.page("/").Links[0]))

	out, err := n.command("ui", "--no-open", "--listen", "0.0.0.0:0").CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 2, exit.ExitCode())
	assert.Contains(t, string(out), "is no loopback address")
	out, err = newNode(t).command("ui", "--no-open").CombinedOutput()
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
	assert.Contains(t, string(out), "no data folder at")
}
