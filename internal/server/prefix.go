package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/web"
)

// DefaultPrefix is the source locator prefix that a base URL gives a collection.
func DefaultPrefix(baseURL, name string) string {
	return baseURL + "/topicmaps/" + url.PathEscape(name) + "/"
}

// NewPrefix returns the source locator prefix of a new collection for which none is
// given: the default one. Where the base URL is not public, it has a random part, which is that
// of the node: a collection that is created anew has it again. Two servers on
// http://127.0.0.1:8080 would else call different topics by one name, and whoever follows
// both would merge them.
func (s *Server) NewPrefix(name string) string {
	prefix := DefaultPrefix(s.BaseURL, name)
	if s.URLs.Public() {
		return prefix
	}
	node := s.Store.Node()
	return fmt.Sprintf("%s%x/", prefix, node[:6])
}

// prefixFor returns the source locator prefix of a new collection: the one that a
// request gives, if it is valid, or that of [Server.NewPrefix].
func (s *Server) prefixFor(name string, given *string) (string, error) {
	if given == nil {
		return s.NewPrefix(name), nil
	}
	if err := fragment.ValidatePrefix(*given); err != nil {
		return "", web.Problemf(http.StatusUnprocessableEntity, "%s", err)
	}
	return *given, nil
}

// warnOfPrefixes logs which collections have a prefix that was made of another base URL
// than the present one.
func (s *Server) warnOfPrefixes(ctx context.Context) error {
	all, err := s.Store.Collections(ctx)
	for i := range all {
		c := &all[i]
		if c.Replica != nil { // it is the origin's
			continue
		}
		base, rest, ok := strings.Cut(c.SP, DefaultPrefix("", c.Name))
		if !ok || strings.Contains(rest, "#") || base == s.BaseURL {
			continue
		}
		advice := "nothing needs to be done: the names of its topics stay valid, although that address does not lead to " +
			"this server"
		if !addresses.Base(base).Public() {
			advice = "other servers may use this prefix for other topics: before others subscribe, import the map under " +
				"another name with --sp, and delete this one"
		}
		if !s.Store.Alone() {
			advice = "give all servers on this database the same --base-url. Where they have it, " + advice
		}
		s.Logger.Warn("the source locator prefix was made of another base URL and stays as it is", "collection", c.Name,
			"prefix", c.SP, "base-url", s.BaseURL, "advice", advice)
	}
	return err
}
