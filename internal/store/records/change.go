package records

import (
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Changing is a state of a source's records that can be changed.
type Changing interface {
	PutTopic(*fragment.Topic) error
	DeleteTopic(*fragment.Topic) error
	PutAssociation(*fragment.Association) error
	DeleteAssociation(*fragment.Association) error
}

// ApplyChange writes the records of a change. It deletes first, so that identifiers can move between topics.
func ApplyChange(state Changing, change *fragment.Change) error {
	if err := expecting(state, change.DeleteAssociations, State.ExpectAssociations, state.DeleteAssociation); err != nil {
		return err
	}
	going := make([]*fragment.Topic, len(change.DeleteTopics))
	for i, ref := range change.DeleteTopics {
		going[i] = &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref}}}
	}
	for _, topics := range [][]*fragment.Topic{going, change.PutTopics} {
		if err := expecting(state, topics, State.expectRecords, state.DeleteTopic); err != nil {
			return err
		}
	}
	if err := expecting(state, change.PutTopics, State.expectRecords, state.PutTopic); err != nil {
		return err
	}
	return expecting(state, change.PutAssociations, State.ExpectAssociations, state.PutAssociation)
}

// Cover marks the entries of a change that are covered (see [fragment.Change.Cover]). It is called before the change is
// applied.
func Cover(state *Cached, change *fragment.Change) error {
	if len(change.PutAssociations)+len(change.DeleteAssociations) == 0 {
		return nil
	}
	if state.tx.Distant() {
		if err := expectCover(state, change); err != nil {
			return err
		}
	}
	return change.Cover(state, state.Stored)
}

// expectCover prefetches the data for covered entries.
func expectCover(state *Cached, change *fragment.Change) error {
	for some := range slices.Chunk(change.PutAssociations, txn.AtOnce) {
		if err := state.ExpectAssociations(some); err != nil {
			return err
		}
	}
	play := map[fragment.Ref]bool{}
	for _, all := range [][]*fragment.Association{change.PutAssociations, change.DeleteAssociations} {
		for _, a := range all {
			for _, player := range a.Players() {
				play[player] = true
			}
		}
	}
	var topics []fragment.Ref
	for i := range change.Entries {
		if ref := change.Entries[i].TopicSI; play[ref] {
			topics = append(topics, ref)
		}
	}
	return state.Expect(topics, nil)
}

// expecting calls f with each item. Before that, it prefetches batches of items by expect.
func expecting[T any](state Changing, items []T, expect func(State, []T) error, f func(T) error) error {
	stored, ok := state.(interface{ records() State })
	for some := range slices.Chunk(items, txn.AtOnce) {
		if ok && stored.records().tx.Distant() {
			if err := expect(stored.records(), some); err != nil {
				return err
			}
		}
		for _, item := range some {
			if err := f(item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s State) records() State { return s }

// expectRecords prefetches the records of topics to be changed.
func (s State) expectRecords(topics []*fragment.Topic) error {
	refs := make([]fragment.Ref, len(topics))
	for i, t := range topics {
		refs[i] = t.TopicSI()
	}
	return s.tx.Expect(s.locatorKeys(refs, keys.TableTopic), nil)
}

// ExpectAssociations prefetches associations to be changed.
func (s State) ExpectAssociations(associations []*fragment.Association) error {
	var all [][]byte
	for _, a := range associations {
		for _, part := range partsOf(a) {
			all = append(all, s.likeKey(a, part))
		}
	}
	return s.tx.Expect(all, nil)
}
