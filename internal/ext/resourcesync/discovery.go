package resourcesync

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// The ways to discover ResourceSync (Z39.99 §6.3): the well-known URL, robots.txt, pages that describe the server and
// its collections, and a Link header with each topic.

// offered returns the collections that the request may read and that are offered by
// ResourceSync.
func (p *part) offered(r *http.Request) ([]store.Collection, error) {
	all, err := p.server.Visible(r)
	var some []store.Collection
	for i := range all {
		if resources.IsOffered(&all[i]) {
			some = append(some, all[i])
		}
	}
	return some, err
}

// description returns the Source Description for a request.
func (p *part) description(r *http.Request) (*resources.Description, error) {
	all, err := p.offered(r)
	if err != nil {
		return nil, err
	}
	d := &resources.Description{Server: p.server.BaseURL, About: p.server.About(p.server.URLs.Overview()),
		Most: p.Sizes.DescribedItems}
	for i := range all {
		d.Sites = append(d.Sites, p.site(&all[i]))
	}
	return d, nil
}

// sourceDescription is the Source Description at its well-known URL (§6.3.2), or an index of
// several.
func (p *part) sourceDescription(w http.ResponseWriter, r *http.Request) error {
	d, err := p.description(r)
	if err != nil {
		return err
	}
	return p.server.Answers.WriteSmall(w, r, resourcesync.MediaTypeXML, server.CacheShortly, d.Write)
}

// sourceDescriptionPart is one of several.
func (p *part) sourceDescriptionPart(w http.ResponseWriter, r *http.Request) error {
	d, err := p.description(r)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(web.Var(r, "n"))
	if err != nil || n < 1 || n > d.Parts() {
		return web.Problemf(http.StatusNotFound, "there are %d parts of the Source Description at %s", d.Parts(),
			resources.SourceDescriptionURL(p.server.BaseURL))
	}
	return p.server.Answers.WriteSmall(w, r, resourcesync.MediaTypeXML, server.CacheShortly, func(to io.Writer) error {
		return d.WritePart(to, n)
	})
}

// robots is the file in which crawlers look for Sitemaps: the Resource Lists of those
// collections that are for all (§6.3.4).
func (p *part) robots(w http.ResponseWriter, r *http.Request) error {
	all, err := p.offered(r)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("User-agent: *\nDisallow:\n")
	for i := range all {
		if p.server.IsForAll(&all[i]) && all[i].Topics > 0 {
			fmt.Fprintf(&b, "\nSitemap: %s", p.site(&all[i]).ResourceListURL())
		}
	}
	b.WriteString("\n")
	return p.server.Answers.WriteSmall(w, r, "text/plain; charset=utf-8", server.CacheShortly, func(to io.Writer) error {
		_, err := to.Write(b.Bytes())
		return err
	})
}
