package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/inputs"
	"github.com/tmshare/tmshare/internal/server/replicas"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Part is what an extension adds to a server. Fields that are nil add nothing. Its functions are called by several goroutines.
type Part struct {
	// Links returns the links of the documents of a collection that are followed: in their header, and in those that are feeds.
	Links func(*store.Collection) []feeds.Link
	// Jobs run in the background from Start to Close.
	Jobs []Job
	// Metrics are shown with those of the server.
	Metrics []prometheus.Collector
}

// Job is work in the background. Where processes share the store, one of them does it.
type Job struct {
	Name string // unique among all jobs
	Run  func(context.Context)
}

// Followed returns the URLs of the documents of a collection that are followed. There are none where only some may read them, or where nobody can at present.
func (s *Server) Followed(c *store.Collection) (urls []string) {
	if len(s.readers[c.Name]) > 0 || inputs.CanBeRead(c) != nil {
		return nil
	}
	urls = append(urls, s.URLs.Fragments(c))
	if replicas.HasRecords(c) == nil {
		urls = append(urls, s.URLs.Records(c))
	}
	if !c.NoResourceSync {
		urls = append(urls, s.site(c).ChangeListURL())
	}
	return urls
}

// partLinks returns the links that parts add to the documents of a collection that are followed. There are none where only some may read them.
func (s *Server) partLinks(c *store.Collection) (links []feeds.Link) {
	if len(s.readers[c.Name]) > 0 {
		return nil
	}
	for _, p := range s.parts {
		if p.Links != nil {
			links = append(links, p.Links(c)...)
		}
	}
	return links
}

// addPartLinks adds these links to the header of a document, and one to itself. They are on one line, as some readers look at no other.
func (s *Server) addPartLinks(h http.Header, c *store.Collection, url string) {
	links := s.partLinks(c)
	if len(links) == 0 {
		return
	}
	values := make([]string, 0, len(links)+1)
	for _, l := range links {
		values = append(values, web.LinkValue(l.Href, string(l.Rel)))
	}
	h.Add("Link", strings.Join(append(values, web.LinkValue(url, "self")), ", "))
}
