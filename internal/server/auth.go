package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// authorized lets h answer requests that may write.
func (s *Server) authorized(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := s.mayWrite(r); err != nil {
			if err.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="tmshare"`)
			}
			return err
		}
		return h(w, r)
	}
}

func (s *Server) mayWrite(r *http.Request) *Problem {
	if len(s.Tokens) > 0 {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return problem(http.StatusUnauthorized, "writing needs a token: send \"Authorization: Bearer …\"")
		}
		given := sha256.Sum256([]byte(strings.TrimSpace(token)))
		known := 0
		for _, t := range s.Tokens {
			sum := sha256.Sum256([]byte(t))
			known |= subtle.ConstantTimeCompare(given[:], sum[:])
		}
		if known == 0 {
			return problem(http.StatusUnauthorized, "the token is not one of this server's")
		}
		return nil
	}
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
