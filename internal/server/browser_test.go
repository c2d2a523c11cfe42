package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// browser does what a browser does with forms: it keeps cookies, says where a request comes from, and goes where it is
// led.
type browser struct {
	n   *node
	jar http.CookieJar
}

func (n *node) browser() *browser {
	jar, err := cookiejar.New(nil)
	require.NoError(n.T, err)
	return &browser{n, jar}
}

// do sends a request; form is nil for GET. More headers take the place of those that a browser sends.
func (b *browser) do(path string, form url.Values, headers ...string) served.Answer {
	b.n.T.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.n.URL(path)
	}
	method, body := http.MethodGet, ""
	h := map[string]string{"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "same-origin"}
	if form != nil {
		method, body = http.MethodPost, form.Encode()
		h["Content-Type"], h["Origin"] = "application/x-www-form-urlencoded", b.n.BaseURL
	}
	u, err := url.Parse(path)
	require.NoError(b.n.T, err)
	var cookies []string
	for _, c := range b.jar.Cookies(u) {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	if len(cookies) > 0 {
		h["Cookie"] = strings.Join(cookies, "; ")
	}
	for i := 0; i < len(headers); i += 2 {
		if h[headers[i]] = headers[i+1]; headers[i+1] == "" {
			delete(h, headers[i])
		}
	}
	var list []string
	for name, value := range h {
		list = append(list, name, value)
	}
	a := b.n.Do(method, path, strings.NewReader(body), list...)
	b.jar.SetCookies(u, a.Cookies())
	return a
}

// open goes to an address and where that leads, and returns the form there.
func (b *browser) open(path string) (form, served.Answer) {
	b.n.T.Helper()
	a := b.do(path, nil)
	for a.StatusCode == http.StatusSeeOther {
		path = a.Header.Get("Location")
		a = b.do(path, nil)
	}
	require.Equal(b.n.T, http.StatusOK, a.StatusCode, "%s: %s", path, a.Bytes)
	return formOf(b.n.T, path, a), a
}

// form is the first form of a page that is sent by POST, with what stands in its fields.
type form struct {
	at     string
	fields url.Values
}

func formOf(t testing.TB, at string, a served.Answer) form {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(a.Bytes))
	require.NoError(t, err)
	f := form{at, url.Values{}}
	for node := range root.Descendants() {
		if node.Type != html.ElementNode || node.Data != "form" || attr(node, "method") != "post" {
			continue
		}
		for field := range node.Descendants() {
			name := attr(field, "name")
			switch {
			case name == "" || field.Data == "button":
			case field.Data == "textarea":
				text := ""
				if field.FirstChild != nil {
					text = field.FirstChild.Data
				}
				f.fields.Set(name, strings.ReplaceAll(text, "\n", "\r\n")) // as browsers send it
			case attr(field, "type") == "checkbox":
				if hasAttr(field, "checked") {
					f.fields.Set(name, "on")
				}
			default:
				f.fields.Set(name, strings.ReplaceAll(attr(field, "value"), "\n", "\r\n"))
			}
		}
		break
	}
	return f
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// set fills in fields: pairs of names and values.
func (f form) set(pairs ...string) form {
	for i := 0; i < len(pairs); i += 2 {
		f.fields.Set(pairs[i], pairs[i+1])
	}
	return f
}

// row returns the beginning of the names of the fields of a row: the first of the kind that has a value in a field, ""
// for an empty one.
func (f form) row(t testing.TB, kind, field, value string) string {
	t.Helper()
	for i := range 400 {
		at := kind + "-" + fmt.Sprint(i) + "-"
		if !f.fields.Has(at + "is") {
			break
		}
		if f.fields.Get(at+field) == value && (value != "" || f.fields.Get(at+"is") == "") {
			return at
		}
	}
	require.Fail(t, "no such row", "%s with %s %q: %v", kind, field, value, f.fields)
	return ""
}

func (b *browser) send(f form, do string) served.Answer {
	b.n.T.Helper()
	return b.do(f.at, f.set("do", do).fields)
}

// publish sends a form, and what it leads to, and returns the preview.
func (b *browser) publish(f form) served.Answer {
	b.n.T.Helper()
	a := b.send(f, "preview")
	require.Equal(b.n.T, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	done := b.send(formOf(b.n.T, f.at, a), "publish")
	require.Equal(b.n.T, http.StatusSeeOther, done.StatusCode, "%s", done.Bytes)
	return a
}

// signIn signs in with a token.
func (b *browser) signIn(token string) {
	b.n.T.Helper()
	f, _ := b.open("/sign-in.html")
	a := b.do(f.at, f.set("token", token).fields)
	require.Equal(b.n.T, http.StatusSeeOther, a.StatusCode, "%s", a.Bytes)
}

// topicPath returns the address of a topic, without an ending.
func topicPath(collection, si string) string {
	return "/topicmaps/" + collection + "/topics/" + fragment.Key(fragment.Ref(si))
}

// textOf returns the text of a page.
func textOf(t testing.TB, a served.Answer) string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(a.Bytes))
	require.NoError(t, err)
	var text strings.Builder
	for node := range root.Descendants() {
		if node.Type == html.TextNode {
			text.WriteString(node.Data)
		}
	}
	return text.String()
}
