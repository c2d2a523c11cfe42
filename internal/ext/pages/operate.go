package pages

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/server/web"
)

// nodeRoutes adds the pages of the node, which are for those who may write, and the addresses of their forms.
func (p *Pages) nodeRoutes(handle func(path string, h web.Handler, methods ...string)) {
	if p.node == nil {
		return
	}
	form := p.Sessions.Form(p.mayOperate, p.operate)
	answer := func(w http.ResponseWriter, r *http.Request) error {
		err := form(w, r)
		var why *web.Problem
		if errors.As(err, &why) && why.Status == http.StatusUnauthorized && r.Method != http.MethodPost {
			return web.Refused(w, r, texts.SeeingNode)
		}
		return err
	}
	h := p.Guesses.Guard(answer)
	handle("/node.html", h, "GET", "HEAD")
	handle("/node.json", h, "GET", "HEAD")
	handle("/node/{page}", h, "GET", "HEAD", "POST")
	handle(topicPath, h, "GET", "HEAD", "POST")
}

// topicPath is the address of the pages of topics of all maps of the node together.
const topicPath = "/topic.html"

// sayersAt returns the address of the page of a topic with its sources; "" if the request may not see the node.
func (p *Pages) sayersAt(r *http.Request, si string) string {
	if p.nodeAt(r) == "" {
		return ""
	}
	return string(p.URLs) + topicPath + "?" + url.Values{"si": {si}}.Encode()
}

// mayOperate returns an error if the request may not see the node. Programs with a token may see it, but send no forms.
func (p *Pages) mayOperate(r *http.Request) error {
	if r.Method != http.MethodPost && p.Writers.Holds(r) {
		return nil
	}
	return p.Sessions.MayEdit(r)
}

func (p *Pages) operate(w http.ResponseWriter, r *http.Request) error {
	p.node.ServeHTTP(w, r)
	return nil
}

// nodeAt returns the address of the page of the node; "" if the request may not see it. An answer with it is private.
func (p *Pages) nodeAt(r *http.Request) string {
	if p.node == nil || p.mayOperate(r) != nil {
		return ""
	}
	web.RecorderOf(r).Private = true
	return string(p.URLs) + "/node.html"
}
