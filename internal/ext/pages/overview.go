package pages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// listed is a collection in the overview.
type listed struct {
	link
	Summary string
	Topics  int // -1: not known
	Updated time.Time
	Kind    texts.Text // where others write it
	Problem string     // of a derived one
}

// Overview answers with the page of all maps.
func (p *Pages) Overview(w http.ResponseWriter, r *http.Request) error {
	all, err := p.Visible(r)
	if err != nil {
		return err
	}
	conditionOf, err := inputs.Conditions(r.Context(), p.Store)
	if err != nil {
		return err
	}
	maps := make([]listed, len(all))
	for i := range all {
		c := &all[i]
		maps[i] = listed{link{Title: titleOf(c), URL: p.URLs.Map(c) + Ending}, c.Summary, c.Topics, c.Updated, kindOf(c), ""}
		if condition, advice := conditionOf(c); condition != "" {
			maps[i].Problem = condition + ": " + advice
		}
	}
	others, _, err := p.Elsewhere(r)
	if err != nil {
		return err
	}
	for i := range others {
		e := &others[i]
		self, _ := e.Link("alternate")
		one := listed{link{Title: e.Title, URL: self.Href + Ending}, e.Summary, -1, e.Updated, "", ""}
		if e.Condition != "" {
			one.Summary, one.Problem = "", e.Summary
		}
		maps = append(maps, one)
	}
	slices.SortFunc(maps, func(a, b listed) int { return strings.Compare(a.URL, b.URL) })
	made := &page{Title: Say(r, texts.Maps), Of: struct {
		Maps         []listed
		Links        []feeds.Link
		Feed, SignIn string
		SignedIn     bool
		Node         string // page of it; "": the reader may not see it
	}{maps, p.Links(nil), p.URLs.Overview(), p.signInAt(), p.signedIn(r), p.nodeAt(r)}}
	made.Search = p.searchField(nil, "")
	return p.writeEachTime(w, r, "overview", made)
}

func kindOf(c *store.Collection) texts.Text {
	switch {
	case c.Replica != nil:
		return texts.Replica
	case len(c.DerivedFrom) > 0:
		return texts.Derived
	}
	return ""
}

// newest is the number of changes on the page of a map, and most the number of items in any list of a page.
const (
	newest = 20
	most   = 100
)

// About leads from the address that the page of a map once had.
func (p *Pages) About(w http.ResponseWriter, r *http.Request, v *store.View) error {
	http.Redirect(w, r, p.URLs.Map(&v.Collection)+Ending, http.StatusMovedPermanently)
	return nil
}

// Find redirects from ?si= to the page of the topic with that subject identifier; with ?at=, to its state at that time.
func (p *Pages) Find(w http.ResponseWriter, r *http.Request, v *store.View) error {
	si, err := server.Find(v, r, false)
	if missing := (*web.Problem)(nil); errors.As(err, &missing) {
		si, err = server.Find(v, r, true) // a deleted topic has a page, too
	}
	if err != nil {
		return err
	}
	to := p.URLs.Topic(&v.Collection, si) + Ending
	if at := r.URL.Query().Get("at"); at != "" {
		to += "?" + url.Values{"at": {at}}.Encode()
	}
	return p.SeeOther(w, r, to)
}
