package server

import (
	"net/http"
	"strings"

	"github.com/gorilla/mux"
)

// routes is the table of URLs.
func (s *Server) routes() http.Handler {
	r := mux.NewRouter().UseEncodedPath()
	r.NotFoundHandler = s.handle(func(http.ResponseWriter, *http.Request) error {
		return problem(http.StatusNotFound, "there is nothing at this address; the overview is at %s/topicmaps", s.BaseURL)
	})
	r.MethodNotAllowedHandler = s.handle(func(w http.ResponseWriter, req *http.Request) error {
		w.Header().Set("Allow", allowed(r, req))
		return problem(http.StatusMethodNotAllowed, "%s is not possible here", req.Method)
	})
	get := func(path string, h handler) { r.Handle(path, s.handle(h)).Methods("GET", "HEAD") }
	write := func(method, path string, h handler) { r.Handle(path, s.handle(s.authorized(h))).Methods(method) }

	get("/topicmaps", s.topicMapsFeed)
	get("/topicmaps/{map}.atom", s.topicMapEntry)
	get("/topicmaps/{map}", s.topicMapFeed)
	write("PUT", "/topicmaps/{map:[^./]+}", s.putMap)

	get("/topicmaps/{map}/snapshots", s.snapshotsFeed)
	get("/topicmaps/{map}/snapshots.atom", s.snapshotsFeedEntry)
	get("/topicmaps/{map}/snapshots/current{ext:|\\.xtm1|\\.xtm21}", s.currentSnapshot)
	get("/topicmaps/{map}/snapshots/{id:[0-9a-f-]{36}}.atom", s.snapshotEntry)
	get("/topicmaps/{map}/snapshots/{id:[0-9a-f-]{36}}{ext:|\\.xtm1|\\.xtm21}", s.snapshotData)

	get("/topicmaps/{map}/fragments", s.fragmentsFeed)
	get("/topicmaps/{map}/fragments.atom", s.fragmentsFeedEntry)
	get("/topicmaps/{map}/fragments/archive/{epoch:[0-9a-f-]{36}}-{n:[0-9]{1,18}}", s.archiveDocument)
	get("/topicmaps/{map}/fragments/{id:[0-9a-f-]{36}}.atom", s.fragmentEntry)
	get("/topicmaps/{map}/fragments/{id:[0-9a-f-]{36}}{ext:|\\.xtm1|\\.xtm21}", s.fragmentData)

	get("/topicmaps/{map}/topics", s.findTopic)
	get("/topicmaps/{map}/topics/{key:[a-z2-7]{26}}{ext:|\\.xtm1|\\.xtm21}", s.topicData)
	write("DELETE", "/topicmaps/{map}/topics/{key:[a-z2-7]{26}}", s.deleteTopic)

	get("/healthz", func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write([]byte("ok\n"))
		return err
	})
	return r
}

// allowed returns the methods for which there is a route to the URL of req, as
// the Allow header has them (RFC 9110 §15.5.6, 405 Method Not Allowed).
func allowed(routes *mux.Router, req *http.Request) string {
	var methods []string
	for _, m := range []string{"GET", "HEAD", "PUT", "DELETE"} {
		other := *req
		other.Method = m
		var match mux.RouteMatch
		if routes.Match(&other, &match) && match.MatchErr == nil {
			methods = append(methods, m)
		}
	}
	return strings.Join(methods, ", ")
}
