// Package webpage reads pages in tests, and checks the rules of all pages.
package webpage

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/tmshare/tmshare/internal/ext/pages/layout"
)

// Page is a well-formed page with unique ids, without scripts, and with links only to documents of the web.
type Page struct {
	Title string
	Links []string // of all elements, absolute
	Text  string
	Forms []Form
}

// Form is a form with values.
type Form struct {
	Action string // absolute
	Method string // in capitals
	Fields url.Values
}

// Read reads the page at an address.
func Read(t testing.TB, address string, header http.Header, body []byte) Page {
	t.Helper()
	require.Equal(t, layout.MediaType, header.Get("Content-Type"), address)
	policy := layout.Policy
	if bytes.Contains(body, []byte(layout.ScriptName)) {
		policy = layout.PolicyWithScript
	}
	require.Equal(t, policy, header.Get("Content-Security-Policy"), address)
	root, err := html.Parse(bytes.NewReader(body))
	require.NoError(t, err)
	base, err := url.Parse(address)
	require.NoError(t, err)
	r := reader{TB: t, base: base, ids: map[string]bool{}}
	var text strings.Builder
	for node := range root.Descendants() {
		if node.Type == html.TextNode {
			text.WriteString(node.Data)
		}
		if node.Type == html.ElementNode {
			r.element(node)
		}
	}
	r.Text = text.String()
	for _, id := range r.labelled {
		assert.True(t, r.ids[id], "%s refers to the id %s, which there is not", address, id)
	}
	return r.Page
}

type reader struct {
	testing.TB
	Page
	base     *url.URL
	ids      map[string]bool
	labelled []string // ids that are referred to
}

func (r *reader) element(node *html.Node) {
	r.Helper()
	if node.Data == "script" {
		assert.True(r, node.FirstChild == nil && strings.HasSuffix(node.Attr[0].Val, "/"+layout.ScriptName), r.base)
	}
	assert.NotContains(r, []string{"img", "iframe", "object", "style"}, node.Data, r.base)
	if node.Data == "title" && node.Namespace == "" {
		require.NotNil(r, node.FirstChild, "%s has no title", r.base)
		r.Title = node.FirstChild.Data
	}
	attributes := map[string]string{}
	for _, a := range node.Attr {
		attributes[a.Key] = a.Val
		switch a.Key {
		case "href", "action":
			to, err := r.base.Parse(a.Val)
			require.NoError(r, err)
			assert.Contains(r, []string{"http", "https"}, to.Scheme, "%s leads to %s", r.base, a.Val)
			if a.Key == "href" {
				r.Links = append(r.Links, to.String())
			}
		case "id":
			assert.False(r, r.ids[a.Val], "%s has the id %s twice", r.base, a.Val)
			r.ids[a.Val] = true
		case "for", "aria-labelledby", "aria-describedby":
			r.labelled = append(r.labelled, strings.Fields(a.Val)...)
		}
		assert.False(r, strings.HasPrefix(a.Key, "on") || a.Key == "style", "%s has an attribute %s", r.base, a.Key)
	}
	switch node.Data {
	case "form":
		to, _ := r.base.Parse(attributes["action"])
		r.Forms = append(r.Forms, Form{to.String(), strings.ToUpper(attributes["method"]), url.Values{}})
	case "input", "button":
		if n := len(r.Forms); n > 0 && attributes["name"] != "" {
			r.Forms[n-1].Fields.Add(attributes["name"], attributes["value"])
		}
	}
}
