package publish

import (
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// Published is the answer to a change: how many entries it made, and the time
// of the collection's last change.
type Published struct {
	Collection string `json:"collection"`
	Added      int    `json:"added"`
	Updated    int    `json:"updated"`
	Deleted    int    `json:"deleted"`
	Topics     int    `json:"topics"`
	LastChange string `json:"lastChange,omitempty"`

	// DryRun states that nothing was published: the counts are of the possible changes. Changes are the first of them.
	DryRun  bool           `json:"dryRun,omitempty"`
	Changes []ChangedTopic `json:"changes,omitempty"`

	// SP is the source locator prefix that the collection would get, in a dry run for a missing collection.
	SP string `json:"sp,omitempty"`

	// Warnings list the rules that the document violates, how it was read nevertheless, and omitted content; and that
	// its ids were renumbered.
	Warnings []formats.Warning `json:"warnings,omitempty"`

	// DroppedItemIdentifiers counts the item identifiers of the document that
	// another statement had already.
	DroppedItemIdentifiers int `json:"droppedItemIdentifiers,omitempty"`
}

// note counts a change. The store may decide more than once.
func (d *Published) note(change *fragment.Change) {
	d.Added, d.Updated, d.Deleted, d.Warnings = change.Added, change.Updated, change.Deleted, nil
	if n := change.Renumbered; n > 0 {
		d.Warnings = []formats.Warning{{Rule: losses.RenumberedRule, Times: n, Text: losses.RenumberedWarning(n)}}
	}
}

// warn adds the tolerated faults of the published document.
func (d *Published) warn(tolerated *xtm.Tally) {
	d.DroppedItemIdentifiers = tolerated.Times(xtm.ItemIdentifiers)
	d.Warnings = append(d.Warnings, formats.Warnings(tolerated)...)
}

// ChangedTopic is a topic of which a dry run would publish a fragment.
type ChangedTopic struct {
	TopicSI string `json:"topicSI"`
	Title   string `json:"title,omitempty"`
	Change  string `json:"change"` // "added", "updated", "deleted"
}

// maxChanges is the maximum number of topics that a dry run lists.
const maxChanges = 1000

// preview notes a change of the published state, and lists its first topics.
func (d *Published) preview(published merge.State, change *fragment.Change) error {
	d.note(change)
	d.Changes = nil // the store may call this repeatedly
	for _, e := range change.Entries[:min(len(change.Entries), maxChanges)] {
		c := ChangedTopic{TopicSI: string(e.TopicSI), Title: e.Title, Change: "updated"}
		old, err := published.Topic(e.TopicSI)
		switch {
		case err != nil:
			return err
		case e.Deleted:
			c.Change = "deleted"
		case e.Topic == e.TopicSI && (old == nil || old.TopicSI() != e.TopicSI):
			c.Change = "added"
		}
		d.Changes = append(d.Changes, c)
	}
	return nil
}
