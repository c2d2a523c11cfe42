package editing_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// A person reads, signs in and edits by whatever name the server is reached: links, forms and what leads on stay with the
// host that was asked. A tunnel, a proxy that cuts a prefix off, and another name of the machine need nothing more.
func TestPagesByAnotherName(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"https://maps.example.org/x", "http://maps.example.org", ""} {
		n := served.Start(t, func(c *server.Config) {
			c.Tokens = []string{served.Token}
			if base != "" {
				c.BaseURL = base
			}
		})
		n.Publish("m", served.Small())
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		browser := &http.Client{Jar: jar, Transport: n.HTTP.Transport}
		host := "http://localhost:" + n.Address[strings.LastIndex(n.Address, ":")+1:]
		ask := func(address string, form url.Values) (string, string) {
			t.Helper()
			method := map[bool]string{true: http.MethodPost, false: http.MethodGet}[form != nil]
			req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
			require.NoError(t, err)
			req.Header.Set("Accept", "text/html,*/*;q=0.8")
			req.Header.Set("Sec-Fetch-Mode", "navigate")
			req.Header.Set("Sec-Fetch-Site", "same-origin")
			if form != nil {
				req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				req.Header.Set("Origin", host)
			}
			res, err := browser.Do(req)
			require.NoError(t, err)
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", address, body)
			assert.True(t, strings.HasPrefix(res.Request.URL.String(), host+"/"), "%s led to %s", address, res.Request.URL)
			return res.Request.URL.String(), string(body)
		}
		seen, todo := map[string]bool{}, []string{host + "/"}
		for len(todo) > 0 && len(seen) < 60 {
			address := todo[0]
			if todo = todo[1:]; seen[address] {
				continue
			}
			seen[address] = true
			at, page := ask(address, nil)
			if !strings.Contains(page, "<html") {
				continue
			}
			for _, link := range regexp.MustCompile(` (?:href|action)="([^"#]+)"`).FindAllStringSubmatch(page, -1) {
				to, err := url.Parse(html.UnescapeString(link[1]))
				require.NoError(t, err)
				from, err := url.Parse(at)
				require.NoError(t, err)
				whole := from.ResolveReference(to)
				if whole.Host == "psi.example.org" || strings.HasPrefix(whole.Host, "psi.") { // of subjects
					continue
				}
				assert.True(t, strings.HasPrefix(whole.String(), host+"/"), "%s leads to %s", at, whole)
				todo = append(todo, whole.String())
			}
		}
		assert.Greater(t, len(seen), 40, base)

		_, page := ask(host+"/sign-in.html", nil)
		code := regexp.MustCompile(`name="code" value="([^"]*)"`).FindStringSubmatch(page)
		fields := url.Values{"token": {served.Token}}
		if code != nil {
			fields.Set("code", code[1])
		}
		if strings.HasPrefix(base, "https:") {
			continue // browsers keep the cookie by HTTPS alone
		}
		_, page = ask(host+"/sign-in.html", fields)
		assert.Contains(t, page, "You are signed in")
		_, page = ask(host+served.TopicPath("m", served.Oslo)+"/edit.html", nil)
		f := served.FormOf(t, "", served.Answer{Bytes: []byte(page)})
		f.Set(f.Row(t, "name", "value", "Oslo")+"value", "Christiania", "do", "publish")
		at, page := ask(host+served.TopicPath("m", served.Oslo)+"/edit.html", f.Fields)
		assert.True(t, strings.HasSuffix(at, served.TopicPath("m", served.Oslo)+".html"), at)
		assert.Contains(t, page, "Christiania")
	}
}
