package server

import (
	"net/http"
	"strings"

	"github.com/gorilla/mux"
)

// routes is the table of URLs.
func (s *Server) routes() http.Handler {
	r := mux.NewRouter().UseEncodedPath().SkipClean(true) // no redirects: they would not know the base URL
	r.NotFoundHandler = s.handle("", func(http.ResponseWriter, *http.Request) error {
		return problem(http.StatusNotFound, "there is nothing at this address; the overview is at %s/topicmaps", s.BaseURL)
	})
	r.MethodNotAllowedHandler = s.handle("", func(w http.ResponseWriter, req *http.Request) error {
		w.Header().Set("Allow", allowed(r, req))
		return problem(http.StatusMethodNotAllowed, "%s is not possible here", req.Method)
	})
	get := func(path string, h handler) {
		r.Handle(path, s.handle(template(path), s.readable(h))).Methods("GET", "HEAD")
	}
	write := func(method, path string, h handler) {
		r.Handle(path, s.handle(template(path), s.authorized(h))).Methods(method)
	}

	get("/topicmaps", s.topicMapsFeed)
	get("/topicmaps/{map}.atom", s.topicMapEntry)
	get("/topicmaps/{map}", s.topicMapFeed)
	write("PUT", "/topicmaps/{map:[^./]+}", s.put)
	write("DELETE", "/topicmaps/{map:[^./]+}", s.deleteCollection)
	get("/topicmaps/{map}/settings", s.getSettings)

	get("/topicmaps/{map}/snapshots", s.snapshotsFeed)
	get("/topicmaps/{map}/snapshots.atom", s.snapshotsFeedEntry)
	get("/topicmaps/{map}/snapshots/current{ext:|\\.xtm1|\\.xtm21}", s.currentSnapshot)
	get("/topicmaps/{map}/snapshots/{id:[0-9a-f-]{36}}.atom", s.snapshotEntry)
	get("/topicmaps/{map}/snapshots/{id:[0-9a-f-]{36}}{ext:|\\.xtm1|\\.xtm21}", s.snapshotData)

	write("POST", "/topicmaps/{map}/snapshots", s.postSnapshot)
	write("POST", "/topicmaps/{map}/gc", s.postGC)

	get("/topicmaps/{map}/fragments", s.fragmentsFeed)
	get("/topicmaps/{map}/fragments.atom", s.fragmentsFeedEntry)
	get("/topicmaps/{map}/fragments/archive/{epoch:[0-9a-f-]{36}}-{n:[0-9]{1,18}}", s.archiveDocument)
	get("/topicmaps/{map}/fragments/{id:[0-9a-f-]{36}}.atom", s.fragmentEntry)
	get("/topicmaps/{map}/fragments/{id:[0-9a-f-]{36}}{ext:|\\.xtm1|\\.xtm21}", s.fragmentData)

	get("/topicmaps/{map}/topics", s.findTopic)
	write("POST", "/topicmaps/{map}/topics", s.fewUploads(s.postTopics))
	write("DELETE", "/topicmaps/{map}/topics", s.deleteTopicBySI)
	get("/topicmaps/{map}/topics/{key:[a-z2-7]{26}}{ext:|\\.xtm1|\\.xtm21}", s.topicData)
	write("DELETE", "/topicmaps/{map}/topics/{key:[a-z2-7]{26}}", s.deleteTopic)

	get("/healthz", s.healthy)
	get("/readyz", s.ready)
	if !s.MetricsElsewhere {
		get("/metrics", s.publicMetrics)
	}
	return r
}

// methods are those that there are routes for.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE"}

// allowed returns the methods for which there is a route to the URL of req, as
// the Allow header has them (RFC 9110 §15.5.6, 405 Method Not Allowed).
func allowed(routes *mux.Router, req *http.Request) string {
	var there []string
	for _, m := range methods {
		other := *req
		other.Method = m
		var match mux.RouteMatch
		if routes.Match(&other, &match) && match.MatchErr == nil {
			there = append(there, m)
		}
	}
	return strings.Join(there, ", ")
}

// template returns a route without the patterns of its variables.
func template(route string) string {
	var b strings.Builder
	depth, skip := 0, false
	for _, c := range route {
		switch c {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				skip = false
			}
		case ':':
			skip = depth > 0
		}
		if !skip {
			b.WriteRune(c)
		}
	}
	return b.String()
}
