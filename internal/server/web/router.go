package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/gorilla/mux"
)

// Router leads requests to handlers, by a table of routes. It is safe for concurrent use once all routes are added.
type Router struct {
	*Front
	overview string // URL that errors about missing documents link to
	mux      *mux.Router
	// Elsewhere returns the handler for a request about a collection of another server; nil: it is here, or nowhere.
	Elsewhere func(*http.Request) Handler

	mu    sync.RWMutex
	known map[string]route // by path: to try one pattern after the other costs more than most answers
}

// NewRouter returns a router without routes. Answers about missing documents link to the overview, a URL.
func NewRouter(f *Front, overview string) *Router {
	// no redirects, because they would not use the base URL
	r := &Router{Front: f, overview: overview, mux: mux.NewRouter().UseEncodedPath().SkipClean(true)}
	r.mux.NotFoundHandler = r.answer("", r.notFound)
	r.mux.MethodNotAllowedHandler = r.answer("", r.notAllowed)
	return r
}

// Handle adds a route: h answers requests with one of the methods to URLs with the path. A path has variables,
// as {name} or {name:regular expression}.
func (r *Router) Handle(path string, h Handler, methods ...string) {
	r.mux.Handle(path, r.answer(template(path), h)).Methods(methods...)
}

// Var returns the value of a variable of the route in the path of a request, "" if there is none. It is unescaped,
// except control characters.
func Var(r *http.Request, name string) string {
	vars := RecorderOf(r).vars
	if vars == nil {
		vars = mux.Vars(r)
	}
	if text, err := url.PathUnescape(vars[name]); err == nil && !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	return vars[name]
}

// Routes calls yield with the path of each route, without the patterns of its variables, and its methods.
func (r *Router) Routes(yield func(path string, methods []string)) error {
	return r.mux.Walk(func(route *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := route.GetPathTemplate()
		if err != nil {
			return err
		}
		methods, err := route.GetMethods()
		yield(template(path), methods)
		return err
	})
}

// ServeHTTP implements [http.Handler].
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.record(w, req, r.find) }

func (r *Router) notFound(_ http.ResponseWriter, req *http.Request) error {
	if err := knownMethod(req); err != nil {
		return err
	}
	return Problemf(http.StatusNotFound, "there is nothing at this address; the overview is at %s", r.overview)
}

func (r *Router) notAllowed(w http.ResponseWriter, req *http.Request) error {
	if err := knownMethod(req); err != nil {
		return err
	}
	allowed := r.allowed(req)
	w.Header().Set("Allow", allowed)
	return Problemf(http.StatusMethodNotAllowed, "%s is not possible here; use one of %s", req.Method, allowed)
}

// methods may have routes. otherMethods are known and have none: such a request is refused with the possible ones.
var (
	methods      = []string{"GET", "HEAD", "POST", "PUT", "DELETE"}
	otherMethods = []string{"CONNECT", "OPTIONS", "TRACE", "PATCH"} // RFC 9110 §9, RFC 5789
)

// knownMethod checks that a request has a method that this server knows (RFC 9110 §15.6.2, 501
// Not Implemented).
func knownMethod(r *http.Request) error {
	if slices.Contains(methods, r.Method) || slices.Contains(otherMethods, r.Method) {
		return nil
	}
	return Problemf(http.StatusNotImplemented, "the method %q is not known here; use one of %s", cut(r.Method),
		strings.Join(methods, ", "))
}

// allowed returns the methods with a route to the URL of req, in the format of the Allow header (RFC 9110 §15.5.6, 405
// Method Not Allowed).
func (r *Router) allowed(req *http.Request) string {
	var there []string
	for _, m := range methods {
		other := *req
		other.Method = m
		var match mux.RouteMatch
		if r.mux.Match(&other, &match) && match.MatchErr == nil {
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

// normalized returns r without unnecessary percent-encodings (RFC 3986 §6.2.2.2, Percent-Encoding Normalization).
func normalized(r *http.Request) *http.Request {
	segments := strings.Split(r.URL.RawPath, "/")
	for i, given := range segments {
		if plain, err := url.PathUnescape(given); err == nil {
			segments[i] = url.PathEscape(plain)
		}
	}
	u := *r.URL
	if u.RawPath = strings.Join(segments, "/"); u.RawPath == u.Path {
		u.RawPath = ""
	}
	same := *r
	same.URL = &u
	return &same
}

// route is the router's result for a path.
type route struct {
	handler http.Handler
	vars    map[string]string
}

// The limits of the cache of routes: longer paths are not cached, and if there are more, all are dropped.
const (
	longestKnown = 200
	mostKnown    = 2000
)

// find calls the handler of the request's route.
func (r *Router) find(w http.ResponseWriter, req *http.Request) {
	if req.URL.RawPath != "" {
		req = normalized(req)
	}
	if r.Elsewhere != nil {
		if h := r.Elsewhere(req); h != nil {
			r.answer("elsewhere", h).ServeHTTP(w, req)
			return
		}
	}
	if req.Method != http.MethodGet || req.URL.RawPath != "" || len(req.URL.Path) > longestKnown {
		r.mux.ServeHTTP(w, req)
		return
	}
	r.mu.RLock()
	found, ok := r.known[req.URL.Path]
	r.mu.RUnlock()
	if !ok {
		var match mux.RouteMatch
		if !r.mux.Match(req, &match) || match.MatchErr != nil {
			r.mux.ServeHTTP(w, req)
			return
		}
		found = route{match.Handler, match.Vars}
		r.mu.Lock()
		if len(r.known) >= mostKnown || r.known == nil {
			r.known = map[string]route{}
		}
		r.known[strings.Clone(req.URL.Path)] = found
		r.mu.Unlock()
	}
	RecorderOf(req).vars = found.vars
	found.handler.ServeHTTP(w, req)
}
