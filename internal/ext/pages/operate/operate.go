// Package operate shows those who may write what the node does, and takes the forms by which they act on it.
package operate

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/signin"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/web"
)

// Node answers requests for the pages of a node.
type Node struct {
	Pages    http.Handler // nil: there are none
	URLs     addresses.Base
	Sessions *signin.Sessions
}

// Routes adds the addresses.
func (n *Node) Routes(handle func(path string, h web.Handler, methods ...string)) {
	if n.Pages == nil {
		return
	}
	form := n.Sessions.Form(n.may, n.serve)
	answer := func(w http.ResponseWriter, r *http.Request) error {
		err := form(w, r)
		var p *web.Problem
		if errors.As(err, &p) && p.Status == http.StatusUnauthorized && r.Method != http.MethodPost {
			return web.Refused(w, r, texts.SeeingNode)
		}
		return err
	}
	h := func(w http.ResponseWriter, r *http.Request) error { return n.Sessions.Guesses.Guard(answer)(w, r) }
	handle("/node.html", h, "GET", "HEAD")
	handle("/node.json", h, "GET", "HEAD")
	handle("/node/{page}", h, "GET", "HEAD", "POST")
	handle(topicPath, h, "GET", "HEAD", "POST")
}

// topicPath is the address of the pages of topics of all maps of the node together.
const topicPath = "/topic.html"

// Topic returns the address of the page of a topic, with who says what, "" for those who may not see the node.
func (n *Node) Topic(r *http.Request, si string) string {
	if n.Page(r) == "" {
		return ""
	}
	return string(n.URLs) + topicPath + "?" + url.Values{"si": {si}}.Encode()
}

// may says why a request may not see the node. A program may that has a token, but it sends no forms.
func (n *Node) may(r *http.Request) error {
	if r.Method != http.MethodPost && n.Sessions.Writers.Holds(r) {
		return nil
	}
	return n.Sessions.MayEdit(r)
}

func (n *Node) serve(w http.ResponseWriter, r *http.Request) error {
	n.Pages.ServeHTTP(w, r.WithContext(layout.WithCode(r.Context(), n.Sessions.Code(r))))
	return nil
}

// Page returns the address of the page of the node, "" for those who may not see it. The answer that has it is for them
// alone.
func (n *Node) Page(r *http.Request) string {
	if n.Pages == nil || n.may(r) != nil {
		return ""
	}
	web.RecorderOf(r).Private = true
	return string(n.URLs) + "/node.html"
}
