// Package atompmh is an extension: records are offered in feeds, and such feeds are followed (Atom Feed Protocol for
// Metadata Harvesting 1.0).
package atompmh

import (
	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/follow"
)

// Extension returns it.
func Extension() extension.Extension {
	return extension.Extension{Name: "atompmh", Protocols: []follow.Protocol{Protocol()}, Serve: serve}
}

// Protocol returns how a feed of records is followed.
func Protocol() follow.Protocol {
	return follow.Protocol{
		Name: "atom-pmh", Segment: "records", Rel: feeds.RelRecordsFeed,
		Open: func(r *follow.Access) (follow.Source, error) {
			return &Source{
				Fetcher: r.Fetcher, Limits: r.Feed, MaxDocs: r.MaxDocs, Scratch: r.Scratch, Progress: r.Documents,
				Check: func(d *follow.Document) error {
					if d.ServerSrcLocatorPrefix == "" {
						return nil // a feed of records need not declare it
					}
					return r.Check(d.ServerSrcLocatorPrefix, d.URL)
				},
			}, nil
		},
	}
}
