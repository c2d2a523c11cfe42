package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/resources"
	"github.com/tmshare/tmshare/internal/server/pages"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// How ResourceSync is discovered (Z39.99 §6.3): from the well-known URL, from robots.txt, and
// from pages that describe the server and its collections. The fourth way is a Link header
// with each topic.

// offered returns the collections that the request may read and that are offered by
// ResourceSync.
func (s *Server) offered(r *http.Request) ([]store.Collection, error) {
	all, err := s.Visible(r)
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
	d := &resources.Description{Server: s.BaseURL, About: s.URLs.Overview() + pages.Ending, Most: s.ResourceSizes.DescribedItems}
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
	return s.Answers.WriteSmall(w, r, resourcesync.MediaTypeXML, cacheShortly, d.Write)
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
	return s.Answers.WriteSmall(w, r, resourcesync.MediaTypeXML, cacheShortly, func(to io.Writer) error { return d.WritePart(to, n) })
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
	return s.Answers.WriteSmall(w, r, "text/plain; charset=utf-8", cacheShortly, func(to io.Writer) error {
		_, err := to.Write(b.Bytes())
		return err
	})
}
