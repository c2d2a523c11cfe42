package pages

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/search/words"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// aboutMap is the data of the page of a map.
type aboutMap struct {
	listed
	SP, Types, Changes, AllSnapshots     string
	Compare, Listing, API                string
	Current                              []link // the map as of now
	Permalink                            string // the URL of this state; "": the map is empty
	Feed, FeedOfChanges, FeedOfSnapshots string
	New                                  string // form of a new topic; "": the reader may not fill it in
	Links                                []feeds.Link
	Origins                              []layout.Link
	Replica                              bool     // Origins are that of a replica, else inputs of a derived map
	Schemes                              []scheme // the schemes of the map and their facts
	Hierarchies                          []link   // their pages
	Tree                                 *typeTree
	Months                               []month // with the newest commits
	Letters                              []choice
	Languages                            []inLanguage
	Snapshots                            []snapshot
	Timelines                            timelines
}

// What takes time in the size of a map is left out of the page of one with more topics: counting the instances of
// types. One with more than the other number has no hierarchies.
const (
	fewTopicsOfMap   = 10_000
	hierarchicalUpTo = 200_000
)

// Map answers with the page of a map.
func (p *Pages) Map(w http.ResponseWriter, r *http.Request, v *store.View) error {
	c := &v.Collection
	taken, err := p.snapshots(v)
	if err != nil {
		return err
	}
	origins, err := p.origins(r, c)
	if err != nil {
		return err
	}
	tag := p.tag(r, c) + fmt.Sprint(origins)
	for _, s := range taken { // the state does not list its schemes
		tag += s.Files[0].URL
	}
	return p.writeTagged(w, r, v, web.Digest([]byte(tag)), "map", func() (*page, error) {
		about := aboutMap{
			listed: listed{link{Title: titleOf(c), URL: p.URLs.Map(c)}, c.Summary, c.Topics, c.Updated, kindOf(c), ""},
			SP:     c.SP, Feed: p.URLs.Map(c), FeedOfChanges: p.URLs.Fragments(c), FeedOfSnapshots: p.URLs.Snapshots(c),
			Types: p.URLs.Map(c) + "/types" + Ending, Changes: p.URLs.Fragments(c) + Ending,
			Compare: p.URLs.Map(c) + "/compare" + Ending, Listing: p.URLs.Map(c) + "/index" + Ending,
			API:     p.URLs.Map(c) + "/api" + Ending,
			Current: p.data(p.URLs.Current(c), "", c.InRDF()), AllSnapshots: p.URLs.Snapshots(c) + Ending,
			New:   p.toEdit(r, c, p.URLs.Map(c)+"/topics/new"),
			Links: p.Links(c), Origins: origins, Replica: c.Replica != nil, Snapshots: taken[:min(len(taken), 5)],
		}
		if c.Head > 0 {
			about.Permalink = p.URLs.Current(c) + "?at=" + feeds.FormatTime(c.Updated)
		}
		d := p.describer(v, r)
		var err error
		if about.Months, err = p.months(r, v); err != nil {
			return nil, err
		}
		tags, err := words.Languages(v.State())
		if err != nil && !errors.Is(err, words.ErrLeftBehind) {
			return nil, err
		}
		if about.Languages, err = d.languagesOf(tags); err != nil {
			return nil, err
		}
		if about.Letters, err = d.letters(r, about.Listing, tags); err != nil {
			return nil, err
		}
		if about.Timelines, err = timelinesOf(v); err != nil {
			return nil, err
		}
		if about.Hierarchies, err = p.hierarchies(d); err != nil {
			return nil, err
		}
		if about.Schemes, err = d.schemes(); err != nil {
			return nil, err
		}
		if about.Tree, err = d.typesOnMap(); err != nil {
			return nil, err
		}
		return &page{Title: titleOf(c), Path: p.Trail(r, nil), Of: about}, nil
	})
}

// origins returns links to the sources of a collection: the origin of a replica, or the inputs of a derived collection,
// with their local names. It omits collections of this server that the request may not see.
func (p *Pages) origins(r *http.Request, c *store.Collection) ([]layout.Link, error) {
	if c.Replica != nil {
		return []layout.Link{layout.LinkTo(c.Replica.Origin)}, nil
	}
	if len(c.DerivedFrom) == 0 {
		return nil, nil
	}
	node, err := p.Store.Listing(r.Context())
	if err != nil {
		return nil, err
	}
	var links []layout.Link
	for _, in := range node.States(c) {
		switch {
		case in.URL != "":
			links = append(links, layout.LinkTo(in.URL))
		case !p.MayRead(r, in.Name):
		case in.Missing != "":
			links = append(links, layout.Link{Title: in.Name})
		default:
			links = append(links, layout.Link{Title: in.Name, URL: p.URLs.Map(&store.Collection{Name: in.Name}) + Ending})
		}
	}
	return links, nil
}
