package server

import (
	"bytes"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/internal/store"
)

// ifMatch checks that the collection is as the writer knows it: an If-Match with
// the ETag of the Topic Map Feed, in whatever content coding it was got, guards
// against lost updates (RFC 9110 §13.1.1, If-Match). It is called with the state
// that the write applies to. tags are those that will do as well.
func (s *Server) ifMatch(r *http.Request, c *store.Collection, tags ...string) error {
	if none := r.Header.Values("If-None-Match"); names(none, "", false) {
		return problem(http.StatusPreconditionFailed, "%s is there", c.Name)
	}
	given := r.Header.Values("If-Match")
	if len(given) == 0 {
		// RFC 9110 §13.1.4, If-Unmodified-Since
		if since, err := http.ParseTime(r.Header.Get("If-Unmodified-Since")); err == nil && c.Updated.Truncate(time.Second).After(since) {
			return problem(http.StatusPreconditionFailed, "%s has changed since, at %s", c.Name, c.Updated.Format(http.TimeFormat))
		}
		return nil
	}
	tag, err := s.topicMapTag(c)
	if err != nil {
		return err
	}
	for _, t := range append(tags, tag) {
		for _, in := range []coding{identity, gzipped, zstd1} {
			if names(given, (&validator{tag: t}).etag(in), false) {
				return nil
			}
		}
	}
	return problem(http.StatusPreconditionFailed, `%s has changed since: its ETag is "%s" now`, c.Name, tag)
}

// topicMapTag returns the ETag of the Topic Map Feed, without quotes.
func (s *Server) topicMapTag(c *store.Collection) (string, error) {
	var b bytes.Buffer
	err := s.topicMapDocument(c).Encode(&b)
	return digest(b.Bytes()), err
}
