package server

import (
	"bytes"
	"fmt"
	html "html/template"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/resources"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// How ResourceSync is discovered (Z39.99 §6.3): from the well-known URL, from robots.txt, and
// from pages that describe the server and its collections. The fourth way is a Link header
// with each topic.

// offered returns the collections that the request may read and that are offered by
// ResourceSync.
func (s *Server) offered(r *http.Request) ([]store.Collection, error) {
	all, err := s.visible(r)
	var some []store.Collection
	for i := range all {
		if !all[i].NoResourceSync {
			some = append(some, all[i])
		}
	}
	return some, err
}

// description returns the Source Description for a request.
func (s *Server) description(r *http.Request) (*resources.Description, error) {
	all, err := s.offered(r)
	if err != nil {
		return nil, err
	}
	d := &resources.Description{Server: s.BaseURL, About: s.BaseURL + "/about", Most: s.ResourceSizes.DescribedItems}
	for i := range all {
		d.Sites = append(d.Sites, s.site(&all[i]))
	}
	return d, nil
}

// sourceDescription is the Source Description at its well-known URL (§6.3.2), or an index of
// several.
func (s *Server) sourceDescription(w http.ResponseWriter, r *http.Request) error {
	d, err := s.description(r)
	if err != nil {
		return err
	}
	return s.answers.WriteSmall(w, r, resourcesync.MediaTypeXML, cacheShortly, d.Write)
}

// sourceDescriptionPart is one of several.
func (s *Server) sourceDescriptionPart(w http.ResponseWriter, r *http.Request) error {
	d, err := s.description(r)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(web.Var(r, "n"))
	if err != nil || n < 1 || n > d.Parts() {
		return web.Problemf(http.StatusNotFound, "there are %d parts of the Source Description at %s", d.Parts(), resources.SourceDescriptionURL(s.BaseURL))
	}
	return s.answers.WriteSmall(w, r, resourcesync.MediaTypeXML, cacheShortly, func(to io.Writer) error { return d.WritePart(to, n) })
}

// robots is the file in which crawlers look for Sitemaps: the Resource Lists of those
// collections that are for all (§6.3.4).
func (s *Server) robots(w http.ResponseWriter, r *http.Request) error {
	all, err := s.offered(r)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("User-agent: *\nDisallow:\n")
	for i := range all {
		if len(s.readers[all[i].Name]) == 0 && all[i].Topics > 0 {
			fmt.Fprintf(&b, "\nSitemap: %s", s.site(&all[i]).ResourceListURL())
		}
	}
	b.WriteString("\n")
	return s.answers.WriteSmall(w, r, "text/plain; charset=utf-8", cacheShortly, func(to io.Writer) error {
		_, err := to.Write(b.Bytes())
		return err
	})
}

// page describes a server or a collection to people.
type page struct {
	Title, Text    string
	CapabilityList string // "": none
	Up             link
	Links          []link
}

type link struct{ Name, URL, Text string }

var pages = html.Must(html.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{{.Title}}</title>
{{with .CapabilityList}}<link rel="resourcesync" href="{{.}}">
{{end}}</head>
<body>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
<dl>
{{range .Links}}<dt><a href="{{.URL}}">{{.Name}}</a></dt>
<dd>{{.Text}}</dd>
{{end}}</dl>
{{with .Up}}{{if .URL}}<p><a href="{{.URL}}">{{.Name}}</a></p>
{{end}}{{end}}</body>
</html>
`))

func (s *Server) writePage(w http.ResponseWriter, r *http.Request, p *page) error {
	return s.answers.WriteSmall(w, r, "text/html; charset=utf-8", cacheShortly, func(to io.Writer) error { return pages.Execute(to, p) })
}

// about describes the server: to it leads the describedby link of the Source Description (§8).
func (s *Server) about(w http.ResponseWriter, r *http.Request) error {
	all, err := s.visible(r)
	if err != nil {
		return err
	}
	p := page{
		Title: "Topic maps", Text: "This server publishes topic maps (ISO 13250) and all changes to them.",
		Links: []link{
			{"Topic Maps Feed", s.urls.Overview(), "all maps, as an Atom feed"},
			{"ResourceSync Source Description", resources.SourceDescriptionURL(s.BaseURL), "all maps, for those who copy their topics"},
		},
	}
	for i := range all {
		p.Links = append(p.Links, link{name(&all[i]), s.site(&all[i]).AboutURL(), all[i].Summary})
	}
	return s.writePage(w, r, &p)
}

// aboutCollection describes a collection: to it leads the describedby link of its Capability
// List (§9), and it leads there (§6.3.3).
func (s *Server) aboutCollection(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		c := &v.Collection
		site := s.site(c)
		p := page{
			Title: name(c), Text: strings.TrimSpace(c.Summary),
			Up: link{Name: "All topic maps", URL: s.BaseURL + "/about"},
			Links: []link{
				{"Topic Map Feed", s.urls.Map(c), "leads to all feeds of this map"},
				{"Fragments", s.urls.Fragments(c), "all changes, as an Atom feed"},
				{"Snapshots", s.urls.Snapshots(c), "the whole map at some moments"},
				{"Records", s.urls.Records(c), "the topics, for those who harvest them by Atom"},
			},
		}
		if p.Text == "" {
			p.Text = fmt.Sprintf("A topic map with %d topics.", c.Topics)
		}
		if !c.NoResourceSync {
			p.CapabilityList = site.CapabilityListURL()
			p.Links = append(p.Links, link{"ResourceSync Capability List", p.CapabilityList,
				"the live topics, for those who copy them: each has a URL that stays, and is available as XTM 1.0 or XTM 2.1"})
		}
		return s.writePage(w, r, &p)
	})
}
