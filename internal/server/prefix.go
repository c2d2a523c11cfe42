package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/web"
)

// DefaultPrefix is the source locator prefix that a base URL gives a collection.
func DefaultPrefix(baseURL, name string) string {
	return baseURL + "/topicmaps/" + url.PathEscape(name) + "/"
}

// PrefixFor returns the source locator prefix of a new collection: the given one, if it is valid and no other
// collection has it; nil: the default one. If the base URL is not public, that has a random part, which the node keeps,
// so that a collection created again gets it again. Otherwise two servers on http://127.0.0.1:8080 would give different
// topics one name, and followers of both would merge them. If a renamed collection has the default prefix, the new one
// has another random part. Replicas have the prefixes of their origins.
func (s *Server) PrefixFor(ctx context.Context, name string, given *string) (string, error) {
	prefix := DefaultPrefix(s.BaseURL, name)
	if given != nil {
		prefix = *given
		if err := fragment.ValidatePrefix(prefix); err != nil {
			return "", web.Problemf(http.StatusUnprocessableEntity, "%s", err)
		}
	} else if !s.URLs.Public() {
		node := s.Store.Node()
		prefix = fmt.Sprintf("%s%x/", prefix, node[:6])
	}
	all, err := s.Store.Collections(ctx)
	for i := range all {
		c := &all[i]
		if c.SP != prefix || c.Name == name || c.Replica != nil {
			continue
		}
		if given != nil {
			return "", web.Problemf(http.StatusConflict, "%s is the source locator prefix of the collection %q: different "+
				"topics of the two could have one identifier, and be merged; give %q another one", prefix, c.Name, name)
		}
		part := uuid.New()
		return fmt.Sprintf("%s%x/", prefix, part[:6]), nil
	}
	return prefix, err
}

// warnOfMoves logs the effects on topics' identifiers and on followers if the base URL differs from the last start, or
// is the first.
func (s *Server) warnOfMoves(ctx context.Context) error {
	before, unwritten := s.Store.NoteBaseURL(ctx, s.BaseURL)
	if before == s.BaseURL || unwritten != nil && s.Store.MayWrite() == nil {
		return unwritten
	}
	all, err := s.Store.Collections(ctx)
	switch {
	case before == "" && len(all) == 0 && !s.URLs.Public():
		s.Logger.Info("identifiers of topics are made of --base-url, and stay: to go public, publish the map afresh, with "+
			"the public --base-url and another --data", "base-url", s.BaseURL)
	case before != "" && len(all) > 0:
		s.Logger.Warn("the base URL has changed: followers go on once the former one leads to it for good (308), or with "+
			"\"tmshare-client source set-url NAME URL\"; their copies stay", "base-url", s.BaseURL, "former", before)
	}
	for i := range all {
		c := &all[i]
		base, rest, ok := strings.Cut(c.SP, "/topicmaps/")
		if c.Replica != nil || !ok || strings.Contains(rest, "#") || base == s.BaseURL { // a replica has the origin's
			continue
		}
		advice := "nothing needs to be done: the names of its topics stay valid"
		if !addresses.Base(base).Public() {
			advice = "the names of its topics stay valid, but lead nobody to them. To have public ones, publish the map " +
				"afresh, with this --base-url and another --data, before others subscribe"
		}
		if !s.Store.Alone() {
			advice = "give all servers on this database the same --base-url. Where they have it, " + advice
		}
		s.Logger.Warn("the source locator prefix was made of another base URL and stays as it is", "collection", c.Name,
			"prefix", c.SP, "base-url", s.BaseURL, "advice", advice)
	}
	return err
}
