// Package addresses has the URLs of a server's documents. No other code builds them, because readers follow links.
package addresses

import (
	"fmt"
	"net/url"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
)

// SeqPattern is a regular expression for numbers in addresses, which have one spelling.
const SeqPattern = "0|[1-9][0-9]{0,17}"

// Base is the URL under which a server is reached, without a slash at its end.
type Base string

// Overview is the URL of the Topic Maps Feed.
func (b Base) Overview() string { return string(b) + "/topicmaps" }

// Map is the URL of the Topic Map Feed of a collection.
func (b Base) Map(c *store.Collection) string { return b.Overview() + "/" + url.PathEscape(c.Name) }

// Snapshots is the URL of the Snapshots Feed.
func (b Base) Snapshots(c *store.Collection) string { return b.Map(c) + "/snapshots" }

// Snapshot is the URL of a snapshot.
func (b Base) Snapshot(c *store.Collection, id uuid.UUID) string {
	return b.Snapshots(c) + "/" + id.String()
}

// Current is the URL of the map as it is now.
func (b Base) Current(c *store.Collection) string { return b.Snapshots(c) + "/current" }

// Checkpoint is the URL of the signed checkpoint of the log.
func (b Base) Checkpoint(c *store.Collection) string { return b.Map(c) + "/checkpoint" }

// Openings is the URL of the list of the openings of the database.
func (b Base) Openings(c *store.Collection) string { return b.Map(c) + "/openings" }

// Digest is the URL of the root of the tree of the state digest.
func (b Base) Digest(c *store.Collection) string { return b.Map(c) + "/digest" }

// Fragments is the URL of the Topic Fragments Feed.
func (b Base) Fragments(c *store.Collection) string { return b.Map(c) + "/fragments" }

// Fragment is the URL of the fragment of an entry.
func (b Base) Fragment(c *store.Collection, e *store.Entry) string {
	return b.Fragments(c) + "/" + c.ID(e).String()
}

// Memento returns the URL of a topic's version after an entry.
func (b Base) Memento(c *store.Collection, e *store.Entry) string {
	return b.Map(c) + "/mementos/" + c.ID(e).String()
}

// Topic is the URL of a topic.
func (b Base) Topic(c *store.Collection, topicSI fragment.Ref) string {
	return b.Map(c) + "/topics/" + url.PathEscape(fragment.Key(topicSI))
}

// Archive returns the permanent URL of document n of a feed that is made of the log. It contains the run of the
// document's last entry, so it never names other content, even after the data folder was reset to an older copy. It
// stays the same when the document is closed, unless the server was restarted while the document was open: then the
// former URL redirects to it.
func Archive(v *store.View, feed string, n uint64) (string, error) {
	run, _, err := v.DocumentRun(n)
	return fmt.Sprintf("%s/archive/%s-%d", feed, v.History(run), n), err
}
