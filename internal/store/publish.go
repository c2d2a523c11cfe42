package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/merge"
)

// Publish changes a collection: decide reads the published state and returns the change. Records and log entries are
// committed at once; an empty change publishes nothing. It returns the collection after the commit.
//
// Writers of a collection run one at a time, so decide sees the state that its change applies to; it must not keep it,
// and its change must not be reused, because publishing modifies it. If ctx ends before the commit, the error is its
// cause and nothing is published.
func (db *DB) Publish(ctx context.Context, name string,
	decide func(Collection, merge.State) (*fragment.Change, error)) (*Collection, error) {
	return db.publish(ctx, db.rows.UpdateOf, name, writer{}, decide)
}

// Preview is Publish without the commit: nothing changes. It returns the collection as it would be.
func (db *DB) Preview(ctx context.Context, name string,
	decide func(Collection, merge.State) (*fragment.Change, error)) (*Collection, error) {
	return db.publish(ctx, db.rows.PreviewOf, name, writer{}, decide)
}

// writer is the publisher of a change: an extension, or "" for all other writers. kept, if not nil, may also change the
// row of the collection.
type writer struct {
	extension string
	kept      func(*Collection) error
}

// publish changes a collection with update.
func (db *DB) publish(ctx context.Context, update func(context.Context, string, func(*txn.Tx) error) error, name string,
	by writer, decide func(Collection, merge.State) (*fragment.Change, error)) (*Collection, error) {
	var c *Collection
	var committed *txn.Tx
	err := update(ctx, name, func(t *txn.Tx) error {
		committed = t
		var err error
		if c, err = collections.Get(t, name); err != nil {
			return err
		}
		if err := cmp.Or(c.Bound(db.settings), c.WritableBy(by.extension)); err != nil {
			return err
		}
		t.Limit(db.maxPublication)
		along := func(si fragment.Ref) []byte { return collections.TopicKey(c, si) }
		state := records.Cache(records.In(t, c.SourceKey()).Along(along))
		change, err := decide(*c, state)
		if !db.shared {
			decide = nil // it may hold a whole map, and is not called again
		}
		if err == nil && by.kept != nil {
			err = by.kept(c)
		}
		if err != nil || change == nil || change.Empty() {
			return err
		}
		if c.Language == "" && 2*len(change.PutTopics) >= c.Topics { // such as the first version
			count := titles.Count{}
			for _, topic := range change.PutTopics {
				topic.CountLanguages(count)
			}
			c.Language = count.Most()
		}
		if err := records.Cover(state, change); err != nil {
			return err
		}
		if err := entitle(c, change.Entries, true, state.State); err != nil {
			return err
		}
		if err := records.ApplyChange(state, change); err != nil {
			return err
		}
		if err := entitle(c, change.Entries, false, state.State); err != nil {
			return err
		}
		t.ExpectEndSoon() // while the log is written
		c.Topics += state.AddedTopics()
		past.Record(t, c.SourceKey(), c.Head, func() (uint64, error) { return c.Head, nil })
		change.PutTopics, change.PutAssociations, change.DeleteAssociations = nil, nil, nil // they may be many
		log := db.appender(t, c)
		log.Put, log.Author, log.Note = t.PutUnread, change.Author, change.Note
		if err := log.Append(change.Entries, true); err != nil {
			return err
		}
		return collections.Put(t, c)
	})
	if err != nil {
		return nil, err
	}
	db.published(committed, c)
	return c, nil
}

// entitle is [collections.Collection.Entitle] where that may change titles: where the map has a language, or labels
// that are resources.
func entitle(c *Collection, entries []fragment.Entry, deleting bool, state records.State) error {
	labels, err := (&fragment.Names{In: state}).HaveLabels()
	if err != nil || !labels && len(c.Languages()) == 0 {
		return err
	}
	return c.Entitle(entries, deleting, state.Title)
}

// appender returns the appender to the log of a collection in a commit.
func (db *DB) appender(t *txn.Tx, c *Collection) *collections.Appender {
	return &collections.Appender{
		C: c, T: t, Put: t.Put, Signed: c.Sign != "", Now: db.now, Run: db.run.Load,
		Digest: func() (string, error) { return c.Digest(t) },
	}
}

// PublishLocal is Publish for local statements: it keeps an activity with it.
func (db *DB) PublishLocal(ctx context.Context, name string,
	decide func(Collection, merge.State) (*fragment.Change, error)) (*Collection, error) {
	// all activities are in one place
	alone := func(ctx context.Context, _ string, f func(*txn.Tx) error) error { return db.rows.Update(ctx, f) }
	return db.publish(ctx, alone, name, writer{}, func(c Collection, state merge.State) (*fragment.Change, error) {
		change, err := decide(c, state)
		if err != nil || change.Empty() {
			return change, err
		}
		a := Activity{Source: name, Kind: ActivityEdited}
		for _, e := range change.Entries[:min(len(change.Entries), maxEntries)] {
			state := "live"
			if e.Deleted {
				state = "deleted"
			}
			a.Entries = append(a.Entries, sources.ActivityEntry{TopicSI: string(e.TopicSI), Title: e.Title, State: state,
				Updated: db.now().UTC()})
		}
		if left := len(change.Entries) - len(a.Entries); left > 0 {
			a.Note = fmt.Sprintf("and %d more", left)
		}
		return change, db.Note(state.(interface{ Tx() *txn.Tx }).Tx(), a)
	})
}

// maxEntries is the number of entries that an activity of local statements lists.
const maxEntries = 200
