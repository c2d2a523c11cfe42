package server

import (
	"net/http"
	"strings"
	"sync"

	"github.com/gorilla/mux"
)

// routes is the table of URLs.
func (s *Server) routes() http.Handler { return &knownRoutes{router: s.router()} }

func (s *Server) router() *mux.Router {
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
	get("/topicmaps/{map}/fragments/{id:[0-9a-f-]{36}}{ext:\\.xtm1|\\.xtm21}.patch", s.fragmentPatch)

	get("/topicmaps/{map}/records", s.recordsFeed)
	get("/topicmaps/{map}/records/archive/{epoch:[0-9a-f-]{36}}-{n:[0-9]{1,18}}", s.recordsArchiveDocument)
	get("/topicmaps/{map}/records/complete", s.completeRecords)

	get("/topicmaps/{map}/topics", s.findTopic)
	write("POST", "/topicmaps/{map}/topics", s.fewUploads(s.postTopics))
	write("DELETE", "/topicmaps/{map}/topics", s.deleteTopicBySI)
	get("/topicmaps/{map}/topics/{key:[a-z2-7]{26}}.atom", s.recordEntry)
	get("/topicmaps/{map}/topics/{key:[a-z2-7]{26}}{ext:|\\.xtm1|\\.xtm21}", s.topicData)
	write("DELETE", "/topicmaps/{map}/topics/{key:[a-z2-7]{26}}", s.deleteTopic)

	s.resourceSyncRoutes(get)

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

// knownRoutes remembers which route leads to a path that was asked for before: to
// try one pattern after the other costs more than most answers.
type knownRoutes struct {
	router *mux.Router

	mu    sync.RWMutex
	known map[string]route // by path
}

// route is what the router finds for a path.
type route struct {
	handler http.Handler
	vars    map[string]string
}

// Paths that are longer are not remembered, and when there are more, all are
// forgotten.
const (
	longestKnown = 200
	mostKnown    = 2000
)

func (k *knownRoutes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.RawPath != "" || len(r.URL.Path) > longestKnown {
		k.router.ServeHTTP(w, r)
		return
	}
	k.mu.RLock()
	found, ok := k.known[r.URL.Path]
	k.mu.RUnlock()
	if !ok {
		var match mux.RouteMatch
		if !k.router.Match(r, &match) || match.MatchErr != nil {
			k.router.ServeHTTP(w, r)
			return
		}
		found = route{match.Handler, match.Vars}
		k.mu.Lock()
		if len(k.known) >= mostKnown || k.known == nil {
			k.known = map[string]route{}
		}
		k.known[strings.Clone(r.URL.Path)] = found
		k.mu.Unlock()
	}
	found.handler.ServeHTTP(w, mux.SetURLVars(r, found.vars))
}
