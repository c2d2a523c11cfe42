package server

import (
	"net/http"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// replicaLinks returns the links from the fragments feed of a replica to that of its origin.
func replicaLinks(c *store.Collection) []feeds.Link {
	var links []feeds.Link
	if c.Replica != nil {
		links = append(links, feeds.Link{Rel: feeds.RelOrigin, Type: feeds.MediaTypeAtom, Href: c.Replica.Origin})
	}
	for _, mirror := range c.Mirrors {
		links = append(links, feeds.Link{Rel: feeds.RelDuplicate, Type: feeds.MediaTypeAtom, Href: mirror + "/fragments"})
	}
	return links
}

// replicaState returns all that may change of a replica besides its log.
func replicaState(c *store.Collection) string {
	if c.Replica == nil {
		return ""
	}
	return c.Replica.Origin + c.Replica.Checkpoint
}

// CanBeFollowed returns an error if the log of a replica does not go back to the beginning, and no snapshot precedes
// it, because new followers would take the rest for the whole. The next snapshot ends this.
func CanBeFollowed(l *store.Latest) error {
	if l.Replica == nil || l.Horizon == 0 || len(l.Snapshots) > 0 && l.Snapshots[0].Seq >= l.Horizon {
		return nil
	}
	p := web.Problemf(http.StatusServiceUnavailable,
		"this replica has no snapshot yet that its log goes on from: ask again in a few seconds, or ask the origin, %s",
		l.Replica.Origin)
	p.RetryAfter = 5 * time.Second
	return p
}

// canWrite returns an error if the origin of a replica writes an entry's fragment in a format that is not supported
// here, because an entry has the same bytes everywhere.
func canWrite(v *store.View, e *store.Entry) error {
	if e.CanBeWritten() {
		return nil
	}
	return web.Problemf(http.StatusServiceUnavailable,
		"the origin of this replica writes this fragment in way %d, which this server does not know: update it, or ask "+
			"the origin, %s", e.RenderedBy(), v.Replica.Origin)
}

// available returns an error if the fragment of a replica's entry could not be fetched yet.
func available(v *store.View, e *store.Entry) error {
	if v.Replica == nil {
		return nil
	}
	missing, err := v.Quarantined(e.TopicSI)
	if err == nil && missing {
		err = web.Problemf(http.StatusServiceUnavailable,
			"this replica could not fetch what its origin says of %s; it tries again: ask later, or ask the origin, %s",
			e.TopicSI, v.Replica.Origin)
	}
	return err
}
