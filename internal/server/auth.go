package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"github.com/tmshare/tmshare/internal/store"
)

// tokens are the SHA-256 sums of bearer tokens: of one length, so that comparing
// them says nothing about them.
type tokens [][sha256.Size]byte

func sums(plain []string) tokens {
	var all tokens
	for _, t := range plain {
		all = append(all, sha256.Sum256([]byte(t)))
	}
	return all
}

// holds reports whether the token of the request is one of t, in a time that does
// not depend on which, or on how far it is right.
func (t tokens) holds(r *http.Request) bool {
	token, ok := bearer(r)
	if !ok {
		return false
	}
	given := sha256.Sum256([]byte(token))
	known := 0
	for i := range t {
		known |= subtle.ConstantTimeCompare(given[:], t[i][:])
	}
	return known != 0
}

// bearer returns the token of a request (RFC 6750 §2.1, Authorization Request
// Header Field).
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// refused is the answer to a request that lacks the right token.
func refused(w http.ResponseWriter, r *http.Request, what string) error {
	w.Header().Set("WWW-Authenticate", `Bearer realm="tmshare"`)
	if _, ok := bearer(r); ok {
		return problem(http.StatusUnauthorized, "the token is not one for %s", what)
	}
	return problem(http.StatusUnauthorized, "%s needs a token: send \"Authorization: Bearer …\"", what)
}

// authorized lets h answer requests that may write.
func (s *Server) authorized(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if len(s.writers) > 0 {
			if !s.writers.holds(r) {
				return refused(w, r, "writing")
			}
		} else if err := s.mayWrite(r); err != nil {
			return err
		}
		return h(w, r)
	}
}

// readable lets h answer requests that may read the collection in their URL. Any
// may that has no read tokens; who may write, may read.
func (s *Server) readable(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		collection, one := mux.Vars(r)["map"]
		x := exchangeOf(r)
		x.private = len(s.readers[collection]) > 0 || !one && len(s.readers) > 0
		if one && !s.mayRead(r, collection) {
			return refused(w, r, "reading this map")
		}
		return h(w, r)
	}
}

func (s *Server) mayRead(r *http.Request, collection string) bool {
	readers := s.readers[collection]
	return len(readers) == 0 || readers.holds(r) || s.writers.holds(r)
}

// visible returns the collections that the request may read. The others are not
// so much as named.
func (s *Server) visible(r *http.Request) ([]store.Collection, error) {
	exchangeOf(r).settled = s.changes.settled("")
	all, err := s.Store.Collections()
	return slices.DeleteFunc(all, func(c store.Collection) bool { return !s.mayRead(r, c.Name) }), err
}

// mayWrite says whether a request may write to a server that has no tokens.
func (s *Server) mayWrite(r *http.Request) error {
	base, err := url.Parse(s.BaseURL)
	if err != nil || !s.OnLoopback || !fromLoopback(r) || !isLoopback(base.Host) || !isLoopback(r.Host) {
		return problem(http.StatusForbidden, "this server has no write tokens (--token-file), so only requests from its own machine, to a loopback address, may write, and only while its --base-url is such an address too")
	}
	for name := range r.Header {
		if slices.Contains(proxyHeaders, name) || strings.HasPrefix(name, "X-Forwarded-") {
			return problem(http.StatusForbidden, "this server has no write tokens (--token-file), so requests with a header %s, from a browser or through a proxy, may not write", name)
		}
	}
	return nil
}

// proxyHeaders are what browsers and proxies add to a request.
var proxyHeaders = []string{"Origin", "Forwarded", "Via", "X-Real-Ip"}

func fromLoopback(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// isLoopback reports whether a host, with a port or without, as people write it,
// is this machine itself.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
