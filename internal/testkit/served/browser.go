package served

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/webpage"
)

const (
	Token      = "correct-horse-battery"
	OtherToken = "another-long-token-of-this-server"
)

const (
	ReadToken   = "reader-of-the-secret-map"
	OtherReader = "reader-of-the-other-map-only"
)

// Guarded starts a server with an open map and two that only some may read.
func Guarded(t testing.TB, configure ...func(*server.Config)) *Node {
	n := Start(t, append(configure, func(c *server.Config) {
		c.Tokens = []string{Token}
		c.ReadTokens = map[string][]string{"secret": {"first-reader-of-the-secret", ReadToken}, "other": {OtherReader}}
	})...)
	n.Publish("open", Small())
	n.Publish("secret", Small("Oslo", "Hidden place"))
	n.Publish("other", Small())
	return n
}

// Browser handles forms as a browser does: it keeps cookies, sends the origin of a request, and follows redirects.
type Browser struct {
	Node *Node
	Jar  http.CookieJar
}

func (n *Node) Browser() *Browser {
	jar, err := cookiejar.New(nil)
	require.NoError(n.T, err)
	return &Browser{n, jar}
}

// Do sends a request; form is nil for GET. headers replace those that a browser sends.
func (b *Browser) Do(path string, form url.Values, headers ...string) Answer {
	b.Node.T.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.Node.URL(path)
	}
	method, body := http.MethodGet, ""
	h := map[string]string{"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "same-origin"}
	if form != nil {
		method, body = http.MethodPost, form.Encode()
		h["Content-Type"], h["Origin"] = "application/x-www-form-urlencoded", b.Node.BaseURL
	}
	u, err := url.Parse(path)
	require.NoError(b.Node.T, err)
	var cookies []string
	for _, c := range b.Jar.Cookies(u) {
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
	a := b.Node.Do(method, path, strings.NewReader(body), list...)
	b.Jar.SetCookies(u, a.Cookies())
	return a
}

// Open follows an address and its redirects, and returns the form there.
func (b *Browser) Open(path string) (Form, Answer) {
	b.Node.T.Helper()
	a := b.Do(path, nil)
	for a.StatusCode == http.StatusSeeOther {
		path = a.Header.Get("Location")
		a = b.Do(path, nil)
	}
	require.Equal(b.Node.T, http.StatusOK, a.StatusCode, "%s: %s", path, a.Bytes)
	return FormOf(b.Node.T, path, a), a
}

// Form is the first form of a page with the method POST, with the values of its fields.
type Form struct {
	At     string
	Fields url.Values
}

func FormOf(t testing.TB, at string, a Answer) Form {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(a.Bytes))
	require.NoError(t, err)
	f := Form{at, url.Values{}}
	for node := range root.Descendants() {
		if node.Type != html.ElementNode || node.Data != "form" || Attr(node, "method") != "post" {
			continue
		}
		for field := range node.Descendants() {
			name := Attr(field, "name")
			switch {
			case name == "" || field.Data == "button":
			case field.Data == "textarea":
				text := ""
				if field.FirstChild != nil {
					text = field.FirstChild.Data
				}
				f.Fields.Set(name, strings.ReplaceAll(text, "\n", "\r\n")) // as browsers send it
			case Attr(field, "type") == "checkbox":
				if hasAttr(field, "checked") {
					f.Fields.Set(name, "on")
				}
			default:
				f.Fields.Set(name, strings.ReplaceAll(Attr(field, "value"), "\n", "\r\n"))
			}
		}
		break
	}
	return f
}

func Attr(n *html.Node, name string) string {
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

// Set fills in fields: pairs of names and values.
func (f Form) Set(pairs ...string) Form {
	for i := 0; i < len(pairs); i += 2 {
		f.Fields.Set(pairs[i], pairs[i+1])
	}
	return f
}

// Row returns the beginning of the names of the fields of a row: the first of the kind that has a value in a field, ""
// for an empty one.
func (f Form) Row(t testing.TB, kind, field, value string) string {
	t.Helper()
	for i := range 400 {
		at := kind + "-" + fmt.Sprint(i) + "-"
		if !f.Fields.Has(at + "is") {
			break
		}
		if f.Fields.Get(at+field) == value && (value != "" || f.Fields.Get(at+"is") == "") {
			return at
		}
	}
	require.Fail(t, "no such row", "%s with %s %q: %v", kind, field, value, f.Fields)
	return ""
}

func (b *Browser) Send(f Form, do string) Answer {
	b.Node.T.Helper()
	return b.Do(f.At, f.Set("do", do).Fields)
}

// Publish sends a form, and the form of the preview, and returns the preview.
func (b *Browser) Publish(f Form) Answer {
	b.Node.T.Helper()
	a := b.Send(f, "preview")
	require.Equal(b.Node.T, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	done := b.Send(FormOf(b.Node.T, f.At, a), "publish")
	require.Equal(b.Node.T, http.StatusSeeOther, done.StatusCode, "%s", done.Bytes)
	return a
}

// SignIn signs in with a token.
func (b *Browser) SignIn(token string) {
	b.Node.T.Helper()
	f, _ := b.Open("/sign-in.html")
	a := b.Do(f.At, f.Set("token", token).Fields)
	require.Equal(b.Node.T, http.StatusSeeOther, a.StatusCode, "%s", a.Bytes)
}

// TopicPath returns the address of a topic, without an ending.
func TopicPath(collection, si string) string {
	return "/topicmaps/" + collection + "/topics/" + fragment.Key(fragment.Ref(si))
}

// TextOf returns the text of a page.
func TextOf(t testing.TB, a Answer) string {
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

const Oslo = "http://psi.example.org/oslo"

// Editor starts a server with a map, and a browser with a signed-in editor of it.
func Editor(t *testing.T, doc []byte, configure ...func(*server.Config)) (*Node, *Browser) {
	n := Start(t, append(configure, func(c *server.Config) {
		c.Tokens = []string{Token, OtherToken}
		c.TokenNames = map[string]string{Token: "Ada"}
	})...)
	n.Publish("m", doc)
	b := n.Browser()
	b.SignIn(Token)
	return n, b
}

// PublishVersions publishes some versions of a map, an hour apart, and returns the path of one of its topics, without
// the suffix of a view.
func PublishVersions(n *Node, c *Clock, count int) (key string, times []time.Time) {
	for i := range count {
		doc := Cities(1, fmt.Sprint("version ", i))
		if i == 0 {
			n.Publish("m", doc)
		} else {
			n.MustPut("m", doc)
		}
		times = append(times, c.Now())
		c.Advance(time.Hour)
	}
	return fragment.Key(PSI + "city-0"), times
}

// Page is a page that is as all pages are.
type Page struct {
	Title string
	Links []string // of all elements, absolute
	Text  string
}

func (n *Node) Page(path string) Page {
	n.T.Helper()
	a := n.MustGet(path)
	if !strings.HasPrefix(path, "http") {
		path = n.URL(path)
	}
	p := webpage.Read(n.T, path, a.Header, a.Bytes)
	return Page{p.Title, p.Links, p.Text}
}

// TopicSIs returns those of all topics of a collection.
func (n *Node) TopicSIs(name string) (all []fragment.Ref) {
	n.T.Helper()
	require.NoError(n.T, n.Store.View(n.T.Context(), name, func(v *store.View) error {
		for t, err := range v.Source().Topics() {
			if err != nil {
				return err
			}
			all = append(all, t.TopicSI())
		}
		return nil
	}))
	return all
}

// Session returns the cookie that a browser has of the server.
func (b *Browser) Session() *http.Cookie {
	u, err := url.Parse(b.Node.BaseURL)
	require.NoError(b.Node.T, err)
	for _, c := range b.Jar.Cookies(u) {
		return c
	}
	return nil
}
