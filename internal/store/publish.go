package store

import (
	"context"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
)

// Publish changes a collection: decide reads the published state and says what
// is to change. Records, log entries and fragments are committed at once; what
// is empty publishes nothing. It returns the collection after the commit.
//
// Writers run one at a time, so decide sees the state that its change applies
// to; it must not keep it.
func (db *DB) Publish(ctx context.Context, name string, decide func(Collection, merge.State) (*fragment.Change, error)) (*Collection, error) {
	var c *Collection
	err := db.update(func(t *tx) error {
		var err error
		if c, err = getCollection(t, name); err != nil {
			return err
		}
		state := &decodedRecords{records: records{t, c.source()}}
		change, err := decide(*c, state)
		if err != nil || change == nil || change.Empty() {
			return err
		}
		if err := db.keepFirstFragments(ctx, t, c, state, change); err != nil {
			return err
		}
		if err := applyChange(state, change); err != nil {
			return err
		}
		c.Topics += change.Added - len(change.DeleteTopics)
		data, err := renderAll(ctx, c, state, change.Entries)
		if err != nil {
			return err
		}
		for i := range change.Entries {
			e := c.next(db.now(), change.Entries[i])
			if err := db.succeed(t, c, &e, data[i]); err != nil {
				return err
			}
			if err := logRows(c, &e, data[i], t.put); err != nil {
				return err
			}
		}
		return t.putCollection(c)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// succeed puts e in the place of the last entry of its key. data is its fragment, or nil.
func (db *DB) succeed(t *tx, c *Collection, e *Entry, data *Fragment) error {
	v := View{Collection: *c, db: db, tx: t}
	last, err := v.Last(fragment.Key(e.TopicSI))
	if err != nil {
		return err
	}
	if last != nil {
		e.Prior, e.Modified = last.Seq, last.Lives()
		if e.Patches, err = v.patches(last, e, data); err != nil {
			return err
		}
	}
	return forgetSuperseded(t, c, e.TopicSI)
}

// keepFirstFragments stores the fragments of first entries, which are not stored
// when a collection is created, before their topics change.
func (db *DB) keepFirstFragments(ctx context.Context, t *tx, c *Collection, prior fragment.Source, change *fragment.Change) error {
	v := View{Collection: *c, db: db, tx: t}
	var first []*Entry
	var toRender []fragment.Entry
	for i := range change.Entries {
		last, err := v.Last(fragment.Key(change.Entries[i].TopicSI))
		if err != nil {
			return err
		}
		if last == nil || last.Seq <= c.Horizon || last.Stored || last.Deleted || last.Topic != "" {
			continue // a large closing entry describes a topic that may be gone
		}
		first = append(first, last)
		toRender = append(toRender, fragment.Entry{TopicSI: last.TopicSI, Topic: last.TopicSI})
	}
	data, err := renderAll(ctx, c, prior, toRender)
	if err != nil {
		return err
	}
	for i, e := range first {
		if data[i] == nil {
			continue // too large: it stays unstored, and shows the topic as it will be
		}
		if err := logRows(c, e, data[i], t.put); err != nil {
			return err
		}
	}
	return nil
}

// applyChange writes the records of a change. What goes is deleted first, so
// that identifiers can move from one topic to another.
func applyChange(state merge.State, change *fragment.Change) error {
	for _, a := range change.DeleteAssociations {
		if err := state.DeleteAssociation(a); err != nil {
			return err
		}
	}
	for _, ref := range change.DeleteTopics {
		if err := state.DeleteTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref}}}); err != nil {
			return err
		}
	}
	for _, t := range change.PutTopics {
		if err := state.DeleteTopic(t); err != nil {
			return err
		}
	}
	for _, t := range change.PutTopics {
		if err := state.PutTopic(t); err != nil {
			return err
		}
	}
	for _, a := range change.PutAssociations {
		if err := state.PutAssociation(a); err != nil {
			return err
		}
	}
	return nil
}
