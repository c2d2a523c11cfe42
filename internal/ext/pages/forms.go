package pages

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Link leads to a page.
type Link = link

// WriteForm serves an uncached page for one person: a form, or the result of one. Path is the path of links to it.
func (p *Pages) WriteForm(w http.ResponseWriter, r *http.Request, status int, name, title string, path []Link,
	data any) error {
	b, err := p.MakeForm(r, name, title, path, data)
	if err != nil {
		return err
	}
	return p.SendForm(w, r, status, b)
}

// MakeForm makes the page of a form.
func (p *Pages) MakeForm(r *http.Request, name, title string, path []Link, data any) ([]byte, error) {
	var b bytes.Buffer
	if path == nil {
		path = p.Trail(r, nil)
	}
	made := &page{Title: title, Path: path, Of: data}
	if name == "edit" || name == "move" {
		made.Script = p.fileURL(layout.ScriptName)
	}
	err := p.execute(&b, r, name, made)
	return b.Bytes(), err
}

// SendForm answers with the page of a form.
func (p *Pages) SendForm(w http.ResponseWriter, r *http.Request, status int, page []byte) error {
	head(w)
	h := w.Header()
	if bytes.Contains(page, []byte("<script ")) {
		h.Set("Content-Security-Policy", layout.PolicyWithScript)
	}
	h.Del("Vary")
	h.Set("Cache-Control", "private, no-cache") // but browsers may go back to it with what was filled in
	h.Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := w.Write(page)
	return err
}

// Naming returns a function that titles the topics of a view and links to their pages.
func (p *Pages) Naming(v *store.View, r *http.Request) func(fragment.Ref) (Link, error) {
	return p.describer(v, r).link
}

// edits reports whether the reader may edit. Such pages lead to the forms, and are private.
func (p *Pages) edits(r *http.Request) bool {
	if !p.Forms || p.Sessions.MayEdit(r) != nil {
		return false
	}
	web.RecorderOf(r).Private = true
	return true
}

// toEdit returns the address of a form for a collection or one of its topics; "" if the request may not edit it.
func (p *Pages) toEdit(r *http.Request, c *store.Collection, form string) string {
	if kindOf(c) != "" || !p.edits(r) {
		return ""
	}
	return form + Ending
}

// signedIn reports whether the reader has signed in. Such pages are private.
func (p *Pages) signedIn(r *http.Request) bool {
	if p.Sessions.Of(r) == nil {
		return false
	}
	web.RecorderOf(r).Private = true
	return true
}

// signInAt returns the address of the page to sign in; "" if the server has no way to sign in.
func (p *Pages) signInAt() string {
	if len(p.Known) == 0 {
		return ""
	}
	return string(p.URLs) + Address
}
