package server

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// StateTag returns an ETag for the response to r that depends on a state of a collection, so that a 304 needs no
// response to be made. The state must have all that the response depends on, except configuration and program.
func (s *Server) StateTag(r *http.Request, state string) string {
	b := make([]byte, 0, 512)
	b = append(b, state...)
	b = append(b, 0)
	b = append(b, r.URL.Path...)
	b = append(b, 0)
	return web.Digest(append(b, s.program...))
}

// StateOf returns all that may change of a collection, except its snapshots.
func StateOf(c *store.Collection) string {
	settings, _ := json.Marshal(&c.Settings) // numbers and strings: this cannot fail
	b := append(settings, c.Epoch[:]...)
	for _, n := range []uint64{c.Head, c.Horizon, uint64(len(c.Segments)), uint64(c.Updated.UnixMicro()), uint64(c.Topics),
		uint64(c.Run), c.Hashed} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return string(b)
}

// ifMatch compares the state of the collection with the one known to the writer: an If-Match with the ETag of the Topic
// Map Feed, in any content coding, prevents lost updates (RFC 9110 §13.1.1, If-Match). It is called with the state to
// which the write is applied. tags are also accepted.
func (s *Server) ifMatch(r *http.Request, c *store.Collection, tags ...string) error {
	if none := r.Header.Values("If-None-Match"); web.NamesETag(none, "", false) {
		return web.Problemf(http.StatusPreconditionFailed, "%s is there", c.Name)
	}
	given := r.Header.Values("If-Match")
	if len(given) == 0 {
		// RFC 9110 §13.1.4, If-Unmodified-Since
		if since, err := http.ParseTime(r.Header.Get("If-Unmodified-Since")); err == nil &&
			c.Updated.Truncate(time.Second).After(since) {
			return web.Problemf(http.StatusPreconditionFailed, "%s has changed since, at %s", c.Name,
				c.Updated.Format(http.TimeFormat))
		}
		return nil
	}
	tag, err := s.topicMapTag(c)
	if err != nil {
		return err
	}
	for _, t := range append(tags, tag) {
		if web.NamesVersion(given, t) {
			return nil
		}
	}
	return web.Problemf(http.StatusPreconditionFailed, `%s has changed since: its ETag is "%s" now`, c.Name, tag)
}

// topicMapTag returns the ETag of the Topic Map Feed, without quotes.
func (s *Server) topicMapTag(c *store.Collection) (string, error) {
	var b bytes.Buffer
	err := s.topicMapDocument(c).Encode(&b)
	return web.Digest(b.Bytes()), err
}
